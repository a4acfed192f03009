"""Files of kernels in the folders of a platform. One is parsed when something asks for an operator that it is for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property, lru_cache
from pathlib import Path

from msgspec import Struct

from tilewright.base.descriptions import read_text
from tilewright.machine.kernel import Kernel, parse_kernels

PLATFORMS = Path(__file__).parent.parent / "platforms"
"""What comes with the package."""
_OP = re.compile(r"^op:[ \t]*(\w+)[ \t]*$", re.MULTILINE)
_TERMS = re.compile(r"^cycles:[ \t]*(?:$|[{#])", re.MULTILINE)


class KernelFile(Struct, frozen=True, dict=True):
    """A file of kernels, and what can be told of it without parsing its header."""

    path: Path

    @cached_property
    def text(self) -> str:
        return read_text(self.path, "bad-kernel")

    @cached_property
    def ops(self) -> tuple[str, ...]:
        """The operators that it is for."""
        found = _OP.search(self.text)
        return (found[1],) if found else tuple(kernel.op for kernel in self.parsed())

    @property
    def has_terms(self) -> bool:
        """Whether its cycles are a sum of terms that are measured."""
        return _TERMS.search(self.text) is not None

    @property
    def own(self) -> bool:
        """Whether it is a user's, and did not come with the package."""
        return not self.path.is_relative_to(PLATFORMS)

    def parsed(self) -> tuple[Kernel, ...]:
        return parse_kernels(self.path, self.text)


def kernel_files(folders: Iterable[Path]) -> tuple[KernelFile, ...]:
    """Those of all folders; a file takes the place of one of the same name in a later folder."""
    # By the same path from wherever they are named, so that each file is read once.
    places = [place.resolve() for place in folders]
    found = tuple(map(KernelFile, first_of_each_name(path for place in places for path in files_of(place, "*.c"))))
    for file in found:
        if file.own:
            # A user is told of a mistake at once, also where the network has no use for the kernel.
            file.parsed()
    return found


def files_of(folder: Path, pattern: str) -> tuple[Path, ...]:
    """Those of a folder, by name; what comes with the package stays as it is, so it is looked up once in a process."""
    return _shipped_files(folder, pattern) if folder.is_relative_to(PLATFORMS) else _listed(folder, pattern)


def _listed(folder: Path, pattern: str) -> tuple[Path, ...]:
    return tuple(sorted(folder.glob(pattern), key=lambda path: path.name))


_shipped_files = lru_cache(maxsize=64)(_listed)


def first_of_each_name(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Files in the order given; one takes the place of those of the same name behind it."""
    found: dict[str, Path] = {}
    for path in paths:
        found.setdefault(path.name, path)
    return tuple(found.values())
