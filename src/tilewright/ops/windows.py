"""Sliding windows: the geometry that convolutions and pools share.

Spatial axes are called D, H, W (the last ones of these for fewer axes); the loop dimensions over outputs are OD, OH, OW
and those over the window KD, KH, KW.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from msgspec import Struct

from tilewright.core.domain import Affine, Axis, dim
from tilewright.core.graph import Array
from tilewright.core.op import Call


class Window(Struct, frozen=True):
    """A window sliding over the spatial axes, one entry per axis; `before` and `after` are the padding."""

    extents: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    outputs: tuple[int, ...]

    @property
    def names(self) -> str:
        return "DHW"[3 - len(self.kernel) :]

    @property
    def output_sizes(self) -> dict[str, int]:
        """Loop dimensions over output positions."""
        return {f"O{name}": size for name, size in zip(self.names, self.outputs, strict=True)}

    @property
    def kernel_sizes(self) -> dict[str, int]:
        """Loop dimensions over the window."""
        return {f"K{name}": size for name, size in zip(self.names, self.kernel, strict=True)}

    def reads(self) -> list[Axis]:
        """Input positions: `stride * O + dilation * K - padding` along each axis."""
        return [self.position(i) for i in range(len(self.kernel))]

    def position(self, axis: int) -> Affine:
        name = self.names[axis]
        moved = dim(f"O{name}") * self.strides[axis] + dim(f"K{name}") * self.dilations[axis]
        return moved - self.before[axis]

    def writes(self) -> list[Axis]:
        return [dim(f"O{name}") for name in self.names]

    def taps(self) -> list[Axis]:
        return [dim(f"K{name}") for name in self.names]

    def numbers(self) -> dict[str, int]:
        """The list attributes as kernels name them, with defaults and auto_pad worked out."""
        lists = {"strides": self.strides, "dilations": self.dilations, "kernel_shape": self.kernel}
        lists["pads"] = (*self.before, *self.after)
        return {f"{name}_{i}": value for name, values in lists.items() for i, value in enumerate(values)}

    def overshoots(self, axis: int) -> bool:
        """Whether the last window, rounded up by ceil_mode, reaches beyond the padding."""
        span = (self.outputs[axis] - 1) * self.strides[axis] + (self.kernel[axis] - 1) * self.dilations[axis] + 1
        return span > self.before[axis] + self.extents[axis] + self.after[axis]


def is_channels_last(call: Call) -> bool:
    return bool(call.attrs.get("channels_last"))


def spatial_axes(call: Call, operand: str = "X") -> tuple[int, ...]:
    """Which axes of a batched tensor are spatial; refuses fewer than one and more than three."""
    rank = call.type(operand).rank
    if not 3 <= rank <= 5:
        raise call.error(
            "shape-mismatch",
            f"'{operand}' needs a batch, a channel and 1 to 3 spatial axes, found {call.type(operand)}",
        )
    return tuple(range(1, rank - 1)) if is_channels_last(call) else tuple(range(2, rank))


def channel_axis(call: Call, operand: str = "X") -> int:
    return call.type(operand).rank - 1 if is_channels_last(call) else 1


def padding(call: Call) -> dict[str, tuple[str, int, Literal["before", "after"]]]:
    """What each of the `pads` is."""
    axes = spatial_axes(call)
    found: dict[str, tuple[str, int, Literal["before", "after"]]] = {}
    for i, axis in enumerate(axes):
        found[f"pads_{i}"] = ("X", axis, "before")
        found[f"pads_{len(axes) + i}"] = ("X", axis, "after")
    return found


def extents(call: Call, operand: str = "X") -> tuple[int, ...]:
    return tuple(call.shape(operand)[axis] for axis in spatial_axes(call, operand))


def per_axis(call: Call, name: str, rank: int, default: int) -> tuple[int, ...]:
    """A list attribute with one entry per spatial axis."""
    values = call.ints(name) or (default,) * rank
    if len(values) != rank:
        raise call.error("bad-attribute", f"{name}={list(values)} needs {rank} entries, one per spatial axis")
    return values


def positive(call: Call, name: str, rank: int) -> tuple[int, ...]:
    """A list attribute of positive numbers, all 1 where absent."""
    values = per_axis(call, name, rank, 1)
    if min(values) < 1:
        raise call.error("bad-attribute", f"{name}={list(values)} must be positive")
    return values


def pads_of(call: Call, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Explicit padding before and after each spatial axis."""
    pads = call.ints("pads") or (0,) * (2 * rank)
    if len(pads) != 2 * rank:
        raise call.error(
            "bad-attribute", f"pads={list(pads)} needs {2 * rank} entries, a begin and an end per spatial axis"
        )
    return pads[:rank], pads[rank:]


