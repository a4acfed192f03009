"""Det: determinants of square matrices, by elimination with pivots."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.core.domain import WHOLE, Axis, Domain, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.indexing import grid
from tilewright.ops.rules import expression

ELIMINATION = """\
{T} m[{n}][{n}];
for (int i = 0; i < {n}; i++)
    for (int j = 0; j < {n}; j++) m[i][j] = X_at({place}i, j);
for (int c = 0; c < {n}; c++) {
    int p = c;
    for (int i = c + 1; i < {n}; i++)
        if (fabs{f}(m[i][c]) > fabs{f}(m[p][c])) p = i;
    for (int j = c; j < {n}; j++) {
        const {T} swapped = m[c][j];
        m[c][j] = m[p][j];
        m[p][j] = swapped;
    }
    det *= p == c ? m[c][c] : -m[c][c];
    if (!(fabs{f}(m[c][c]) > 0)) break;
    for (int i = c + 1; i < {n}; i++) {
        const {T} ratio = m[i][c] / m[c][c];
        for (int j = c + 1; j < {n}; j++) m[i][j] -= ratio * m[c][j];
    }
}"""


def _infer(call: Call) -> tuple[TensorType, ...]:
    data = call.type("X")
    if data.rank < 2 or data.shape[-1] != data.shape[-2] or not data.shape[-1] or not data.dtype.is_float:
        raise call.error("shape-mismatch", f"X must hold square matrices of floats, found {data}")
    return (data.with_shape(data.shape[:-2]),)


def _domain(call: Call) -> Domain:
    sizes, access = grid(call.shape("Y"))
    maps: dict[str, list[Axis]] = {"X": [*access, WHOLE, WHOLE], "Y": [*access]}
    return domain(sizes, maps, {name: call.shape(name) for name in maps}, "Y")


def _body(call: Call) -> Body:
    place = "".join(f"D{i}, " for i in range(call.outputs[0].rank))
    text = ELIMINATION.replace("{n}", str(call.shape("X")[-1])).replace("{place}", place)
    state = ((call.outputs[0].dtype.compute, "det", "1"),)
    return Body(MappingProxyType({"Y": "det"}), state, expression(call, text))


def _reference(_: Call, X: Array) -> Array:
    return np.asarray(np.linalg.det(X.astype(np.float64)))


declare(
    Operator(
        "Det",
        "X",
        "Y",
        _infer,
        _domain,
        _reference,
        (
            example("float32[3,3]"),
            example("float32[2,3,4,4]"),
            example("float64[5,1,1]"),
            example(np.array([[0, 1, 2], [1, 0, 3], [0, 0, 0]], np.float32)),
        ),
        body=_body,
    )
)
