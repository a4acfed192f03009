"""Col2Im: columns of sliding blocks summed back into an image."""

from __future__ import annotations

from math import prod
from types import MappingProxyType

import numpy as np
from msgspec import Struct

from tilewright.core.domain import WHOLE, Affine, Axis, Domain, dim, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.indexing import grid, integers


class Blocks(Struct, frozen=True):
    """Sliding blocks over the image axes; `counts` is how many there are along each."""

    image: tuple[int, ...]
    block: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    counts: tuple[int, ...]


def _blocks(call: Call) -> Blocks:
    image, block = integers(call, "image_shape"), integers(call, "block_shape")
    rank = len(image)
    strides = call.ints("strides") or (1,) * rank
    dilations = call.ints("dilations") or (1,) * rank
    pads = call.ints("pads") or (0,) * (2 * rank)
    if not len(block) == len(strides) == len(dilations) == rank or len(pads) != 2 * rank:
        raise call.error("shape-mismatch", f"block_shape, strides, dilations and pads must suit {rank} image axes")
    counts = tuple(
        (image[i] + pads[i] + pads[i + rank] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(rank)
    )
    return Blocks(image, block, strides, dilations, pads[:rank], counts)


def _infer(call: Call) -> tuple[TensorType, ...]:
    data, blocks = call.type("input"), _blocks(call)
    size = prod(blocks.block)
    if data.rank != 3 or data.shape[1] % size or data.shape[2] != prod(blocks.counts):
        raise call.error("shape-mismatch", f"{data} does not hold {prod(blocks.counts)} blocks of {size} elements")
    return (data.with_shape((data.shape[0], data.shape[1] // size, *blocks.image)),)


def _domain(call: Call) -> Domain:
    """Loops over the image, then over the positions in a block that may cover an element."""
    sizes, access = grid(call.shape("output"))
    blocks = _blocks(call)
    channel: Affine = access[1] * prod(blocks.block)
    for i, extent in enumerate(blocks.block):
        sizes[f"K{i}"] = extent
        channel = channel + dim(f"K{i}") * prod(blocks.block[i + 1 :])
    maps: dict[str, list[Axis]] = {"input": [access[0], channel, WHOLE], "output": [*access]}
    return domain(sizes, maps, {name: call.shape(name) for name in maps}, "output")


def _reference(call: Call, input: Array, *_: Array) -> Array:
    blocks = _blocks(call)
    wide = input.astype(np.float64 if call.outputs[0].dtype.is_float else input.dtype)
    result = np.zeros(call.outputs[0].shape, wide.dtype)
    n, channels = result.shape[:2]
    columns = wide.reshape(n, channels, prod(blocks.block), prod(blocks.counts))
    for k, place in enumerate(np.ndindex(*blocks.block)):
        for c, position in enumerate(np.ndindex(*blocks.counts)):
            target = tuple(
                position[i] * blocks.strides[i] + place[i] * blocks.dilations[i] - blocks.before[i]
                for i in range(len(place))
            )
            if all(0 <= t < extent for t, extent in zip(target, blocks.image, strict=True)):
                result[(slice(None), slice(None), *target)] += columns[:, :, k, c]
    return result


def _body(call: Call) -> Body:
    blocks = _blocks(call)
    kind = call.outputs[0].dtype
    lines: list[str] = []
    inside: list[str] = []
    column, channel = "0", f"D1 * {prod(blocks.block)}"
    for i, (stride, count) in enumerate(zip(blocks.strides, blocks.counts, strict=True)):
        lines.append(f"const int p{i} = D{i + 2} + {blocks.before[i]} - K{i} * {blocks.dilations[i]};")
        inside.append(f"p{i} >= 0 && p{i} < {stride * count} && p{i} % {stride} == 0")
        column = f"({column}) * {count} + p{i} / {stride}"
        channel += f" + K{i} * {prod(blocks.block[i + 1 :])}"
    accumulator = kind.compute if kind.is_float else f"uint{max(32, kind.bits)}_t"
    # Loaded in any case, as all elements are: see codegen/seams.py.
    lines.append(f"const bool inside = {' && '.join(inside)};")
    lines.append(f"const {accumulator} near = ({accumulator})input_at(D0, {channel}, inside ? {column} : 0);")
    lines.append("if (inside) acc += near;")
    return Body(MappingProxyType({"output": "acc"}), ((accumulator, "acc", "0"),), "\n".join(lines))


declare(
    Operator(
        "Col2Im",
        "input image_shape block_shape",
        "output",
        _infer,
        _domain,
        _reference,
        (
            example("float32[1,5,5]", [5, 5], [1, 5]),
            example("float32[2,18,4]", [5, 5], [3, 3], strides=(2, 2)),
            example("float32[1,9,25]", [5, 5], [3, 3], pads=(1, 1, 1, 1)),
            example("float32[1,4,5]", [6, 6], [2, 2], dilations=(1, 5), pads=(0, 0, 0, 0)),
            example("int32[1,6,6]", [7], [3], dilations=(1,), pads=(0, 1)),
        ),
        MappingProxyType({"dilations": None, "pads": None, "strides": None}),
        "reduce",
        _body,
        frozenset({"image_shape", "block_shape"}),
    )
)
