"""Networks over the engines of a machine with many of them: nodes, their prices, an allocation and its schedule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from tilewright.api.compiling import Observer
from tilewright.api.costing import recognised
from tilewright.base.descriptions import stem_of
from tilewright.core.graph import Array, Graph
from tilewright.core.split import Loops, OperationSplit
from tilewright.errors import TilewrightError
from tilewright.frontend.stream_machine import is_stream_machine, read_stream_machine
from tilewright.frontend.stream_mapping import StreamMapping, read_stream_mapping
from tilewright.frontend.zigzag_machine import load_yaml
from tilewright.frontend.zigzag_workload import read_layer_texts
from tilewright.machine.library import load_machine
from tilewright.machine.machine import Machine
from tilewright.mapping.results import Effort
from tilewright.schedule.bounds import least_latency
from tilewright.schedule.costs import FEW, NodePrices
from tilewright.schedule.fabric import fabric_of
from tilewright.schedule.granularity import ROWS, CutNetwork, Cutter
from tilewright.schedule.network import OperationGraph, network_of_equations, network_of_graph
from tilewright.schedule.placement import placed
from tilewright.schedule.scheduling import EngineSchedule, NodeCosts, Priority
from tilewright.schedule.search import AllocationResult, Objective, choices, search, value

YAML = (".yaml", ".yml")
ROUNDS = 4
"""Of changes to all operations, at most."""
REFINED = "each by itself"
"""Among ways to cut a network: each operation in its own way."""


@dataclass(frozen=True)
class ScheduleOptions:
    """How networks are scheduled."""

    objective: Objective = "latency"
    split: Loops | Literal["auto"] = "auto"
    """What operations are cut along that the mapping leaves whole; `auto` tries several ways, takes the best and,
    without a mapping, changes it for one operation after another."""
    priority: Priority = "latency"
    evaluations: int = 1000
    """Allocations that are tried at most, for each way to cut the network."""
    seed: int = 0
    most_bits: int | None = None
    """Of an element; as wide as the network has them where it is None."""
    effort: Effort = FEW
    """Of the search for the mapping of each node."""


@dataclass(frozen=True)
class Scheduled:
    """A network's schedule, and how it was found."""

    schedule: EngineSchedule
    costs: NodeCosts
    search: AllocationResult
    splits: Mapping[str, OperationSplit]
    """By operation: how it is cut."""
    tried: Mapping[str, float]
    """By way to cut the network: what the objective comes to."""
    bound: int
    """Cycles that any allocation of these nodes takes at least."""


def find_many_core(machine: str | Path | Machine) -> Machine:
    """A machine by its name or file; accelerator files of Stream's are read as they are."""
    if isinstance(machine, Machine):
        return machine
    path = Path(machine)
    if path.suffix in YAML and path.is_file() and is_stream_machine(load_yaml(path)[0]):
        return read_stream_machine(path)[0]
    return load_machine(machine)


def read_operations(
    model: str | Path | Graph | OperationGraph,
    *,
    most_bits: int | None = None,
    dims: Mapping[str, int | tuple[int, int]] | None = None,
    input_types: Mapping[str, str] | None = None,
    constants: Mapping[str, Array] | None = None,
    max_bytes: int | None = None,
    states: Mapping[str, str] | None = None,
) -> OperationGraph:
    """The operations of an ONNX file, or of a YAML file of layers in ZigZag's form."""
    if isinstance(model, OperationGraph):
        return model
    if isinstance(model, str | Path) and Path(model).suffix in YAML:
        return network_of_equations(stem_of(Path(model)), read_layer_texts(Path(model))[0])
    return network_of_graph(recognised(model, dims, input_types, constants, max_bytes, states), most_bits)


def schedule_network(
    model: str | Path | Graph | OperationGraph,
    machine: str | Path | Machine,
    mapping: str | Path | StreamMapping | None = None,
    options: ScheduleOptions | None = None,
    *,
    progress: Observer = lambda _stage: None,
) -> Scheduled:
    """The best schedule that is found of a network on a machine with many engines."""
    chosen = options or ScheduleOptions()
    found = find_many_core(machine)
    fabric = fabric_of(found)
    network = read_operations(model, most_bits=chosen.most_bits)
    given = read_stream_mapping(Path(mapping))[0] if isinstance(mapping, str | Path) else mapping
    placement = placed(network, fabric, given)
    prices = NodePrices(found, fabric, chosen.objective, chosen.effort)
    cutter = Cutter(network, fabric, prices, placement.engines, chosen.priority, progress)
    best: tuple[CutNetwork, AllocationResult] | None = None
    tried: dict[str, float] = {}
    refused: TilewrightError | None = None
    for split in _splits(network, given, chosen):
        splits = placed(network, fabric, given, split).splits
        try:
            one = _searched(cutter, splits, chosen, progress)
        except TilewrightError as error:
            refused = refused or error
            continue
        tried[_said(split)] = value(one[0].tried, chosen.objective)
        if best is None or tried[_said(split)] < value(best[0].tried, chosen.objective):
            best = one
    if best is None:
        assert refused is not None
        raise refused
    if chosen.split == "auto" and mapping is None:
        best = _refined(cutter, best, chosen, progress)
        tried[REFINED] = value(best[0].tried, chosen.objective)
    cut, result = best
    return Scheduled(
        schedule=cut.scheduling.schedule(np.array(cut.tried.places, np.int64)),
        costs=cut.costs,
        search=result,
        splits=cut.splits,
        tried=tried,
        bound=least_latency(cut.scheduling.nodes, cut.costs, choices(cut.scheduling, cut.costs, cutter.engines)),
    )


def _searched(
    cutter: Cutter,
    splits: Mapping[str, OperationSplit],
    options: ScheduleOptions,
    progress: Observer,
    first: tuple[int, ...] = (),
) -> tuple[CutNetwork, AllocationResult]:
    scheduling, costs = cutter.scheduling(splits)
    found = search(
        scheduling,
        costs,
        choices(scheduling, costs, cutter.engines),
        options.objective,
        options.evaluations,
        options.seed,
        first=first,
        progress=lambda stage: progress(f"{scheduling.nodes.count:,} nodes: {stage}"),
    )
    return CutNetwork(splits, scheduling, costs, found.best), found


def _refined(
    cutter: Cutter, best: tuple[CutNetwork, AllocationResult], options: ScheduleOptions, progress: Observer
) -> tuple[CutNetwork, AllocationResult]:
    """Operations cut one by one, then allocated once more, as often as that helps."""
    for _ in range(ROUNDS):
        finer = cutter.refined(best[0], options.objective)
        if finer is best[0]:
            break
        best = _searched(cutter, finer.splits, options, progress, finer.tried.places)
    return best


def _said(split: Loops) -> str:
    return ", ".join(f"{name} {parts}" for name, parts in split) or "whole"


def _splits(network: OperationGraph, mapping: StreamMapping | None, options: ScheduleOptions) -> Iterator[Loops]:
    if options.split != "auto":
        yield options.split
        return
    yield ()
    entries = [mapping.entry(each.name, each.kind) for each in network.operations] if mapping else []
    if entries and all(entry.within for entry in entries):
        return
    parts = 2
    most = max((axes[2] for axes in _shapes(network) if len(axes) == 4), default=1)
    while parts < most:
        yield ((ROWS, parts),)
        parts *= 4
    if most > 1:
        yield ((ROWS, "all"),)


def _shapes(network: OperationGraph) -> Iterator[tuple[int, ...]]:
    return (network.tensors[access.tensor].shape for each in network.operations for access in each.writes)
