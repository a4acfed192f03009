"""Use of MemPool's cores: a product and a convolution of bytes on 16 and on 256 of them.

Cycles are those of the whole network, from L2 to L2. Every result is compared with the reference. The exit status is 1
where one is wrong, or where 256 cores do less of the SIMD peak (4 MAC per core and cycle) than they have to, or are not
faster than 16 by as much.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict
from rich.console import Console
from rich.table import Table

from benchmarks.engines import Net
from tilewright.api import Options, run_model
from tilewright.core.graph import Graph
from tilewright.core.interpret import interpret
from tilewright.machine.target import load_platform

PEAK = 4
FASTER = 12
SMALL, LARGE = "mempool-16", "mempool"


class Layer(Struct, frozen=True):
    """A network of one layer, its multiply-accumulates and the share of the peak that it has to reach."""

    build: Callable[[], Graph]
    macs: int
    share: float


class Row(Struct, frozen=True):
    """What a layer takes on some cores."""

    layer: str
    platform: str
    cores: int
    cycles: int
    share: float
    """Of the SIMD peak."""
    right: bool


def product() -> Graph:
    net = Net((256, 256))
    return net.graph(net.product("x", 256))


def convolution() -> Graph:
    net = Net((1, 16, 16, 64))
    x = net.add("Transpose", "x", perm=(0, 3, 1, 2))
    return net.graph(net.add("Transpose", net.conv(x, 64, 3), perm=(0, 2, 3, 1)))


LAYERS = {
    "int8 product 256 x 256 x 256": Layer(product, 256**3, 0.45),
    "int8 convolution 3x3, 64 to 64, 16 x 16": Layer(convolution, 16 * 16 * 64 * 64 * 9, 0.35),
}


def measured(name: str, layer: Layer, platform: str) -> Row:
    graph = layer.build()
    fed = [np.random.default_rng(1).integers(-128, 128, graph.types["x"].shape).astype(np.int8)]
    ran = run_model(graph, Options(platform), inputs=fed, expected=interpret(graph, fed))
    cores, cycles = load_platform(platform).cores.count, ran.cycles or 0
    return Row(name, platform, cores, cycles, layer.macs / (PEAK * cores * cycles), ran.right)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="layers whose name has this in it")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows, good = list[Row](), True
    for name, layer in LAYERS.items():
        if given.only not in name:
            continue
        small, large = (measured(name, layer, platform) for platform in (SMALL, LARGE))
        rows += [small, large]
        enough = large.share >= layer.share and small.cycles >= FASTER * large.cycles
        good = good and small.right and large.right and enough
    if given.json:
        print(json.dumps([asdict(row) for row in rows]))
    else:
        table = Table("layer", "cores", "cycles", "of the SIMD peak", "results")
        for row in rows:
            right = "right" if row.right else "wrong"
            table.add_row(row.layer, str(row.cores), f"{row.cycles:,}", f"{row.share:.1%}", right)
        Console().print(table)
    return int(not good)