def auto_pad_of(call: Call) -> str:
    mode = call.text("auto_pad") or "NOTSET"
    if mode not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise call.error("bad-attribute", f"auto_pad={mode} is none of NOTSET, VALID, SAME_UPPER, SAME_LOWER")
    return mode


def halves(total: int, mode: str) -> tuple[int, int]:
    """Splits padding; an odd element goes behind for SAME_UPPER, else before."""
    small, large = total // 2, total - total // 2
    return (small, large) if mode == "SAME_UPPER" else (large, small)


def window(call: Call, kernel: tuple[int, ...], *, ceil: bool = False) -> Window:
    """The window of a convolution or pool from its attributes."""
    sizes = extents(call)
    rank = len(sizes)
    if len(kernel) != rank:
        raise call.error("shape-mismatch", f"a window of {len(kernel)} axes cannot slide over {rank} spatial axes")
    if any(extent < 1 for extent in kernel) and all(sizes):
        raise call.error("bad-attribute", f"a window of {list(kernel)} holds nothing")
    strides, dilations = positive(call, "strides", rank), positive(call, "dilations", rank)
    mode = auto_pad_of(call)
    before, after = pads_of(call, rank) if mode == "NOTSET" else ((0,) * rank, (0,) * rank)
    outputs: list[int] = []
    for axis, size in enumerate(sizes):
        span = (kernel[axis] - 1) * dilations[axis] + 1
        if mode.startswith("SAME"):
            out = -(-size // strides[axis])
            first, last = halves(max(0, (out - 1) * strides[axis] + span - size), mode)
            before, after = _replaced(before, axis, first), _replaced(after, axis, last)
        else:
            room = size + before[axis] + after[axis] - span
            out = (-(-room // strides[axis]) if ceil else room // strides[axis]) + 1
            # A window that would start in the padding behind does not count.
            if ceil and (out - 1) * strides[axis] >= size + before[axis]:
                out -= 1
        if out < 0 or (out == 0 and size > 0):
            raise call.error(
                "shape-mismatch", f"a window of {list(kernel)} does not fit into spatial axes {list(sizes)}"
            )
        outputs.append(out)
    return Window(sizes, kernel, strides, dilations, before, after, tuple(outputs))


def _replaced(values: tuple[int, ...], index: int, value: int) -> tuple[int, ...]:
    return (*values[:index], value, *values[index + 1 :])


def channels_first(call: Call, array: Array) -> Array:
    return np.moveaxis(array, -1, 1) if is_channels_last(call) else array


def channels_back(call: Call, array: Array) -> Array:
    """Undoes `channels_first` on a result."""
    return np.moveaxis(array, 1, -1) if is_channels_last(call) else array


def layout(call: Call, batch: Axis, channel: Axis, spatial: list[Axis]) -> list[Axis]:
    """The axes of an activation in the order of the call's layout."""
    return [batch, *spatial, channel] if is_channels_last(call) else [batch, channel, *spatial]


def patches(win: Window, X: Array, fill: float | int) -> Array:
    """`[N, C, *outputs, *kernel]` from `[N, C, *spatial]`: what the window sees at each position."""
    rank = len(win.kernel)
    padding = [(0, 0), (0, 0)]
    for axis in range(rank):
        needed = (win.outputs[axis] - 1) * win.strides[axis] + (win.kernel[axis] - 1) * win.dilations[axis] + 1
        behind = max(0, needed - win.before[axis] - win.extents[axis])
        padding.append((max(0, win.before[axis]), behind))
    padded = np.pad(X, padding, constant_values=fill)
    for axis in range(rank):
        starts = np.arange(win.outputs[axis])[:, None] * win.strides[axis] - min(0, win.before[axis])
        index = starts + np.arange(win.kernel[axis])[None, :] * win.dilations[axis]
        padded = np.take(padded, index, axis=2 + 2 * axis)
    order = [0, 1, *(2 + 2 * i for i in range(rank)), *(3 + 2 * i for i in range(rank))]
    return padded.transpose(order)
