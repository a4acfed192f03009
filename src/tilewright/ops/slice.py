"""Slice: every `steps`-th element from `starts` to before `ends`, along some axes."""

from __future__ import annotations

from types import MappingProxyType

from tilewright.core.domain import Domain, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.indexing import grid, integers, resolved_axes


def _ranges(call: Call) -> tuple[range, ...]:
    """Which indices of each axis are taken."""
    shape = call.shape("data")
    starts, ends = integers(call, "starts"), integers(call, "ends")
    axes = integers(call, "axes") if call.has("axes") else tuple(range(len(starts)))
    axes = resolved_axes(call, axes, len(shape))
    steps = integers(call, "steps") if call.has("steps") else (1,) * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise call.error("shape-mismatch", "starts, ends, axes and steps must have one length")
    if 0 in steps:
        raise call.error("bad-value", "a step must not be zero")
    taken = {
        axis: _taken(shape[axis], start, end, step)
        for axis, start, end, step in zip(axes, starts, ends, steps, strict=True)
    }
    return tuple(taken.get(axis, range(extent)) for axis, extent in enumerate(shape))


def _taken(extent: int, start: int, end: int, step: int) -> range:
    """Backwards, a start before the first element is the first element; numpy has nothing there."""
    if step < 0 and start < -extent:
        start = -extent
    return range(*slice(start, end, step).indices(extent))


def _infer(call: Call) -> tuple[TensorType, ...]:
    return (call.type("data").with_shape(len(taken) for taken in _ranges(call)),)


def _domain(call: Call) -> Domain:
    sizes, access = grid(call.shape("output"))
    source = [axis * taken.step + taken.start for axis, taken in zip(access, _ranges(call), strict=True)]
    shapes = {"data": call.shape("data"), "output": call.shape("output")}
    return domain(sizes, {"data": source, "output": access}, shapes, "output")


def _reference(call: Call, data: Array, *_: Array | None) -> Array:
    result = data
    for axis, taken in enumerate(_ranges(call)):
        result = result.take(list(taken), axis=axis)
    return result


declare(
    Operator(
        "Slice",
        "data starts ends axes? steps?",
        "output",
        _infer,
        _domain,
        _reference,
        (
            example("float32[5,6]", [1, 2], [3, 100]),
            example("float32[5,6,4]", [-3], [-1], [1]),
            example("float32[5,9]", [8, -1], [1, -100], [1, 0], [-3, -1]),
            example("int8[20]", [1], [19], [0], [4]),
            example("int8[5,3]", [-9, -8], [-100, 7], [0, 1], [-1, -2]),
            example("float16[4,4]", [0], [2], [-1]),
            example("int32[1,7,9,4]", [0, 0], [100, 100], [1, 2], [2, 2]),
        ),
        kind="move",
        body=lambda _: Body(MappingProxyType({"output": "data"})),
        compile_time=frozenset({"starts", "ends", "axes", "steps"}),
    )
)
