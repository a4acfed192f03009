"""Networks over the engines of a machine with many of them: nodes, their prices, an allocation and its schedule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np
from msgspec import Struct, field

from tilewright.api.compiling import Observer
from tilewright.api.costing import recognised
from tilewright.base.descriptions import stem_of
from tilewright.base.files import is_file
from tilewright.base.reader import Reader
from tilewright.core.graph import Array, Graph
from tilewright.core.split import Loops
from tilewright.errors import TilewrightError
from tilewright.frontend.stream_machine import is_stream_machine, read_stream_machine
from tilewright.frontend.stream_mapping import StreamMapping, read_stream_mapping
from tilewright.frontend.zigzag_machine import listed, load_yaml
from tilewright.frontend.zigzag_workload import read_layer_texts
from tilewright.machine.library import load_machine
from tilewright.machine.machine import Machine
from tilewright.mapping.results import Effort
from tilewright.schedule.bounds import least_energy, least_latency
from tilewright.schedule.costs import FEW, GivenCost, NodePrices, given_costs
from tilewright.schedule.exact import MOST_NODES, prove
from tilewright.schedule.fabric import fabric_of
from tilewright.schedule.granularity import LEAST, ROWS, UNIFORM, CutNetwork, Cutter, Granularity
from tilewright.schedule.network import OperationGraph, network_of_equations, network_of_graph
from tilewright.schedule.nodes import Nodes
from tilewright.schedule.placement import INSIDE, Hints, check_hints, placed
from tilewright.schedule.scheduling import EngineSchedule, NodeCosts, Priority, Rules
from tilewright.schedule.search import Objective, SearchOptions, Tried

YAML = (".yaml", ".yml")
REFINED = "each by itself"
"""Among ways to cut a network: each operation in its own way."""


class ScheduleOptions(Struct, frozen=True):
    """How networks are scheduled."""

    objective: Objective = "latency"
    split: Loops | Hints | Literal["auto"] = "auto"
    """What operations are cut along that the mapping leaves whole; `auto` tries several ways to cut all alike, takes
    the best and changes it for one operation after another."""
    priority: Priority = "latency"
    evaluations: int = 1000
    """Schedules that are evaluated at most, in all."""
    seed: int = 0
    limits: Mapping[Objective, float] = field(default_factory=lambda: MappingProxyType({}))
    """What must not be exceeded: cycles, picojoules, their product, bits of all memories of engines together."""
    workers: int = 1
    """Threads that evaluate schedules; what is found does not depend on it."""
    most_bits: int | None = None
    """Of an element; as wide as the network has them where it is None."""
    costs: Sequence[GivenCost] = ()
    """What nodes cost, where that is known; otherwise by the best mapping of each."""
    rules: Rules = "own"
    """How words and memory are counted."""
    prove: bool = False
    """Whether constraint programming is to raise the bound on latency, and to find a better order of the nodes, where
    they are few."""
    effort: Effort = FEW
    """Of the search for the mapping of each node."""


class Scheduled(Struct, frozen=True):
    """A network's schedule, and how it was found."""

    schedule: EngineSchedule
    costs: NodeCosts
    front: tuple[Tried, ...]
    """Of these nodes: what no other allocation that was tried beats, by increasing latency."""
    how: Granularity
    """How it is cut."""
    tried: Mapping[str, float]
    """By way to cut the network: what the objective comes to."""
    evaluated: int
    """Schedules."""
    exhaustive: bool
    """Whether all allocations of these nodes were evaluated."""
    stopped: bool
    """Whether it was interrupted, so that this is the best so far."""
    bound: int
    """Cycles that any allocation of these nodes takes at least."""
    energy_bound: float
    """Picojoules that it takes at least."""


