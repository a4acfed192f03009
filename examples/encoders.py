"""Makes encoders of transformers in bytes, in ITA's arithmetic: python examples/encoders.py mobilebert --layers 2

Sizes are those of known networks, weights are seeded noise, and scales keep activations in the range of a byte. Writes
NAME.onnx, and NAME.npz with an input, into the folder --output.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
DEVIATION, WEIGHTS = 40.0, 74.0
"""Of activations and of weights."""
GELU = {"b": -80, "c": -7091, "mult": 74, "shift": 20}
"""For 32 steps of a byte to one."""
SOFTMAXES: Mapping[str, tuple[dict[str, int], float, int]] = {
    "ITASoftmax": ({}, 3, 255),
    "ITAPartialMax": ({"group_width": 16, "n_levels": 256, "term_bits": 10}, 32, 127),
}
"""That of ITA in a cluster, and that of its units in MemPool: attributes, deviation of scores, what stands for one."""
SLICE = 512
"""Products that ITA adds up: wider hidden layers are several, whose results are added."""


class Network:
    """Nodes and weights of a network; methods return the names of their results."""

    def __init__(self, rows: int, width: int, seed: int, softmax: str = "ITASoftmax") -> None:
        self.rng = np.random.default_rng(seed)
        self.rows, self.width, self.macs, self.softmax = rows, width, 0, softmax
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, array: Array) -> str:
        self.constants.append(numpy_helper.from_array(array, f"c{len(self.constants)}"))
        return self.constants[-1].name

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        return name

    def scaled(self, sums: str, factor: float) -> str:
        """Times a factor, as a byte over a power of two."""
        shift = int(np.floor(np.log2(255 / factor)))
        mult = self.constant(np.array([round(factor * 2**shift)], np.int32))
        zero = self.constant(np.zeros(1, np.int32))
        return self.add("RequantShift", sums, mult, zero, div=1 << shift, n_levels=256, signed=1)

    def linear(self, x: str, inner: int, columns: int) -> str:
        weights = self.constant(self.rng.integers(-128, 128, (inner, columns)).astype(np.int8))
        bias = self.constant(self.rng.integers(-(1 << 16), 1 << 16, columns).astype(np.int32))
        self.macs += self.rows * inner * columns
        return self.scaled(self.add("Add", self.add("MatMul", x, weights), bias), 1 / (WEIGHTS * np.sqrt(inner)))

    def residual(self, a: str, b: str) -> str:
        return self.scaled(self.add("Add", a, b), float(np.sqrt(0.5)))

    def feed_forward(self, x: str, width: int, hidden: int) -> str:
        """With what goes in; a hidden layer that is too wide in slices."""
        found = x
        for start in range(0, hidden, SLICE):
            inner = min(SLICE, hidden - start)
            curved = self.add("ITAGelu", self.linear(x, width, inner), **GELU)
            found = self.residual(found, self.linear(curved, inner, width))
        return found

    def attention(self, x: str, values: str, widths: tuple[int, int], heads: int, size: int) -> str:
        """With the projection back."""
        return self.linear(self.heads(x, values, widths, heads, size), heads * size, widths[0])

    def heads(self, x: str, values: str, widths: tuple[int, int], heads: int, size: int) -> str:
        """Attention of queries and keys from one tensor, values perhaps from another one."""
        q, k = (self.linear(x, widths[0], heads * size) for _ in range(2))
        v = self.linear(values, widths[1], heads * size)
        shape = self.constant(np.array([1, self.rows, heads, size], np.int64))
        q, k, v = (
            self.add("Transpose", self.add("Reshape", name, shape), perm=perm)
            for name, perm in ((q, (0, 2, 1, 3)), (k, (0, 2, 3, 1)), (v, (0, 2, 1, 3)))
        )
        attributes, deviation, one = SOFTMAXES[self.softmax]
        scores = self.scaled(self.add("MatMul", q, k), deviation / (DEVIATION**2 * np.sqrt(size)))
        mixed = self.scaled(self.add("MatMul", self.add(self.softmax, scores, **attributes), v), 1 / one)
        self.macs += 2 * heads * self.rows**2 * size
        flat = self.constant(np.array([1, self.rows, heads * size], np.int64))
        return self.add("Reshape", self.add("Transpose", mixed, perm=(0, 2, 1, 3)), flat)

    def example(self) -> Array:
        """An input."""
        return np.clip(self.rng.normal(0, DEVIATION, (1, self.rows, self.width)), -128, 127).astype(np.int8)

    def model(self, output: str) -> onnx.ModelProto:
        # All tensors hold integers, whatever the file calls them.
        shape = [1, self.rows, self.width]
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("input", output)]
        graph = helper.make_graph(self.nodes, "encoder", ends[:1], ends[1:], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def mobilebert(n: Network, x: str) -> str:
    """A layer of MobileBERT: a bottleneck of 128 around attention and four feed-forward networks.

    Its norms are a factor and an offset for each channel, which are part of weights here.
    """
    narrow, shared = n.linear(x, 512, 128), n.linear(x, 512, 128)
    y = n.residual(narrow, n.attention(shared, x, (128, 512), 4, 32))
    for _ in range(4):
        y = n.feed_forward(y, 128, 512)
    return n.residual(x, n.linear(y, 128, 512))


def usual(n: Network, x: str) -> str:
    """A layer of DINOv2-small, and of Whisper-tiny's encoder."""
    y = n.residual(x, n.attention(x, x, (384, 384), 6, 64))
    return n.feed_forward(y, 384, 1536)


@dataclass(frozen=True)
class Encoder:
    rows: int
    width: int
    layers: int
    layer: Callable[[Network, str], str]


ENCODERS: Mapping[str, Encoder] = {
    "mobilebert": Encoder(128, 512, 24, mobilebert),
    # 16 x 16 patches. The class token would be a row more, which no tile has.
    "dinov2": Encoder(256, 384, 12, usual),
    # Of its 1500 rows, as many as ITA's softmax takes.
    "whisper": Encoder(512, 384, 4, usual),
}


def encoder(
    name: str, layers: int = 0, seed: int = 0, softmax: str = "ITASoftmax"
) -> tuple[onnx.ModelProto, Array, int]:
    """A network of so many layers (0: all that it has), an input, and its multiply-accumulates."""
    made = ENCODERS[name]
    n = Network(made.rows, made.width, seed, softmax)
    last = "input"
    for _ in range(layers or made.layers):
        last = made.layer(n, last)
    return n.model(last), n.example(), n.macs


def main() -> None:
    """Writes one of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=ENCODERS)
    parser.add_argument("--layers", type=int, default=0, help="0: all that the network has")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--softmax", choices=SOFTMAXES, default="ITASoftmax", help="that of a cluster, or of MemPool")
    parser.add_argument("--output", type=Path, default=Path())
    options = parser.parse_args()
    model, x, macs = encoder(options.name, options.layers, options.seed, options.softmax)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / f"{options.name}.onnx").write_bytes(model.SerializeToString())
    np.savez(options.output / f"{options.name}.npz", input_0=x)
    print(f"{options.output / options.name}.onnx: {macs:,} multiply-accumulates")


if __name__ == "__main__":
    main()
