"""CPU time to cut networks into nodes and to schedule them over four engines, as the number of nodes grows.

The plot of it is kept in schedule_growth.svg.
"""

from __future__ import annotations

import time
from math import log10
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from tilewright.core.equation import LayerText
from tilewright.core.split import OperationSplit
from tilewright.machine.channels import routes
from tilewright.machine.parts import Channel
from tilewright.schedule.fabric import Fabric, Store
from tilewright.schedule.network import network_of_equations
from tilewright.schedule.nodes import split_network
from tilewright.schedule.scheduling import NodeCosts, Scheduling

SIZES = ((10, 10), (32, 32), (100, 100), (320, 320), (1000, 100))
"""Rows of images, and layers."""
ENGINES = ("a", "b", "c", "d")
SLOTS = ("I1", "I2", "O")
PLOT = Path(__file__).with_name("schedule_growth.svg")
WORK = 20_000
"""Nodes that are scheduled for each size, in as many runs as that takes."""


def main() -> int:
    """Prints a line for each size, and draws the time of a schedule against its nodes."""
    table = Table("nodes", "edges", "cut, s", "schedule, ms", "us for a node", "schedules per s")
    points: list[tuple[int, float]] = []
    for rows, layers in SIZES:
        nodes, edges, cut, each = _measured(rows, layers)
        points.append((nodes, each))
        numbers = (f"{nodes:,}", f"{edges:,}", f"{cut:.2f}", f"{1e3 * each:.2f}")
        table.add_row(*numbers, f"{1e6 * each / nodes:.2f}", f"{1 / each:,.0f}")
    Console().print(table)
    PLOT.write_text(_plot(points), encoding="utf-8")
    return 0


def _plot(points: list[tuple[int, float]]) -> str:
    """Both axes by powers of ten, with a line of the time that is as much for each node as at the first point."""

    def at(nodes: float, seconds: float) -> tuple[float, float]:
        return 70 + 130 * (log10(nodes) - 2), 420 - 90 * (log10(seconds) + 5)

    (first, each), last = points[0], points[-1][0]
    line = [at(first, each), at(last, each * last / first)]
    marks = [at(*point) for point in points]
    texts = [(70 + 130 * power, 445, f"{10 ** (power + 2):,}") for power in range(4)]
    texts += [(4, 424 - 90 * power, f"{10.0 ** (power - 2):g} ms") for power in range(5)]
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" width="520" height="480" font-family="sans-serif" font-size="12">',
        '<rect width="520" height="480" fill="white"/>',
        *(f'<path d="M70 {420 - 90 * power}H490" stroke="#ddd"/>' for power in range(5)),
        *(f'<path d="M{70 + 130 * power} 40V420" stroke="#ddd"/>' for power in range(4)),
        f'<path d="M{line[0][0]:.1f} {line[0][1]:.1f}L{line[1][0]:.1f} {line[1][1]:.1f}" stroke="#999" '
        'stroke-dasharray="4"/>',
        *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="#1f6fb5"/>' for x, y in marks),
        *(f'<text x="{x}" y="{y}">{text}</text>' for x, y, text in texts),
        '<text x="240" y="470">nodes</text>',
        '<text x="70" y="24">CPU time of one schedule; dashed: linear</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _measured(rows: int, layers: int) -> tuple[int, int, float, float]:
    """Nodes, edges, and seconds to cut the network and to schedule it."""
    texts = [
        LayerText(
            name=f"c{i}",
            kind="conv",
            equation="O[k][oy][ox] += W[k][c][fy][fx] * I[c][iy][ix]",
            dims={"K": 2, "C": 2, "OY": rows, "OX": rows, "FY": 3, "FX": 3},
            relations=("iy = 1*oy + 1*fy", "ix = 1*ox + 1*fx"),
            sources={"I": (f"c{i - 1}",)} if i else {},
            slots={"O": "O", "W": "I2", "I": "I1"},
            padding={"IY": (1, 1), "IX": (1, 1)},
        )
        for i in range(layers)
    ]
    network = network_of_equations("chain", texts)
    splits = {text.name: OperationSplit(within=(("OY", "all"),)) for text in texts}
    start = time.process_time()
    nodes = split_network(network, splits, SLOTS)
    cut = time.process_time() - start
    shape = (len(nodes.kinds), len(ENGINES) + 1)
    costs = NodeCosts(np.full(shape, 100), np.ones(shape), np.zeros(shape), np.zeros(shape, np.uint32))
    scheduling = Scheduling(nodes, _fabric(), costs)
    places = np.arange(len(nodes.groups)) % len(ENGINES)
    runs = max(1, WORK // nodes.count)
    start = time.process_time()
    for _ in range(runs):
        scheduling.evaluate(places)
    each = (time.process_time() - start) / runs
    return nodes.count, nodes.edges, cut, each


def _fabric() -> Fabric:
    places = (*ENGINES, "home")
    channels = (
        Channel("ring", ENGINES, ENGINES, 64, 0.1),
        Channel("out", places, places, 64, 1.0),
    )
    stores = tuple(Store(name, name, 1 << 40, 64, 64, 1.0, 1.0) for name in places)
    holds = {(place, slot): number for number, place in enumerate(places) for slot in SLOTS}
    return Fabric("ring", places, SLOTS, stores, holds, channels, routes(channels, places, "home"))
