"""AveragePool, MaxPool and LpPool: 1-D to 3-D windows, in ONNX's layout or with `channels_last`."""

from __future__ import annotations

from math import prod
from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import INT64
from tilewright.core.domain import Domain, dim, domain
from tilewright.core.graph import Array, Attr, TensorType
from tilewright.core.op import REQUIRED, Body, Call, Example, Operator, declare, example
from tilewright.ops.matmul import accumulator
from tilewright.ops.rules import expression, lowest
from tilewright.ops.sampling import resized_window
from tilewright.ops.windows import (
    Window,
    channel_axis,
    channels_back,
    channels_first,
    is_channels_last,
    layout,
    padding,
    patches,
    window,
)

ATTRS: dict[str, Attr] = {
    "auto_pad": "NOTSET",
    "ceil_mode": 0,
    "channels_last": 0,
    "dilations": None,
    "kernel_shape": REQUIRED,
    "pads": None,
    "strides": None,
}


def _window(call: Call) -> Window:
    return window(call, call.ints("kernel_shape"), ceil=bool(call.int("ceil_mode")))


def _infer(call: Call) -> tuple[TensorType, ...]:
    x, outputs = call.type("X"), _window(call).outputs
    channels = x.shape[channel_axis(call)]
    shape = (x.shape[0], *outputs, channels) if is_channels_last(call) else (x.shape[0], channels, *outputs)
    return (x.with_shape(shape),)


def _average_infer(call: Call) -> tuple[TensorType, ...]:
    if not call.int("sum"):
        return _infer_float(call)
    (y,) = _infer(call)
    return (y.with_dtype(accumulator(y.dtype, y.dtype)),)


def _infer_float(call: Call) -> tuple[TensorType, ...]:
    if not call.type("X").dtype.is_float:
        raise call.error("type-mismatch", f"X must be floating point, found {call.type('X')}", help="insert a Cast")
    return _infer(call)


def _domain(call: Call) -> Domain:
    win, outputs = _window(call), call.op.output_names(len(call.outputs))
    channels = call.shape("X")[channel_axis(call)]
    written = layout(call, dim("N"), dim("C"), win.writes())
    access = {"X": layout(call, dim("N"), dim("C"), win.reads()), **dict.fromkeys(outputs, written)}
    batch, lanes = {"N": call.shape("X")[0]}, {"C": channels}
    order = {**win.output_sizes, **lanes} if is_channels_last(call) else {**lanes, **win.output_sizes}
    shapes = {name: call.shape(name) for name in access}
    products = {"PIXELS": list(win.output_sizes), "TAPS": list(win.kernel_sizes)}
    sizes = {**batch, **order, **win.kernel_sizes}
    return domain(sizes, access, shapes, " ".join(outputs), products=products)


def _seen(call: Call, X: Array, fill: float | int) -> Array:
    """`[N, C, *outputs, TAPS]`."""
    win = _window(call)
    found = patches(win, channels_first(call, X), fill)
    return found.reshape(*found.shape[: 2 + len(win.kernel)], prod(win.kernel))


def _examples(*more: Example) -> tuple[Example, ...]:
    return (
        example("float32[1,2,7,8]", kernel_shape=(3, 2)),
        example("float32[2,2,7,8]", kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1)),
        example("float32[1,2,8,8]", kernel_shape=(3, 3), strides=(2, 2), ceil_mode=1),
        example("float32[1,2,6,6]", kernel_shape=(3, 3), strides=(2, 2), pads=(0, 1, 1, 0), ceil_mode=1),
        example("float32[1,1,5,6]", kernel_shape=(2, 2), auto_pad="SAME_UPPER"),
        example("float32[1,1,5,6]", kernel_shape=(2, 2), auto_pad="SAME_LOWER", strides=(2, 1)),
        example("float32[1,2,9,9]", kernel_shape=(2, 3), dilations=(2, 3)),
        example("float32[2,3,9]", kernel_shape=(3,), strides=(2,)),
        example("float32[1,2,5,4,5]", kernel_shape=(2, 2, 3), pads=(1, 0, 0, 0, 1, 0)),
        example("float32[1,7,8,3]", kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1), channels_last=1),
        example("float64[1,2,5,5]", kernel_shape=(2, 2)),
        example("float16[1,2,5,5]", kernel_shape=(2, 2)),
        *more,
    )


