"""TopK: the k largest or smallest elements along an axis, and where they are."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from msgspec.structs import replace

from tilewright.base.dtype import INT64
from tilewright.core.domain import Domain, dim, domain
from tilewright.core.graph import Array, TensorType, type_of_array
from tilewright.core.op import REGISTRY, Call, Example, Operator, declare, example, parse_type
from tilewright.ops.rules import split_axis
from tilewright.ops.sampling import between, even, resized_by_domain


def _axis(call: Call) -> int:
    return call.axis("axis", call.type("X").rank)


def _infer(call: Call) -> tuple[TensorType, ...]:
    data, axis, value = call.type("X"), _axis(call), call.value("K")
    count = int(value.reshape(-1)[0]) if value.size == 1 else -1
    if not 0 <= count <= data.shape[axis]:
        raise call.error("shape-mismatch", f"K={value.tolist()} elements cannot be taken from axis {axis} of {data}")
    shape = (*data.shape[:axis], count, *data.shape[axis + 1 :])
    return (data.with_shape(shape), TensorType(INT64, shape))


def _domain(call: Call) -> Domain:
    """AXIS is searched, TOP counts the elements found: neither is split, for each result depends on all of the axis."""
    shape, axis = call.shape("X"), _axis(call)
    names, products = split_axis(len(shape), axis)
    found = [dim("TOP" if name == "AXIS" else name) for name in names]
    result = call.shape("Values")
    return domain(
        {**dict(zip(names, shape, strict=True)), "TOP": result[axis]},
        {"X": [dim(name) for name in names], "Values": found, "Indices": found},
        {"X": shape, "Values": result, "Indices": result},
        "Values Indices",
        whole="AXIS TOP",
        products=products,
    )


def _reference(call: Call, X: Array, _count: Array) -> tuple[Array, Array]:
    axis, count = _axis(call), call.shape("Values")[_axis(call)]
    # Equal elements come in order of their indices: a stable sort, of the reversed axis for the largest.
    if call.int("largest"):
        order = X.shape[axis] - 1 - np.flip(np.argsort(np.flip(X, axis), axis=axis, kind="stable"), axis)
    else:
        order = np.argsort(X, axis=axis, kind="stable")
    indices = np.take(order, range(count), axis)
    return np.take_along_axis(X, indices, axis), indices


def _sample(spec: Example, random: np.random.Generator) -> Example:
    """Another array, and up to as many elements of it as the axis has: of noise, as ties and order decide the time."""
    data = resized_by_domain(REGISTRY["TopK"], spec, random).inputs[0]
    kind = parse_type(data) if isinstance(data, str) else type_of_array(data)
    count = even(between(1, kind.shape[int(str(spec.attrs.get("axis", -1)))], random), random)
    return replace(spec, inputs=(str(kind), np.array([count])))


_TIES = np.array([[1, 3, 3, 2], [2, 2, 2, 2], [0, 1, 0, 1]], np.float32)
declare(
    Operator(
        "TopK",
        "X K",
        "Values Indices",
        _infer,
        _domain,
        _reference,
        (
            example("float32[3,7]", [3], wanted=2),
            example("float32[3,7]", [3], axis=0, largest=0, wanted=2),
            example("float32[2,5,3]", [5], axis=1, wanted=2),
            example("float32[9]", [0], wanted=2),
            example(_TIES, [3], wanted=2),
            example(_TIES, [3], largest=0, wanted=2),
            example("float64[3,7]", [2], wanted=2),
            example("float16[3,7]", [2], wanted=2),
            example("int8[3,7]", [2], wanted=2),
            example("uint8[3,7]", [2], wanted=2),
            example("int32[3,7]", [2], largest=0, wanted=2),
            example("int64[3,7]", [2], wanted=2),
            example("uint64[3,7]", [2], wanted=2),
        ),
        MappingProxyType({"axis": -1, "largest": 1, "sorted": 1}),
        compile_time=frozenset({"K"}),
        sample=_sample,
    )
)
