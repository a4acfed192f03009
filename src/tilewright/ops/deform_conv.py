"""DeformConv: a 2-D convolution whose taps are moved by data and read by bilinear interpolation."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.core.domain import WHOLE, Axis, Domain, dim, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.normalization import check_float
from tilewright.ops.rules import expression
from tilewright.ops.windows import Window, window


def _window(call: Call) -> Window:
    kernel = call.shape("W")[2:]
    if call.ints("kernel_shape") not in ((), kernel):
        raise call.error("shape-mismatch", f"kernel_shape={list(call.ints('kernel_shape'))}, but W is {call.type('W')}")
    return window(call, kernel)


def _infer(call: Call) -> tuple[TensorType, ...]:
    x, w, group, shared = check_float(call, "X"), call.shape("W"), call.int("group"), call.int("offset_group")
    if x.rank != 4 or len(w) != 4:
        raise call.error("shape-mismatch", f"only two spatial axes are supported, X is {x}")
    if w[1] * group != x.shape[1] or w[0] % group or x.shape[1] % shared:
        raise call.error("shape-mismatch", f"W {call.type('W')}, group={group}, offset_group={shared} do not fit X {x}")
    win = _window(call)
    moves = shared * w[2] * w[3]
    wanted = {"offset": (x.shape[0], 2 * moves, *win.outputs), "mask": (x.shape[0], moves, *win.outputs), "B": (w[0],)}
    for name, shape in wanted.items():
        if call.has(name) and call.shape(name) != shape:
            raise call.error("shape-mismatch", f"{name} {call.type(name)} needs the shape {list(shape)}")
    return (x.with_shape((x.shape[0], w[0], *win.outputs)),)


def _domain(call: Call) -> Domain:
    win, w, group = _window(call), call.shape("W"), call.int("group")
    features, channels = w[0] // group, w[1]
    n, oh, ow = dim("N"), dim("OH"), dim("OW")
    feature, channel = dim("G") * features + dim("F"), dim("G") * channels + dim("C")
    access: dict[str, list[Axis]] = {
        "X": [n, channel, WHOLE, WHOLE],
        "W": [feature, dim("C"), *win.taps()],
        "offset": [n, WHOLE, oh, ow],
        "B": [feature],
        "mask": [n, WHOLE, oh, ow],
        "Y": [n, feature, oh, ow],
    }
    used = {name: axes for name, axes in access.items() if name == "Y" or call.has(name)}
    sizes = {"N": call.shape("X")[0], "G": group, "F": features, **win.output_sizes, "C": channels, **win.kernel_sizes}
    return domain(sizes, used, {name: call.shape(name) for name in used}, "Y")


def _sample(plane: Array, y: Array, x: Array) -> Array:
    """Bilinear interpolation of a plane; what lies outside is 0."""
    height, width = plane.shape
    top, left = np.floor(y).astype(np.int64), np.floor(x).astype(np.int64)
    total = np.zeros(y.shape)
    for row, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
        i, j = top + row, left + column
        weight = (1 - np.abs(y - i)) * (1 - np.abs(x - j))
        inside = (i >= 0) & (i < height) & (j >= 0) & (j < width)
        total += np.where(inside, weight * plane[np.clip(i, 0, height - 1), np.clip(j, 0, width - 1)], 0)
    return total


def _reference(
    call: Call, X: Array, W: Array, offset: Array, B: Array | None = None, mask: Array | None = None
) -> Array:
    win, group, shared = _window(call), call.int("group"), call.int("offset_group")
    n, channels = X.shape[:2]
    features, per_group = W.shape[0], W.shape[1]
    moves = offset.astype(np.float64).reshape(n, shared, *win.kernel, 2, *win.outputs)
    factors = np.ones((n, shared, *win.kernel, *win.outputs))
    if mask is not None:
        factors = mask.astype(np.float64).reshape(factors.shape)
    rows = np.arange(win.outputs[0])[:, None] * win.strides[0] - win.before[0]
    columns = np.arange(win.outputs[1])[None, :] * win.strides[1] - win.before[1]
    result = np.zeros((n, features, *win.outputs))
    for b, c, kh, kw in np.ndindex(n, channels, *win.kernel):
        move, first = c // (channels // shared), c // per_group * (features // group)
        y = rows + kh * win.dilations[0] + moves[b, move, kh, kw, 0]
        x = columns + kw * win.dilations[1] + moves[b, move, kh, kw, 1]
        value = _sample(X[b, c].astype(np.float64), y, x) * factors[b, move, kh, kw]
        for f in range(first, first + features // group):
            result[b, f] += value * W[f, c % per_group, kh, kw]
    return result if B is None else result + B.astype(np.float64).reshape(-1, 1, 1)


def _body(call: Call) -> Body:
    win, kind = _window(call), call.outputs[0].dtype.compute
    channels, height, width = call.shape("X")[1:]
    per_offset, per_group = channels // call.int("offset_group"), call.shape("W")[1]
    kernel_h, kernel_w = win.kernel
    mask = "mask_at(N, tap, OH, OW)" if call.has("mask") else "1"
    lines = [
        f"const int channel = G * {per_group} + C;",
        f"const int tap = (channel / {per_offset} * {kernel_h} + KH) * {kernel_w} + KW;",
        f"const {kind} y = ({kind})({win.position(0)}) + offset_at(N, 2 * tap, OH, OW);",
        f"const {kind} x = ({kind})({win.position(1)}) + offset_at(N, 2 * tap + 1, OH, OW);",
        # Points further out touch nothing; the comparison also keeps NaN and huge numbers away from the casts.
        f"const bool near = y > -1 && y < {height} && x > -1 && x < {width};",
        f"const {kind} py = near ? y : 0, px = near ? x : 0;",
        f"const {kind} fy = floor{{f}}(py), fx = floor{{f}}(px), dy = py - fy, dx = px - fx;",
        "const int top = (int)fy, left = (int)fx;",
        f"{kind} value = 0;",
        # Loaded in any case, as all elements are: see codegen/seams.py.
        "for (int corner = 0; corner < 4; corner++) {",
        "    const int row = top + corner / 2, column = left + corner % 2;",
        f"    const bool inside = near && row >= 0 && row < {height} && column >= 0 && column < {width};",
        f"    const {kind} weight = (corner / 2 ? dy : 1 - dy) * (corner % 2 ? dx : 1 - dx);",
        f"    const {kind} element = X_at(N, channel, inside ? row : 0, inside ? column : 0);",
        "    value += inside ? weight * element : 0;",
        "}",
        f"const {kind} mask = {mask};",
        "if (near) acc += mask * value * W;",
    ]
    result = "acc + B" if call.has("B") else "acc"
    return Body(MappingProxyType({"Y": result}), ((kind, "acc", "0"),), expression(call, "\n".join(lines)))


declare(
    Operator(
        "DeformConv",
        "X W offset B? mask?",
        "Y",
        _infer,
        _domain,
        _reference,
        (
            example("float32[1,2,4,5]", "float32[3,2,2,2]", "float32[1,8,3,4]"),
            example("float32[1,2,4,5]", "float32[3,2,2,2]", "float32[1,8,5,6]", "float32[3]", pads=(1, 1, 1, 1)),
            example(
                "float32[2,4,5,5]",
                "float32[4,2,3,3]",
                "float32[2,36,3,3]",
                "",
                "float32[2,18,3,3]",
                group=2,
                offset_group=2,
            ),
            example("float32[1,1,6,6]", "float32[1,1,2,2]", "float32[1,8,2,2]", strides=(2, 2), dilations=(2, 2)),
            example("float64[1,1,4,4]", "float64[1,1,2,2]", "float64[1,8,3,3]"),
        ),
        MappingProxyType(
            {"dilations": None, "group": 1, "kernel_shape": None, "offset_group": 1, "pads": None, "strides": None}
        ),
        "other",
        _body,
    )
)
