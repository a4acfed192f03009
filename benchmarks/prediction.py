"""Predicted against simulated cycles of every layer of `--cases DIR`, on the cores and with NEUREKA (`--engines`).

`--l1 BYTES ...`, `--cores N ...` and `--home MEMORY ...` say on which machines; `--random N` adds N layers of random
sizes of every kind. A layer is what runs together as one group, with its transfers. Layers of fewer cycles than
`--least` are counted in their networks, but not on their own. The exit status is 1 where a layer is off by more than
15 % or a network by more than 10 %. `--keep DIR` saves every plan with its profile; `--again DIR` predicts saved plans
anew, without simulating: so constants of a platform, and formulas of kernels, are tried.
"""

from __future__ import annotations

import argparse
import json
import pickle
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict, replace
from rich.console import Console
from rich.table import Table

from benchmarks.random_layers import KINDS, Layer, layer
from benchmarks.siracusa import ENGINES, PLATFORM
from tilewright.api import Options, find_cases, load_case, run_model
from tilewright.core.plan import Plan
from tilewright.errors import TilewrightError
from tilewright.machine.target import Sizes, Target, load_platform, resize
from tilewright.report.profile import profile_rows
from tilewright.sim.marks import GroupProfile
from tilewright.timeline.replay import plan_timeline

LAYER, NETWORK = 0.15, 0.10
"""What predictions may be off by."""
LEAST = 5000
"""Cycles of a layer that counts on its own, unless told otherwise."""
LARGE = 4096
"""Bytes of constants of which only the range is kept."""


class Job(Struct, frozen=True):
    """A network on one machine."""

    network: str
    model: Path | Layer
    l1: int
    cores: int
    engines: str
    home: str = "L2"
    platform: str = PLATFORM

    @property
    def sizes(self) -> Sizes:
        target = load_platform(self.platform)
        beside = tuple(name for name in target.engines if name != target.cores.name)
        return Sizes({"L1": self.l1}, self.home, self.cores, beside if self.engines == "cores" else ())


class Run(Struct, frozen=True):
    """A plan with what was simulated."""

    job: Job
    plan: Plan
    groups: tuple[GroupProfile, ...]
    cycles: int


class Row(Struct, frozen=True):
    """A layer of a network on one machine."""

    network: str
    l1: int
    cores: int
    engines: str
    home: str
    group: int
    layers: str
    code: str
    tiles: int
    cycles: int
    predicted: float
    kernel: int
    """Cycles of the cores for the nodes alone, as simulated."""
    waiting: int
    """Cycles in which they waited for what a tile reads."""
    total: int
    """Cycles of the network, from before its first layer until its last result is there."""

    @property
    def ratio(self) -> float:
        """Predicted cycles for each simulated one."""
        return self.predicted / max(self.cycles, 1)

    @property
    def off(self) -> float:
        return layer_off(self.predicted, self.cycles)


def layer_off(predicted: float, cycles: int) -> float:
    """How far a prediction is from the cycles simulated, the same for twice and for half."""
    ratio = predicted / max(cycles, 1)
    return max(ratio, 1 / ratio if ratio else 1e9) - 1


def network_off(predicted: float, cycles: int) -> float:
    """How far a prediction is from the cycles simulated, as a share of these."""
    return abs(predicted / cycles - 1)


def measure(job: Job, keep: Path | None) -> list[Row]:
    """All layers of one network; none where it does not fit."""
    try:
        run = simulate(job)
    except TilewrightError as reason:
        print(f"{job.network} with {job.l1} bytes: {reason}")
        return []
    if keep is not None:
        save(run, keep)
    return rows_of(run)


def simulate(job: Job) -> Run:
    options = Options(platform=job.platform, sizes=job.sizes)
    if isinstance(job.model, Layer):
        ran = run_model(job.model.graph, options, inputs=job.model.inputs, profile=True)
    else:
        case = load_case(job.network, job.model)
        ran = run_model(case.model, options, inputs=case.inputs, profile=True)
    return Run(job, ran.compiled.plan, ran.groups, ran.cycles or 0)


def rows_of(run: Run) -> list[Row]:
    """The layers of a network."""
    plan, job = run.plan, run.job
    assert plan.schedule is not None
    found: list[Row] = []
    for row, group in zip(profile_rows(plan, plan.schedule, run.groups), plan.schedule.groups, strict=True):
        nodes = [plan.graph.nodes[work.step] for work in group.works]
        code = [node.op if code == "loop nest" else code for node, code in zip(nodes, row.code, strict=True)]
        texts = [
            f"{text}+{len(node.epilogue)}" if node.epilogue else text for text, node in zip(code, nodes, strict=True)
        ]
        names = (", ".join(row.layers), " ".join(texts))
        numbers = (row.tiles, row.cycles, row.predicted, row.kernel, row.waiting, run.cycles)
        found.append(Row(job.network, job.l1, job.cores, job.engines, job.home, row.group, *names, *numbers))
    return found


# Saved runs


def save(run: Run, folder: Path) -> None:
    """Keeps a run for `--again`."""
    job = run.job
    name = f"{job.network}@{job.platform}@{job.l1}@{job.home}@{job.cores}@{job.engines}".replace("/", "__")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.run").write_bytes(pickle.dumps(replace(run, plan=without_weights(run.plan))))


def without_weights(plan: Plan) -> Plan:
    """A plan whose large constants are zeros between the least and the largest number: costs depend on no others."""

    def bare(array: Any) -> Any:
        if array.nbytes <= LARGE:
            return array
        found = np.zeros_like(array)
        found.flat[0], found.flat[-1] = array.min(), array.max()
        return found

    constants = {name: bare(array) for name, array in plan.graph.constants.items()}
    return replace(plan, graph=replace(plan.graph, constants=MappingProxyType(constants)))


