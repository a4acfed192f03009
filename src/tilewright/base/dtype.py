"""Element types: one table says how each is named, stored in numpy, stored in C and computed with in C."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np

Kind = Literal["float", "int", "uint", "bool"]


class DType(Struct, frozen=True, dict=True):
    """An element type. `ctype` is its storage in C, `compute` the C type that arithmetic on it uses."""

    name: str
    kind: Kind
    bits: int
    ctype: str
    compute: str

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        # Descriptions of platforms name types, but store no arrays: numpy is slow to import.
        import ml_dtypes
        import numpy as np

        return np.dtype(ml_dtypes.bfloat16 if self.name == "bfloat16" else self.name)

    @property
    def bytes(self) -> int:
        return max(1, self.bits // 8)

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def lo(self) -> int:
        """Smallest value of an integer type."""
        return -(1 << (self.bits - 1)) if self.kind == "int" else 0

    @property
    def hi(self) -> int:
        """Largest value of an integer type."""
        if self.kind == "bool":
            return 1
        return (1 << (self.bits - 1)) - 1 if self.kind == "int" else (1 << self.bits) - 1

    @property
    def load(self) -> str:
        """C function that turns storage into the compute type; empty where they are the same."""
        return f"tw_{self.name}_load" if self.compute != self.ctype else ""

    @property
    def store(self) -> str:
        """C function that turns the compute type into storage; empty where they are the same."""
        return f"tw_{self.name}_store" if self.compute != self.ctype else ""

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name


def _integer(kind: Literal["int", "uint"], bits: int) -> DType:
    ctype = f"{kind}{bits}_t"
    return DType(f"{kind}{bits}", kind, bits, ctype, ctype)


INT8, INT16, INT32, INT64 = (_integer("int", bits) for bits in (8, 16, 32, 64))
UINT8, UINT16, UINT32, UINT64 = (_integer("uint", bits) for bits in (8, 16, 32, 64))
BOOL = DType("bool", "bool", 8, "bool", "bool")
FLOAT16 = DType("float16", "float", 16, "uint16_t", "float")
BFLOAT16 = DType("bfloat16", "float", 16, "uint16_t", "float")
FLOAT32 = DType("float32", "float", 32, "float", "float")
FLOAT64 = DType("float64", "float", 64, "double", "double")

DTYPES: dict[str, DType] = {
    t.name: t
    for t in (INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, BOOL, FLOAT16, BFLOAT16, FLOAT32, FLOAT64)
}


def dtype_of(array: np.ndarray[Any, Any]) -> DType:
    """The element type of a numpy array; KeyError for one that no network of ours can hold."""
    return DTYPES[array.dtype.name]


def smallest_integer(lo: int, hi: int) -> DType:
    """The smallest integer type that holds every value from `lo` to `hi`, signed where both signs of one width do."""
    for dtype in (INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64):
        if dtype.lo <= lo and hi <= dtype.hi:
            return dtype
    raise OverflowError(f"no integer type holds {lo}..{hi}")
