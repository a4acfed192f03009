"""Gather, GatherElements, GatherND: elements picked by indices.

Negative indices count from the end. An index outside the axis is an error in ONNX; at run time it is held inside, so
that no memory around the tensor is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from tilewright.core.domain import WHOLE, Axis, Domain, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.indexing import grid, wrap_statement, wrapped_indices

INDEX = (("int64_t", "at", "0"),)


def _infer_gather(call: Call) -> tuple[TensorType, ...]:
    data = call.type("data")
    axis = call.axis("axis", data.rank)
    _check_indices(call)
    return (data.with_shape((*data.shape[:axis], *call.shape("indices"), *data.shape[axis + 1 :])),)


def _check_indices(call: Call) -> None:
    if not call.type("indices").dtype.is_integer:
        raise call.error("type-mismatch", f"indices must be integers, found {call.type('indices').dtype}")


def _gather_domain(call: Call) -> Domain:
    sizes, access = grid(call.shape("output"))
    axis = call.axis("axis", call.type("data").rank)
    inner = axis + call.type("indices").rank
    source: list[Axis] = [*access[:axis], WHOLE, *access[inner:]]
    maps: dict[str, list[Axis]] = {"data": source, "indices": [*access[axis:inner]], "output": [*access]}
    return domain(sizes, maps, {name: call.shape(name) for name in maps}, "output")


def _gather(call: Call, data: Array, indices: Array) -> Array:
    axis = call.axis("axis", data.ndim)
    return np.take(data, wrapped_indices(indices, data.shape[axis]), axis=axis)


def _gather_body(call: Call) -> Body:
    data = call.type("data")
    axis = call.axis("axis", data.rank)
    inner = axis + call.type("indices").rank
    names = [f"D{i}" for i in range(call.outputs[0].rank)]
    place = ", ".join((*names[:axis], "at", *names[inner:]))
    return Body(
        MappingProxyType({"output": f"data_at({place})"}),
        INDEX,
        wrap_statement("at", "indices", data.shape[axis]),
    )


def _picked(call: Call, given: Mapping[str, int]) -> int:
    """The largest magnitude of what is picked."""
    del call
    return given["data"]


declare(
    Operator(
        "Gather",
        "data indices",
        "output",
        _infer_gather,
        _gather_domain,
        _gather,
        (
            example("float32[5,4]", [3, 0, -1]),
            example("float32[2,5,3]", np.array([[1, 4], [0, -5]], np.int32), axis=1),
            example("int8[7]", np.array(2)),
            example("float16[2,3]", np.array([[2, 1]]), axis=-1),
        ),
        MappingProxyType({"axis": 0}),
        "move",
        _gather_body,
        picks=frozenset(["data"]),
        limit=_picked,
    )
)


def _infer_elements(call: Call) -> tuple[TensorType, ...]:
    data, indices = call.type("data"), call.type("indices")
    axis = call.axis("axis", data.rank)
    _check_indices(call)
    if indices.rank != data.rank or any(
        i > d for n, (i, d) in enumerate(zip(indices.shape, data.shape, strict=True)) if n != axis
    ):
        raise call.error("shape-mismatch", f"indices {indices} do not fit {data} beside axis {axis}")
    return (data.with_shape(indices.shape),)


def _elements_domain(call: Call) -> Domain:
    sizes, access = grid(call.shape("output"))
    axis = call.axis("axis", call.type("data").rank)
    source: list[Axis] = [WHOLE if i == axis else place for i, place in enumerate(access)]
    maps: dict[str, list[Axis]] = {"data": source, "indices": [*access], "output": [*access]}
    return domain(sizes, maps, {name: call.shape(name) for name in maps}, "output")


def _elements(call: Call, data: Array, indices: Array) -> Array:
    axis = call.axis("axis", data.ndim)
    near = data[tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(indices.shape))]
    return np.take_along_axis(near, wrapped_indices(indices, data.shape[axis]), axis=axis)


def _elements_body(call: Call) -> Body:
    data = call.type("data")
    axis = call.axis("axis", data.rank)
    place = ", ".join("at" if i == axis else f"D{i}" for i in range(data.rank))
    return Body(
        MappingProxyType({"output": f"data_at({place})"}),
        INDEX,
        wrap_statement("at", "indices", data.shape[axis]),
    )


declare(
    Operator(
        "GatherElements",
        "data indices",
        "output",
        _infer_elements,
        _elements_domain,
        _elements,
        (
            example("float32[3,4]", np.array([[0, 2, -1, 1], [1, 0, 0, 2]])),
            example("float32[3,4]", np.array([[0], [-1], [2]], np.int32), axis=1),
            example("int8[3,4,2]", np.array([[[1], [0], [2], [3], [1]]]), axis=1),
        ),
        MappingProxyType({"axis": 0}),
        "move",
        _elements_body,
        picks=frozenset(["data"]),
        limit=_picked,
    )
)


def _infer_nd(call: Call) -> tuple[TensorType, ...]:
    data, indices, batch = call.type("data"), call.type("indices"), call.int("batch_dims")
    _check_indices(call)
    if not 0 <= batch < min(data.rank, indices.rank) or data.shape[:batch] != indices.shape[:batch]:
        raise call.error("shape-mismatch", f"{data} and {indices} do not share their first {batch} axes")
    depth = indices.shape[-1]
    if not 1 <= depth <= data.rank - batch:
        raise call.error("shape-mismatch", f"indices of {depth} axes do not fit {data} behind {batch} batch axes")
    return (data.with_shape((*indices.shape[:-1], *data.shape[batch + depth :])),)


def _nd_domain(call: Call) -> Domain:
    sizes, access = grid(call.shape("output"))
    indices, batch = call.shape("indices"), call.int("batch_dims")
    source: list[Axis] = [*access[:batch], *[WHOLE] * indices[-1], *access[len(indices) - 1 :]]
    maps: dict[str, list[Axis]] = {
        "data": source,
        "indices": [*access[: len(indices) - 1], WHOLE],
        "output": [*access],
    }
    return domain(sizes, maps, {name: call.shape(name) for name in maps}, "output")


def _nd(call: Call, data: Array, indices: Array) -> Array:
    batch, depth = call.int("batch_dims"), indices.shape[-1]
    lead = [np.reshape(range(n), (n, *(1,) * (indices.ndim - 2 - i))) for i, n in enumerate(data.shape[:batch])]
    places = [wrapped_indices(indices[..., i], data.shape[batch + i]) for i in range(depth)]
    return data[(*lead, *places)]


def _nd_body(call: Call) -> Body:
    data, indices, batch = call.shape("data"), call.shape("indices"), call.int("batch_dims")
    names = [f"D{i}" for i in range(call.outputs[0].rank)]
    lead = names[: len(indices) - 1]
    state: list[tuple[str, str, str]] = []
    statements: list[str] = []
    for i in range(indices[-1]):
        state.append(("int64_t", f"at{i}", f"indices_at({', '.join([*lead, str(i)])})"))
        statements.append(wrap_statement(f"at{i}", f"at{i}", data[batch + i]))
    place = ", ".join((*names[:batch], *(name for _, name, _ in state), *names[len(indices) - 1 :]))
    return Body(MappingProxyType({"output": f"data_at({place})"}), tuple(state), "\n".join(statements))


declare(
    Operator(
        "GatherND",
        "data indices",
        "output",
        _infer_nd,
        _nd_domain,
        _nd,
        (
            example("float32[3,4]", np.array([[0, 1], [-1, 3]])),
            example("float32[3,4,2]", np.array([[[1]], [[0]]])),
            example("int32[2,3,4]", np.array([[[1], [0]], [[2], [-1]]]), batch_dims=1),
            example("float32[2,3,4]", np.array([[[1, 3]], [[0, 2]]]), batch_dims=1),
            example("int8[5]", [2]),
        ),
        MappingProxyType({"batch_dims": 0}),
        "move",
        _nd_body,
        picks=frozenset(["data"]),
        limit=_picked,
    )
)
