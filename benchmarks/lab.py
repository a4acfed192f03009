"""The lab of Stream (docs/schedule_lab.md): what our search finds beside what Stream's found, and beside `hint_loops`.

Costs of nodes are those of our mappings, with the lab's dataflows. Every search has as many evaluations, and the one
that chooses how to cut the network has no more than each that is told.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tilewright import ScheduleOptions, schedule_network
from tilewright.core.split import Loops
from tilewright.schedule.placement import Hints

EXAMPLES = Path(__file__).parent.parent / "examples" / "many_core"
HINTS = ("", "OY=2", "OY=4", "OY=8", "OY=16", "OY=28", "OY=all")
STREAM = {
    "four_layers": "4 layers whole 1,380,718 cycles and 2.46e10 pJ; by rows 993,257 and 8.31e9",
    "resnet18": "by rows 3,823,124 cycles and 6.17e10 pJ (genetic search); whole 4,342,165 and 5.22e10 (by hand)",
}
"""What Stream of April 2023 found."""


def main() -> int:
    """Prints a table for each network; 1 where to choose is not 20 % better than to be told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--evaluations", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--network", action="append", choices=list(STREAM), help="one of them; all without it")
    given = parser.parse_args()
    worst = 0.0
    for name in given.network or STREAM:
        table = Table(
            "split",
            "nodes",
            "cycles",
            "energy, pJ",
            "product",
            "CPU s",
            "wall s",
            title=f"{name}; Stream: {STREAM[name]}",
        )
        products: dict[str, float] = {}
        for text in (*HINTS, "auto"):
            split = "auto" if text == "auto" else Hints((_loops(text),))
            start, wall = time.process_time(), time.monotonic()
            options = ScheduleOptions(
                "edp", split, evaluations=given.evaluations, seed=given.seed, workers=given.workers
            )
            one = schedule_network(
                EXAMPLES / f"{name}.yaml", EXAMPLES / "quad.yaml", EXAMPLES / "quad_mapping.yaml", options
            ).schedule
            products[text] = one.latency * one.energy
            numbers = (f"{one.nodes.count:,}", f"{one.latency:,}", f"{one.energy:.4g}", f"{products[text]:.4g}")
            table.add_row(
                text or "whole", *numbers, f"{time.process_time() - start:.1f}", f"{time.monotonic() - wall:.1f}"
            )
        chosen = products.pop("auto")
        worst = max(worst, chosen / min(products.values()))
        table.caption = f"chosen: {1 - chosen / min(products.values()):.1%} less than the best of those that were told"
        Console(width=150).print(table)
    return int(worst > 0.8)


def _loops(text: str) -> Loops:
    if not text:
        return ()
    name, _, parts = text.partition("=")
    return ((name, "all" if parts == "all" else int(parts)),)
