#!/usr/bin/env bash
# Makes .venv with Tilewright and everything its tests need; called by the Makefile, and safe to call again.
# What Debian packages is missing (Python's venv, C and C++ compilers for this machine, RISC-V and Arm, clang, cmake,
# emulators) comes from apt-get where that may be used.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=${PYTHON:-python3}
venv=.venv
ready=$venv/.ready

say() { printf '\033[1m[setup]\033[0m %s\n' "$*"; }
die() {
    printf '[setup] error: %s\n' "$1" >&2
    shift
    [ $# -eq 0 ] || printf '[setup]   %s\n' "$@" >&2
    exit 1
}

has_python() { "$python" -c 'pass' 2>/dev/null; }
has_venv() { "$python" -c 'import ensurepip, venv' 2>/dev/null; }
# A compiler without the C library's headers (gcc without libc6-dev) counts as missing; so does clang without its sanitizers.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
builds() { printf '#include <stdio.h>\nint main(void) { return puts("") < 0; }\n' | "$@" -x c - -o "$scratch/a.out" 2>/dev/null; }
# The same for C++, with a header of its library that a compiler of C++20 has.
builds_cpp() { printf '#include <bit>\nint main() { return std::popcount(0u); }\n' | c++ -std=c++20 -x c++ - -o "$scratch/a.out" 2>/dev/null; }
has_compiler() { builds cc && builds_cpp; }
has_clang() { builds clang; }
has_clang_sanitizers() { builds clang -fsanitize=address,undefined; }
has_cmake() { command -v cmake >/dev/null; }
has_riscv_compiler() {
    builds riscv64-unknown-elf-gcc --specs=picolibc.specs -march=rv32imafc -mabi=ilp32f -c
}
has_emulator() { command -v qemu-riscv32 >/dev/null; }
has_arm_compiler() { builds arm-none-eabi-gcc --specs=nano.specs -mcpu=cortex-m4 -mthumb -c; }
has_arm_emulator() { command -v qemu-system-arm >/dev/null; }
# Tests build for x86 with wide vectors on every machine; elsewhere the emulator above runs what comes out.
has_x86_compiler() { [ "$(uname -m)" = x86_64 ] || builds x86_64-linux-gnu-gcc; }

missing_packages() {
    has_python || echo python3
    has_venv || echo python3-venv
    has_compiler || echo g++ libc6-dev
    has_clang || echo clang libc6-dev
    has_clang_sanitizers || ! apt-cache show libclang-rt-dev >/dev/null 2>&1 || echo libclang-rt-dev
    has_cmake || echo cmake make
    has_riscv_compiler || echo gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf
    has_emulator || echo qemu-user
    has_arm_compiler || echo gcc-arm-none-eabi libnewlib-arm-none-eabi
    has_arm_emulator || echo qemu-system-arm
    has_x86_compiler || echo gcc-x86-64-linux-gnu libc6-dev-amd64-cross
}

# Prints the prefix that makes apt-get usable (nothing for root); fails where there is none.
administrator() {
    command -v apt-get >/dev/null || return 1
    [ "$(id -u)" -ne 0 ] || return 0
    command -v sudo >/dev/null || return 1
    # Without a terminal sudo cannot ask for a password.
    sudo -n true 2>/dev/null || [ -t 0 ] || return 1
    echo sudo
}

install_packages() {
    local as
    if as=$(administrator); then
        say "installing with apt-get: $*"
        $as apt-get update -qq || say "apt-get update failed; trying with the package lists at hand"
        # Lists were empty before the update on a machine without any, so look again what there is to install.
        mapfile -t packages < <(missing_packages | tr ' ' '\n' | sort -u)
        $as env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${packages[@]}" >/dev/null ||
            say "apt-get install failed"
    fi
}

check_system() {
    mapfile -t packages < <(missing_packages | tr ' ' '\n' | sort -u)
    [ ${#packages[@]} -eq 0 ] || install_packages "${packages[@]}"

    local hint="on Debian or Ubuntu: apt-get install ${packages[*]:-}"
    has_python || die "'$python' not found" "$hint" "or name another one: make PYTHON=python3.12 ..."
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        die "Python 3.11 or newer is needed, '$python' is $("$python" -V 2>&1)" "name another one: make PYTHON=python3.12 ..."
    has_venv || die "'$python' cannot make virtual environments" "$hint"
    has_compiler || die "no working compilers 'cc' (C) and 'c++' (C++20)" "$hint"
    has_clang_sanitizers || say "note: no clang with sanitizers; tests that build with it will fail ($hint)"
    has_cmake || say "note: no cmake; tests that build with it will fail ($hint)"
    has_riscv_compiler || say "note: no riscv64-unknown-elf-gcc with picolibc; tests that compile for RISC-V will fail ($hint)"
    has_emulator || say "note: no qemu-riscv32; tests that compare with it will fail ($hint)"
    has_arm_compiler || say "note: no arm-none-eabi-gcc with newlib; tests that compile for Cortex-M will fail ($hint)"
    has_x86_compiler || say "note: no x86_64-linux-gnu-gcc; tests that build for x86 with wide vectors are skipped ($hint)"
    has_arm_emulator || say "note: no qemu-system-arm; tests that run programs for Cortex-M will fail ($hint)"
}

# Prints what tells the named files from other versions of them.
digest() { "$python" -c 'import hashlib, sys
print(hashlib.sha256(b"".join(name.encode() + open(name, "rb").read() for name in sys.argv[1:])).hexdigest())' "$@"; }
install() { "$venv/bin/python" -m pip install -qq --disable-pip-version-check "$@"; }

check_system
mapfile -t native < <(find native -type f | LC_ALL=C sort)
packages_digest=$(digest pyproject.toml)
native_digest=$(digest "${native[@]}")
{ read -r old_packages && read -r old_native; } 2>/dev/null <"$ready" || old_packages=
"$venv/bin/python" -m pip --version >/dev/null 2>&1 || old_packages=

# A fresh time stamp alone (a switch of branches) installs nothing, and a change of native code needs no package index,
# so both work without a network.
if [ "$old_packages" != "$packages_digest" ]; then
    if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        say "making $venv with $("$python" -V)"
        "$python" -m venv --clear "$venv"
    fi
    say "installing tilewright and its tools into $venv (a few minutes the first time)"
    install --editable '.[dev]' || die "pip could not install the packages" "is the package index reachable?"
    say "ready"
elif [ "$old_native" != "$native_digest" ]; then
    say "building the native part again"
    install --no-deps --no-build-isolation --editable . || die "the native part does not build"
    say "ready"
fi
# As pip does for all other packages: commands then do not compile Python first, also where bytecode is never written.
"$venv/bin/python" -m compileall -q src
printf '%s\n' "$packages_digest" "$native_digest" >"$ready"
