"""Operators whose output shape depends on data: Compress, NonZero, Unique, NonMaxSuppression.

Memory is planned before the network runs, so what decides the shape must be known at compile time. Where everything is
known the result is folded; Compress with a known condition also moves data that is not.
"""

from __future__ import annotations

from math import prod
from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import INT64
from tilewright.core.domain import WHOLE, Axis, Domain, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.indexing import c_table, grid


def _deciding(call: Call, operand: str) -> Array:
    """The value of an operand that decides the output shape."""
    known = call.known(operand)
    if known is None:
        raise call.error(
            "dynamic-shape",
            f"the output shape depends on the values of '{operand}', which are only known at run time",
            help="make it a constant, or end the network before this operator and compute it in the application",
        )
    return known


def _whole_domain(call: Call) -> Domain:
    """Folded operators have no loops."""
    outputs = call.op.output_names(len(call.outputs))
    present = [name for name, kind in zip(call.operands, call.inputs, strict=True) if kind is not None]
    shapes = {name: call.shape(name) for name in (*present, *outputs)}
    return domain({}, {name: [WHOLE] * len(shape) for name, shape in shapes.items()}, shapes, " ".join(outputs))


# Compress


def _picked(call: Call) -> Array:
    return np.flatnonzero(_deciding(call, "condition"))


def _infer_compress(call: Call) -> tuple[TensorType, ...]:
    data = call.type("input")
    if call.attrs["axis"] is None:
        extent, shape, axis = data.size, [data.size], 0
    else:
        axis = call.axis("axis", data.rank)
        extent, shape = data.shape[axis], list(data.shape)
    picked = _picked(call)
    if picked.size and picked[-1] >= extent:
        raise call.error("shape-mismatch", f"condition picks element {picked[-1]} of {extent}")
    shape[axis] = picked.size
    return (data.with_shape(shape),)


def _compress_domain(call: Call) -> Domain:
    sizes, access = grid(call.shape("output"))
    shape = call.shape("input")
    source: list[Axis] = [WHOLE] * len(shape)
    if call.attrs["axis"] is not None:
        axis = call.axis("axis", len(shape))
        source = [WHOLE if i == axis else place for i, place in enumerate(access)]
    maps: dict[str, list[Axis]] = {"input": source, "output": [*access]}
    return domain(sizes, maps, {name: call.shape(name) for name in maps}, "output")


def _compress_body(call: Call) -> Body:
    shape, picked = call.shape("input"), _picked(call)
    if not picked.size:
        return Body(MappingProxyType({"output": "0"}))
    if call.attrs["axis"] is None:
        places = [f"PICK[D0] / {prod(shape[i + 1 :])} % {extent}" for i, extent in enumerate(shape)]
    else:
        axis = call.axis("axis", len(shape))
        places = [f"PICK[D{i}]" if i == axis else f"D{i}" for i in range(len(shape))]
    result = f"input_at({', '.join(places)})"
    return Body(MappingProxyType({"output": result}), constants=(c_table("int32_t", "PICK", picked),))


def _compress(call: Call, input: Array, condition: Array) -> Array:
    axis = None if call.attrs["axis"] is None else call.int("axis")
    return np.compress(condition.astype(np.bool_), input, axis=axis)


declare(
    Operator(
        "Compress",
        "input condition",
        "output",
        _infer_compress,
        _compress_domain,
        _compress,
        (
            example("float32[3,2]", np.array([False, True, True]), axis=0),
            example("int8[3,4,2]", np.array([True, False, True, True]), axis=-2),
            example("float32[3,2]", np.array([False, True, False, False, True])),
        ),
        MappingProxyType({"axis": None}),
        "move",
        _compress_body,
        frozenset({"condition"}),
    )
)


# NonZero


def _nonzero(_: Call, X: Array) -> Array:
    return np.stack(np.nonzero(X)) if X.ndim else np.zeros((0, np.count_nonzero(X)), np.int64)


def _infer_nonzero(call: Call) -> tuple[TensorType, ...]:
    return (TensorType(INT64, (call.type("X").rank, int(np.count_nonzero(_deciding(call, "X"))))),)


declare(
    Operator(
        "NonZero",
        "X",
        "Y",
        _infer_nonzero,
        _whole_domain,
        _nonzero,
        (example(np.array([[1, 0], [1, 1]])), example(np.zeros(3, np.float32))),
        compile_time=frozenset({"X"}),
    )
)


# Unique


