"""Files of all kinds, damaged by a number: networks, arrays and programs. Descriptions are in `mutations.py`."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

INTERESTING = (-1, 0, 1, 2, 7, 255, 1 << 15, (1 << 31) - 1, 1 << 31, 1 << 32, 1 << 40, (1 << 62) + 1, -(1 << 63))
PATTERNS = (b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff", bytes(4), b"\x80" * 8, b"\x00", b"\xff", b"\x7f", b"\x80")
WORDS = ("", "x", "Conv", "Loop", "If", "Scan", "Reshape", "Resize", "Tile", "\x1b[31m", "%n", "a" * 3000, "ai.onnx.ml")
OPERATORS = (
    *("Conv", "MatMul", "Gemm", "Reshape", "Tile", "Expand", "ConstantOfShape", "Range", "Resize", "Pad", "Slice"),
    *("Concat", "Split", "Gather", "Transpose", "Softmax", "LSTM", "TopK", "Einsum", "Where", "Cast", "Squeeze"),
    *("MaxPool", "ReduceSum", "Add", "QLinearConv", "QuantizeLinear", "DequantizeLinear", "Loop", "If", "OneHot"),
    *("ScatterND", "CumSum", "GridSample", "NonZero", "Unique", "Attention", "RMSNormalization", "Shape", "Size"),
)


def flipped(content: bytes, rng: random.Random) -> bytes:
    """Bits, patterns and pieces that are wrong, missing or there twice."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        if not data:
            break
        at = rng.randrange(len(data))
        match rng.randrange(6):
            case 0 | 1:
                data[at] ^= 1 << rng.randrange(8)
            case 2:
                pattern = rng.choice(PATTERNS)
                data[at : at + len(pattern)] = pattern
            case 3:
                del data[at : at + rng.choice((1, 4, 64))]
            case 4:
                data[at:at] = data[at : at + rng.choice((1, 8, 100))]
            case _:
                del data[at if rng.random() < 0.3 else len(data) :]
    return bytes(data)


def _number(old: int, rng: random.Random) -> int:
    new = rng.choice((*INTERESTING, old + 1, old - 1, 2 * old, -old, old * 1000, old))
    return max(-(1 << 63), min(new, (1 << 63) - 1))


def _attribute(model: onnx.ModelProto, rng: random.Random) -> None:
    found = [a for node in model.graph.node for a in node.attribute]
    if not found:
        return
    attribute = rng.choice(found)
    match rng.randrange(4):
        case 0:
            attribute.type = rng.randrange(12)  # pyright: ignore[reportAttributeAccessIssue]
        case 1:
            attribute.name = rng.choice((*WORDS, "axis", "axes", "to", "perm", "pads", "strides", "group"))
        case 2 if attribute.ints:
            del attribute.ints[rng.randrange(len(attribute.ints))]
        case _:
            attribute.i = _number(attribute.i, rng)
            attribute.f = rng.choice((0.0, -1.0, 1e38, float("nan"), float("inf"), attribute.f))
            attribute.s = rng.choice(WORDS).encode()
            if attribute.ints:
                at = rng.randrange(len(attribute.ints))
                attribute.ints[at] = _number(attribute.ints[at], rng)


def _operand(model: onnx.ModelProto, rng: random.Random) -> None:
    node = rng.choice(model.graph.node)
    names = [name for other in model.graph.node for name in (*other.input, *other.output)] or [""]
    side = node.input if rng.random() < 0.8 else node.output
    match rng.randrange(3):
        case 0 if side:
            side[rng.randrange(len(side))] = rng.choice((*names, ""))
        case 1 if side:
            del side[rng.randrange(len(side))]
        case _:
            side.append(rng.choice(names))


def _operator(model: onnx.ModelProto, rng: random.Random) -> None:
    node = rng.choice(model.graph.node)
    node.op_type = rng.choice((*OPERATORS, *OPERATORS, *(other.op_type for other in model.graph.node), *WORDS))


