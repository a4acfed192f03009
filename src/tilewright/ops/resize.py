"""Resize: interpolation along axes by scales or to sizes, both known at compile time.

Interpolation is separable. Each resized axis has a loop over its taps (see `resize_taps`); where an output is simply
one input, there is no such loop and the operator is a move.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import DType
from tilewright.core.domain import Affine, Axis, Domain, domain
from tilewright.core.graph import Array, Attr, TensorType
from tilewright.core.op import Body, Call, Example, Operator, declare
from tilewright.ops.indexing import c_float, c_table, grid, integers, resolved_axes
from tilewright.ops.resize_taps import COORDINATES, MODES, NEAREST, AxisRule, Taps, matrix, window

POLICIES = ("stretch", "not_larger", "not_smaller")
_window = lru_cache(maxsize=256)(window)


def _given(call: Call, operand: str) -> bool:
    """Whether an optional operand is there; an empty tensor stands for an absent one."""
    return call.has(operand) and call.type(operand).size > 0


def _check(call: Call) -> None:
    choices = {
        "mode": MODES,
        "coordinate_transformation_mode": COORDINATES,
        "nearest_mode": NEAREST,
        "keep_aspect_ratio_policy": POLICIES,
    }
    for name, allowed in choices.items():
        if call.text(name) not in allowed:
            raise call.error("bad-attribute", f"{name}='{call.text(name)}' must be one of {', '.join(allowed)}")
    if call.text("coordinate_transformation_mode") == "tf_crop_and_resize" and not _given(call, "roi"):
        raise call.error("missing-input", "input 'roi' is required by tf_crop_and_resize")
    if _given(call, "scales") == _given(call, "sizes"):
        raise call.error("missing-input", "exactly one of the inputs 'scales' and 'sizes' must be given")


def _axes(call: Call) -> tuple[int, ...]:
    rank = call.type("X").rank
    return resolved_axes(call, call.ints("axes") or range(rank), rank)


def _scales(call: Call) -> dict[int, tuple[int, float]]:
    """Output extent and scale of each resized axis."""
    shape, axes = call.shape("X"), _axes(call)
    operand = "scales" if _given(call, "scales") else "sizes"
    if call.type(operand).size != len(axes):
        raise call.error("shape-mismatch", f"{operand} must hold one number for each of {len(axes)} axes")
    if operand == "scales":
        factors = [np.float32(v) for v in call.value("scales").reshape(-1)]
        return {
            axis: (int(np.floor(np.float32(shape[axis]) * factor)), float(factor))
            for axis, factor in zip(axes, factors, strict=True)
        }
    sizes = dict(zip(axes, integers(call, "sizes"), strict=True))
    ratios = {axis: size / shape[axis] if shape[axis] else 1.0 for axis, size in sizes.items()}
    policy = call.text("keep_aspect_ratio_policy")
    if policy == "stretch":
        return {axis: (sizes[axis], ratio) for axis, ratio in ratios.items()}
    common = min(ratios.values()) if policy == "not_larger" else max(ratios.values())
    return {axis: (int(common * shape[axis] + 0.5), common) for axis in axes}


def _infer(call: Call) -> tuple[TensorType, ...]:
    _check(call)
    data = call.type("X")
    shape = list(data.shape)
    for axis, (resized, scale) in _scales(call).items():
        if scale <= 0 or (shape[axis] == 0) != (resized == 0):
            raise call.error("bad-value", f"axis {axis} of {data} cannot be resized to {resized}")
        shape[axis] = resized
    return (data.with_shape(shape),)


def _rules(call: Call) -> dict[int, AxisRule]:
    """How each axis that changes is resized."""
    axes, shape = _axes(call), call.shape("X")
    scales = _scales(call)
    crops = call.text("coordinate_transformation_mode") == "tf_crop_and_resize"
    roi = [float(v) for v in call.value("roi").reshape(-1)] if crops else [0.0] * len(axes) + [1.0] * len(axes)
    rules: dict[int, AxisRule] = {}
    for i, axis in enumerate(axes):
        resized, scale = scales[axis]
        region = (roi[i], roi[i + len(axes)])
        if resized == 0 or (scale == 1 and resized == shape[axis] and region == (0.0, 1.0)):
            continue
        rules[axis] = AxisRule(
            shape[axis],
            resized,
            scale,
            call.text("coordinate_transformation_mode"),
            region,
            call.text("mode"),
            call.text("nearest_mode"),
            call.float("cubic_coeff_a"),
            bool(call.int("antialias")),
            bool(call.int("exclude_outside")),
        )
    return rules


def _windows(call: Call) -> dict[int, Taps]:
    return {axis: _window(rule) for axis, rule in _rules(call).items()}


def _domain(call: Call) -> Domain:
    sizes, access = grid(call.shape("Y"))
    source: list[Axis] = [*access]
    for axis, taps in _windows(call).items():
        terms = [(f"D{axis}", taps.slope), (f"T{axis}", taps.divisor)] if taps.taps > 1 else [(f"D{axis}", taps.slope)]
        source[axis] = Affine(tuple((n, c) for n, c in terms if c), taps.offset).over(taps.divisor)
        if taps.taps > 1:
            sizes[f"T{axis}"] = taps.taps
    shapes = {"X": call.shape("X"), "Y": call.shape("Y")}
    return domain(sizes, {"X": source, "Y": access}, shapes, "Y")


def _reference(call: Call, X: Array, *_: Array | None) -> Array:
    result = X if call.text("mode") == "nearest" else X.astype(np.float64)
    kind = call.outputs[0].dtype
    masks: list[Array] = []
    for axis, rule in _rules(call).items():
        weights, outside = matrix(rule)
        if rule.mode == "nearest":
            result = np.take(result, weights.argmax(axis=1), axis=axis)
        else:
            result = np.moveaxis(np.tensordot(weights, result, (1, axis)), 0, axis)
        masks.append(outside.reshape([-1 if i == axis else 1 for i in range(X.ndim)]))
    if kind.is_integer:
        result = np.clip(np.rint(result), kind.lo, kind.hi) if result.dtype.kind == "f" else result
    beyond = np.asarray(_extrapolated(call), result.dtype)
    for mask in masks:
        result = np.where(mask, beyond, result)
    return result


def _extrapolated(call: Call) -> float | int:
    """What stands where a crop reaches out of the picture, in the output type: as all results, rounded and held."""
    value, kind = call.float("extrapolation_value"), call.outputs[0].dtype
    return value if kind.is_float else round(min(max(kind.lo, value), kind.hi))


def _literal(kind: DType, value: float) -> str:
    """A number of the output type in C."""
    if kind.is_float:
        return c_float(value, kind.compute)
    if kind.kind == "int" and value == kind.lo:
        return f"{kind.name.upper()}_MIN"
    return f"({kind.ctype}){value}{'u' if kind.kind == 'uint' else ''}"


def _body(call: Call) -> Body:
    windows = _windows(call)
    kind = call.outputs[0].dtype
    constants = [
        c_table("uint8_t", f"OUTSIDE{axis}", taps.outside) for axis, taps in windows.items() if taps.outside.any()
    ]
    cropped = " || ".join(f"OUTSIDE{axis}[D{axis}]" for axis, taps in windows.items() if taps.outside.any())

    def finish(value: str, state: tuple[tuple[str, str, str], ...] = (), update: str = "") -> Body:
        text = f"{cropped} ? {_literal(kind, _extrapolated(call))} : {value}" if cropped else value
        fill = MappingProxyType({} if state else {"X": "0"})
        return Body(MappingProxyType({"Y": text}), state, update, tuple(constants), fill)

    if all(taps.plain for taps in windows.values()):
        return finish("X")
    moving = {axis: taps for axis, taps in windows.items() if taps.taps > 1 or not taps.plain}
    if call.text("mode") == "nearest":
        constants += [c_table("uint8_t", f"PICK{axis}", taps.weights.argmax(axis=1)) for axis, taps in moving.items()]
        chosen = " && ".join(f"T{axis} == PICK{axis}[D{axis}]" for axis in moving)
        return finish("acc", ((kind.compute, "acc", "0"),), f"if ({chosen}) acc = X;")
    real = "double" if kind.compute == "double" or (kind.is_integer and kind.bits >= 32) else "float"
    constants += [c_table(real, f"W{axis}", taps.weights) for axis, taps in moving.items()]
    weight = " * ".join(f"W{axis}[D{axis}][{f'T{axis}' if taps.taps > 1 else 0}]" for axis, taps in moving.items())
    state = ((real, "acc", "0"),)
    return finish(_rounded(call, real), state, f"acc += {'X' if kind.is_float else f'({real})X'} * {weight};")


def _rounded(call: Call, real: str) -> str:
    """The accumulator in the output type: integers are rounded and saturate."""
    kind = call.outputs[0].dtype
    if kind.is_float:
        return "acc"
    suffix = "f" if real == "float" else ""
    low, high = c_float(float(kind.lo), real), c_float(float(kind.hi), real)
    # The largest value of a wide integer rounds up in floating point: at the limit the integer itself is given.
    top = f"{kind.name.upper()}_MAX"
    bottom = f"{kind.name.upper()}_MIN" if kind.kind == "int" else "0"
    return f"acc >= {high} ? {top} : acc <= {low} ? {bottom} : ({kind.ctype})rint{suffix}(acc)"


def _resize_example(
    shape: str,
    *,
    scales: Sequence[float] | None = None,
    sizes: Sequence[int] | None = None,
    roi: Sequence[float] | None = None,
    **attributes: Attr,
) -> Example:
    given = [
        "" if roi is None else np.asarray(roi, np.float32),
        "" if scales is None else np.asarray(scales, np.float32),
        "" if sizes is None else np.asarray(sizes, np.int64),
    ]
    return Example((shape, *given), MappingProxyType(attributes))


_EXAMPLES = (
    _resize_example(
        "float32[1,2,3,4]", scales=[1, 1, 2, 3], mode="nearest", coordinate_transformation_mode="asymmetric"
    ),
    _resize_example("int8[1,2,3,4]", sizes=[1, 2, 5, 7]),
    _resize_example("float32[1,1,5,6]", sizes=[3, 4], axes=(2, 3), nearest_mode="ceil"),
    _resize_example("float32[1,2,3,4]", scales=[1, 1, 2, 2], mode="linear"),
    _resize_example(
        "float32[1,1,4,4]", scales=[1, 1, 0.6, 0.6], mode="linear", coordinate_transformation_mode="align_corners"
    ),
    _resize_example("float32[1,1,4,4]", scales=[1, 1, 0.6, 1.7], mode="cubic", exclude_outside=1, cubic_coeff_a=-0.5),
    _resize_example("float32[1,1,8,9]", sizes=[1, 1, 3, 4], mode="linear", antialias=1),
    _resize_example("float32[1,1,8,9]", sizes=[1, 1, 3, 4], mode="cubic", antialias=1),
    _resize_example("float32[3,8]", sizes=[7, 7], mode="linear", keep_aspect_ratio_policy="not_smaller"),
    _resize_example(
        "float32[2,5]", scales=[1, 2.3], mode="linear", coordinate_transformation_mode="half_pixel_symmetric"
    ),
    _resize_example("float32[4,1]", sizes=[1, 3], mode="cubic", coordinate_transformation_mode="pytorch_half_pixel"),
    _resize_example("uint8[4,5]", sizes=[8, 10], mode="linear"),
    _resize_example("float64[2,5]", sizes=[3, 7], mode="cubic"),
    _resize_example(
        "float32[1,1,4,4]",
        sizes=[1, 1, 5, 3],
        roi=[0, 0, 0.4, 0.6, 1, 1, 1.2, -0.3],
        mode="linear",
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=10.0,
    ),
    _resize_example(
        "float32[4,4]",
        sizes=[3, 6],
        roi=[0.2, -0.6, 0.7, 1.7],
        axes=(0, 1),
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=-1.0,
    ),
    *(
        _resize_example(
            f"{kind}[4,4]",
            sizes=[3, 6],
            roi=[0.2, -0.6, 0.7, 1.7],
            mode=mode,
            coordinate_transformation_mode="tf_crop_and_resize",
            extrapolation_value=beyond,
        )
        for kind, mode, beyond in (("uint8", "nearest", 7.0), ("int8", "linear", -300.0), ("int64", "nearest", -1e30))
    ),
)

declare(
    Operator(
        "Resize",
        "X roi? scales? sizes?",
        "Y",
        _infer,
        _domain,
        _reference,
        _EXAMPLES,
        MappingProxyType(
            {
                "antialias": 0,
                "axes": None,
                "coordinate_transformation_mode": "half_pixel",
                "cubic_coeff_a": -0.75,
                "exclude_outside": 0,
                "extrapolation_value": 0.0,
                "keep_aspect_ratio_policy": "stretch",
                "mode": "nearest",
                "nearest_mode": "round_prefer_floor",
            }
        ),
        "reduce",
        _body,
        frozenset({"roi", "scales", "sizes"}),
    )
)
