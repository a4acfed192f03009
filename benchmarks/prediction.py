"""Predicted against simulated cycles of every layer of `--cases DIR`, on the cores and with NEUREKA (`--engines`).

`--l1 BYTES ...` and `--cores N ...` say on which machines. A layer is what runs together as one group, with its
transfers. Layers of fewer cycles than `--least` are counted in their networks, but not on their own. The exit status is
1 where a layer is off by more than 15 % or a network by more than 10 %.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.siracusa import ENGINES, PLATFORM
from tilewright.api import Options, find_cases, load_case, run_model
from tilewright.core.platform import Sizes
from tilewright.errors import TilewrightError
from tilewright.report.profile import profile_rows

LAYER, NETWORK = 0.15, 0.10
"""What predictions may be off by."""


@dataclass(frozen=True)
class Row:
    """A layer of a network on one machine."""

    network: str
    l1: int
    cores: int
    engines: str
    group: int
    layers: str
    code: str
    tiles: int
    cycles: int
    predicted: float
    kernel: int
    """Cycles of the cores for the nodes alone, as simulated."""

    @property
    def ratio(self) -> float:
        """Predicted cycles for each simulated one."""
        return self.predicted / max(self.cycles, 1)

    @property
    def off(self) -> float:
        """How far that is from one, the same for twice and for half."""
        return max(self.ratio, 1 / self.ratio if self.ratio else 1e9) - 1


def measure(job: tuple[str, Path, int, int, str]) -> list[Row]:
    """All layers of one network; none where it does not fit."""
    name, path, l1, cores, engines = job
    case = load_case(name, path)
    options = Options(platform=PLATFORM, sizes=Sizes({"L1": l1}, cores=cores, without=ENGINES[engines]))
    try:
        ran = run_model(case.model, options, inputs=case.inputs, profile=True)
    except TilewrightError as reason:
        print(f"{name} with {l1} bytes: {reason}")
        return []
    plan = ran.compiled.plan
    assert plan.schedule is not None
    found: list[Row] = []
    for row, group in zip(profile_rows(plan, plan.schedule, ran.groups), plan.schedule.groups, strict=True):
        nodes = [plan.graph.nodes[work.step] for work in group.works]
        code = [node.op if code == "loop nest" else code for node, code in zip(nodes, row.code, strict=True)]
        texts = [
            f"{text}+{len(node.epilogue)}" if node.epilogue else text for text, node in zip(code, nodes, strict=True)
        ]
        found.append(
            Row(
                name,
                l1,
                cores,
                engines,
                row.group,
                ", ".join(row.layers),
                " ".join(texts),
                row.tiles,
                row.cycles,
                row.predicted,
                row.kernel,
            )
        )
    return found


def by_network(rows: Iterable[Row]) -> list[tuple[str, int, int, str, int, float]]:
    """Name, L1, cores, engines, simulated and predicted cycles of every network."""
    sums: dict[tuple[str, int, int, str], tuple[int, float]] = {}
    for row in rows:
        key = (row.network, row.l1, row.cores, row.engines)
        cycles, predicted = sums.get(key, (0, 0.0))
        sums[key] = cycles + row.cycles, predicted + row.predicted
    return [(*key, *value) for key, value in sums.items()]


def show_layers(rows: Sequence[Row], most: int) -> None:
    """The worst layers."""
    table = Table(
        *("network", "L1", "cores", "engines", "group", "layers", "code"),
        title=f"the {most} worst layers",
        title_justify="left",
    )
    for heading in ("tiles", "simulated", "predicted", "ratio"):
        table.add_column(heading, justify="right")
    for row in sorted(rows, key=lambda row: -row.off)[:most]:
        table.add_row(
            row.network[-28:],
            *(f"{row.l1:,}", f"{row.cores}", row.engines, f"{row.group}"),
            row.layers[:30],
            row.code,
            *(f"{number:,.0f}" for number in (row.tiles, row.cycles, row.predicted)),
            f"{row.ratio:.2f}",
        )
    Console(width=190).print(table)


def show_kernels(rows: Sequence[Row]) -> None:
    """How predictions of each kernel, or nest, are spread; of groups, that of their first node."""
    table = Table("first code", title="by code", title_justify="left")
    for heading in ("layers", "lowest", "median", "highest", f"off by {LAYER:.0%}", "share of cycles"):
        table.add_column(heading, justify="right")
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.code, []).append(row)
    total = sum(row.cycles for row in rows) or 1
    for code, mine in sorted(found.items(), key=lambda each: -sum(row.off > LAYER for row in each[1])):
        ratios = np.array([row.ratio for row in mine])
        table.add_row(
            code,
            str(len(mine)),
            *(f"{number:.2f}" for number in (ratios.min(), np.median(ratios), ratios.max())),
            str(sum(row.off > LAYER for row in mine)),
            f"{sum(row.cycles for row in mine) / total:.1%}",
        )
    Console(width=190).print(table)


def show_networks(rows: Sequence[Row], most: int) -> None:
    """The worst networks."""
    table = Table("network", "L1", "cores", "engines", title=f"the {most} worst networks", title_justify="left")
    for heading in ("simulated", "predicted", "ratio"):
        table.add_column(heading, justify="right")
    for name, l1, cores, engines, cycles, predicted in sorted(
        by_network(rows), key=lambda network: -abs(np.log(network[-1] / network[-2]))
    )[:most]:
        ratio = f"{predicted / cycles:.2f}"
        table.add_row(name, f"{l1:,}", str(cores), engines, f"{cycles:,}", f"{predicted:,.0f}", ratio)
    Console(width=190).print(table)


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, action="append", default=[])
    parser.add_argument("--l1", type=int, nargs="+", default=[16_384, 65_536, 229_376], help="bytes of L1")
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--engines", nargs="+", choices=[*ENGINES], default=[*ENGINES])
    parser.add_argument("--least", type=int, default=5000, help="cycles of a layer that counts on its own")
    parser.add_argument("--only", default="", help="part of the names of networks to run")
    parser.add_argument("--most", type=int, default=40, help="rows of tables")
    parser.add_argument("--jobs", type=int, default=1, help="networks at a time")
    parser.add_argument("--json", type=Path, help="writes the figures to this file")
    options = parser.parse_args()
    jobs = [
        (name, path, l1, cores, engines)
        for name, path in find_cases(options.cases)
        if options.only in name
        for l1 in options.l1
        for cores in options.cores
        for engines in options.engines
    ]
    with ProcessPoolExecutor(options.jobs) as pool:
        rows = [row for found in pool.map(measure, jobs) for row in found]
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    counted = [row for row in rows if row.cycles >= options.least]
    show_layers(counted, options.most)
    show_kernels(counted)
    show_networks(rows, options.most)
    bad = sum(row.off > LAYER for row in counted)
    networks = by_network(rows)
    wrong = sum(abs(predicted / cycles - 1) > NETWORK for *_, cycles, predicted in networks)
    print(f"{bad} of {len(counted)} layers off by more than {LAYER:.0%}")
    print(f"{wrong} of {len(networks)} networks off by more than {NETWORK:.0%}")
    return 1 if bad or wrong else 0
