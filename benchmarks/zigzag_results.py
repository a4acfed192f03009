"""Every layer of every result that ZigZag's cases state, beside the exact search with the same unrolling and objective.

`--cases DIR` is the folder with `runs.jsonl` and `asserted.json`. What ZigZag found for a layer is stated in the first;
the second has totals of networks, whose layers are worked out by our strategy of the same kind, with equal totals
(`tests/compat/test_zigzag.py`). Of all orders, splits and allocations ours may then not end worse: its objective is no
larger, and the other quantity is not larger where the objective is equal. The exit status is 1 where one does.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator, Sequence
from math import inf
from pathlib import Path
from typing import Any

from msgspec import Struct
from rich.console import Console
from rich.table import Table

from tilewright.compat.zigzag import get_hardware_performance_zigzag, get_hardware_performance_zigzag_imc
from tilewright.compat.zigzag_results import CostModelEvaluation
from tilewright.mapping.best import BestResult, MappingJob, best_mappings
from tilewright.mapping.goals import Objective
from tilewright.mapping.results import Effort

OBJECTIVES: dict[str, Objective] = {"latency": "latency", "energy": "energy", "EDP": "edp"}
SAME = 1e-9
"""The part by which sums of the same numbers may differ."""


class Stated(Struct, frozen=True):
    """A result of ZigZag."""

    name: str
    objective: Objective
    layers: tuple[CostModelEvaluation, ...]
    """Layers as read here, with their machine and what is unrolled."""
    costs: tuple[tuple[float, float], ...]
    """Energy and latency of each."""


def stated(cases: Path) -> Iterator[Stated]:
    """All results, those of single searches first."""
    for text in (cases / "runs.jsonl").read_text().splitlines():
        run = json.loads(text)
        layers = _layers(cases, run, {"opt": run["opt"], "lpf_limit": run["lpf_limit"]}, imc=False)
        found = {layer["name"]: (float(layer["energy"]), float(layer["latency2"])) for layer in run["layers"]}
        yield Stated(run["name"], OBJECTIVES[run["opt"]], layers, tuple(found[each.layer.name] for each in layers))
    for case in json.loads((cases / "asserted.json").read_text()):
        options: dict[str, Any] = {
            key: text == "True" if text in ("True", "False") else int(text)
            for key, text in case["call"].items()
            if key != "fn"
        }
        layers = _layers(cases, case, options, imc=case["call"]["fn"].endswith("imc"))
        costs = tuple((layer.energy_total, layer.latency_total2) for layer in layers)
        name = " ".join([Path(case["workload"]).name, Path(case["mapping"]).stem, *sorted(options)])
        yield Stated(name, "latency", layers, costs)


def _layers(
    cases: Path, case: dict[str, Any], options: dict[str, Any], *, imc: bool
) -> tuple[CostModelEvaluation, ...]:
    files = [str(cases / case[key]) for key in ("workload", "accelerator", "mapping")]
    call = get_hardware_performance_zigzag_imc if imc else get_hardware_performance_zigzag
    return tuple(layer for layer, _ in call(*files, **options)[-1][0][1])


def searched(result: Stated, effort: Effort) -> list[BestResult]:
    """The best mappings in time for the same mappings in space."""
    jobs = [
        MappingJob(layer.layer, layer.cost.engine, (layer.cost.spatial,), result.objective, effort=effort)
        for layer in result.layers
    ]
    return best_mappings(jobs)


def compared(objective: Objective, ours: tuple[float, float], theirs: tuple[float, float]) -> int:
    """-1 where ours (energy and latency) is better, 0 where both are the same, 1 where ours is worse."""
    by_objective = {"energy": (0, 1), "latency": (1, 0)}.get(objective)
    pairs = (
        [(ours[index], theirs[index]) for index in by_objective]
        if by_objective
        else [(ours[0] * ours[1], theirs[0] * theirs[1])]
    )
    for mine, other in pairs:
        if abs(mine - other) > SAME * other:
            return -1 if mine < other else 1
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, required=True, help="folder with ZigZag's results")
    parser.add_argument("--seconds", type=float, default=5.0, help="for a layer, at most; 0 until it is proved")
    parser.add_argument("--only", default="", help="results whose name has this in it")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    console, worse = Console(width=160), 0
    table = Table("result", "objective", "layers", "better", "same", "worse", "ZigZag", "ours", "proved", "seconds")
    for result in stated(given.cases):
        if given.only not in result.name:
            continue
        found = searched(result, Effort(seconds=given.seconds or inf))
        ours = [(each.best[0].energy, each.best[0].latency) for each in found]
        signs = [compared(result.objective, *pair) for pair in zip(ours, result.costs, strict=True)]
        for layer, sign, mine, theirs in zip(result.layers, signs, ours, result.costs, strict=True):
            if sign > 0:
                console.print(f"worse: {result.name}, {layer.layer.name}: {mine} against {theirs} (energy, latency)")
        worse += signs.count(1)
        totals = [_total(result.objective, costs) for costs in (result.costs, ours)]
        proved = f"{sum(each.proved for each in found)}/{len(found)}"
        seconds = sum({id(each): each.seconds for each in found}.values())
        counts = (str(len(found)), *(str(signs.count(sign)) for sign in (-1, 0, 1)))
        table.add_row(
            result.name, result.objective, *counts, *(f"{total:.7g}" for total in totals), proved, f"{seconds:.1f}"
        )
        print(result.name, *counts, *totals, proved, f"{seconds:.1f} s", flush=True)
    console.print(table)
    return 1 if worse else 0


def _total(objective: Objective, costs: Sequence[tuple[float, float]]) -> float:
    if objective in ("energy", "latency"):
        return sum(energy if objective == "energy" else latency for energy, latency in costs)
    return sum(energy * latency for energy, latency in costs)


if __name__ == "__main__":
    raise SystemExit(main())
