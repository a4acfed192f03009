"""The C project on disk: printed files, build files and the example program, written whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tilewright.codegen.printer import print_program
from tilewright.core.platform import Platform
from tilewright.core.program import Program
from tilewright.errors import TilewrightError


def project_files(program: Program, platform: Platform) -> dict[str, bytes]:
    """Every file of the C project by name; templates of the platform's runtime have @NAME@ etc. filled in."""
    header = platform.layout.get("header", ".")
    source = platform.layout.get("source", ".")
    files = {
        str(Path(header if name == f"{program.name}.h" else source) / name): data
        for name, data in print_program(program).items()
    }
    return files | runtime_files(program.name, [name for name in files if name.endswith((".c", ".S"))], platform)


def runtime_files(name: str, sources: Sequence[str], platform: Platform) -> dict[str, bytes]:
    """What the platform's runtime adds to a network called `name` that is made of `sources`."""
    drivers = [place for place in platform.runtime if "/" not in place and place.endswith((".c", ".S"))]
    values = {
        "@NAME@": name,
        "@UPPER@": name.upper(),
        "@PLATFORM@": platform.name,
        "@SOURCES@": " ".join([*sources, *drivers]),
        "@COMPILER@": platform.build["compiler"],
        "@FLAGS@": platform.build["flags"],
        "@LINK@": platform.build.get("link", ""),
        "@LIBRARIES@": platform.build["libraries"],
        "@CORES@": str(next((engine.count for engine in platform.engines.values()), 1)),
        "@CODE@": platform.code,
        "@MEMORIES@": "\n".join(
            f"  {m.name} : ORIGIN = {m.base:#x}, LENGTH = {max(m.length, (m.bytes or 0) + m.reserved):#x}"
            for m in platform.memories.values()
            if m.base is not None
        ),
    }
    files: dict[str, bytes] = {}
    for place, path in platform.runtime.items():
        text = _repeated(path.read_text(), sources)
        for mark, value in values.items():
            text = text.replace(mark, value)
        files[place.removesuffix(".in").replace("@NAME@", name)] = text.encode()
    return files


def _repeated(text: str, sources: Sequence[str]) -> str:
    """A template in which lines with @SOURCE@ are there for each source."""
    lines = text.splitlines(keepends=True)
    found = ([line.replace("@SOURCE@", name) for name in sources] if "@SOURCE@" in line else [line] for line in lines)
    return "".join(line for part in found for line in part)


def write_project(files: Mapping[str, bytes], folder: Path) -> None:
    """Writes all files into `folder`; on any failure the folder is as it was before."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".tilewright-") as staging:
            for name, data in files.items():
                (Path(staging) / name).parent.mkdir(parents=True, exist_ok=True)
                (Path(staging) / name).write_bytes(data)
            for name in files:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (Path(staging) / name).replace(folder / name)
    except OSError as reason:
        raise TilewrightError(
            "cannot-write",
            f"cannot write to '{folder}'",
            reasons=[str(reason)],
            help="choose another folder with --output DIR",
        ) from reason


def find_compiler(name: str) -> str:
    """The path of a C compiler, or an error that says how to get one."""
    found = shutil.which(name)
    if found is None:
        raise TilewrightError(
            "missing-compiler",
            f"the C compiler '{name}' is not on PATH",
            help="install one (Debian, Ubuntu: apt install gcc) or name another with --cc COMPILER",
        )
    return found
