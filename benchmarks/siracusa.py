"""Cycles on Siracusa, simulated: single layers, and the networks of `--cases DIR`, on the cores and with NEUREKA.

Every result is compared with the reference: integer ones have to be equal. Inputs, outputs and weights are in L2, so
the figures include all transfers. Of a single layer on the cores there are two more: what its kernel does in a cycle
while the cores are at work, with its data in L1 but its code not yet in the caches; and what the layer could do at
most, were it for the DMA alone. The exit status is 1 where a result is wrong.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from itertools import product as product_of
from pathlib import Path
from types import MappingProxyType

import numpy as np
from msgspec import Struct, to_builtins
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from tilewright.api import Options, find_cases, load_case, run_model
from tilewright.api.compiling import plan_model
from tilewright.api.running import Ran
from tilewright.core.graph import Array, Attr, Graph, Node, TensorType, attrs, type_of_array
from tilewright.core.interpret import interpret
from tilewright.core.op import REGISTRY, call_of
from tilewright.machine.target import Sizes
from tilewright.report.layers import layers

PLATFORM = "siracusa"
L1 = 229_376
NETWORKS = ("resnet8", "dscnn", "mbv1_025", "ae640", "microLlama64", "microLlama128")
"""Parts of the names of networks that are run where nothing else is asked for."""
ENGINES: dict[str, tuple[str, ...]] = {"cores": ("neureka",), "all": ()}
"""The engines that each choice of `--engines` does without."""


class Machine(Struct, frozen=True):
    """What a program may use."""

    engines: str
    cores: int
    l1: int

    def options(self) -> Options:
        return Options(platform=PLATFORM, sizes=Sizes({"L1": self.l1}, cores=self.cores, without=ENGINES[self.engines]))


class Row(Struct, frozen=True):
    """One program."""

    name: str
    machine: Machine
    kernel: str
    macs: int
    """Of the network; NEUREKA computes pixels that strides skip, too."""
    cycles: int
    right: bool
    working: int = 0
    """Cycles in which the cores were at work, where they are known."""
    moving: float = 0.0
    """Cycles that the DMA needs for all bytes at its full speed, the way of more of them."""

    @property
    def rate(self) -> float:
        """Multiply-accumulates in a cycle."""
        return self.macs / self.cycles

    @property
    def more_rates(self) -> tuple[str, str]:
        """That of the kernel alone, and the most that the DMA allows."""
        rates = [f"{self.macs / cycles:.2f}" if cycles else "" for cycles in (self.working, self.moving)]
        return rates[0], rates[1]


class Chain:
    """A graph that grows node by node, each reading what the last one made."""

    def __init__(self, shape: Sequence[int], dtype: str, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)
        self.x = self.noise(shape, dtype)
        self._types: dict[str, TensorType] = {"x": type_of_array(self.x)}
        self._constants: dict[str, Array] = {}
        self._nodes: list[Node] = []
        self._last = "x"

    def noise(self, shape: Sequence[int], dtype: str) -> Array:
        """Numbers over the whole range of a small integer type, or around zero."""
        if dtype.startswith("float"):
            return self.random.normal(size=shape).astype(dtype)
        limits = np.iinfo(dtype)
        return self.random.integers(max(limits.min, -1000), min(limits.max, 1000) + 1, shape).astype(dtype)

    def add(self, op: str, constants: Sequence[Array | None] = (), **given: Attr) -> Chain:
        """A node that reads the last result, then constants."""
        number = len(self._nodes)
        names = ["" if c is None else f"c{number}_{i}" for i, c in enumerate(constants)]
        for name, array in zip(names, constants, strict=True):
            if array is not None:
                self._constants[name] = array
                self._types[name] = type_of_array(array)
        inputs = (self._last, *names)
        chosen = attrs(**given)
        types, values = [self._types.get(n) for n in inputs], [self._constants.get(n) for n in inputs]
        call = call_of(REGISTRY[op], types, chosen, values=values)
        self._last = f"t{number}"
        self._types[self._last] = call.outputs[0]
        self._nodes.append(Node(op, inputs, (self._last,), chosen, f"{op.lower()}_{number}"))
        return self

    def graph(self) -> Graph:
        """What has been added up to now."""
        types, constants = MappingProxyType(dict(self._types)), MappingProxyType(dict(self._constants))
        return Graph("layer", ("x",), (self._last,), tuple(self._nodes), types, constants)

    def requantised(self, channels: int) -> Chain:
        """To int8, with a factor for each channel along axis 1."""
        shape = (channels,) + (1,) * (len(self._types[self._last].shape) - 2)
        factor, offset = self.random.integers(100, 200, shape), self.random.integers(-500, 500, shape)
        given = (factor.astype(np.int32), offset.astype(np.int32))
        return self.add("RequantShift", given, div=1 << 17, n_levels=256, signed=1)


def convolution(channels: int, features: int, size: int, kernel: int, group: int = 1, dtype: str = "int8") -> Chain:
    """A convolution of a square image that keeps its size, channels last on both sides."""
    chain = Chain((1, size, size, channels), dtype).add("Transpose", perm=(0, 3, 1, 2))
    weights = chain.noise((features, channels // group, kernel, kernel), dtype)
    bias = chain.noise((features,), "float32" if dtype == "float32" else "int32")
    before = kernel // 2
    chain.add("Conv", (weights, bias), pads=(before,) * 4, group=group, kernel_shape=(kernel, kernel))
    if dtype != "float32":
        chain.requantised(features)
    return chain.add("Transpose", perm=(0, 2, 3, 1))


def product(rows: int, depth: int, columns: int, dtype: str = "int8") -> Chain:
    """A product with a constant matrix."""
    chain = Chain((rows, depth), dtype)
    chain.add("MatMul", (chain.noise((depth, columns), dtype),))
    return chain if dtype.startswith("float") else chain.requantised(columns)


def single_layers() -> dict[str, Chain]:
    """The layers of the first table."""
    return {
        "conv 3x3 64->64, 16x16": convolution(64, 64, 16, 3),
        "conv 3x3 16->16, 32x32": convolution(16, 16, 32, 3),
        "pointwise 64->64, 16x16": convolution(64, 64, 16, 1),
        "pointwise 128->128, 16x16": convolution(128, 128, 16, 1),
        "pointwise 256->256, 8x8": convolution(256, 256, 8, 1),
        "depthwise 3x3 64, 16x16": convolution(64, 64, 16, 3, group=64),
        "depthwise 3x3 32, 48x48": convolution(32, 32, 48, 3, group=32),
        "conv 3x3 112->128, 36x36": convolution(112, 128, 36, 3),
        "matrix-vector 512->256": product(1, 512, 256),
        "matrix 64x256x64": product(64, 256, 64),
        "leaky ReLU, 65536 bytes": Chain((1, 16, 64, 64), "int8").add("iLeakyReLU", mul=1, shift=3),
        "fp32 conv 3x3 16->16, 16x16": convolution(16, 16, 16, 3, dtype="float32"),
        "fp32 pointwise 32->32, 16x16": convolution(32, 32, 16, 1, dtype="float32"),
        "fp32 depthwise 3x3 32, 16x16": convolution(32, 32, 16, 3, group=32, dtype="float32"),
        "fp32 matrix 64x64x64": product(64, 64, 64, "float32"),
    }


def run_row(
    name: str,
    model: Path | Graph,
    inputs: Sequence[Array],
    expected: Sequence[Array],
    machine: Machine,
    *,
    profile: bool = False,
) -> tuple[Row, Ran]:
    """Compiles, simulates and compares."""
    ran = run_model(model, machine.options(), inputs=inputs, expected=expected, profile=profile)
    plain = replace(machine, engines="cores").options()
    _, cores = plan_model(model, plain, samples=inputs)
    most = max(layers(ran.compiled.plan), key=lambda layer: layer.macs)
    row = Row(name, machine, most.code, sum(layer.macs for layer in layers(cores)), ran.cycles or 1, ran.right)
    return row, ran


def layer_row(name: str, chain: Chain, machine: Machine) -> Row:
    """One layer alone, against the reference."""
    graph = chain.graph()
    row, ran = run_row(name, graph, [chain.x], interpret(graph, [chain.x]), machine, profile=True)
    if machine.engines != "cores":
        return row
    tiles = [tile for group in ran.groups for tile in group.tiles]
    most = max(sum(tile.loaded for tile in tiles), sum(tile.stored for tile in tiles))
    speed = max(dma.bytes_per_cycle for dma in ran.compiled.platform.links.values())
    return replace(row, working=sum(tile.kernel for tile in tiles), moving=most / speed)


def network_row(name: str, path: Path, machine: Machine) -> Row:
    """A network against the results that come with it."""
    case = load_case(name, path)
    return run_row(name, case.model, case.inputs, case.expected, machine)[0]


def show(title: str, rows: Sequence[Row]) -> None:
    """Prints a table. Behind MAC/cycle: the kernel's alone, and the most that the DMA allows."""
    table = Table("", "engines", "kernel", title=title)
    for heading in ("cores", "L1", "MAC", "cycles", "MAC/cycle", "kernel", "DMA", "right"):
        table.add_column(heading, justify="right")
    for row in rows:
        numbers = (row.machine.cores, row.machine.l1, row.macs, row.cycles)
        right = "yes" if row.right else "NO"
        texts = [f"{number:,}" for number in numbers]
        table.add_row(row.name, row.machine.engines, row.kernel, *texts, f"{row.rate:.2f}", *row.more_rates, right)
    Console(width=150).print(table)


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, action="append", default=[])
    parser.add_argument("--l1", type=int, nargs="+", default=[L1], help="bytes of L1 that programs may use")
    parser.add_argument("--cores", type=int, nargs="+", default=[8], help="how many cores compute")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--only", default="", help="part of the names of layers and networks to run")
    parser.add_argument("--json", type=Path, help="writes the figures to this file")
    options = parser.parse_args()
    ways = [Machine(*way) for way in product_of(options.engines, options.cores, options.l1)]
    single = [layer_row(n, chain, way) for n, chain in single_layers().items() if options.only in n for way in ways]
    show("single layers", single)
    found = [
        (name, path)
        for name, path in find_cases(options.cases)
        if any(network in name for network in NETWORKS) and options.only in name
    ]
    whole = [network_row(name, path, way) for name, path in found for way in ways]
    show("networks", whole)
    rows = [*single, *whole]
    if options.json:
        options.json.write_text(json.dumps([to_builtins(row) for row in rows], indent=2))
    return 0 if all(row.right for row in rows) else 1
