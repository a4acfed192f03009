"""DepthToSpace and SpaceToDepth: blocks of pixels trade places with channels."""

from __future__ import annotations

from types import MappingProxyType

from tilewright.core.domain import Affine, Domain, dims, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import REQUIRED, Body, Call, Operator, declare, example
from tilewright.ops.indexing import minor_dims

MODES = ("DCR", "CRD")


def _block(call: Call) -> int:
    block = call.int("blocksize")
    if block < 1:
        raise call.error("bad-attribute", f"blocksize={block} must be at least 1")
    if call.type("input").rank != 4:
        raise call.error("shape-mismatch", f"input must have the four axes N, C, H, W, found {call.type('input')}")
    return block


def _infer_to_space(call: Call) -> tuple[TensorType, ...]:
    block = _block(call)
    if call.text("mode") not in MODES:
        raise call.error("bad-attribute", f"mode='{call.text('mode')}' must be one of {', '.join(MODES)}")
    n, c, h, w = call.shape("input")
    if c % (block * block):
        raise call.error("shape-mismatch", f"{c} channels are no multiple of blocksize² = {block * block}")
    return (call.type("input").with_shape((n, c // block**2, h * block, w * block)),)


def _infer_to_depth(call: Call) -> tuple[TensorType, ...]:
    block = _block(call)
    n, c, h, w = call.shape("input")
    if h % block or w % block:
        raise call.error("shape-mismatch", f"{h} x {w} pixels do not divide into blocks of {block}")
    return (call.type("input").with_shape((n, c * block**2, h // block, w // block)),)


def _domain(call: Call, shallow: str, deep: str, *, channel_first: bool) -> Domain:
    """Loops over pixels of the small image, channels of the shallow tensor and positions in a block."""
    block = _block(call)
    n, c, h, w, y, x = dims("N C H W BY BX")
    count, channels, _, _ = call.shape(shallow)
    _, _, height, width = call.shape(deep)
    depth: Affine = (c * block + y) * block + x if channel_first else (y * block + x) * channels + c
    access = {shallow: [n, c, h * block + y, w * block + x], deep: [n, depth, h, w]}
    sizes = {"N": count, "C": channels, "H": height, "BY": block, "W": width, "BX": block}
    shapes = {"input": call.shape("input"), "output": call.shape("output")}
    whole = " ".join(minor_dims(access["output"]))
    return domain(sizes, {name: access[name] for name in shapes}, shapes, "output", whole=whole)


def _to_space(call: Call, input: Array) -> Array:
    block = call.int("blocksize")
    n, c, h, w = input.shape
    if call.text("mode") == "CRD":
        return input.reshape(n, c // block**2, block, block, h, w).transpose(0, 1, 4, 2, 5, 3)
    return input.reshape(n, block, block, c // block**2, h, w).transpose(0, 3, 4, 1, 5, 2)


def _to_depth(call: Call, input: Array) -> Array:
    block = call.int("blocksize")
    n, c, h, w = input.shape
    return input.reshape(n, c, h // block, block, w // block, block).transpose(0, 3, 5, 1, 2, 4)


def _body(_: Call) -> Body:
    return Body(MappingProxyType({"output": "input"}))


declare(
    Operator(
        "DepthToSpace",
        "input",
        "output",
        _infer_to_space,
        lambda call: _domain(call, "output", "input", channel_first=call.text("mode") == "CRD"),
        _to_space,
        (
            example("float32[2,8,2,3]", blocksize=2),
            example("float32[1,18,2,3]", blocksize=3, mode="CRD"),
            example("int8[1,4,3,2]", blocksize=2, mode="CRD"),
        ),
        MappingProxyType({"blocksize": REQUIRED, "mode": "DCR"}),
        "move",
        _body,
    )
)
declare(
    Operator(
        "SpaceToDepth",
        "input",
        "output",
        _infer_to_depth,
        lambda call: _domain(call, "input", "output", channel_first=False),
        _to_depth,
        (example("float32[2,2,4,6]", blocksize=2), example("int8[1,1,3,6]", blocksize=3)),
        MappingProxyType({"blocksize": REQUIRED}),
        "move",
        _body,
    )
)
