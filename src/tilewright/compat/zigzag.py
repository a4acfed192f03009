"""ZigZag's entry points with their signatures and return values.

`from tilewright.compat.zigzag import get_hardware_performance_zigzag` in place of `from zigzag.api import ...` is all
that a script needs. Equal runs give equal results, and nothing is written unless a folder or a file is named.
"""

from __future__ import annotations

import json
import pickle
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast

from msgspec.structs import replace

from tilewright.base.files import write_file
from tilewright.base.folders import write_folder
from tilewright.compat.zigzag_results import CostModelEvaluation, CumulativeEvaluation, complete
from tilewright.core.mapping import SpatialMapping
from tilewright.core.workload import Layer, Workload
from tilewright.errors import TilewrightError
from tilewright.frontend.zigzag_machine import read_machine
from tilewright.frontend.zigzag_mapping import MappingEntry, read_mapping
from tilewright.frontend.zigzag_onnx import read_onnx_workload, workload_of_model
from tilewright.frontend.zigzag_workload import read_yaml_workload, workload_of_items
from tilewright.machine.array import ArrayEngine
from tilewright.mapping.goals import Objective
from tilewright.mapping.spatial import candidates
from tilewright.mapping.strategies import loma, salsa
from tilewright.mapping.tables import problem
from tilewright.price.array import ArrayCost, areas, clock_period, evaluate
from tilewright.price.locality import local_engines
from tilewright.price.memories import with_costs

Evaluations = list[tuple[CumulativeEvaluation, list[tuple[CostModelEvaluation, None]]]]
Engine = Literal["loma", "salsa"]
OBJECTIVES: Mapping[str, Objective] = {"latency": "latency", "energy": "energy", "edp": "edp"}


def get_hardware_performance_zigzag(
    workload: str | list[dict[str, Any]] | object,
    accelerator: str,
    mapping: str,
    *,
    temporal_mapping_search_engine: Engine = "loma",
    temporal_mapping_type: Literal["uneven", "even"] = "uneven",
    opt: str = "latency",
    dump_folder: str | None = None,
    pickle_filename: str | None = None,
    lpf_limit: int = 6,
    nb_spatial_mappings_generated: int = 3,
    in_memory_compute: bool = False,
    exploit_data_locality: bool = False,
    enable_mix_spatial_mapping: bool = False,
    loma_show_progress_bar: bool = True,  # noqa: ARG001 - there is nothing to wait for
) -> tuple[float, float, Evaluations] | tuple[float, float, float, float, Evaluations]:
    """Energy, latency and all evaluations; with `in_memory_compute` also clock period and area before those."""
    objective = OBJECTIVES.get(opt.lower())
    if objective is None:
        raise TilewrightError("bad-argument", f"opt is '{opt}'", help="one of energy, latency, EDP")
    engine, said = read_machine(Path(accelerator))
    engine = with_costs(engine)
    file, more = read_mapping(Path(mapping))
    network, rest = _workload(workload)
    for warning in (*said, *more, *rest):
        warnings.warn(warning, stacklevel=2)
    network = file.linked(network)
    mixed = enable_mix_spatial_mapping or in_memory_compute
    engines = local_engines(network, engine) if exploit_data_locality or mixed else {}
    known: dict[str, ArrayCost] = {}
    found: list[tuple[CostModelEvaluation, None]] = []
    for layer in network.layers:
        entry, machine = file.entry(layer), engines.get(layer.name, engine)
        key = _key(layer, entry, machine)
        if key not in known:
            spatials = candidates(
                layer, machine, entry.unrolled, entry.hints, mixed=mixed, most=nb_spatial_mappings_generated
            )
            even = temporal_mapping_type == "even"
            known[key] = _best(
                layer, machine, entry, spatials, objective, temporal_mapping_search_engine, lpf_limit, even
            )
        found.append((CostModelEvaluation(replace(known[key], layer=layer)), None))
    total = CumulativeEvaluation([cost for cost, _ in found])
    if dump_folder is not None:
        _dump(Path(dump_folder), total, [cost for cost, _ in found])
    if pickle_filename is not None:
        _pickle(Path(pickle_filename), [cost for cost, _ in found])
    results: Evaluations = [(total, found)]
    if in_memory_compute:
        area = sum(areas(engine).values())
        return total.energy_total, total.latency_total2, clock_period(engine) or 0.0, area, results
    return total.energy_total, total.latency_total2, results


def get_hardware_performance_zigzag_imc(*args: Any, **options: Any) -> tuple[float, float, float, float, Evaluations]:
    """The same for arrays that compute in memory: energy, latency, clock period, area and all evaluations."""
    result = get_hardware_performance_zigzag(*args, **{**options, "in_memory_compute": True})
    return cast("tuple[float, float, float, float, Evaluations]", result)


def _workload(given: object) -> tuple[Workload, tuple[str, ...]]:
    if isinstance(given, list):
        return workload_of_items(cast("list[object]", given), Path("workload")), ()
    if not isinstance(given, str | Path):
        return workload_of_model(cast("Any", given), "workload"), ()
    path = Path(given)
    return (read_onnx_workload(path), ()) if path.suffix == ".onnx" else read_yaml_workload(path)


def _key(layer: Layer, entry: MappingEntry, engine: ArrayEngine) -> str:
    """Layers with equal keys cost the same."""
    inputs = tuple(replace(operand, sources=(), constant=False) for operand in layer.inputs)
    return repr((dict(layer.dims), layer.output, inputs, dict(layer.sums), entry, engine.memories))


def _best(
    layer: Layer,
    engine: ArrayEngine,
    entry: MappingEntry,
    spatials: tuple[SpatialMapping, ...],
    objective: Objective,
    search: Engine,
    limit: int,
    even: bool,
) -> ArrayCost:
    """The best of all spatial mappings, the first of equal ones."""
    best: tuple[tuple[float, ...], ArrayCost] | None = None
    refused: TilewrightError | None = None
    for spatial in spatials:
        task = problem(layer, engine, spatial)
        try:
            if search == "salsa":
                mapping = salsa(task, objective).best.mapping
            else:
                mapping = loma(task, objective, limit, entry.order, even=even).best.mapping
        except TilewrightError as error:
            refused = error
            continue
        cost = evaluate(layer, engine, spatial, mapping)
        rank = {
            "latency": (cost.cycles, cost.energy),
            "energy": (cost.energy, cost.cycles),
            "edp": (cost.product,),
        }[objective]
        if best is None or rank < best[0]:
            best = (rank, cost)
    if best is None:
        raise refused or TilewrightError(
            "no-mapping",
            f"layer '{layer.name}': nothing can be unrolled as the mapping says",
            help="unroll over loops that the layer has",
        )
    return best[1]


def _dump(folder: Path, total: CumulativeEvaluation, costs: list[CostModelEvaluation]) -> None:
    overall = {"energy": total.energy_total, "latency": total.latency_total2}

    def fill(place: Path) -> None:
        for cost in costs:
            name = cost.layer.name.replace("/", "_")
            (place / f"{name}_complete.json").write_text(json.dumps(complete(cost), indent=4), encoding="utf-8")
        (place / "overall_simple.json").write_text(json.dumps(overall, indent=4), encoding="utf-8")

    write_folder(folder, fill)


def _pickle(path: Path, costs: list[CostModelEvaluation]) -> None:
    write_file(path, pickle.dumps(costs))
