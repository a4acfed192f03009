"""Nodes over pictures and signals: convolutions, pools, resizing, sampling."""

from __future__ import annotations

from math import prod

import numpy as np

from node_makers.drawing import Drawing, Impossible, Maker
from tilewright.base.dtype import DTYPES


class Window:
    """A kernel that fits into a padded picture, with what is said of it."""

    def __init__(self, d: Drawing, *, automatic: bool = True, half: bool = False) -> None:
        rank: int = d.pick(1, 2, 2, 2, 3)
        plain, dilated = [1] * rank, d.has("dilations") and d.rarely()
        self.kernel = [d.between(1, 3) for _ in range(rank)]
        self.strides: list[int] = [d.pick(1, 1, 2, 3) for _ in range(rank)] if d.flip() else plain
        self.dilations: list[int] = [d.pick(1, 2, 3) for _ in range(rank)] if dilated else plain
        # A window that covers padding alone has no result that is defined.
        self.pads = [d.between(0, (k - 1) if half else 2) for _ in range(2) for k in self.kernel]
        self.pads = self.pads if d.flip() else [0] * 2 * rank
        self.auto: str = d.pick("SAME_UPPER", "SAME_LOWER", "VALID") if automatic and d.rarely() else ""
        reach = [(k - 1) * step + 1 for k, step in zip(self.kernel, self.dilations, strict=True)]
        around = [0 if self.auto else self.pads[i] + self.pads[rank + i] for i in range(rank)]
        self.pixels: list[int] = [max(1, extent - pad) + d.below(5) for extent, pad in zip(reach, around, strict=True)]

    def say(self, d: Drawing, *, kernel: bool = True) -> None:
        if kernel or d.flip():
            d.attributes["kernel_shape"] = self.kernel
        if any(stride > 1 for stride in self.strides) or d.flip():
            d.attributes["strides"] = self.strides
        if any(step > 1 for step in self.dilations):
            d.attributes["dilations"] = self.dilations
        if self.auto:
            d.attributes["auto_pad"] = self.auto
        elif any(self.pads) or d.flip():
            d.attributes["pads"] = self.pads


def pool(d: Drawing) -> None:
    window = Window(d, half=True)
    d.put((d.between(1, 2), d.between(1, 3), *window.pixels), constant=False)
    window.say(d)
    if not window.auto:
        d.say("ceil_mode", d.below(2))
    d.say("count_include_pad", d.below(2))
    if d.op == "LpPool":
        d.say("p", d.between(1, 3))
    if d.op == "MaxPool" and len(d.schema.outputs) > 1:
        d.say("storage_order", int(d.rarely()))
        d.results(d.between(1, 2))


def global_pool(d: Drawing) -> None:
    d.put((d.between(1, 2), d.between(1, 3), *(d.between(1, 5) for _ in range(d.between(1, 3)))), constant=False)
    d.say("p", d.between(1, 3))


def conv(d: Drawing) -> None:
    window = Window(d)
    group, each, features = d.pick(1, 1, 2, 3), d.between(1, 3), d.between(1, 3)
    d.put((d.between(1, 2), group * each, *window.pixels), constant=False)
    d.put((group * features, each, *window.kernel))
    if d.takes("B") and d.flip():
        d.put((group * features,))
    if d.op == "ConvInteger":
        zero_points(d)
    window.say(d, kernel=False)
    d.say("group", group, always=group > 1)


def zero_points(d: Drawing) -> None:
    """Of the two operands before, none, one or both."""
    for _ in range(d.below(3)):
        d.put((), -9, 9, constant=True)


def conv_transpose(d: Drawing) -> None:
    window = Window(d)
    group, each, features = d.pick(1, 1, 2), d.between(1, 3), d.between(1, 3)
    d.put((d.between(1, 2), group * each, *window.pixels), constant=False)
    d.put((group * each, features, *window.kernel))
    if d.flip():
        d.put((group * features,))
    window.say(d, kernel=False)
    d.say("group", group, always=group > 1)
    room = [max(s, step) - 1 for s, step in zip(window.strides, window.dilations, strict=True)]
    if d.flip():
        d.say("output_padding", [d.between(0, most) for most in room])
    elif d.rarely():
        d.attributes.pop("auto_pad", None)
        d.attributes.pop("pads", None)
        d.attributes["output_shape"] = [e * s for e, s in zip(window.pixels, window.strides, strict=True)]


