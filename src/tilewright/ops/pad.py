"""Pad and CenterCropPad: a border around a tensor, or, with negative widths, a part of it."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.core.domain import WHOLE, Axis, Domain, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.indexing import first, grid, integers, optional_axes, resolved_axes
from tilewright.ops.rules import one_dtype

MODES = ("constant", "edge", "reflect", "wrap")


def _widths(call: Call) -> list[tuple[int, int]]:
    """How much is added before and after each axis; negative where elements are cut off."""
    rank = call.type("data").rank
    axes = optional_axes(call, rank)
    pads = integers(call, "pads")
    if len(pads) != 2 * len(axes):
        raise call.error("shape-mismatch", f"pads must hold two widths for each of {len(axes)} axes, found {len(pads)}")
    widths = [(0, 0)] * rank
    for i, axis in enumerate(axes):
        widths[axis] = (pads[i], pads[i + len(axes)])
    return widths


def _infer(call: Call) -> tuple[TensorType, ...]:
    data = call.type("data")
    mode = call.text("mode")
    if mode not in MODES:
        raise call.error("bad-attribute", f"mode='{mode}' must be one of {', '.join(MODES)}")
    if call.has("constant_value"):
        one_dtype(call, ("data", "constant_value"))
    shape = [extent + before + after for extent, (before, after) in zip(data.shape, _widths(call), strict=True)]
    kept = [extent + min(b, 0) + min(a, 0) for extent, (b, a) in zip(data.shape, _widths(call), strict=True)]
    if min(shape, default=0) < 0:
        raise call.error("shape-mismatch", f"pads cut more from {data} than there is")
    if mode != "constant" and any(k <= 0 < extent for k, extent in zip(kept, shape, strict=True)):
        raise call.error("shape-mismatch", f"mode '{mode}' has no element of {data} to repeat")
    return (data.with_shape(shape),)


def _domain(call: Call) -> Domain:
    sizes, access = grid(call.shape("output"))
    repeats = call.text("mode") != "constant"
    source: list[Axis] = [
        WHOLE if repeats and width != (0, 0) else axis - width[0]
        for axis, width in zip(access, _widths(call), strict=True)
    ]
    maps: dict[str, list[Axis]] = {"data": source}
    if call.has("constant_value"):
        maps["constant_value"] = first(call.shape("constant_value"))
    maps["output"] = [*access]
    return domain(sizes, maps, {name: call.shape(name) for name in maps}, "output")


def _framed(call: Call, data: Array, fill: Array | int) -> Array:
    """What of the data lies within the result, in the midst of a constant; that may be nothing of it."""
    shape = call.shape("output")
    framed = np.full(shape, fill, data.dtype)
    inside: list[slice] = []
    source: list[slice] = []
    for extent, size, (before, _) in zip(data.shape, shape, _widths(call), strict=True):
        start, end = max(0, before), min(size, before + extent)
        inside.append(slice(start, max(start, end)))
        source.append(slice(start - before, max(start, end) - before))
    framed[tuple(inside)] = data[tuple(source)]
    return framed


def _reference(call: Call, data: Array, _pads: Array, constant_value: Array | None = None, *_: Array | None) -> Array:
    if call.text("mode") == "constant":
        return _framed(call, data, 0 if constant_value is None else constant_value.reshape(-1)[0])
    widths = _widths(call)
    cut = data[tuple(slice(max(0, -b), n - max(0, -a)) for n, (b, a) in zip(data.shape, widths, strict=True))]
    added = [(max(0, b), max(0, a)) for b, a in widths]
    if call.text("mode") == "edge":
        return np.pad(cut, added, "edge")
    if call.text("mode") == "wrap":
        return np.pad(cut, added, "wrap")
    return np.pad(cut, added, "reflect")


def _constant_body(call: Call) -> Body:
    fill = "constant_value" if call.has("constant_value") else "0"
    return Body(MappingProxyType({"output": fill}), inside=MappingProxyType({"data": "data"}))


def _source_index(mode: str, position: str, extent: int) -> str:
    """C for the element a repeating border takes at a position, which may lie outside `[0, extent)`."""
    last = extent - 1
    if mode == "edge":
        return f"{position} < 0 ? 0 : {position} > {last} ? {last} : {position}"
    if mode == "wrap":
        return f"({position} % {extent} + {extent}) % {extent}"
    if last == 0:
        return "0"
    period = 2 * last
    folded = f"({position} % {period} + {period}) % {period}"
    return f"{folded} > {last} ? {period} - {folded} : {folded}"


def _repeating_body(call: Call) -> Body:
    indices: list[str] = []
    state: list[tuple[str, str, str]] = []
    statements: list[str] = []
    for i, (extent, (before, after)) in enumerate(zip(call.shape("data"), _widths(call), strict=True)):
        if (before, after) == (0, 0):
            indices.append(f"D{i}")
            continue
        kept = extent + min(before, 0) + min(after, 0)
        position = f"(D{i} - {max(before, 0)})"
        state.append(("int", f"at{i}", "0"))
        statements.append(f"at{i} = {max(0, -before)} + ({_source_index(call.text('mode'), position, kept)});")
        indices.append(f"at{i}")
    if call.has("constant_value"):
        statements.append("(void)constant_value;")
    value = f"data_at({', '.join(indices)})" if state else "data"
    return Body(MappingProxyType({"output": value}), tuple(state), "\n".join(statements))


def _body(call: Call) -> Body:
    return _constant_body(call) if call.text("mode") == "constant" else _repeating_body(call)


declare(
    Operator(
        "Pad",
        "data pads constant_value? axes?",
        "output",
        _infer,
        _domain,
        _reference,
        (
            example("float32[2,3]", [0, 1, 2, 0]),
            example("float32[2,3,4]", [1, 0, 2, 1, 0, 1], "float32[]"),
            example("int8[2,5]", [1, -2, 0, 3], np.array([7], np.int8)),
            example("int8[2,5]", [0, -6, 1, 4], np.array([7], np.int8)),
            example(np.array([7], np.int8), [0, 0], "int8[]"),
            example("float32[3,4]", [2, 1], "", [-1]),
            example("float32[3,4]", [2, 1, 1, 3], mode="edge"),
            example("float32[3,4]", [2, 1, 1, 3], "float32[]", mode="edge"),
            example("float32[3,4]", [0, 0, 0, 0], mode="wrap"),
            example("float32[3,4]", [2, 5, 1, 3], mode="reflect"),
            example("int8[3,4]", [2, 5], "", [1], mode="wrap"),
            example("float32[4,6]", [1, -2, -1, 3], mode="reflect"),
        ),
        MappingProxyType({"mode": "constant"}),
        "move",
        _body,
        frozenset({"pads", "axes"}),
    )
)


def _infer_center(call: Call) -> tuple[TensorType, ...]:
    data = call.type("input_data")
    shape = list(data.shape)
    axes = resolved_axes(call, call.ints("axes") or range(data.rank), data.rank)
    wanted = integers(call, "shape")
    if len(wanted) != len(axes):
        raise call.error("shape-mismatch", f"shape {list(wanted)} must have one extent for each of {len(axes)} axes")
    for axis, extent in zip(axes, wanted, strict=True):
        shape[axis] = extent
    return (data.with_shape(shape),)


def _shifts(call: Call) -> list[int]:
    """Which input index the first output index is, along each axis; negative where padding comes first."""
    pairs = zip(call.shape("input_data"), call.shape("output_data"), strict=True)
    return [(have - want) // 2 if have >= want else -((want - have) // 2) for have, want in pairs]


def _center_domain(call: Call) -> Domain:
    sizes, access = grid(call.shape("output_data"))
    source = [axis + shift for axis, shift in zip(access, _shifts(call), strict=True)]
    shapes = {name: call.shape(name) for name in ("input_data", "output_data")}
    return domain(sizes, {"input_data": source, "output_data": access}, shapes, "output_data")


def _center(call: Call, input_data: Array, _: Array) -> Array:
    result = input_data
    for axis, (shift, want) in enumerate(zip(_shifts(call), call.outputs[0].shape, strict=True)):
        have = result.shape[axis]
        result = result.take(range(max(shift, 0), min(have, max(shift, 0) + want)), axis=axis)
        before = max(-shift, 0)
        widths = [(0, 0)] * result.ndim
        widths[axis] = (before, want - result.shape[axis] - before)
        result = np.pad(result, widths)
    return result


declare(
    Operator(
        "CenterCropPad",
        "input_data shape",
        "output_data",
        _infer_center,
        _center_domain,
        _center,
        (
            example("float32[7,4]", [4, 7]),
            example("int8[5,8,3]", [8, 5], axes=(0, -2)),
        ),
        MappingProxyType({"axes": None}),
        "move",
        lambda _: Body(MappingProxyType({"output_data": "0"}), inside=MappingProxyType({"input_data": "input_data"})),
        frozenset({"shape"}),
    )
)
