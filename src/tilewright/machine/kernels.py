"""All kernels of a platform. A file is parsed when something asks for an operator that it is for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import overload

from msgspec import Struct
from msgspec.structs import replace

from tilewright.base.descriptions import read_text
from tilewright.machine.kernel import Kernel, parse_kernels
from tilewright.machine.terms import weighted

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

    def parsed(self) -> tuple[Kernel, ...]:
        return parse_kernels(self.path, self.text)


class Kernels(Sequence[Kernel]):
    """Kernels of some files, in their order.

    `engines` are those that stand in place of engines in headers. `coefficients` are those of terms, by the name of
    the file: cycles that were measured here; of others, each count of a term takes one.
    """

    def __init__(
        self,
        files: Sequence[KernelFile],
        engines: Mapping[str, str],
        coefficients: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
    ) -> None:
        self.files, self._engines, self._coefficients = files, engines, coefficients
        self._parsed: dict[Path, tuple[Kernel, ...]] = {}

    def measured(self, coefficients: Mapping[str, Mapping[str, float]]) -> Kernels:
        """The same with coefficients."""
        return Kernels(self.files, self._engines, coefficients)

    def of(self, op: str) -> list[Kernel]:
        """Those for an operator."""
        return [kernel for file in self.files if op in file.ops for kernel in self._of_file(file) if kernel.op == op]

    def _of_file(self, file: KernelFile) -> tuple[Kernel, ...]:
        if file.path not in self._parsed:
            self._parsed[file.path] = tuple(self._here(kernel) for kernel in file.parsed())
        return self._parsed[file.path]

    def _here(self, kernel: Kernel) -> Kernel:
        measured = self._coefficients.get(kernel.path.name) if kernel.terms else None
        cycles = kernel.cycles if measured is None else weighted(kernel.terms, measured)
        return replace(kernel, engine=self._engines.get(kernel.engine, kernel.engine), cycles=cycles)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kernels) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(file.path for file in self.files))

    def __len__(self) -> int:
        return sum(len(file.ops) for file in self.files)

    def __iter__(self) -> Iterator[Kernel]:
        return (kernel for file in self.files for kernel in self._of_file(file))

    @overload
    def __getitem__(self, index: int) -> Kernel: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Kernel]: ...
    def __getitem__(self, index: int | slice) -> Kernel | Sequence[Kernel]:
        return tuple(self)[index]


def first_of_each_name(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Files in the order given; one takes the place of those of the same name behind it."""
    found: dict[str, Path] = {}
    for path in paths:
        found.setdefault(path.name, path)
    return tuple(found.values())
