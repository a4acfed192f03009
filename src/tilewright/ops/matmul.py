"""MatMul: `A[..., M, K] B[..., K, N] -> Y[..., M, N]` with broadcast batch dimensions.

Integer operands may have zero points, which are subtracted first. FusedMatMul scales the result and reads A and B
transposed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from msgspec import Struct

from tilewright.base.dtype import INT32, DType
from tilewright.core.domain import Axis, Domain, at, dim, domain
from tilewright.core.graph import Array, Attr, TensorType
from tilewright.core.op import REGISTRY, Body, Call, Example, Operator, declare, example
from tilewright.ops.limits import sum_of_products
from tilewright.ops.rules import broadcast, number
from tilewright.ops.sampling import USUAL, resized_by_domain

WEIGHT_BITS: dict[str, Attr] = {"weight_low": -128, "weight_planes": 8}
"""Weights are `weight_low` and what so many bits add to it: engines that work bit by bit are faster with fewer."""

ONE_ROW = {"M": (1, 1), "K": (8, 1024), "N": (4, 512)}
"""Between which sizes products of one row are measured."""


def accumulator(left: DType, right: DType) -> DType:
    """The type a contraction accumulates in and gives: int32 for narrow integers, else the type itself."""
    if left.is_float or left.bits > 32 or (left == right and left.bits == 32):
        return left
    return INT32


class Matrices(Struct, frozen=True):
    """How the axes of A and B are used: for each, which axis is the row, which the column, which are batches."""

    shape: tuple[int, ...]
    row: int | None
    column: int | None
    batch: tuple[int, ...]

    def extent(self, axis: int | None) -> int:
        return 1 if axis is None else self.shape[axis]

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return tuple(self.shape[axis] for axis in self.batch)


def _matrices(call: Call, operand: str, *, transpose: bool, batch_first: bool) -> Matrices:
    """A vector is a row on the left and a column on the right; with `batch_first` axis 0 is the row."""
    shape = call.shape(operand)
    if not shape:
        raise call.error("shape-mismatch", "scalars cannot be multiplied as matrices")
    if len(shape) == 1:
        return Matrices(shape, None, 0, ()) if operand == "A" else Matrices(shape, 0, None, ())
    last = len(shape) - 1
    row = 0 if batch_first else last - 1
    batch = tuple(axis for axis in range(last) if axis != row)
    return Matrices(shape, last, row, batch) if transpose else Matrices(shape, row, last, batch)


def _pair(call: Call) -> tuple[Matrices, Matrices]:
    def flag(name: str) -> bool:
        return bool(call.attrs.get(name))

    return (
        _matrices(call, "A", transpose=flag("transA"), batch_first=flag("transBatchA")),
        _matrices(call, "B", transpose=flag("transB"), batch_first=flag("transBatchB")),
    )


def product_type(call: Call) -> TensorType:
    """The type of `A @ B`."""
    a, b = call.type("A"), call.type("B")
    if a.dtype.is_float != b.dtype.is_float:
        raise call.error("type-mismatch", f"A is {a.dtype} and B is {b.dtype}", help="insert a Cast")
    left, right = _pair(call)
    if left.extent(left.column) != right.extent(right.row):
        raise call.error(
            "shape-mismatch", f"A has {left.extent(left.column)} columns and B has {right.extent(right.row)} rows"
        )
    batch = broadcast(call, left.batch_shape, right.batch_shape)
    rows = () if left.row is None else (left.extent(left.row),)
    columns = () if right.column is None else (right.extent(right.column),)
    return TensorType(accumulator(a.dtype, b.dtype), (*batch, *rows, *columns))


def _infer(call: Call) -> tuple[TensorType, ...]:
    return (product_type(call),)


def product_domain(call: Call) -> Domain:
    """The loops of `A @ B`."""
    left, right = _pair(call)
    batch = broadcast(call, left.batch_shape, right.batch_shape)
    names = [f"B{i}" for i in range(len(batch))]

    def axes(side: Matrices, row: str, column: str) -> list[Axis]:
        offset = len(batch) - len(side.batch)
        used: dict[int, Axis] = {
            axis: at(0) if side.shape[axis] == 1 else dim(names[offset + i]) for i, axis in enumerate(side.batch)
        }
        used |= {axis: dim(name) for axis, name in ((side.row, row), (side.column, column)) if axis is not None}
        return [used[axis] for axis in range(len(side.shape))]

    edges = [name for name, axis in (("M", left.row), ("N", right.column)) if axis is not None]
    access = {
        "A": axes(left, "M", "K"),
        "B": axes(right, "K", "N"),
        "Y": [dim(name) for name in (*names, *edges)],
    }
    extents = {"M": left.extent(left.row), "N": right.extent(right.column), "K": left.extent(left.column)}
    sizes = {**dict(zip(names, batch, strict=True)), **extents}
    return domain(
        sizes,
        access,
        {name: call.shape(name) for name in access},
        "Y",
        products={"BATCH": names, "ROWS": [*names, "M"]},
    )


def _reference(call: Call, A: Array, B: Array) -> Array:
    kind = call.type("Y").dtype
    # Sums of narrow integers are exact in float64, for which numpy is fast.
    narrow = max(A.dtype.itemsize, B.dtype.itemsize) <= 2 and max(A.shape) < 1 << 20
    wide = np.float64 if kind.is_float or narrow else kind.numpy

    def arranged(array: Array, suffix: str) -> Array:
        moved = np.moveaxis(array, 0, -2) if call.attrs.get(f"transBatch{suffix}") else array
        turned = call.attrs.get(f"trans{suffix}") and array.ndim > 1
        point = call.attrs.get(f"{suffix.lower()}_zero_point") or 0
        return (np.swapaxes(moved, -1, -2) if turned else moved).astype(wide) - np.asarray(point, wide)

    product = np.matmul(arranged(A, "A"), arranged(B, "B"))
    return product if kind.is_float else product.astype(np.int64)


def contraction_body(call: Call, left: str, right: str) -> Body:
    """Accumulates `left * right` in the accumulator type of the result."""
    kind = call.outputs[0].dtype
    if kind.is_float:
        return Body(MappingProxyType({"Y": "acc"}), ((kind.compute, "acc", "0"),), f"acc += {left} * {right};")
    # Unsigned arithmetic wraps; signed overflow would be undefined.
    unsigned = f"uint{max(32, kind.bits)}_t"
    update = f"acc += ({unsigned}){left} * ({unsigned}){right};"
    return Body(MappingProxyType({"Y": "acc"}), ((unsigned, "acc", "0"),), update)


def _product_body(call: Call) -> Body:
    """Zero points are subtracted from integer operands before they are multiplied."""
    points = {operand: call.int(f"{operand.lower()}_zero_point") for operand in ("A", "B")}
    left, right = (f"({operand} - {point})" if point else operand for operand, point in points.items())
    return contraction_body(call, left, right)


def _product_limit(call: Call, limits: Mapping[str, int]) -> int:
    points = {operand: abs(call.int(f"{operand.lower()}_zero_point")) for operand in ("A", "B")}
    if points["B"]:
        return call.domain().dims["K"] * (limits["A"] + points["A"]) * (limits["B"] + points["B"])
    return sum_of_products(call, {**limits, "A": limits["A"] + points["A"]}, "A", "B")


def _sampled(spec: Example, random: np.random.Generator) -> Example:
    """As often one row, as classifiers and single tokens have, as of all sizes."""
    within = ONE_ROW if random.random() < USUAL else {}
    return resized_by_domain(REGISTRY["MatMul"], spec, random, within)


declare(
    Operator(
        "MatMul",
        "A B",
        "Y",
        _infer,
        product_domain,
        _reference,
        (
            example("float32[4,5]", "float32[5,3]"),
            example("float32[2,3,4,5]", "float32[3,5,6]"),
            example("float32[2,1,4,5]", "float32[3,5,6]"),
            example("float32[5]", "float32[5,3]"),
            example("float32[2,4,5]", "float32[5]"),
            example("int8[4,9]", "int8[9,3]"),
            example("uint8[2,4,9]", "int8[9,3]"),
            # Longer than a register tile, with ragged ends.
            example("float32[9,19]", "float32[19,21]"),
            example("int8[7,35]", "int8[35,21]"),
            example("uint8[2,5,32]", "int8[32,18]"),
            example("int32[4,9]", "int32[9,3]"),
            example("float32[2,4,5]", "float32[2,3,5]", transB=1),
            example("float32[2,5,4]", "float32[5,3]", transA=1),
            example("int8[2,4,19]", "int8[2,3,19]", transB=1, a_zero_point=-7, b_zero_point=3),
            example("uint8[4,9]", "int8[9,3]", a_zero_point=128),
            example("uint8[12,5,9]", "uint8[12,9,3]", a_zero_point=101, b_zero_point=77),
            example("int8[3,5,32]", "uint8[3,17,32]", transB=1),
        ),
        MappingProxyType({"transA": 0, "transB": 0, "a_zero_point": 0, "b_zero_point": 0, **WEIGHT_BITS}),
        "reduce",
        _product_body,
        limit=_product_limit,
        any_length=True,
        sample=_sampled,
    )
)


def _scaled_infer(call: Call) -> tuple[TensorType, ...]:
    if not call.type("A").dtype.is_float:
        raise call.error("type-mismatch", f"A must be floating point, found {call.type('A')}")
    return _infer(call)


def _scaled_reference(call: Call, A: Array, B: Array) -> Array:
    return call.float("alpha") * _reference(call, A, B)


def _scaled_body(call: Call) -> Body:
    plain = contraction_body(call, "A", "B")
    factor = number(call.float("alpha"), call.outputs[0].dtype)
    return Body(MappingProxyType({"Y": f"{factor} * acc"}), plain.state, plain.update)


declare(
    Operator(
        "FusedMatMul",
        "A B",
        "Y",
        _scaled_infer,
        product_domain,
        _scaled_reference,
        (
            example("float32[4,5]", "float32[5,3]", alpha=0.5),
            example("float32[2,5,4]", "float32[2,3,5]", transA=1, transB=1),
            example("float32[4,2,5]", "float32[5,2,3]", transBatchA=1, transBatchB=1),
            example("float32[5,2,4]", "float32[2,5,3]", transBatchA=1, transA=1),
        ),
        MappingProxyType({"alpha": 1.0, "transA": 0, "transB": 0, "transBatchA": 0, "transBatchB": 0}),
        "reduce",
        _scaled_body,
        doc="alpha * (A @ B), with A and B transposed as told; transBatch takes axis 0 as the row.",
    )
)
