#!/usr/bin/env bash
# Makes .venv with Tilewright and everything its tests need; called by the Makefile, and safe to call again.
# What Debian packages is missing (Python's venv, a C compiler, clang, cmake) comes from apt-get where that may be used.
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
has_compiler() { builds cc; }
has_clang() { builds clang; }
has_clang_sanitizers() { builds clang -fsanitize=address,undefined; }
has_cmake() { command -v cmake >/dev/null; }

missing_packages() {
    has_python || echo python3
    has_venv || echo python3-venv
    has_compiler || echo gcc libc6-dev
    has_clang || echo clang libc6-dev
    has_clang_sanitizers || ! apt-cache show libclang-rt-dev >/dev/null 2>&1 || echo libclang-rt-dev
    has_cmake || echo cmake make
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
    has_compiler || die "no working C compiler 'cc'" "$hint"
    has_clang_sanitizers || say "note: no clang with sanitizers; tests that build with it will fail ($hint)"
    has_cmake || say "note: no cmake; tests that build with it will fail ($hint)"
}

check_system
digest=$("$python" -c 'import hashlib; print(hashlib.sha256(open("pyproject.toml", "rb").read()).hexdigest())')
# A fresh time stamp alone (a switch of branches) installs nothing, so this works without a network.
if [ "$(cat "$ready" 2>/dev/null)" = "$digest" ] && "$venv/bin/python" -c 'pass' 2>/dev/null; then
    touch "$ready"
    exit 0
fi
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    say "making $venv with $("$python" -V)"
    "$python" -m venv --clear "$venv"
fi
say "installing tilewright and its tools into $venv (a few minutes the first time)"
"$venv/bin/python" -m pip install -qq --disable-pip-version-check --editable '.[dev]' ||
    die "pip could not install the packages" "is the package index reachable?"
echo "$digest" >"$ready"
say "ready"
