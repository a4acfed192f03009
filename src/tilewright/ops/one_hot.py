"""OneHot: an axis on which one element is `on` and the others are `off`."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.core.domain import WHOLE, Axis, Domain, dim, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.rules import split_axis


def _depth(call: Call) -> int:
    values = call.value("depth").reshape(-1)
    if values.size != 1 or values[0] < 0:
        raise call.error("bad-value", "depth must be one number that is not negative")
    return int(values[0])


def _infer(call: Call) -> tuple[TensorType, ...]:
    indices, values = call.type("indices"), call.type("values")
    if values.shape != (2,):
        raise call.error("shape-mismatch", f"values must be [off, on], found {values}")
    axis = call.axis("axis", indices.rank + 1)
    return (values.with_shape((*indices.shape[:axis], _depth(call), *indices.shape[axis:])),)


def _domain(call: Call) -> Domain:
    shape = call.shape("output")
    axis = call.axis("axis", len(shape))
    names, products = split_axis(len(shape), axis)
    access = [dim(name) for name in names]
    maps: dict[str, list[Axis]] = {
        "indices": [*access[:axis], *access[axis + 1 :]],
        "values": [WHOLE],
        "output": [*access],
    }
    sizes = dict(zip(names, shape, strict=True))
    return domain(sizes, maps, {name: call.shape(name) for name in maps}, "output", products=products)


def _reference(call: Call, indices: Array, _: Array, values: Array) -> Array:
    depth = _depth(call)
    whole = indices.astype(np.int64)
    wrapped = np.where(whole < 0, whole + depth, whole)
    axis = call.axis("axis", indices.ndim + 1)
    shape = [depth if i == axis else 1 for i in range(indices.ndim + 1)]
    hit = np.expand_dims(wrapped, axis) == np.arange(depth).reshape(shape)
    return values[hit.astype(np.int64)]


def _body(call: Call) -> Body:
    """An index is compared in its own type, so that no floating-point one has to become an integer first."""
    kind = call.type("indices").dtype
    depth = _depth(call)
    if kind.is_float:
        whole = f"trunc{'f' if kind.compute == 'float' else ''}(indices)"
        hit = f"{whole} == ({kind.compute})AXIS || {whole} == ({kind.compute})(AXIS - {depth})"
        # Between -1 and 0 truncation gives a negative zero, which is the index zero.
    elif kind.kind == "uint":
        hit = f"indices == ({kind.ctype})AXIS" if kind.bits >= 32 else "indices == AXIS"
    else:
        hit = f"indices == AXIS || indices == AXIS - {depth}"
    return Body(MappingProxyType({"output": f"values_at({hit} ? 1 : 0)"}))


declare(
    Operator(
        "OneHot",
        "indices depth values",
        "output",
        _infer,
        _domain,
        _reference,
        (
            example(np.array([0, 3, -1, 7]), np.array(5), "float32[2]"),
            example(np.array([[0, 3], [1, -5]], np.int32), [5], "int8[2]", axis=1),
            example(np.array([0.0, 2.0, -1.0], np.float32), np.array([3.0], np.float32), "int64[2]", axis=0),
            example(np.array([0.17, 2.6, -0.4, -1.5, 3.9], np.float32), np.array(3), "int64[2]"),
            example(np.array([0, 4], np.uint8), np.array(4), "bool[2]"),
        ),
        MappingProxyType({"axis": -1}),
        body=_body,
        compile_time=frozenset({"depth"}),
    )
)