def find_many_core(machine: str | Path | Machine) -> Machine:
    """A machine by its name or file; accelerator files of Stream's are read as they are."""
    if isinstance(machine, Machine):
        return machine
    path = Path(machine)
    if path.suffix in YAML and is_file(path) and is_stream_machine(load_yaml(path)[0]):
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
    data_folders: Sequence[Path] = (),
) -> OperationGraph:
    """The operations of an ONNX file, or of a YAML file of layers in ZigZag's form."""
    if isinstance(model, OperationGraph):
        return model
    if isinstance(model, str | Path) and Path(model).suffix in YAML:
        return network_of_equations(stem_of(Path(model)), read_layer_texts(Path(model))[0])
    graph = recognised(model, dims, input_types, constants, max_bytes, states, data_folders)
    return network_of_graph(graph, most_bits)


def read_costs(path: Path) -> tuple[GivenCost, ...]:
    """What nodes cost, from a file: a list of operations and engines."""
    found: list[GivenCost] = []
    for index, item in enumerate(listed(load_yaml(path)[0], path)):
        reader = Reader(path, item, f"[{index}]", "bad-mapping")
        found.append(
            GivenCost(
                reader.text("operation"),
                reader.text("engine"),
                reader.integer("cycles"),
                reader.number("energy"),
                reader.number("home_energy") if reader.has("home_energy") else 0.0,
                tuple(reader.names("streamed")) if reader.has("streamed") else (),
            )
        )
    return tuple(found)


def schedule_network(
    model: str | Path | Graph | OperationGraph,
    machine: str | Path | Machine,
    mapping: str | Path | StreamMapping | None = None,
    options: ScheduleOptions | None = None,
    *,
    progress: Observer = lambda _stage: None,
) -> Scheduled:
    """The best schedule that is found of a network on a machine with many engines. An interrupt (Ctrl-C) ends the
    search with the best one so far."""
    chosen = options or ScheduleOptions()
    found = find_many_core(machine)
    fabric = fabric_of(found)
    network = read_operations(model, most_bits=chosen.most_bits)
    given = read_stream_mapping(Path(mapping))[0] if isinstance(mapping, str | Path) else mapping
    placement = placed(network, fabric, given)
    if chosen.costs and chosen.split == "auto":
        raise TilewrightError(
            "bad-argument",
            "costs are given for nodes of one kind, but the network may be cut in any way",
            help="say how it is cut (--split), or leave the costs to the search for mappings",
        )
    prices = NodePrices(found, fabric, "energy" if chosen.objective == "memory" else chosen.objective, chosen.effort)

    def costs(nodes: Nodes) -> NodeCosts:
        if chosen.costs:
            return given_costs(nodes, fabric, chosen.costs)
        return prices.costs(
            nodes, placement.engines, progress=lambda stage: progress(f"{nodes.count:,} nodes: {stage}")
        )

    wanted = SearchOptions(chosen.objective, chosen.evaluations, chosen.seed, chosen.limits, chosen.workers)
    cutter = Cutter(network, fabric, costs, placement, wanted, rules=chosen.rules, progress=progress)
    tried: dict[str, float] = {}
    stopped = False
    try:
        _search(cutter, _ways(network, given, chosen), chosen, given, tried)
    except KeyboardInterrupt:
        stopped = True
        if cutter.best is None:
            raise
    best = cutter.best
    assert best is not None
    wanted.check(best.tried)
    allowed = cutter.choices(best.scheduling, best.costs)
    schedule = best.scheduling.schedule(np.array(best.tried.places, np.int64))
    bound = least_latency(best.scheduling.nodes, best.costs, allowed)
    if chosen.prove and not stopped:
        progress("constraint programming")
        schedule, bound = _proved(cutter, best, schedule, allowed)
    _check_home(schedule)
    return Scheduled(
        schedule=schedule,
        costs=best.costs,
        front=best.found.front if best.found else (best.tried,),
        how=best.how,
        tried=tried,
        evaluated=cutter.evaluated,
        exhaustive=bool(best.found and best.found.exhaustive),
        stopped=stopped,
        bound=bound,
        energy_bound=least_energy(best.scheduling.nodes, best.costs, allowed),
    )


