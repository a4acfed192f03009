"""Compile-time reordering of weights, described by the kernel: `"G,F,C,KH,KW -> G,F/16,KH,KW,C,F%16"`."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from tilewright.core.graph import Array
from tilewright.errors import TilewrightError
from tilewright.machine.kernel import BIT, PLANE, Kernel, extent_of, packing, window_axes, window_of

RESULTS = "column"
"""The axis of pieces that are results, not operands of a sum."""


def pack(array: Array, spec: str, sizes: Mapping[str, int | float], kernel: Kernel) -> Array:
    """Reorders a constant.

    The left side names the constant's axes by loop dimensions (one axis may be several, as `G,F`). On the right, `F/16`
    and `F%16` split an axis into blocks and `(KH,KW,C)/16` joins axes before splitting; ragged ends are filled with
    zeros. `bit` is an axis of the bits of each weight, `plane` one of those that weights of few values need,
    `bits(...)` a run of single bits. `tap(K)` and `channel(K)` are axes of a window of 3x3 pixels that K is read as;
    there are other such pairs (`machine.kernel.WINDOWS`).
    """
    found = packing(spec)
    names = list(found.names)
    if "->" not in spec or any(n not in sizes for n in names):
        raise _bad(kernel, spec, f"unknown dimension among {', '.join(names)}")
    shape = [int(sizes[n]) for n in names]
    if prod(shape) != array.size:
        raise _bad(kernel, spec, f"{names} have {prod(shape)} elements, the constant {array.size}")
    current = array.reshape(shape)
    parts = [(part.dims, part.kind, part.block) for part in (*found.parts, *found.bits)]
    axes_of = {window_of(name): name.partition("(")[0] for dims, _, _ in parts for name in dims if window_of(name)}
    for name, axis in axes_of.items():
        if name in names:
            place, own = names.index(name), [f"{each}({name})" for each in window_axes(axis)]
            pieces, inner = (extent_of(each, sizes) for each in own)
            names[place : place + 1] = own
            current = _windowed(current, place, pieces, inner, results=own[0].startswith(RESULTS))
    if found.bits:
        few = any(PLANE in dims for dims, _, _ in parts)
        names.append(PLANE if few else BIT)
        lowest = int(sizes["weight_low"]) if few else int(np.iinfo(array.dtype).min)
        current = _planes(current, lowest, extent_of(names[-1], sizes))
    extents = {n: extent_of(n, sizes) for n in names}
    groups = list(dict.fromkeys(group for group, _, _ in parts))
    if sorted(n for group in groups for n in group) != sorted(names):
        raise _bad(kernel, spec, "every axis must occur on the right")
    current = current.transpose([names.index(n) for group in groups for n in group])
    current = current.reshape([prod(extents[n] for n in group) for group in groups])
    blocks = {group: block for group, kind, block in parts if kind}
    current = np.pad(
        current, [(0, -extent % blocks.get(g, 1)) for g, extent in zip(groups, current.shape, strict=True)]
    )
    split: list[int] = []
    axes: dict[tuple[tuple[str, ...], str], int] = {}
    for group, extent in zip(groups, current.shape, strict=True):
        if group in blocks:
            axes[group, "/"], axes[group, "%"] = len(split), len(split) + 1
            split += [extent // blocks[group], blocks[group]]
        else:
            axes[group, ""] = len(split)
            split.append(extent)
    order = [axes[group, kind] for group, kind, _ in parts]
    if sorted(order) != list(range(len(split))):
        raise _bad(kernel, spec, "both parts of a split axis must occur once")
    current = current.reshape(split).transpose(order)
    return _in_bytes(current, len(found.parts), found.multiple) if found.bits else np.ascontiguousarray(current)


def _windowed(array: Array, axis: int, pieces: int, channels: int, *, results: bool) -> Array:
    """Pieces and what is in them in place of an axis. An element that two rows have is zero in the second; results are
    the same in both, and the last row comes first, because a convolution has it at its first tap."""
    run = channels * (pieces // 3)
    starts = [(array.shape[axis] - run) // 2 * number for number in (range(2, -1, -1) if results else range(3))]
    places = np.concatenate([start + np.arange(run) for start in starts])
    taken = np.moveaxis(np.take(array, places, axis), axis, 0)
    if not results:
        taken[np.delete(np.arange(places.size), np.unique(places, return_index=True)[1])] = 0
    return np.moveaxis(taken.reshape(pieces, channels, *taken.shape[1:]), (0, 1), (axis, axis + 1))


def _planes(array: Array, lowest: int, count: int) -> Array:
    """The bits of weights along a new last axis, counted from the lowest value."""
    codes = (array.astype(np.int64) - lowest).astype(np.uint8)
    return (codes[..., None] >> np.arange(count, dtype=np.uint8)) & 1


def _in_bytes(bits: Array, outer: int, multiple: int) -> Array:
    """Runs of bits behind the outer axes as bytes."""
    runs = bits.reshape(*bits.shape[:outer], -1)
    filled = np.pad(runs, [(0, 0)] * outer + [(0, -runs.shape[-1] % multiple)])
    return np.packbits(filled.astype(np.uint8), axis=-1, bitorder="little")


def _bad(kernel: Kernel, spec: str, why: str) -> TilewrightError:
    return TilewrightError(
        "bad-kernel", f"kernel '{kernel.where}': pack '{spec}': {why}", help="see docs/add_a_kernel.md"
    )
