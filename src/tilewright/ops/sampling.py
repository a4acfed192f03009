"""Calls of random sizes, made from an operator's examples: shapes on which kernels are measured."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from tilewright.core.domain import Affine, Axis
from tilewright.core.graph import Array, Attr, attrs, type_of_array
from tilewright.core.op import Example, Operator, arrays_of, call_example, parse_type

if TYPE_CHECKING:
    from numpy.random import Generator as Random

LEAST_POINTS, MOST_POINTS = 1 << 10, 1 << 19
"""Of the loops of a call."""
USUAL = 0.5
"""The share of convolutions, pools and products that are like those of networks for small machines: whole blocks of
channels, square windows, images as large behind them as before; products of one row."""
USUAL_BLOCK, USUAL_SIDE = 8, 4
"""What their channels are multiples of, and the sides of their images."""


def resized(op: Operator, spec: Example, random: Random) -> Example:
    """An example with other sizes: as the operator says, else along all dimensions that index its inputs."""
    return op.sample(spec, random) if op.sample is not None else resized_by_domain(op, spec, random)


def resized_by_domain(
    op: Operator, spec: Example, random: Random, within: Mapping[str, tuple[int, int]] = MappingProxyType({})
) -> Example:
    """An example with other sizes of the dimensions that index its inputs; given values are repeated.

    Sizes lie `within` some bounds, or have a usual number of points together.
    """
    domain = call_example(op, spec, arrays_of(spec)).domain()
    names = op.operand_names(len(spec.inputs))
    given = {
        name: parse_type(item) if isinstance(item, str) else type_of_array(item)
        for name, item in zip(names, spec.inputs, strict=True)
        if not isinstance(item, str) or item
    }
    used = {n for name in given for axis in domain.access.get(name, ()) for n in _dims(axis) if domain.dims[n] > 1}
    free = [name for name in domain.dims if name in used]
    if within:
        sizes = {**domain.dims, **{n: even(between(*within[n], random), random) for n in free if n in within}}
    else:
        sizes = {**domain.dims, **dict(zip(free, drawn(len(free), random), strict=True))}
    # A row of one element is none: kernels skip most of what they do.
    sizes |= {name: max(sizes[name], 2) for name in free if name in domain.whole}

    def resize(name: str, item: str | Array) -> str | Array:
        axes = domain.access.get(name, ())
        if name not in given or not axes:
            return item
        pairs = zip(axes, given[name].shape, strict=True)
        shape = tuple(_extent(axis, extent, domain.dims, sizes) for axis, extent in pairs)
        return str(given[name].with_shape(shape)) if isinstance(item, str) else np.resize(item, shape)

    inputs = tuple(resize(name, item) for name, item in zip(names, spec.inputs, strict=True))
    return replace(spec, inputs=inputs)


def _dims(axis: Axis) -> tuple[str, ...]:
    return axis.dims if isinstance(axis, Affine) else ()


def _extent(axis: Axis, extent: int, old: Mapping[str, int], new: Mapping[str, int]) -> int:
    """An axis with other sizes of dimensions: as far as these reach, less what they reached over its edges before."""
    if not isinstance(axis, Affine) or axis.divisor != 1 or not axis.terms:
        return extent
    if len(axis.terms) > 1 and prod(old[name] for name in axis.dims) == extent:
        return prod(new[name] for name in axis.dims)
    before, now = (1 + sum(abs(c) * (sizes[n] - 1) for n, c in axis.terms) for sizes in (old, new))
    return max(now - before + extent, 1)


def drawn(count: int, random: Random) -> tuple[int, ...]:
    """Sizes whose product is any number of points, small ones as likely as large ones."""
    if not count:
        return ()
    points = between(LEAST_POINTS, MOST_POINTS, random)
    shares = [float(share) for share in random.dirichlet(np.full(count, 2.0))]
    return tuple(even(points**share, random) for share in shares)


def between(low: float, high: float, random: Random) -> float:
    """A number, small ones as likely as large ones."""
    return float(low * (high / low) ** random.random())


def even(size: float, random: Random) -> int:
    """A size near another one: as many as networks have, every other one a multiple of 4 or 16."""
    return _multiple(size, _block(random))


def _block(random: Random) -> int:
    return (1, 4, 16)[int(random.choice(3, p=(0.5, 0.25, 0.25)))]


def _multiple(size: float, block: int) -> int:
    return max(round(size / block) * block if size >= 2 * block else round(size), 1)


def resized_window(spec: Example, random: Random) -> Example:
    """An example of a convolution or pool with another image, window, stride and padding.

    One with a channel for each group keeps that, as one with a single group does.
    """
    image = parse_type(str(spec.inputs[0]))
    rank, last = image.rank - 2, bool(spec.attrs.get("channels_last"))
    usual = random.random() < USUAL
    kernel = _usual_kernel(rank, random, weighted=len(spec.inputs) > 1) if usual else _kernel(rank, random)
    stride, dilation = (2 if random.random() < share else 1 for share in (0.3, 0.0 if usual else 0.08))
    spans = [(k - 1) * dilation + 1 for k in kernel]
    around = [(span - usual) // 2 for span in spans] if usual or random.random() < 0.5 else [0] * rank
    # Networks have channels by fours on both sides, or on none.
    block = USUAL_BLOCK if usual else _block(random)
    features, channels = (_multiple(between(block if usual else 1, 128, random), block) for _ in range(2))
    sides = [_multiple(_side(rank, random), USUAL_SIDE if usual else 1) for _ in spans]
    pixels = [max(side, span) for side, span in zip(sides[:1] * rank if usual else sides, spans, strict=True)]
    given: dict[str, Attr] = {"strides": (stride,) * rank, "dilations": (dilation,) * rank, "pads": (*around, *around)}
    kept = {name: value for name, value in spec.attrs.items() if name not in ("auto_pad", "kernel_shape", "group")}
    inputs = list(spec.inputs)
    if len(inputs) > 1:
        weights = parse_type(str(inputs[1]))
        if int(str(spec.attrs.get("group", 1))) > 1:
            given["group"] = channels = features
            per_group = 1
        else:
            per_group = channels
        inputs[1] = str(weights.with_shape((features, per_group, *kernel)))
        if len(inputs) > 2 and inputs[2]:
            inputs[2] = str(parse_type(str(inputs[2])).with_shape((features,)))
    if "kernel_shape" in spec.attrs:
        given["kernel_shape"] = kernel
    batch = image.shape[0]
    shape = (batch, *pixels, channels) if last else (batch, channels, *pixels)
    inputs[0] = str(image.with_shape(shape))
    return replace(spec, inputs=tuple(inputs), attrs=attrs(**{**kept, **given}))


def _kernel(rank: int, random: Random) -> tuple[int, ...]:
    """A window: 3 along all axes, or 1, or anything up to 7."""
    kind = random.random()
    if kind < 0.7:
        return (3 if kind < 0.4 else 1,) * rank
    return tuple(int(size) for size in random.integers(1, 8, rank))


def _usual_kernel(rank: int, random: Random, *, weighted: bool) -> tuple[int, ...]:
    """A window of a convolution, or of a pool, that networks have."""
    sizes = (1, 3) if weighted else (2, 3)
    return (sizes[int(random.integers(len(sizes)))],) * rank


def _side(rank: int, random: Random) -> int:
    return round(between(3, (1024, 40, 12)[rank - 1], random))