def _unique_parts(call: Call, values: Array) -> tuple[Array, Array, Array, Array]:
    axis = None if call.attrs["axis"] is None else call.int("axis")
    found, first, inverse, counts = np.unique(
        values, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not call.int("sorted"):
        order = np.argsort(first)
        rank = np.argsort(order)
        found, first, inverse, counts = np.take(found, order, axis or 0), first[order], rank[inverse], counts[order]
    return found, first, inverse, counts


def _infer_unique(call: Call) -> tuple[TensorType, ...]:
    found, *others = _unique_parts(call, _deciding(call, "X"))
    kinds = [call.type("X").with_shape(found.shape), *(TensorType(INT64, other.shape) for other in others)]
    return tuple(kinds[: call.wanted])


declare(
    Operator(
        "Unique",
        "X",
        "Y indices? inverse_indices? counts?",
        _infer_unique,
        _whole_domain,
        _unique_parts,
        (
            example(np.array([2.0, 1.0, 1.0, 3.0, 4.0, 3.0], np.float32), wanted=4),
            example(np.array([2.0, 1.0, 1.0, 3.0, 4.0, 3.0], np.float32), wanted=4, sorted=0),
            example(np.array([[1, 0, 0], [1, 0, 0], [2, 3, 4]]), axis=0),
        ),
        MappingProxyType({"axis": None, "sorted": 1}),
        compile_time=frozenset({"X"}),
    )
)


# NonMaxSuppression


def _corners(boxes: Array, center: int) -> Array:
    """Boxes as `[low, high]` corners, `[n, 2, 2]`, in float64."""
    wide = boxes.astype(np.float64)
    if center:
        middle, extent = wide[:, :2], wide[:, 2:]
        return np.stack([middle - extent / 2, middle + extent / 2], axis=1)
    return np.sort(wide.reshape(-1, 2, 2), axis=1)


def _overlap(one: Array, other: Array) -> float:
    """Intersection over union."""
    common = np.clip(np.minimum(one[1], other[1]) - np.maximum(one[0], other[0]), 0, None).prod()
    union = (one[1] - one[0]).prod() + (other[1] - other[0]).prod() - common
    return float(common / union) if union > 0 else 0.0


def _suppress(
    call: Call,
    boxes: Array,
    scores: Array,
    most: Array | None = None,
    overlap: Array | None = None,
    threshold: Array | None = None,
) -> Array:
    limit = int(most.reshape(-1)[0]) if most is not None and most.size else 0
    largest = float(overlap.reshape(-1)[0]) if overlap is not None and overlap.size else 0.0
    least = float(threshold.reshape(-1)[0]) if threshold is not None and threshold.size else -np.inf
    selected: list[tuple[int, int, int]] = []
    for batch, category in np.ndindex(*scores.shape[:2]):
        corners = _corners(boxes[batch], call.int("center_point_box"))
        rating = scores[batch, category]
        kept: list[int] = []
        for candidate in np.argsort(-rating.astype(np.float64), kind="stable").tolist():
            if len(kept) >= limit or not rating[candidate] > least:
                break
            if all(_overlap(corners[candidate], corners[other]) <= largest for other in kept):
                kept.append(candidate)
        selected += [(batch, category, box) for box in kept]
    return np.asarray(selected, np.int64).reshape(-1, 3)


def _infer_suppression(call: Call) -> tuple[TensorType, ...]:
    known = [_deciding(call, name) if call.has(name) else None for name in call.operands]
    boxes, scores, *rest = known
    assert boxes is not None
    assert scores is not None
    return (TensorType(INT64, _suppress(call, boxes, scores, *rest).shape),)


_BOXES = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 10, 1, 11], [0, 10.1, 1, 11.1]]], np.float32)
_SCORES = np.array([[[0.9, 0.75, 0.6, 0.95]]], np.float32)

declare(
    Operator(
        "NonMaxSuppression",
        "boxes scores max_output_boxes_per_class? iou_threshold? score_threshold?",
        "selected_indices",
        _infer_suppression,
        _whole_domain,
        _suppress,
        (
            example(_BOXES, _SCORES, [3], np.array([0.5], np.float32), np.array([0.0], np.float32)),
            example(_BOXES, _SCORES, [1], np.array([0.5], np.float32), center_point_box=1),
        ),
        MappingProxyType({"center_point_box": 0}),
        compile_time=frozenset({"boxes", "scores", "max_output_boxes_per_class", "iou_threshold", "score_threshold"}),
    )
)
