"""Costs networks on every array machine of the library, as `tilewright cost` does: `--cases DIR` (may be repeated).

Every pair of network and machine is costed with the settings that the command has by default. A pair `costs` when every
operator of the network takes energy and cycles, but for views, which move no byte; it is `free` when another operator
does not, and else it `failed`. Layers of one shape are searched once for all networks of a machine, so networks that
come later take less time. Times are CPU seconds, the import of the network included. The exit status is 1 when an
operator was free or anything failed.
"""

from __future__ import annotations

import argparse
import os
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace
from rich.console import Console
from rich.progress import track
from rich.table import Table

import tilewright
from tilewright.api import find_cases, load_case
from tilewright.api.costing import NetworkCost
from tilewright.api.mapping import Known
from tilewright.machine.library import machine_names
from tilewright.ops import operators

SLOWEST = 10
"""Pairs that are shown by themselves."""

Status = Literal["costs", "free", "failed"]


class Pair(Struct, frozen=True):
    """A network on a machine."""

    network: str
    place: Path
    machine: str

    def __str__(self) -> str:
        return f"{self.network} on {self.machine}"


class Result(Struct, frozen=True):
    """What became of a pair."""

    pair: Pair
    status: Status
    detail: str = ""
    seconds: float = 0.0
    energy: float = 0.0
    cycles: float = 0.0
    layers: int = 0
    searched: int = 0
    unproved: int = 0
    views: frozenset[str] = field(default_factory=frozenset[str])
    """Operators that cost nothing, and may."""


def judge_machine(pairs: Sequence[Pair]) -> list[Result]:
    """Costs networks on one machine."""
    known: Known = {}
    return [judge(pair, known) for pair in pairs]


def judge(pair: Pair, known: Known) -> Result:
    """Costs a network; never raises for what goes wrong."""
    start = time.process_time()
    try:
        model = load_case(pair.network, pair.place).model
        result = _judged(pair, tilewright.cost(model, pair.machine, known=known))
    except tilewright.TilewrightError as error:
        result = Result(pair, "failed", str(error))
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        result = Result(pair, "failed", f"internal error: {type(error).__name__}: {error} ({where})")
    return replace(result, seconds=time.process_time() - start)


def _judged(pair: Pair, found: NetworkCost) -> Result:
    views = frozenset(node.op for node in found.nodes if not node.layers)
    free = [f"{op} is no view" for op in sorted(views) if operators()[op].kind != "view"]
    free += [mapped.layer.name for mapped in found.layers if mapped.cost.energy <= 0 or mapped.cost.cycles <= 0]
    return Result(
        pair,
        "free" if free else "costs",
        ", ".join(free),
        energy=found.energy,
        cycles=found.cycles,
        layers=len(found.layers),
        searched=found.searched,
        unproved=sum(not mapped.proved for mapped in found.layers),
        views=views,
    )


def each(pairs: Sequence[Pair], jobs: int) -> list[Result]:
    """Judges the pairs of each machine in a process of their own; prints what is wrong as it comes."""
    console = Console(stderr=True)
    results: dict[Pair, Result] = {}
    machines = [[p for p in pairs if p.machine == machine] for machine in dict.fromkeys(p.machine for p in pairs)]
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        waiting = [pool.submit(judge_machine, mine) for mine in machines]
        shown = track(as_completed(waiting), "cost", len(machines), console=console, disable=not console.is_terminal)
        for result in (result for done in shown for result in done.result()):
            results[result.pair] = result
            if not console.is_terminal:
                console.print(f"{len(results)}/{len(pairs)} {result.pair}: {result.seconds:.1f} s", soft_wrap=True)
            if result.status != "costs":
                print(f"{result.status.upper()} {result.pair}: {result.detail}", flush=True)
    return [results[pair] for pair in pairs]


def table(results: Sequence[Result], by: Literal["network", "machine"]) -> Table:
    """Counts and times by network or by machine, and of all."""
    shown = Table(title=f"What networks cost, by {by}", caption="open: no proof; s: CPU seconds of a pair")
    shown.add_column(by, no_wrap=True)
    for column in ("pairs", "cost", "layers", "searched", "open", "least s", "mean s", "most s"):
        shown.add_column(column, justify="right")
    names = dict.fromkeys(str(getattr(result.pair, by)) for result in results)
    for name in [*names, ""]:
        mine = [result for result in results if name in ("", getattr(result.pair, by))]
        if not name:
            shown.add_section()
        seconds = [result.seconds for result in mine]
        sums = [sum(values) for values in zip(*((r.layers, r.searched, r.unproved) for r in mine), strict=True)]
        times = (min(seconds), sum(seconds) / len(seconds), max(seconds))
        shown.add_row(
            name or "all",
            str(len(mine)),
            str(sum(result.status == "costs" for result in mine)),
            *(f"{value:,}" for value in sums),
            *(f"{value:.1f}" for value in times),
        )
    return shown


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, action="append", required=True, help="folder of cases, may be repeated")
    parser.add_argument("--filter", default="", help="only networks whose name contains this text")
    parser.add_argument("--machine", nargs="+", default=list(machine_names()), help="names or files of machines")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    return parser.parse_args()


def main() -> int:
    """Costs the pairs that were asked for."""
    chosen = arguments()
    networks = [(name, place) for name, place in find_cases(chosen.cases) if chosen.filter in name]
    pairs = [Pair(name, place, machine) for name, place in networks for machine in chosen.machine]
    results = each(pairs, chosen.jobs)
    console = Console()
    if results:
        console.print(table(results, "network"))
        console.print(table(results, "machine"))
        slow = sorted(results, key=lambda result: -result.seconds)[:SLOWEST]
        console.print("slowest: " + ", ".join(f"{result.pair} {result.seconds:.1f} s" for result in slow))
        views = sorted({op for result in results for op in result.views})
        console.print(f"views, which cost nothing: {', '.join(views) or 'none'}")
        console.print(f"{sum(result.seconds for result in results):,.0f} CPU seconds in all")
    return 1 if not results or any(result.status != "costs" for result in results) else 0


if __name__ == "__main__":
    raise SystemExit(main())
