"""Conv: 1-D to 3-D convolution with groups, and FusedConv, the same with an activation behind it.

`channels_last` is 0 for ONNX's layout and 1 for X as `[N, spatial..., channels]` (Y alike, W unchanged). On integers
the result is int32, and `x_zero_point` is the value that padding has.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from tilewright.core.domain import Axis, Domain, dim, domain
from tilewright.core.graph import Array, Attr, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.limits import sum_of_products
from tilewright.ops.matmul import WEIGHT_BITS, accumulator, contraction_body
from tilewright.ops.named_activations import Activation, with_parameters
from tilewright.ops.sampling import resized_window
from tilewright.ops.windows import (
    Window,
    channel_axis,
    channels_back,
    channels_first,
    layout,
    padding,
    patches,
    spatial_axes,
    window,
)

ATTRS: dict[str, Attr] = {
    "auto_pad": "NOTSET",
    "channels_last": 0,
    "dilations": None,
    "group": 1,
    "kernel_shape": None,
    "pads": None,
    "strides": None,
    "x_zero_point": 0,
    **WEIGHT_BITS,
}


def conv_window(call: Call) -> Window:
    kernel = call.shape("W")[2:]
    stated = call.ints("kernel_shape")
    if stated and stated != kernel:
        raise call.error("shape-mismatch", f"kernel_shape={list(stated)}, but W is {call.type('W')}")
    return window(call, kernel)


def _infer(call: Call) -> tuple[TensorType, ...]:
    x, w = call.type("X"), call.type("W")
    spatial_axes(call)
    if x.dtype.is_float != w.dtype.is_float:
        raise call.error("type-mismatch", f"X is {x.dtype} and W is {w.dtype}", help="insert a Cast")
    channels, group = x.shape[channel_axis(call)], call.int("group")
    if w.rank != x.rank or w.shape[1] * group != channels or w.shape[0] % group:
        raise call.error("shape-mismatch", f"W {w} with group={group} does not fit X {x}")
    if call.has("B") and call.shape("B") != (w.shape[0],):
        raise call.error("shape-mismatch", f"B {call.type('B')} needs one value for each of {w.shape[0]} channels")
    outputs = conv_window(call).outputs
    shape = (x.shape[0], *outputs, w.shape[0]) if call.int("channels_last") else (x.shape[0], w.shape[0], *outputs)
    return (TensorType(accumulator(x.dtype, w.dtype), shape),)


def _domain(call: Call) -> Domain:
    win, w, group = conv_window(call), call.shape("W"), call.int("group")
    features, channels = w[0] // group, w[1]
    n, feature, channel = dim("N"), dim("G") * features + dim("F"), dim("G") * channels + dim("C")
    access: dict[str, list[Axis]] = {
        "X": layout(call, n, channel, win.reads()),
        "W": [feature, dim("C"), *win.taps()],
        "B": [feature],
        "Z": layout(call, n, feature, win.writes()),
        "Y": layout(call, n, feature, win.writes()),
    }
    used = {name: axes for name, axes in access.items() if name == "Y" or call.has(name)}
    shapes = {name: call.shape(name) for name in used}
    outer, lanes = {"N": call.shape("X")[0]}, {"G": group, "F": features}
    if call.int("channels_last"):
        sizes = {**outer, **win.output_sizes, **lanes, **win.kernel_sizes, "C": channels}
    else:
        sizes = {**outer, **lanes, **win.output_sizes, "C": channels, **win.kernel_sizes}
    products = {
        "BATCH": ["N"],
        "CHANNELS": ["G", "C"],
        "FEATURES": ["G", "F"],
        "PIXELS": list(win.output_sizes),
        "TAPS": list(win.kernel_sizes),
    }
    return domain(sizes, used, shapes, "Y", products=products)


def _sum(call: Call, X: Array, W: Array, B: Array | None) -> Array:
    """The convolution in wide arithmetic, channels first."""
    wide = np.float64 if call.outputs[0].dtype.is_float else np.int64
    win, group = conv_window(call), call.int("group")
    seen = patches(win, channels_first(call, X).astype(wide), call.int("x_zero_point"))
    rank = len(win.kernel)
    n, outputs = seen.shape[0], win.outputs
    rows = seen.reshape(n, group, -1, *outputs, *win.kernel)
    rows = np.moveaxis(rows, 2, 2 + rank).reshape(n, group, int(np.prod(outputs)), -1)
    weights = W.astype(wide).reshape(group, W.shape[0] // group, -1)
    result = np.einsum("ngpk,gfk->ngfp", rows, weights).reshape(n, W.shape[0], *outputs)
    return result if B is None else result + B.astype(wide).reshape(-1, *(1,) * rank)


def _reference(call: Call, X: Array, W: Array, B: Array | None = None) -> Array:
    return channels_back(call, _sum(call, X, W, B))


def _conv_body(call: Call) -> Body:
    plain = contraction_body(call, "X", "W")
    zero = call.int("x_zero_point")
    unsigned = "" if call.outputs[0].dtype.is_float else f"({plain.state[0][0]})"
    result = f"acc + {unsigned}B" if call.has("B") else "acc"
    fill = {"X": str(zero)} if zero else {}
    return Body(MappingProxyType({"Y": result}), plain.state, plain.update, fill=MappingProxyType(fill))


def _limit(call: Call, limits: Mapping[str, int]) -> int:
    values = {**limits, "X": limits["X"] + abs(call.int("x_zero_point"))}
    return sum_of_products(call, values, "X", "W", added="B")


declare(
    Operator(
        "Conv",
        "X W B?",
        "Y",
        _infer,
        _domain,
        _reference,
        (
            example("float32[1,3,6,7]", "float32[4,3,3,3]", "float32[4]", pads=(1, 1, 1, 1)),
            example("float32[2,4,7,6]", "float32[6,2,3,2]", group=2, strides=(2, 1), dilations=(1, 2)),
            example(
                "float32[2,4,5,5]", "float32[4,1,3,3]", "float32[4]", group=4, auto_pad="SAME_UPPER", strides=(2, 2)
            ),
            example("float32[1,2,5,6]", "float32[3,2,2,2]", auto_pad="SAME_LOWER"),
            example("float32[1,2,5,6]", "float32[3,2,2,2]", auto_pad="VALID", kernel_shape=(2, 2)),
            example("float32[2,3,9]", "float32[4,3,3]", "float32[4]", pads=(2, 0), strides=(2,)),
            example("float32[1,2,4,5,4]", "float32[3,2,2,3,2]", pads=(0, 1, 1, 1, 0, 0)),
            example("float32[1,6,7,3]", "float32[4,3,3,3]", "float32[4]", pads=(1, 0, 1, 2), channels_last=1),
            example("float32[1,5,5,4]", "float32[4,2,3,3]", group=2, strides=(2, 2), channels_last=1),
            example("int8[1,3,6,6]", "int8[4,3,3,3]", "int32[4]", pads=(1, 1, 1, 1)),
            example("uint8[1,3,6,6]", "int8[4,3,3,3]", pads=(1, 1, 1, 1), x_zero_point=7),
            example("int8[1,5,6,4]", "int8[4,1,3,3]", pads=(1, 1, 1, 1), group=4, channels_last=1, x_zero_point=-5),
            # More channels than a register tile has, with a ragged end.
            example(
                "float32[1,5,6,20]", "float32[20,1,3,3]", "float32[20]", pads=(1, 1, 1, 1), group=20, channels_last=1
            ),
            example("float32[1,5,7,5]", "float32[21,5,3,2]", strides=(1, 2), dilations=(2, 1), channels_last=1),
            example(
                "uint8[1,6,7,5]", "int8[21,5,3,3]", "int32[21]", pads=(1, 1, 1, 1), channels_last=1, x_zero_point=9
            ),
            example("int8[1,5,5,4]", "int8[6,2,1,1]", "int32[6]", group=2, strides=(2, 2), channels_last=1),
            example("uint8[1,6,6,19]", "int8[19,1,3,3]", "int32[19]", group=19, strides=(2, 2), channels_last=1),
            example("float16[1,2,5,5]", "float16[2,2,3,3]"),
            example("float64[1,2,5,5]", "float64[2,2,3,3]"),
        ),
        MappingProxyType(ATTRS),
        "reduce",
        _conv_body,
        numbers=lambda call: conv_window(call).numbers(),
        padding=padding,
        limit=_limit,
        sample=resized_window,
    )
)


def _activation(call: Call) -> Activation:
    return with_parameters(call, call.text("activation"), call.attrs.get("activation_params"))


def _fused_infer(call: Call) -> tuple[TensorType, ...]:
    result = _infer(call)
    if call.has("Z") and call.shape("Z") != result[0].shape:
        raise call.error("shape-mismatch", f"Z {call.type('Z')} must have the shape of the result, {result[0]}")
    _activation(call)
    return result


def _fused_reference(call: Call, X: Array, W: Array, B: Array | None = None, Z: Array | None = None) -> Array:
    result = channels_back(call, _sum(call, X, W, B))
    return _activation(call).reference(result if Z is None else result + Z)


def _fused_body(call: Call) -> Body:
    plain = _conv_body(call)
    inner = plain.result["Y"] + (" + Z" if call.has("Z") else "")
    kind = call.outputs[0].dtype
    result = _activation(call).c(f"({kind.compute})({inner})", kind)
    return Body(MappingProxyType({"Y": result}), plain.state, plain.update, fill=plain.fill)


declare(
    Operator(
        "FusedConv",
        "X W B? Z?",
        "Y",
        _fused_infer,
        _domain,
        _fused_reference,
        (
            example("float32[1,3,6,7]", "float32[4,3,3,3]", "float32[4]", pads=(1, 1, 1, 1), activation="Relu"),
            example(
                "float32[1,2,4,4]",
                "float32[3,2,3,3]",
                "",
                "float32[1,3,2,2]",
                activation="LeakyRelu",
                activation_params=(0.1,),
            ),
            example("float32[1,2,4,4]", "float32[3,2,3,3]", activation="Clip", activation_params=(0.0, 6.0)),
            example("float32[1,2,4,4]", "float32[3,2,3,3]", activation="Tanh"),
        ),
        MappingProxyType({**ATTRS, "activation": "", "activation_params": None}),
        "reduce",
        _fused_body,
        doc="A convolution, plus Z where there is one, through an activation.",
        numbers=lambda call: conv_window(call).numbers(),
        padding=padding,
    )
)
