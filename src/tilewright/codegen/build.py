"""Builds a C project with the compiler at hand."""

from __future__ import annotations

import subprocess
from pathlib import Path

from msgspec import Struct

from tilewright.codegen.project import drivers, find_compiler, written_names
from tilewright.errors import TilewrightError
from tilewright.machine.target import Target

STRICT = ("-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror")
SANITIZE = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


class Built(Struct, frozen=True):
    """A program built from a C project."""

    executable: Path
    command: tuple[str, ...]


def build(
    folder: Path, platform: Target, name: str = "network", *, compiler: str = "", flags: tuple[str, ...] = ()
) -> Built:
    """Compiles the sources of a written project into one executable; compiler messages become an error.

    Other sources that lie in the folder are none of them.
    """
    path = find_compiler(compiler or platform.build["compiler"])
    executable = folder / name
    places = sorted({".", *(str(Path(name).parent) for name in platform.runtime), *platform.layout.values()})
    sources = sorted(
        (file for file in written_names(folder, name) if file.endswith((".c", ".S"))),
        key=lambda file: (str(Path(file).parent), file),
    )
    inputs = (*(f"-I{place}" for place in places), "-o", executable.name, *sources)
    # Flags of the user come behind the sources, because they may name libraries.
    linked = (*platform.build.get("link", "").split(), *flags, *platform.build["libraries"].split())
    command = (path, *platform.build["flags"].split(), *inputs, *linked)
    try:
        # What an earlier build left there must not pass for what this one makes.
        executable.unlink(missing_ok=True)
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, errors="backslashreplace", check=False
        )
    except (OSError, ValueError) as reason:
        raise _failed("the C compiler cannot be run", command, str(reason)) from reason
    if done.returncode:
        raise _failed(f"the C compiler refused '{folder}'", command, done.stderr)
    if not executable.is_file():
        raise _failed(f"the C compiler made no program of '{folder}'", command, done.stderr)
    return Built(executable, command)


def build_drivers(folder: Path, platform: Target, name: str, target: Path) -> tuple[str, ...]:
    """Compiles the sources of a written project that every network of the platform has; returns the objects' places.

    Given to `build` as flags, for projects without these sources, they save it half of its time.
    """
    path = find_compiler(platform.build["compiler"])
    found: list[str] = []
    for source in drivers(platform):
        found.append(str(target / f"{source}.o"))
        command = (path, *platform.build["flags"].split(), "-I.", "-c", source, "-o", found[-1])
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, errors="backslashreplace", check=False
        )
        if done.returncode:
            raise _failed(f"the C compiler refused '{name}'", command, done.stderr)
    return tuple(found)


def _failed(what: str, command: tuple[str, ...], said: str) -> TilewrightError:
    return TilewrightError(
        "build-failed",
        what,
        reasons=[" ".join(command), *said.splitlines()[:20]],
        help="try another compiler with --cc, or report the message with the network",
    )