def _check_home(schedule: EngineSchedule) -> None:
    """An error where the memory at home has no room for all that lies there."""
    store = next(each for each in schedule.fabric.stores if each.place == schedule.fabric.home)
    if (most := schedule.summary.peaks[store.name]) > store.bits:
        raise TilewrightError(
            "no-room",
            f"the network and what goes home for want of room take {most:,} bits of '{store.name}'",
            reasons=[f"it has {store.bits:,}"],
            help="make the memory at home larger",
        )


def _proved(
    cutter: Cutter, best: CutNetwork, schedule: EngineSchedule, allowed: Sequence[tuple[int, ...]]
) -> tuple[EngineSchedule, int]:
    """The schedule, or a better one with the order that constraint programming has, and a bound on its latency."""
    nodes = best.scheduling.nodes
    if nodes.count > MOST_NODES:
        raise TilewrightError(
            "too-large",
            f"{nodes.count:,} nodes are too many for a proof",
            help=f"cut the network into {MOST_NODES} nodes at most (--split), or leave out --prove",
        )
    proof = prove(nodes, cutter.fabric, best.costs, allowed, schedule.latency)
    if proof.order:
        try:
            found = cutter.ordered(best, proof.order).schedule(np.array(proof.places, np.int64))
        except TilewrightError:
            return schedule, proof.bound  # memories have no room for it
        tried = [
            Tried(proof.places, one.latency, one.energy, one.summary.memory(one.fabric)) for one in (found, schedule)
        ]
        if cutter.options.key(tried[0]) < cutter.options.key(tried[1]):
            schedule = found
    return schedule, proof.bound


def _search(
    cutter: Cutter,
    ways: Sequence[Hints],
    options: ScheduleOptions,
    mapping: StreamMapping | None,
    tried: dict[str, float],
) -> None:
    """All ways to cut operations alike, then one operation after another; `tried` says what they come to."""
    automatic = options.split == "auto"
    each = int(UNIFORM * options.evaluations) // len(ways) if automatic else options.evaluations
    refused: TilewrightError | None = None
    for hints in ways:
        splits = placed(cutter.network, cutter.fabric, mapping, hints).splits
        try:
            found = cutter.searched(Granularity(splits, priority=options.priority), max(each, LEAST))
        except TilewrightError as error:
            refused = refused or error
            continue
        tried[_said(hints)] = found.value(options.objective)
    if cutter.best is None:
        assert refused is not None
        raise refused
    if automatic:
        cutter.refined()
        tried[REFINED] = cutter.best.tried.value(options.objective)


def _said(hints: Hints) -> str:
    parts = (", ".join(f"{name} {parts}" for name, parts in loops) or "whole" for loops in hints.loops)
    return "; ".join(parts) + (" inside" if hints.mode == INSIDE else "")


def _ways(network: OperationGraph, mapping: StreamMapping | None, options: ScheduleOptions) -> list[Hints]:
    """To cut all operations alike."""
    if options.split != "auto":
        given = options.split if isinstance(options.split, Hints) else Hints((options.split,))
        check_hints(network, given)
        return [given]
    found = [Hints(((),))]
    entries = [mapping.entry(each.name, each.kind) for each in network.operations] if mapping else []
    if entries and all(entry.within for entry in entries):
        return found
    parts = 2
    most = max((axes[2] for axes in _shapes(network) if len(axes) == 4), default=1)
    while parts < most:
        found.append(Hints((((ROWS, parts),),)))
        parts *= 4
    if most > 1:
        found.append(Hints((((ROWS, "all"),),)))
    return found


def _shapes(network: OperationGraph) -> Iterator[tuple[int, ...]]:
    return (network.tensors[access.tensor].shape for each in network.operations for access in each.writes)
