"""MatMul: `A[..., M, K] B[..., K, N] -> Y[..., M, N]` with broadcast batch dimensions."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.core.domain import Affine, Axis, Domain, at, dim, domain
from tilewright.core.dtype import INT32, DType
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.rules import broadcast


def accumulator(left: DType, right: DType) -> DType:
    """The type a contraction accumulates in and gives: int32 for narrow integers, else the type itself."""
    if left.is_float or left.bits > 32 or (left == right and left.bits == 32):
        return left
    return INT32


def _infer(call: Call) -> tuple[TensorType, ...]:
    a, b = call.type("A"), call.type("B")
    if a.dtype.is_float != b.dtype.is_float:
        raise call.error("type-mismatch", f"A is {a.dtype} and B is {b.dtype}", help="insert a Cast")
    if not a.rank or not b.rank:
        raise call.error("shape-mismatch", "scalars cannot be multiplied as matrices")
    rows, columns = _matrix_shapes(call)
    if rows[-1] != columns[-2]:
        raise call.error("shape-mismatch", f"A has {rows[-1]} columns and B has {columns[-2]} rows")
    batch = broadcast(call, rows[:-2], columns[:-2])
    shape = (*batch, *((rows[-2],) if a.rank > 1 else ()), *((columns[-1],) if b.rank > 1 else ()))
    return (TensorType(accumulator(a.dtype, b.dtype), shape),)


def _matrix_shapes(call: Call) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes of A and B as matrices `[..., M, K]` and `[..., K, N]`: vectors grow an axis, transB is undone."""
    a, b = call.shape("A"), call.shape("B")
    rows = (1, *a) if len(a) == 1 else a
    columns = (*b, 1) if len(b) == 1 else b
    if call.int("transB"):
        columns = (*columns[:-2], columns[-1], columns[-2])
    return rows, columns


def _domain(call: Call) -> Domain:
    a, b, y = call.shape("A"), call.shape("B"), call.shape("Y")
    rows, columns = _matrix_shapes(call)
    batch = broadcast(call, rows[:-2], columns[:-2])
    names = [f"B{i}" for i in range(len(batch))]
    m, k, n = dim("M"), dim("K"), dim("N")

    def lead(shape: tuple[int, ...]) -> list[Axis]:
        offset = len(batch) - len(shape)
        return [at(0) if e == 1 else dim(names[offset + i]) for i, e in enumerate(shape)]

    right: list[Affine] = [n, k] if call.int("transB") else [k, n]
    access: dict[str, list[Axis]] = {
        "A": [*lead(a[:-2]), m, k] if len(a) > 1 else [k],
        "B": [*lead(b[:-2]), *right] if len(b) > 1 else [k],
        "Y": [*(dim(name) for name in names), *([m] if len(a) > 1 else []), *([n] if len(b) > 1 else [])],
    }
    sizes = {**dict(zip(names, batch, strict=True)), "M": rows[-2], "N": columns[-1], "K": rows[-1]}
    return domain(sizes, access, {"A": a, "B": b, "Y": y}, "Y", products={"BATCH": names})


def _reference(call: Call, A: Array, B: Array) -> Array:
    wide = np.float64 if call.type("Y").dtype.is_float else call.type("Y").dtype.numpy
    right = np.swapaxes(B, -1, -2) if call.int("transB") else B
    return np.matmul(A.astype(wide), right.astype(wide))


def contraction_body(call: Call, left: str, right: str) -> Body:
    """Accumulates `left * right` in the accumulator type of the result."""
    kind = call.outputs[0].dtype
    if kind.is_float:
        return Body(MappingProxyType({"Y": "acc"}), ((kind.compute, "acc", "0"),), f"acc += {left} * {right};")
    # Unsigned arithmetic wraps; signed overflow would be undefined.
    unsigned = f"uint{max(32, kind.bits)}_t"
    update = f"acc += ({unsigned}){left} * ({unsigned}){right};"
    return Body(MappingProxyType({"Y": "acc"}), ((unsigned, "acc", "0"),), update)


declare(
    Operator(
        "MatMul",
        "A B",
        "Y",
        _infer,
        _domain,
        _reference,
        (
            example("float32[4,5]", "float32[5,3]"),
            example("float32[2,3,4,5]", "float32[3,5,6]"),
            example("float32[2,1,4,5]", "float32[3,5,6]"),
            example("float32[5]", "float32[5,3]"),
            example("float32[2,4,5]", "float32[5]"),
            example("int8[4,9]", "int8[9,3]"),
            example("uint8[2,4,9]", "int8[9,3]"),
            example("int32[4,9]", "int32[9,3]"),
            example("float32[2,4,5]", "float32[2,3,5]", transB=1),
        ),
        MappingProxyType({"transB": 0}),
        "reduce",
        lambda call: contraction_body(call, "A", "B"),
        doc=__doc__ or "",
    )
)