def _initialiser(model: onnx.ModelProto, rng: random.Random) -> None:
    if not model.graph.initializer:
        return
    tensor = rng.choice(model.graph.initializer)
    match rng.randrange(5):
        case 0:
            tensor.data_type = rng.randrange(24)
        case 1 if tensor.dims:
            at = rng.randrange(len(tensor.dims))
            tensor.dims[at] = _number(tensor.dims[at], rng)
        case 2:
            tensor.dims.append(rng.choice((0, 1, 2)))
        case 3 if tensor.data_type == onnx.TensorProto.INT64 and tensor.raw_data and not len(tensor.raw_data) % 8:
            values = np.frombuffer(tensor.raw_data, np.int64).copy()
            values[rng.randrange(len(values))] = _number(int(values[0]), rng)
            tensor.raw_data = values.tobytes()
        case _:
            tensor.raw_data = flipped(tensor.raw_data, rng)


def _port(model: onnx.ModelProto, rng: random.Random) -> None:
    ports = [*model.graph.input, *model.graph.output]
    if not ports:
        return
    tensor = rng.choice(ports).type.tensor_type
    if tensor.shape.dim and rng.random() < 0.7:
        dim = rng.choice(tensor.shape.dim)
        dim.dim_value = _number(dim.dim_value, rng)
    elif rng.random() < 0.5:
        tensor.elem_type = rng.randrange(24)
    else:
        tensor.shape.dim.add(dim_value=rng.choice((0, 1, 3)))


def _structure(model: onnx.ModelProto, rng: random.Random) -> None:
    nodes = model.graph.node
    match rng.randrange(5):
        case 0:
            del nodes[rng.randrange(len(nodes))]
        case 1:
            nodes.add().CopyFrom(rng.choice(nodes))
        case 2 if model.opset_import:
            model.opset_import[0].version = rng.choice((0, 1, 7, 9, 11, 13, 18, 23, 99, -1))
        case 3:
            rng.choice(nodes).domain = rng.choice(("com.microsoft", "PACTOps", *WORDS))
        case _:
            inner = onnx.GraphProto()
            inner.CopyFrom(model.graph)
            attribute = rng.choice(nodes).attribute.add(name="body", type=onnx.AttributeProto.GRAPH)
            attribute.g.CopyFrom(inner)


CHANGES: tuple[Callable[[onnx.ModelProto, random.Random], None], ...] = (
    *(_attribute, _attribute, _operand, _operand, _operator, _initialiser, _initialiser, _port, _structure),
)


def damaged_network(model: onnx.ModelProto, seed: int) -> bytes:
    """A network with something wrong in its bytes, or in what they say."""
    rng = random.Random(seed)
    if rng.random() < 0.25:
        return flipped(model.SerializeToString(), rng)
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for _ in range(rng.choice((1, 1, 2, 3))):
        if changed.graph.node:
            rng.choice(CHANGES)(changed, rng)
    return changed.SerializeToString()


def damaged_arrays(seed: int) -> bytes:
    """An .npz or .npy file with something wrong in it, headers above all."""
    rng = random.Random(seed)
    noise = np.random.default_rng(seed)
    kinds = ("float32", "int8", "int64", "float16", "bool", "complex64", "U4", "datetime64[s]")
    shape = tuple(rng.randrange(4) for _ in range(rng.randrange(4)))
    arrays: Any = {f"input_{i}": noise.integers(0, 2, shape).astype(rng.choice(kinds)) for i in range(rng.randrange(4))}
    file = io.BytesIO()
    if rng.random() < 0.3 or not arrays:
        np.save(file, next(iter(arrays.values()), np.zeros(3)))
    elif rng.random() < 0.5:
        np.savez(file, **arrays)
    else:
        np.savez_compressed(file, **arrays)
    content = file.getvalue()
    if rng.random() < 0.4:
        claims = (b"(99999999999,)", b"(-1,)", b"(1e9,)", b"(2,3", b"[]", b"(((((", b"()*2", b"(4294967296,)")
        start = content.find(b"'shape': ")
        if start >= 0:
            end = content.find(b")", start) + 1
            return content[: start + 9] + rng.choice(claims) + content[end:]
    return flipped(content, rng)
