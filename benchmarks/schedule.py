"""CPU time to cut networks into nodes and to schedule them over four engines, as the number of nodes grows."""

from __future__ import annotations

import time

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
WORK = 20_000
"""Nodes that are scheduled for each size, in as many runs as that takes."""


def main() -> int:
    """Prints a line for each size."""
    table = Table("nodes", "edges", "cut, s", "schedule, ms", "us for a node", "schedules per s")
    for rows, layers in SIZES:
        table.add_row(*_row(rows, layers))
    Console().print(table)
    return 0


def _row(rows: int, layers: int) -> list[str]:
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
    numbers = (f"{nodes.count:,}", f"{nodes.edges:,}", f"{cut:.2f}", f"{1e3 * each:.2f}")
    return [*numbers, f"{1e6 * each / nodes.count:.2f}", f"{1 / each:,.0f}"]


def _fabric() -> Fabric:
    places = (*ENGINES, "home")
    channels = (
        Channel("ring", ENGINES, ENGINES, 64, 0.1),
        Channel("out", places, places, 64, 1.0),
    )
    stores = tuple(Store(name, name, 1 << 40, 64, 64, 1.0, 1.0) for name in places)
    holds = {(place, slot): number for number, place in enumerate(places) for slot in SLOTS}
    return Fabric("ring", places, SLOTS, stores, holds, channels, routes(channels, places, "home"))
