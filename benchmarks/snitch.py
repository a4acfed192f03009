"""Use of the FPUs of a Snitch cluster, simulated: products and convolutions on eight cores.

The use is that of the lanes of all FPUs while the cores are at work, with data in L1 but code not yet in the caches.
Beside it is that of the whole layer, with all transfers between DRAM and L1, and what the DMA takes alone. Results are
compared with the reference. The exit status is 1 where one is wrong, or a use is below its goal.
"""

from __future__ import annotations

import argparse

import numpy as np
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from benchmarks.siracusa import Chain, convolution, product
from tilewright.api import Options, run_model
from tilewright.core.interpret import interpret
from tilewright.report.layers import layers

PLATFORM, CORES = "snitch", 8
LANES = {"float64": 1, "float32": 2, "float16": 4}
"""Multiply-accumulates of an FPU in a cycle."""
TOLERANCE = {"float64": 1e-10, "float32": 1e-4, "float16": 3e-2}


class Layer(Struct, frozen=True):
    """One layer, and the use of the FPUs that it should have."""

    name: str
    dtype: str
    chain: Chain
    goal: float
    inside: float = 1.0
    """The share of its multiply-accumulates that are inside of the image; others are left out."""


def all_layers() -> list[Layer]:
    """The layers of the table."""
    return [
        Layer("fp64 product 64x64x64", "float64", product(64, 64, 64, "float64"), 0.85),
        Layer("fp32 product 64x64x64", "float32", product(64, 64, 64, "float32"), 0.75),
        Layer("fp16 product 64x64x64", "float16", product(64, 64, 64, "float16"), 0.65),
        Layer(
            "fp32 conv 3x3 64->64, 16x16", "float32", convolution(64, 64, 16, 3, dtype="float32"), 0.65, (46 / 48) ** 2
        ),
    ]


class Row(Struct, frozen=True):
    """What one layer took."""

    layer: Layer
    kernel: str
    macs: int
    """Inside of images."""
    working: int
    """Cycles in which the cores compute."""
    cycles: int
    """Of the whole layer."""
    moving: float
    """Cycles that the DMA needs for all bytes."""
    right: bool

    def use(self, cycles: float) -> float:
        """Of all lanes in so many cycles."""
        return self.macs / (max(cycles, 1) * CORES * LANES[self.layer.dtype])

    @property
    def fine(self) -> bool:
        return self.right and self.use(self.working) >= self.layer.goal


def measured(layer: Layer) -> Row:
    """Compiles, simulates and compares."""
    graph, x = layer.chain.graph(), layer.chain.x
    expected = interpret(graph, [x])
    ran = run_model(graph, Options(platform=PLATFORM), inputs=[x], profile=True)
    most = TOLERANCE[layer.dtype]
    right = all(np.allclose(a, b, rtol=most, atol=most) for a, b in zip(ran.outputs, expected, strict=True))
    largest = max(layers(ran.compiled.plan), key=lambda each: each.macs)
    tiles = [tile for group in ran.groups for tile in group.tiles]
    moved = max(sum(tile.loaded for tile in tiles), sum(tile.stored for tile in tiles))
    speed = ran.compiled.platform.links["dma"].bytes_per_cycle
    working = sum(tile.kernel for tile in tiles)
    return Row(layer, largest.code, round(largest.macs * layer.inside), working, ran.cycles or 1, moved / speed, right)


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="part of the names of layers to run")
    options = parser.parse_args()
    rows = [measured(layer) for layer in all_layers() if options.only in layer.name]
    table = Table("layer", "kernel", title="use of the FPUs of eight cores")
    for heading in (
        "MAC",
        "cycles at work",
        "use",
        "goal",
        "cycles in all",
        "use in all",
        "cycles of the DMA",
        "right",
    ):
        table.add_column(heading, justify="right")
    for row in rows:
        uses = f"{row.use(row.working):.1%}", f"{row.layer.goal:.0%}", f"{row.cycles:,}", f"{row.use(row.cycles):.1%}"
        right = "yes" if row.right else "NO"
        table.add_row(
            row.layer.name, row.kernel, f"{row.macs:,}", f"{row.working:,}", *uses, f"{row.moving:,.0f}", right
        )
    Console(width=150).print(table)
    return 0 if all(row.fine for row in rows) else 1