def priced_again(folder: Path) -> Iterator[Run]:
    """Saved runs, predicted by what the platform says now."""
    for path in sorted(folder.glob("*.run")):
        run: Run = pickle.loads(path.read_bytes())
        yield again(run, load_platform(run.job.platform))


def again(run: Run, platform: Target) -> Run:
    """A run with new predictions."""
    kernels = {kernel.path.name: kernel for kernel in platform.kernels}
    schedule = run.plan.schedule
    assert schedule is not None
    choices = tuple(
        replace(choice, kernel=kernels.get(choice.kernel.path.name, choice.kernel)) if choice.kernel else choice
        for choice in run.plan.choices
    )
    plan = replace(run.plan, platform=resize(platform, run.job.sizes), choices=choices)
    groups = tuple(replace(t.group, cycles=t.cycles) for t in plan_timeline(plan, schedule).groups)
    return replace(run, plan=replace(plan, schedule=replace(schedule, groups=groups)))


def by_network(rows: Iterable[Row]) -> list[tuple[str, int, int, str, str, int, float]]:
    """Name, L1, cores, engines, home, simulated and predicted cycles of every network."""
    sums: dict[tuple[str, int, int, str, str], tuple[int, float]] = {}
    for row in rows:
        key = (row.network, row.l1, row.cores, row.engines, row.home)
        sums[key] = row.total, sums.get(key, (0, 0.0))[1] + row.predicted
    return [(*key, *value) for key, value in sums.items()]


def show_layers(rows: Sequence[Row], most: int) -> None:
    """The worst layers."""
    table = Table(
        *("network", "L1", "cores", "engines", "home", "group", "layers", "code"),
        title=f"the {most} worst layers",
        title_justify="left",
    )
    for heading in ("tiles", "simulated", "predicted", "ratio"):
        table.add_column(heading, justify="right")
    for row in sorted(rows, key=lambda row: -row.off)[:most]:
        table.add_row(
            row.network[-28:],
            *(f"{row.l1:,}", f"{row.cores}", row.engines, row.home, f"{row.group}"),
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
    table = Table("network", "L1", "cores", "engines", "home", title=f"the {most} worst networks", title_justify="left")
    for heading in ("simulated", "predicted", "ratio"):
        table.add_column(heading, justify="right")
    for name, l1, cores, engines, home, cycles, predicted in sorted(
        by_network(rows), key=lambda network: -abs(np.log(network[-1] / network[-2]))
    )[:most]:
        ratio = f"{predicted / cycles:.2f}"
        table.add_row(name, f"{l1:,}", str(cores), engines, home, f"{cycles:,}", f"{predicted:,.0f}", ratio)
    Console(width=190).print(table)


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, action="append", default=[])
    parser.add_argument("--l1", type=int, nargs="+", default=[16_384, 65_536, 229_376], help="bytes of L1")
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--home", nargs="+", default=["L2"], help="memories that networks are in")
    parser.add_argument("--engines", nargs="+", choices=[*ENGINES], default=[*ENGINES])
    parser.add_argument("--least", type=int, default=LEAST, help="cycles of a layer that counts on its own")
    parser.add_argument("--only", default="", help="part of the names of networks to run")
    parser.add_argument("--random", type=int, default=0, help="how many layers of each kind to make up")
    parser.add_argument("--first", type=int, default=0, help="number of the first of them")
    parser.add_argument("--most", type=int, default=40, help="rows of tables")
    parser.add_argument("--jobs", type=int, default=1, help="networks at a time")
    parser.add_argument("--json", type=Path, help="writes the figures to this file, a line for each layer")
    parser.add_argument("--keep", type=Path, help="saves plans and profiles in this folder")
    parser.add_argument("--again", type=Path, help="predicts those of this folder anew, and simulates nothing")
    options = parser.parse_args()
    rows = predicted_again(options.again, options.only) if options.again else simulated(options)
    if options.json:
        options.json.write_text("".join(json.dumps(asdict(row)) + "\n" for row in rows))
    return judged(rows, options.least, options.most)


def predicted_again(folder: Path, only: str) -> list[Row]:
    return [row for run in priced_again(folder) if only in run.job.network for row in rows_of(run)]


def simulated(options: argparse.Namespace) -> list[Row]:
    """All networks and layers that are asked for."""
    models: list[tuple[str, Path | Layer]] = [*find_cases(options.cases)] if options.cases else []
    numbers = range(options.first, options.first + options.random)
    models += [(f"{kind}/{n}", layer(kind, n)) for kind in KINDS for n in numbers if options.only in f"{kind}/{n}"]
    jobs = [
        Job(name, model, l1, cores, engines, home)
        for name, model in models
        if options.only in name
        for l1 in options.l1
        for cores in options.cores
        for engines in options.engines
        for home in options.home
    ]
    with ProcessPoolExecutor(options.jobs) as pool:
        return [row for found in pool.map(measure, jobs, [options.keep] * len(jobs)) for row in found]


def judged(rows: Sequence[Row], least: int, most: int) -> int:
    """Prints tables; the exit status."""
    counted = [row for row in rows if row.cycles >= least]
    show_layers(counted, most)
    show_kernels(counted)
    show_networks(rows, most)
    bad = sum(row.off > LAYER for row in counted)
    networks = by_network(rows)
    wrong = sum(network_off(predicted, cycles) > NETWORK for *_, cycles, predicted in networks)
    print(f"{bad} of {len(counted)} layers off by more than {LAYER:.0%}")
    print(f"{wrong} of {len(networks)} networks off by more than {NETWORK:.0%}")
    return 1 if bad or wrong else 0