# AveragePool


def _padded_taps(win: Window, axis: int) -> Array:
    """How many taps of the window at each output position lie inside the tensor or its padding."""
    limit = win.before[axis] + win.extents[axis] + win.after[axis]
    starts = np.arange(win.outputs[axis]) * win.strides[axis]
    return np.minimum(win.kernel[axis], -(-(limit - starts) // win.dilations[axis]))


def _average(call: Call, X: Array) -> Array:
    win = _window(call)
    total = _seen(call, X.astype(np.float64), 0).sum(axis=-1)
    if call.int("sum"):
        return channels_back(call, total)
    if call.int("count_include_pad"):
        counts = np.ones(win.outputs)
        for axis in range(len(win.outputs)):
            counts = counts * _padded_taps(win, axis).reshape([-1 if i == axis else 1 for i in range(len(win.outputs))])
    else:
        counts = _seen(call, np.ones_like(X, dtype=np.float64), 0).sum(axis=-1)
    return channels_back(call, total / counts)


def _average_body(call: Call) -> Body:
    win, kind = _window(call), call.outputs[0].dtype.compute
    if call.int("sum"):
        return Body(MappingProxyType({"Y": "acc"}), ((kind, "acc", "0"),), "acc += X;")
    if not call.int("count_include_pad"):
        state = ((kind, "acc", "0"), ("int", "count", "0"))
        return Body(MappingProxyType({"Y": f"acc / ({kind})count"}), state, "acc += X;\ncount++;")
    counts: list[str] = []
    for axis, name in enumerate(win.names):
        if not win.overshoots(axis):
            counts.append(str(win.kernel[axis]))
            continue
        limit, step = win.before[axis] + win.extents[axis] + win.after[axis], win.dilations[axis]
        inside = f"({limit} - O{name} * {win.strides[axis]} + {step - 1}) / {step}"
        counts.append(f"tw_min({win.kernel[axis]}, {inside})")
    return Body(MappingProxyType({"Y": f"acc / ({kind})({' * '.join(counts)})"}), ((kind, "acc", "0"),), "acc += X;")


declare(
    Operator(
        "AveragePool",
        "X",
        "Y",
        _average_infer,
        _domain,
        _average,
        _examples(
            example("float32[1,2,6,6]", kernel_shape=(3, 3), pads=(1, 1, 1, 1), count_include_pad=1),
            example(
                "float32[1,1,8,7]",
                kernel_shape=(3, 3),
                strides=(3, 2),
                pads=(1, 0, 1, 0),
                ceil_mode=1,
                count_include_pad=1,
            ),
            example(
                "float32[1,1,9,9]",
                kernel_shape=(2, 2),
                dilations=(3, 2),
                strides=(2, 2),
                ceil_mode=1,
                count_include_pad=1,
            ),
            example("int8[1,6,6,3]", kernel_shape=(2, 3), strides=(2, 2), channels_last=1, sum=1),
            example("uint8[1,6,6,19]", kernel_shape=(3, 3), channels_last=1, sum=1),
            example("uint8[1,3,6,6]", kernel_shape=(3, 3), pads=(1, 1, 1, 1), sum=1),
        ),
        MappingProxyType({**ATTRS, "count_include_pad": 0, "sum": 0}),
        "reduce",
        _average_body,
        doc="The mean over each window; padding counts where count_include_pad says so. With `sum` nothing is divided "
        "and integers give int32: the form that quantised networks use, where requantisation divides.",
        numbers=lambda call: _window(call).numbers(),
        padding=padding,
        sample=resized_window,
        limit=lambda call, limits: prod(call.ints("kernel_shape")) * limits["X"],
    )
)


# MaxPool


def _max_infer(call: Call) -> tuple[TensorType, ...]:
    (y,) = _infer(call)
    if call.wanted < 2:
        return (y,)
    if is_channels_last(call):
        raise call.error("bad-attribute", "Indices are only defined for channels_last=0")
    return (y, y.with_dtype(INT64))


def _maximum(call: Call, X: Array) -> tuple[Array, ...]:
    kind = call.type("X").dtype
    seen = _seen(call, X.astype(np.float64) if kind.is_float else X, -np.inf if kind.is_float else kind.lo)
    best = channels_back(call, seen.max(axis=-1))
    if call.wanted < 2:
        return (best,)
    win = _window(call)
    places: Array = np.arange(int(np.prod(win.extents))).reshape(win.extents)
    if call.int("storage_order"):
        places = np.arange(places.size).reshape(win.extents[::-1]).T
    planes = [np.add(places, plane * places.size) for plane in range(X.shape[0] * X.shape[1])]
    where = _seen(call, np.array(planes).reshape(X.shape), -1)
    # Padding never wins over an element, not even over an equal one.
    chosen = np.argmax(np.where(where >= 0, seen.astype(np.float64), -np.inf), axis=-1)
    return best, np.take_along_axis(where, chosen[..., None], axis=-1)[..., 0]


def _max_body(call: Call) -> Body:
    kind = call.type("X").dtype
    best = (kind.compute, "best", lowest(kind))
    if call.wanted < 2:
        return Body(MappingProxyType({"Y": "best"}), (best,), "best = X > best ? X : best;")
    win = _window(call)
    rank, by_column = len(win.extents), call.int("storage_order")
    steps = [int(np.prod(win.extents[:i] if by_column else win.extents[i + 1 :])) for i in range(rank)]
    channels, count = call.shape("X")[1], int(np.prod(win.extents))
    terms = [f"((int64_t)N * {channels} + C) * {count}"]
    terms += [f"({win.position(axis)}) * (int64_t){steps[axis]}" for axis in range(rank)]
    update = f"if (where < 0 || X > best) {{\n    best = X;\n    where = {' + '.join(terms)};\n}}"
    return Body(MappingProxyType({"Y": "best", "Indices": "where"}), (best, ("int64_t", "where", "-1")), update)


declare(
    Operator(
        "MaxPool",
        "X",
        "Y Indices?",
        _max_infer,
        _domain,
        _maximum,
        _examples(
            example("int8[1,2,6,6]", kernel_shape=(3, 3), pads=(1, 1, 1, 1)),
            example("uint8[1,6,6,2]", kernel_shape=(2, 2), strides=(2, 2), channels_last=1),
            example("int8[1,6,6,19]", kernel_shape=(3, 3), pads=(1, 1, 1, 1), channels_last=1),
            example("float32[1,5,7,19]", kernel_shape=(2, 3), strides=(1, 2), channels_last=1),
            example("float32[2,2,5,6]", kernel_shape=(3, 2), pads=(1, 0, 1, 1), wanted=2),
            example("float32[2,2,5,6]", kernel_shape=(2, 2), strides=(2, 2), storage_order=1, wanted=2),
            example("int32[1,2,7]", kernel_shape=(3,), strides=(2,), wanted=2),
        ),
        MappingProxyType({**ATTRS, "storage_order": 0}),
        "reduce",
        _max_body,
        doc="The largest element of each window, and where it lies in X (Indices).",
        numbers=lambda call: _window(call).numbers(),
        padding=padding,
        sample=resized_window,
    )
)


# LpPool


def power_body(call: Call) -> Body:
    """The p-norm of the reduced points."""
    p, kind = call.int("p"), call.outputs[0].dtype.compute
    update, result = {
        1: ("acc += fabs{f}(X);", "acc"),
        2: ("acc += X * X;", "sqrt{f}(acc)"),
    }.get(p, (f"acc += pow{{f}}(fabs{{f}}(X), {p});", f"pow{{f}}(acc, ({kind})1 / {p})"))
    return Body(MappingProxyType({"Y": expression(call, result)}), ((kind, "acc", "0"),), expression(call, update))


def _power(call: Call, X: Array) -> Array:
    p = call.int("p")
    total = (np.abs(_seen(call, X.astype(np.float64), 0)) ** p).sum(axis=-1)
    return channels_back(call, total ** (1 / p))


declare(
    Operator(
        "LpPool",
        "X",
        "Y",
        _infer_float,
        _domain,
        _power,
        _examples(
            example("float32[1,2,6,6]", kernel_shape=(3, 3), p=1),
            example("float32[1,2,6,6]", kernel_shape=(3, 3), p=3),
        ),
        MappingProxyType({**ATTRS, "p": 2}),
        "reduce",
        power_body,
        doc="The p-norm of each window.",
        numbers=lambda call: _window(call).numbers(),
        padding=padding,
        sample=resized_window,
    )
)
