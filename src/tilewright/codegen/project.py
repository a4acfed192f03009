"""The C project on disk: printed files, build files and the example program, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path

from tilewright.base.files import cannot_write
from tilewright.base.folders import written_folder
from tilewright.codegen.printer import print_programs
from tilewright.core.program import Program
from tilewright.errors import TilewrightError
from tilewright.machine.target import Target


def project_files(programs: Sequence[Program], platform: Target) -> dict[str, bytes]:
    """Every file of the C project by name; templates of the platform's runtime have @NAME@ etc. filled in."""
    network = programs[0].name
    header = platform.layout.get("header", ".")
    source = platform.layout.get("source", ".")
    files = {
        str(Path(header if name == f"{network}.h" else source) / name): data
        for name, data in print_programs(programs).items()
    }
    return files | runtime_files(network, [name for name in files if name.endswith((".c", ".S"))], platform)


def drivers(platform: Target) -> list[str]:
    """Sources of the platform's runtime that are the same for all networks."""
    return [place for place in platform.runtime if "/" not in place and place.endswith((".c", ".S"))]


def runtime_files(name: str, sources: Sequence[str], platform: Target) -> dict[str, bytes]:
    """What the platform's runtime adds to a network called `name` that is made of `sources`."""
    values = {
        "@NAME@": name,
        "@UPPER@": name.upper(),
        "@PLATFORM@": platform.name,
        "@SOURCES@": " ".join([*sources, *drivers(platform)]),
        "@COMPILER@": platform.build["compiler"],
        "@FLAGS@": platform.build["flags"],
        "@LINK@": platform.build.get("link", ""),
        "@LIBRARIES@": platform.build["libraries"],
        "@CORES@": str(next((engine.count for engine in platform.engines.values()), 1)),
        "@CODE@": platform.code,
        "@UART@": f"{platform.qemu.uart:#x}" if platform.qemu else "",
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


def write_project(files: Mapping[str, bytes], folder: Path, name: str = "network") -> None:
    """Writes all files of a network called `name` into `folder`; on any failure the folder is as it was before."""
    with written_project(files, folder, name):
        pass


@contextmanager
def written_project(files: Mapping[str, bytes], folder: Path, name: str = "network") -> Generator[None]:
    """The same; as long as the block lasts, no other process replaces them.

    A list of them is written, too. By it the next project of that name knows which files go with this one.
    """
    listed, content = _manifest(name), _content(files, name)

    def stale(place: Path) -> set[str]:
        before = _listed(place / listed)
        others = [_listed(other) for other in place.glob(_manifest("*")) if other.name != listed]
        kept = {*content, *(file for other in others for file in other)}
        return {file for file, digest in before.items() if file not in kept and _digest(place / file) == digest}

    with written_folder(folder, partial(_fill, content), stale, help="choose another folder with --output DIR"):
        yield


@contextmanager
def project_in(folder: Path | None, files: Mapping[str, bytes], name: str) -> Generator[Path]:
    """A project in a folder; where none is given, in one that goes with the block.

    Nobody misses that one after a crash, so the disk is not waited for.
    """
    if folder is not None:
        with written_project(files, folder, name):
            yield folder
        return
    with tempfile.TemporaryDirectory(prefix="tilewright-") as scratch:
        place = Path(scratch) / "project"
        with cannot_write(place):
            _fill(_content(files, name), place)
        yield place


def _content(files: Mapping[str, bytes], name: str) -> Mapping[str, bytes]:
    """Files of a project, and the list of them."""
    digests = {file: hashlib.sha256(data).hexdigest() for file, data in sorted(files.items())}
    return {**files, _manifest(name): (json.dumps({"files": digests}, indent=1) + "\n").encode()}


def _fill(content: Mapping[str, bytes], place: Path) -> None:
    for file, data in content.items():
        (place / file).parent.mkdir(parents=True, exist_ok=True)
        (place / file).write_bytes(data)


def written_names(folder: Path, name: str) -> tuple[str, ...]:
    """The files of the network called `name` in a folder, in the order of their names."""
    return tuple(sorted(_listed(folder / _manifest(name))))


def _manifest(name: str) -> str:
    """The file that lists what was written for a network, with a digest of each file."""
    return f".{name}.tilewright.json"


def _listed(path: Path) -> dict[str, str]:
    """Files and digests of a list; none where there is no list, or one that was not written here."""
    try:
        files = json.loads(path.read_text())["files"]
        found = {str(file): str(digest) for file, digest in files.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return {file: digest for file, digest in found.items() if not {"..", "/"} & set(Path(file).parts)}


def _digest(path: Path) -> str:
    """What tells a file that somebody has changed, which is theirs then, from one as it was written."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


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


@lru_cache
def compiler_version(name: str) -> str:
    """What a C compiler calls itself, in a line."""
    said = subprocess.run([find_compiler(name), "--version"], capture_output=True, text=True, check=False).stdout
    return (said.splitlines() or [""])[0]