def deform_conv(d: Drawing) -> None:
    window = Window(d, automatic=False)
    if len(window.kernel) != 2:
        raise Impossible
    group, offsets, each, features = d.pick(1, 1, 2), d.pick(1, 1, 2), d.between(1, 2), d.between(1, 2)
    channels = group * each * offsets
    d.put((1, channels, *window.pixels), constant=False)
    d.put((group * features, channels // group, *window.kernel))
    out = [
        (e + window.pads[i] + window.pads[2 + i] - (k - 1) * step - 1) // stride + 1
        for i, (e, k, step, stride) in enumerate(
            zip(window.pixels, window.kernel, window.dilations, window.strides, strict=True)
        )
    ]
    count = offsets * prod(window.kernel)
    d.put((1, 2 * count, *out), -1.5, 1.5)
    if d.flip():
        d.put((group * features,))
    elif d.flip():
        d.skip()
    if len(d.inputs) == 4:
        d.put((1, count, *out), 0, 1)
    window.say(d, kernel=False)
    d.say("group", group, always=group > 1)
    d.say("offset_group", offsets, always=offsets > 1)


def max_unpool(d: Drawing) -> None:
    """Places of maxima are those of one pool."""
    n, c, h, w = (d.between(1, 3) for _ in range(4))
    d.put((n, c, h, w))
    rows, columns = np.meshgrid(2 * np.arange(h), 2 * np.arange(w), indexing="ij")
    planes = [2 * w * (rows + d.below(2)) + columns + d.below(2) + 4 * h * w * plane for plane in range(n * c)]
    d.give(np.stack(planes).reshape(n, c, h, w).astype(np.int64))
    d.attributes.update(kernel_shape=[2, 2], strides=[2, 2])
    if d.rarely():
        d.numbers([n, c, 2 * h, 2 * w])


def col2im(d: Drawing) -> None:
    block, strides = [d.between(1, 3) for _ in range(2)], [d.between(1, 2) for _ in range(2)]
    dilations, pads = [d.between(1, 2) for _ in range(2)], [d.between(0, 1) for _ in range(4)]
    places = [d.between(1, 3) for _ in range(2)]
    image = [
        (p - 1) * s + (k - 1) * step + 1 - pads[i] - pads[2 + i]
        for i, (p, s, k, step) in enumerate(zip(places, strides, block, dilations, strict=True))
    ]
    if min(image) < 1:
        raise Impossible
    d.put((d.between(1, 2), d.between(1, 2) * prod(block), prod(places)), constant=False)
    d.numbers(image)
    d.numbers(block)
    d.attributes.update(strides=strides, dilations=dilations, pads=pads)


SCALES = (0.5, 0.7, 1.0, 1.5, 2.0, 3.0)


def resize(d: Drawing) -> None:
    mode = d.pick("nearest", "linear", *(["cubic"] if d.opset >= 11 else []))
    if mode != "nearest":
        # How results of integers are rounded is not said.
        d.limit("T" if d.op == "Upsample" or d.opset < 11 else "T1", "float16", "float32", "float64")
    shape = [d.between(1, 2), d.between(1, 2), *(d.between(1, 5) for _ in range(d.pick(1, 2, 2)))]
    d.put(shape, constant=False)
    if mode == "cubic" and len(shape) == 3:
        raise Impossible
    d.say("mode", mode, always=True)
    bigger = [d.pick(*(scale for scale in SCALES if int(extent * scale))) for extent in shape[2:]]
    scales = np.asarray([1, 1, *bigger], np.float32)
    if d.op == "Upsample":
        scales = np.maximum(scales, 1)
        if d.has("scales"):
            d.attributes["scales"] = [float(s) for s in scales]
        else:
            d.give(scales, constant=True)
        return
    if d.opset < 11:
        d.give(scales, constant=True)
        return
    d.skip()
    if d.opset < 13:
        d.inputs.pop()
        d.give(np.zeros(0, np.dtype(d.next_kind())), constant=True)
    if d.flip():
        d.give(scales, constant=True)
    else:
        d.skip()
        if d.opset < 13:
            d.inputs.pop()
            d.give(np.zeros(0, np.float32), constant=True)
        d.numbers([*shape[:2], *(max(1, int(e * s)) for e, s in zip(shape[2:], bigger, strict=True))])
        if d.rarely():
            d.say("keep_aspect_ratio_policy", d.pick("stretch", "not_larger", "not_smaller"))
    ways = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
    d.say("coordinate_transformation_mode", d.pick(*ways, *(["half_pixel_symmetric"] if d.opset >= 19 else [])))
    if mode == "nearest":
        d.say("nearest_mode", d.pick("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"))
    if mode == "cubic":
        d.say("cubic_coeff_a", d.pick(-0.5, -0.75))
        d.say("exclude_outside", d.below(2))
    if mode != "nearest" and d.rarely():
        d.say("antialias", 1)


def grid_sample(d: Drawing) -> None:
    d.limit("T1", "float16", "float32", "float64")
    d.limit("T2", "float32", "float64")
    flat = d.opset < 20 or d.below(4) > 0
    pixels, out = [[d.between(1, 4) for _ in range(2 if flat else 3)] for _ in range(2)]
    n = d.between(1, 2)
    d.put((n, d.between(1, 2), *pixels))
    d.put((n, *out, len(pixels)), -1.3, 1.3)
    names = ("linear", "nearest", "cubic") if d.opset >= 20 else ("bilinear", "nearest", "bicubic")
    d.say("mode", d.pick(*names[: 3 if flat else 2]))
    d.say("padding_mode", d.pick("zeros", "border", "reflection"))
    d.say("align_corners", d.below(2))


def affine_grid(d: Drawing) -> None:
    rank, aligned = d.pick(2, 3), d.below(2)
    n = d.between(1, 2)
    d.put((n, rank, rank + 1))
    # Where both corners of an axis are one element, its place is not said.
    d.numbers([n, d.between(1, 2), *(d.between(1 + aligned, 4) for _ in range(rank))])
    d.say("align_corners", aligned, always=bool(aligned))


def roi_align(d: Drawing) -> None:
    n, rois = d.between(1, 2), d.between(1, 3)
    d.put((n, d.between(1, 2), d.between(3, 6), d.between(3, 6)))
    corners = np.sort(d.rng.uniform(0, 6, (rois, 2, 2)), 1).reshape(rois, 4)
    d.give(corners.astype(DTYPES[d.next_kind()].numpy))
    d.give(np.asarray(d.rng.integers(0, n, rois)).astype(np.int64))
    d.say("mode", d.pick("avg", "max"))
    d.say("output_height", d.between(1, 3))
    d.say("output_width", d.between(1, 3))
    d.say("sampling_ratio", d.below(3))
    d.say("spatial_scale", d.pick(0.5, 1.0))
    d.say("coordinate_transformation_mode", d.pick("half_pixel", "output_half_pixel"))


def fourier(d: Drawing) -> None:
    shape = [d.between(1, 2), d.between(2, 6), d.between(1, 3), d.pick(1, 2)]
    d.put(shape, constant=False)
    axis = d.pick(1, 2, -2, -3)
    if d.flip():
        d.numbers(d.between(1, 8))
    elif d.takes("axis"):
        d.skip()
    d.say("inverse", d.below(2))
    d.say("onesided", int(shape[-1] == 1 and not d.attributes.get("inverse") and d.flip()))
    if d.takes("axis"):
        d.numbers(axis)
    else:
        d.say("axis", axis % 4, always=True)


def short_fourier(d: Drawing) -> None:
    length = d.between(2, 5)
    d.put((d.between(1, 2), d.between(6, 12), 1), constant=False)
    d.numbers(d.between(1, 3))
    if d.flip():
        d.put((length,), 0, 1)
    else:
        d.skip()
    d.numbers(length)
    d.say("onesided", d.below(2))


def det(d: Drawing) -> None:
    size = d.between(1, 4)
    d.put((*d.shape(0, 2), size, size), constant=False)


MAKERS: dict[str, Maker] = {
    **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), pool),
    **dict.fromkeys(("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"), global_pool),
    **dict.fromkeys(("Conv", "ConvInteger"), conv),
    **dict.fromkeys(("Resize", "Upsample"), resize),
    "AffineGrid": affine_grid,
    "Col2Im": col2im,
    "ConvTranspose": conv_transpose,
    "DFT": fourier,
    "DeformConv": deform_conv,
    "Det": det,
    "GridSample": grid_sample,
    "MaxUnpool": max_unpool,
    "RoiAlign": roi_align,
    "STFT": short_fourier,
}
