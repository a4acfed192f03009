"""Use of ITA, simulated: a linear layer, heads of attention, encoders of known sizes.

On a Snitch cluster (the default) the use is that of 1024 multiply-accumulates a cycle: in the cycles of the engine's
jobs, as with all data in L1, and of the whole network, from DRAM to DRAM. With `--platform mempool-ita` it is that of
the 4096 of four units, which compute heads of attention; use with jobs is not told where cores have other products.
Beside it are GOp/s at the platform's clock, and GOp/J where it has energy coefficients. Results are compared with the
reference. The exit status is 1 where one is wrong, or a use is below its goal.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from functools import reduce
from pathlib import Path

import numpy as np
from examples.encoders import ENCODERS, Network, encoder
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from tilewright import _native
from tilewright.api import Options, run_model
from tilewright.core.graph import Array, Graph, Node
from tilewright.core.interpret import interpret
from tilewright.core.op import call_node
from tilewright.frontend import load
from tilewright.machine.target import load_platform

SOFTMAX = {"snitch-ita": "ITASoftmax", "mempool-ita": "ITAPartialMax"}
VOLTS = {"snitch-ita": 0.65, "mempool-ita": 0.8}
"""By platform; its clock is for that."""
Made = tuple[bytes, Array, int]
"""A network as ONNX, an input, multiply-accumulates."""


class Case(Struct, frozen=True):
    """A network, and the uses that it should have: with data in L1, and in all."""

    build: Callable[[], Made]
    near: float = 0.0
    whole: float = 0.0


def _single(rows: int, width: int, softmax: str, layer: Callable[[Network], str]) -> Made:
    n = Network(rows, width, 0, softmax)
    model = n.model(layer(n))
    return model.SerializeToString(), n.example(), n.macs


def _encoder(name: str, layers: int, softmax: str) -> Made:
    model, x, macs = encoder(name, layers, softmax=softmax)
    return model.SerializeToString(), x, macs


def cases(platform: str, layers: int) -> dict[str, Case]:
    """By the names in the table."""
    softmax = SOFTMAX[platform]
    if platform == "mempool-ita":
        found = {
            f"4 heads of {rows} x {size} with projections": Case(
                lambda rows=rows, size=size: _single(
                    rows, 4 * size, softmax, lambda n: n.heads("input", "input", (4 * size, 4 * size), 4, size)
                )
            )
            for rows, size in ((128, 32), (256, 64))
        }
    else:
        found = {
            "linear 512 x 512 x 512": Case(
                lambda: _single(512, 512, softmax, lambda n: n.linear("input", 512, 512)), near=0.85
            ),
            "four such layers, one behind the other": Case(
                lambda: _single(
                    512, 512, softmax, lambda n: reduce(lambda x, _: n.linear(x, 512, 512), range(4), "input")
                ),
                near=0.85,
                whole=0.85,
            ),
            "a head of 256 x 64 with projections": Case(
                lambda: _single(256, 64, softmax, lambda n: n.attention("input", "input", (64, 64), 1, 64)), near=0.75
            ),
        }
    for name, made in ENCODERS.items():
        count = min(layers or made.layers, made.layers)
        goal = 0.6 if platform == "snitch-ita" and name == "mobilebert" and count == made.layers else 0.0
        found[f"{name}, {count} of {made.layers} layers"] = Case(
            lambda name=name, count=count: _encoder(name, count, softmax), whole=goal
        )
    return found


class Row(Struct, frozen=True):
    """What a network took."""

    name: str
    case: Case
    macs: int
    cycles: int
    busy: int
    """Cycles in which the engine has jobs."""
    jobs: int
    right: bool
    peak: float
    alone: bool
    """Whether the engine computes all products."""

    @property
    def near(self) -> float:
        return self.macs / self.peak / self.busy if self.alone else 0.0

    @property
    def whole(self) -> float:
        return self.macs / self.peak / self.cycles

    @property
    def fine(self) -> bool:
        return self.right and self.near >= self.case.near and self.whole >= self.case.whole


def _jobs(graph: Graph, node: Node, settings: dict[str, int]) -> tuple[int, int]:
    """Products of tiles that a node is, and cycles of the engine for them."""

    def busy(mode: str, *sizes: int) -> int:
        return int(_native.ita_busy(mode, settings, *(np.array([size]) for size in sizes))[0])

    call = call_node(graph, node)
    match node.op:
        case "ITALinear":
            (m, k), n = call.shape("X")[:2], call.shape("W")[0]
            return m * n * k, busy("linear", 64 * m, 64 * n, 64 * k, 1, 1)
        case "ITAAdd":
            m, n = call.shape("A")[:2]
            return 2 * m * n, busy("linear", 64 * m, 64 * n, 128, 0, 1)
        case "ITAAttention":
            rows, columns = call.shape("K")[:2]
            heads = call.int("heads")
            inner = columns // heads
            return 2 * rows * rows * columns, busy("attention", 64 * rows * heads, 64 * rows, 64 * inner, 0, 1)
        case "ITAHeads":
            sizes = (np.array([call.int(name)]) for name in ("rows", "embedding", "projection"))
            return 0, int(_native.ita_units_busy("head", settings, *sizes)[0])
        case _:
            return 0, 0


def measured(platform: str, name: str, case: Case) -> Row:
    """Compiles, simulates and compares."""
    data, x, macs = case.build()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.onnx"
        path.write_bytes(data)
        expected = interpret(load(path, samples=[x]), [x])
        ran = run_model(path, Options(platform=platform), inputs=[x], expected=expected)
    graph, device = ran.compiled.plan.graph, ran.compiled.platform.device("ita")
    settings = {name: number for name, number in device.settings.items() if isinstance(number, int)} if device else {}
    found = [_jobs(graph, node, settings) for node in graph.nodes]
    jobs, busy = (sum(column) for column in zip(*found, strict=True))
    peak = ran.compiled.platform.engines["ita"].peak
    alone = not any(node.op == "MatMul" for node in graph.nodes)
    return Row(name, case, macs, ran.cycles or 0, busy, jobs, ran.right, peak, alone)


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--platform", choices=SOFTMAX, default="snitch-ita")
    parser.add_argument("--only", default="", help="part of the names of networks to run")
    parser.add_argument("--layers", type=int, default=0, help="of encoders; 0: all that they have")
    options = parser.parse_args()
    platform = load_platform(options.platform)
    hertz = next(iter(platform.timings.values())).hertz
    chosen = cases(platform.name, options.layers).items()
    rows = [measured(platform.name, name, case) for name, case in chosen if options.only in name]
    table = Table("network", title=f"{platform.name} at {hertz / 1e6:.0f} MHz, {VOLTS[platform.name]} V")
    for heading in ("MAC", "use with jobs", "goal", "cycles in all", "use in all", "goal", "GOp/s", "GOp/J", "right"):
        table.add_column(heading, justify="right")
    for row in rows:
        counts = {"ita.jobs": row.jobs, "machine.cycles": row.cycles}
        joules = sum(term.picojoules * counts[term.activity] for term in platform.energy) * 1e-12
        operations = 2e-9 * row.macs
        goals = (f"{goal:.0%}" if goal else "" for goal in (row.case.near, row.case.whole))
        near, whole = goals
        table.add_row(
            row.name,
            f"{row.macs:,}",
            f"{row.near:.1%}" if row.alone else "",
            near,
            f"{row.cycles:,}",
            f"{row.whole:.1%}",
            whole,
            f"{operations / (row.cycles / hertz):.0f}",
            f"{operations / joules:.0f}" if joules else "",
            "yes" if row.right else "NO",
        )
    table.add_row("published: MobileBERT (arXiv 2408.02473)", *[""] * 6, "154", "2960", "")
    console = Console(width=160)
    console.print(table)
    bases = ", ".join(
        f"{t.component} {t.picojoules:,.0f} pJ for each of {t.activity} ({t.basis})" for t in platform.energy
    )
    console.print(f"energy: {bases or 'nobody says'}")
    return 0 if all(row.fine for row in rows) else 1
