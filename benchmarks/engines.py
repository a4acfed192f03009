"""Branches and heads on two engines of Siracusa at the same time, against the best plan with one engine at a time.

Every result is compared with the reference. The last table is the timeline of each plan, predicted and simulated: what
NEUREKA computes beside a group of the cores has no cycles of its own there. The exit status is 1 where a result is
wrong, or a plan is not faster than the one without.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from types import MappingProxyType

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict
from rich.console import Console
from rich.table import Table

from tilewright.api import Options, run_model
from tilewright.api.running import Ran
from tilewright.core.graph import Array, Attr, Graph, Node, TensorType, attrs, type_of_array
from tilewright.core.interpret import interpret
from tilewright.core.op import REGISTRY, call_of, parse_type
from tilewright.machine.target import Sizes
from tilewright.plan import PlanOptions

L1 = 229_376


class Row(Struct, frozen=True):
    """A network, and cycles of its plans."""

    network: str
    one: int
    """Simulated, one engine at a time."""
    both: int
    predicted_one: int
    predicted_both: int
    beside: int
    """Groups that NEUREKA computes beside the cores."""
    right: bool


class Net:
    """A graph of integers that grows node by node."""

    def __init__(self, shape: Sequence[int]) -> None:
        self._random = np.random.default_rng(0)
        self._types: dict[str, TensorType] = {"x": parse_type(f"int8[{','.join(map(str, shape))}]")}
        self._constants: dict[str, Array] = {}
        self._nodes: list[Node] = []

    def noise(self, *shape: int, dtype: str = "int8") -> Array:
        limits = np.iinfo(dtype)
        return self._random.integers(limits.min, limits.max + 1, shape).astype(dtype)

    def add(self, op: str, *operands: str | Array, **given: Attr) -> str:
        """A node; arrays become constants."""
        names: list[str] = []
        for operand in operands:
            if not isinstance(operand, str):
                name = f"c{len(self._constants)}"
                self._constants[name], self._types[name] = operand, type_of_array(operand)
                operand = name
            names.append(operand)
        values = [self._constants.get(name) for name in names]
        call = call_of(REGISTRY[op], [self._types[name] for name in names], attrs(**given), values=values)
        output = f"t{len(self._nodes)}"
        self._types[output] = call.outputs[0]
        self._nodes.append(Node(op, tuple(names), (output,), attrs(**given), f"{op.lower()}_{len(self._nodes)}"))
        return output

    def bytes(self, sums: str, factor: int = 3) -> str:
        """Sums scaled to 8 bits."""
        return self.add("RequantShift", sums, np.asarray(factor, np.int32), np.asarray(-5000, np.int32), div=1 << 14)

    def conv(self, x: str, features: int, kernel: int) -> str:
        channels = self._types[x].shape[1]
        weights, pads = self.noise(features, channels, kernel, kernel), (kernel // 2,) * 4
        return self.bytes(self.add("Conv", x, weights, kernel_shape=(kernel, kernel), pads=pads))

    def product(self, x: str, columns: int) -> str:
        return self.bytes(self.add("MatMul", x, self.noise(self._types[x].shape[-1], columns)))

    def norm(self, x: str) -> str:
        length = self._types[x].shape[-1]
        weights = [self.noise(length, dtype="int16").astype(np.int32) for _ in range(2)]
        return self.add("iLayerNorm", x, *weights, D=1 << 9)

    def graph(self, *outputs: str) -> Graph:
        types, constants = MappingProxyType(self._types), MappingProxyType(self._constants)
        return Graph("network", ("x",), outputs, tuple(self._nodes), types, constants)


def inception(size: int, channels: int, features: int) -> Graph:
    """Four branches of an image: 1x1, 3x3 and 5x5 convolutions, the latter behind 1x1 ones, and a pool."""
    net = Net((1, size, size, channels))
    x = net.add("Transpose", "x", perm=(0, 3, 1, 2))
    branches = [
        net.conv(x, features, 1),
        net.conv(net.conv(x, features * 3 // 4, 1), features, 3),
        net.conv(net.conv(x, features // 4, 1), features // 4, 5),
        net.conv(net.add("MaxPool", x, kernel_shape=(3, 3), pads=(1, 1, 1, 1)), features // 2, 1),
    ]
    return net.graph(net.add("Transpose", net.add("Concat", *branches, axis=1), perm=(0, 2, 3, 1)))


def attention(net: Net, x: str, heads: int) -> str:
    """Heads one by one, each with projections of its own; then that of all of them."""
    width = net.graph().types[x].shape[-1]
    found: list[str] = []
    for _ in range(heads):
        queries, keys, values = (net.product(x, width // heads) for _ in range(3))
        scores = net.bytes(net.add("MatMul", queries, net.add("Transpose", keys, perm=(1, 0))), 2)
        chances = net.add("iSoftmax", scores, coeffA=20, coeffB=40, coeffC=7000, log2=20, n_levels=256)
        found.append(net.bytes(net.add("MatMul", chances, values), 2))
    return net.product(net.add("Concat", *found, axis=1), width)


def transformer(tokens: int, width: int, heads: int) -> Graph:
    """A block: norm and attention, norm and two products, each beside what it reads."""
    net = Net((tokens, width))
    first = net.bytes(net.add("Add", attention(net, net.norm("x"), heads), "x"), 1 << 13)
    inner = net.product(net.norm(first), 2 * width)
    return net.graph(net.bytes(net.add("Add", net.product(inner, width), first), 1 << 13))


def networks() -> dict[str, Graph]:
    return {
        "inception 14x14x64": inception(14, 64, 64),
        "inception 28x28x32": inception(28, 32, 32),
        "transformer 32x256, 8 heads": transformer(32, 256, 8),
        "transformer 64x128, 4 heads": transformer(64, 128, 4),
    }


def simulated(graph: Graph, *, overlap: bool) -> tuple[Ran, bool]:
    """A network on the simulated chip, and whether its results are those of the reference."""
    kind = graph.types["x"]
    fed = [np.random.default_rng(1).integers(-128, 128, kind.shape).astype(kind.dtype.numpy)]
    options = Options("siracusa", sizes=Sizes({"L1": L1}), planning=PlanOptions(overlap="auto" if overlap else "off"))
    ran = run_model(graph, options, inputs=fed, expected=interpret(graph, fed), profile=True)
    return ran, ran.right


def timeline(name: str, ran: Ran) -> Table:
    """When groups end, predicted and simulated."""
    table = Table("group", "layers", "beside", "predicted end", "simulated end", title=name)
    schedule = ran.compiled.plan.schedule
    assert schedule is not None
    end, nodes = 0.0, ran.compiled.plan.graph.nodes
    beside = {
        run.group: f"{run.start.group} to {run.wait.group}" for run in schedule.runs if run.wait.group > run.group
    }
    begin = ran.groups[0].start
    for number, (group, profile) in enumerate(zip(schedule.groups, ran.groups, strict=True)):
        end += group.cycles
        layers = ", ".join(nodes[work.step].label for work in group.works)
        table.add_row(str(number), layers, beside.get(number, ""), f"{end:,.0f}", f"{profile.stop - begin:,}")
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="networks whose name has this in it")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    console, rows, tables = Console(), list[Row](), list[Table]()
    for name, graph in networks().items():
        if given.only not in name:
            continue
        (one, right), (both, also) = (simulated(graph, overlap=overlap) for overlap in (False, True))
        found = [ran.compiled.plan.schedule for ran in (one, both)]
        runs = [run for schedule in found if schedule is not None for run in schedule.runs]
        beside = sum(run.wait.group > run.group for run in runs)
        cycles = [round(schedule.cycles) for schedule in found if schedule is not None]
        rows.append(Row(name, one.cycles or 0, both.cycles or 0, cycles[0], cycles[1], beside, right and also))
        tables.append(timeline(name, both))
    if given.json:
        print(json.dumps([asdict(row) for row in rows]))
    else:
        table = Table("network", "one engine at a time", "predicted", "both", "predicted", "faster by", "groups beside")
        for row in rows:
            gain = f"{1 - row.both / row.one:.1%}" if row.right else "wrong"
            cycles = [f"{value:,}" for value in (row.one, row.predicted_one, row.both, row.predicted_both)]
            table.add_row(row.network, *cycles, gain, str(row.beside))
        for each in (table, *tables):
            console.print(each)
    return int(not all(row.right and row.both < row.one for row in rows))
