"""Builds a C project with the compiler at hand."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tilewright.codegen.project import find_compiler
from tilewright.core.platform import Platform
from tilewright.errors import TilewrightError

STRICT = ("-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror")
SANITIZE = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@dataclass(frozen=True)
class Built:
    """A program built from a C project."""

    executable: Path
    command: tuple[str, ...]


def build(
    folder: Path, platform: Platform, name: str = "network", *, compiler: str = "", flags: tuple[str, ...] = ()
) -> Built:
    """Compiles every source of the project into one executable; compiler messages become an error."""
    path = find_compiler(compiler or platform.build["compiler"])
    executable = folder / name
    places = sorted({".", *(str(Path(name).parent) for name in platform.runtime), *platform.layout.values()})
    files = [p.relative_to(folder) for place in places for p in sorted((folder / place).iterdir())]
    sources = [str(p) for p in files if p.suffix in (".c", ".S")]
    inputs = (*(f"-I{place}" for place in places), "-o", executable.name, *sources)
    # Flags of the user come behind the sources, because they may name libraries.
    linked = (*platform.build.get("link", "").split(), *flags, *platform.build["libraries"].split())
    command = (path, *platform.build["flags"].split(), *inputs, *linked)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise TilewrightError(
            "build-failed",
            f"the C compiler refused '{folder}'",
            reasons=[" ".join(command), *done.stderr.splitlines()[:20]],
            help="try another compiler with --cc, or report the message with the network",
        )
    return Built(executable, command)
