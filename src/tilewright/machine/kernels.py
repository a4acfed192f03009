"""All kernels of a platform."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import overload

from msgspec.structs import replace

from tilewright.machine.kernel import Kernel
from tilewright.machine.kernel_files import KernelFile
from tilewright.machine.terms import weighted


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
        self._by_op: dict[str, tuple[Kernel, ...]] = {}

    def own(self) -> list[Kernel]:
        """Those of a user's files."""
        return [kernel for file in self.files if file.own for kernel in self._of_file(file)]

    def measured(self, coefficients: Mapping[str, Mapping[str, float]]) -> Kernels:
        """The same with coefficients."""
        return Kernels(self.files, self._engines, coefficients)

    def of(self, op: str) -> tuple[Kernel, ...]:
        """Those for an operator."""
        if op not in self._by_op:
            parsed = (kernel for file in self.files if op in file.ops for kernel in self._of_file(file))
            self._by_op[op] = tuple(kernel for kernel in parsed if kernel.op == op)
        return self._by_op[op]

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


def own_kernels(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Those of a platform that did not come with the package."""
    return kernels.own() if isinstance(kernels, Kernels) else []
