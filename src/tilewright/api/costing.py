"""What networks and layers cost on array machines, with the best mapping of each layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from tilewright.api.compiling import Observer
from tilewright.core.accelerator import ArrayEngine
from tilewright.core.array_file import load_machine
from tilewright.core.graph import Array, Graph
from tilewright.core.mapping import SpatialMapping
from tilewright.core.platform import DEFAULT_PLATFORM, load_platform
from tilewright.core.workload import Layer, Workload
from tilewright.core.workload_file import read_workload_file
from tilewright.cost.array import ArrayCost, evaluate
from tilewright.cost.layers import NetworkLayers, NodeLayers, narrow, network_layers
from tilewright.cost.locality import local_engines
from tilewright.errors import TilewrightError
from tilewright.frontend import load
from tilewright.mapping.allocate import allocate
from tilewright.mapping.best import BestResult, Job, best_mappings
from tilewright.mapping.goals import Objective, Wanted
from tilewright.mapping.search import Effort
from tilewright.mapping.wired import Unrolling, unrollings
from tilewright.passes import (
    batch_norm,
    dead_code,
    fold_constants,
    gelu,
    hard_swish,
    layer_norm,
    rms_norm,
    silu,
    simplify,
    softmax,
)
from tilewright.quantize import to_integers

Order = tuple[tuple[str, int | None], ...]
Machine = str | Path | ArrayEngine
RECOGNISING = (
    dead_code,
    fold_constants,
    simplify,
    layer_norm,
    rms_norm,
    softmax,
    gelu,
    silu,
    hard_swish,
    batch_norm,
    dead_code,
)
"""The passes that a network goes through before it is costed: constants are computed, and what exporters spell out is
one operator again. Passes that lay out and fuse for the compiler's machines are not among them: each operator is costed
as the network has it, under its own name."""


@dataclass(frozen=True)
class MapOptions:
    """How mappings are searched."""

    objective: Objective = "edp"
    unrolling: Unrolling = field(default_factory=Unrolling)
    order: Order = ()
    """Loops in time, innermost first, instead of a search; without steps: as many as are left."""
    wanted: Wanted = field(default_factory=Wanted)
    effort: Effort = field(default_factory=Effort)
    bits: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Of elements by slot (`final` of outputs), at most; otherwise what the machine's units take."""
    locality: bool = False
    """Whether results stay on chip until the next layer reads them, where they fit."""
    corrected: bool = False
    """Whether costs of the mappings found are put right where the model they are searched with is known to be wrong."""
    jobs: int = 1
    """Processes that search; results do not depend on it."""


@dataclass(frozen=True)
class Mapped:
    """A layer with a mapping and its cost, and what the search knows of all others."""

    cost: ArrayCost
    proved: bool
    """Whether no mapping is better, over the unrollings that were searched."""
    covered: int
    """Mappings that this holds for."""
    evaluated: int

    @property
    def layer(self) -> Layer:
        return self.cost.layer


@dataclass(frozen=True)
class NodeCost:
    """An operator of a network; a view has no layers and costs nothing."""

    name: str
    op: str
    layers: tuple[Mapped, ...]

    @property
    def energy(self) -> float:
        return sum(mapped.cost.energy for mapped in self.layers)

    @property
    def cycles(self) -> float:
        return sum(mapped.cost.cycles for mapped in self.layers)

    @property
    def operations(self) -> int:
        return sum(mapped.layer.operations for mapped in self.layers)


@dataclass(frozen=True)
class NetworkCost:
    """All operators of a network on one machine, one after another."""

    network: str
    machine: ArrayEngine
    nodes: tuple[NodeCost, ...]
    searched: int
    """Layers whose mapping was searched; equal ones are searched once."""
    narrowed: bool
    """Whether elements are wider than what the machine computes with, and were taken as narrow."""

    @property
    def layers(self) -> tuple[Mapped, ...]:
        return tuple(mapped for node in self.nodes for mapped in node.layers)

    @property
    def energy(self) -> float:
        """In picojoules."""
        return sum(node.energy for node in self.nodes)

    @property
    def cycles(self) -> float:
        return sum(node.cycles for node in self.nodes)

    @property
    def operations(self) -> int:
        return sum(node.operations for node in self.nodes)

    @property
    def product(self) -> float:
        """Energy times delay."""
        return self.energy * self.cycles

    @property
    def proved(self) -> bool:
        return all(mapped.proved for mapped in self.layers)


def read_network(
    model: str | Path | Graph | Workload | Layer,
    *,
    dims: Mapping[str, int] | None = None,
    input_types: Mapping[str, str] | None = None,
    constants: Mapping[str, Array] | None = None,
) -> NetworkLayers:
    """The layers of an ONNX file, of a YAML file of equations, or of what is one of these already."""
    if isinstance(model, Layer):
        model = Workload(model.name, (model,))
    if isinstance(model, str | Path) and Path(model).suffix in (".yaml", ".yml"):
        model = read_workload_file(Path(model))
    if isinstance(model, Workload):
        nodes = tuple(NodeLayers(layer.name, layer.kind, (layer.name,)) for layer in model.layers)
        return NetworkLayers(model, nodes)
    if not isinstance(model, Graph):
        model = load(Path(model), dims=dims or {}, input_types=input_types or {}, constants=constants or {})
    platform = load_platform(DEFAULT_PLATFORM)
    graph = to_integers(model, platform)
    for step in RECOGNISING:
        graph = step(graph, platform)
    return network_layers(graph)


def cost(
    model: str | Path | Graph | Workload | NetworkLayers | Layer,
    machine: Machine,
    options: MapOptions | None = None,
    *,
    progress: Observer = lambda _stage: None,
) -> NetworkCost:
    """What a network costs on a machine, every layer with the best mapping for it."""
    chosen = options or MapOptions()
    if chosen.objective == "pareto":
        raise TilewrightError(
            "bad-argument", "a network has one mapping for each layer", help="search one layer for its Pareto front"
        )
    network = model if isinstance(model, NetworkLayers) else read_network(model)
    engine = machine if isinstance(machine, ArrayEngine) else load_machine(machine)
    bits = chosen.bits or engine.precision
    layers = tuple(narrow(layer, bits) for layer in network.workload.layers)
    engines = local_engines(replace(network.workload, layers=layers), engine) if chosen.locality else {}
    tasks = [(layer, engines.get(layer.name, engine)) for layer in layers]
    found = _searched(tasks, chosen, progress)
    best = {layer.name: _renamed(mapped[0], layer) for (layer, _), mapped in zip(tasks, found, strict=True)}
    return NetworkCost(
        network=network.workload.name,
        machine=engine,
        nodes=tuple(NodeCost(n.name, n.op, tuple(best[name] for name in n.layers)) for n in network.nodes),
        searched=len({_key(layer, seen) for layer, seen in tasks}),
        narrowed=layers != network.workload.layers,
    )


def search(layer: Layer, machine: Machine, options: MapOptions | None = None) -> tuple[Mapped, ...]:
    """The best mapping of a layer, or for `pareto` all that no other one beats, by increasing latency."""
    return search_each([layer], machine, options)[0]


def search_each(
    layers: Sequence[Layer],
    machine: Machine,
    options: MapOptions | None = None,
    *,
    progress: Observer = lambda _stage: None,
) -> list[tuple[Mapped, ...]]:
    """The same for many layers; equal ones are searched once."""
    chosen = options or MapOptions()
    engine = machine if isinstance(machine, ArrayEngine) else load_machine(machine)
    bits = chosen.bits or engine.precision
    tasks = [(narrow(layer, bits), engine) for layer in layers]
    found = _searched(tasks, chosen, progress)
    return [tuple(_renamed(m, layer) for m in one) for one, (layer, _) in zip(found, tasks, strict=True)]


def _renamed(mapped: Mapped, layer: Layer) -> Mapped:
    """The result of an equal layer as this one's."""
    return mapped if mapped.layer is layer else replace(mapped, cost=replace(mapped.cost, layer=layer))


Task = tuple[Layer, ArrayEngine]
_Key = tuple[object, ...]


def _key(layer: Layer, engine: ArrayEngine) -> _Key:
    """What two layers have in common that cost the same."""
    operands = tuple((o.name, o.slot, o.dims, o.sums, o.bits, o.final_bits, o.density) for o in layer.operands)
    sums = tuple(sorted((name, *vars(found).values()) for name, found in layer.sums.items()))
    seen = tuple((memory.name, memory.slots) for memory in engine.memories)
    return tuple(layer.dims.items()), operands, sums, engine.name, seen


def _searched(tasks: Sequence[Task], options: MapOptions, progress: Observer) -> list[tuple[Mapped, ...]]:
    """The results of all tasks; equal ones are worked out once, by as many processes as wanted."""
    different = {_key(*task): task for task in reversed(tasks)}
    work = list(different.values())[::-1]
    if options.order:
        found = [(_fixed(layer, engine, options),) for layer, engine in work]
    elif options.jobs > 1:
        progress(f"{len(work)} layers")
        results = best_mappings([_job(task, options) for task in work], options.jobs)
        found = [_mapped(task, result, options) for task, result in zip(work, results, strict=True)]
    else:
        found: list[tuple[Mapped, ...]] = []
        for index, task in enumerate(work):
            progress(f"{index + 1}/{len(work)} {task[0].name}")
            found.append(_mapped(task, best_mappings([_job(task, options)])[0], options))
    by_key = {_key(*task): mapped for task, mapped in zip(work, found, strict=True)}
    return [by_key[_key(*task)] for task in tasks]


def _job(task: Task, options: MapOptions) -> Job:
    layer, engine = task
    _check_slots(layer, engine)
    ways = unrollings(layer, engine, options.unrolling)
    return Job(layer, engine, ways, options.objective, options.wanted, options.effort)


def _mapped(task: Task, result: BestResult, options: MapOptions) -> tuple[Mapped, ...]:
    layer, engine = task
    if not result.best:
        raise TilewrightError(
            "no-mapping", f"layer '{layer.name}' has no mapping on '{engine.name}' within the limits that were given"
        )
    costs = (evaluate(layer, engine, b.spatial, b.temporal, corrected=options.corrected) for b in result.best)
    return tuple(Mapped(cost, result.proved, result.covered, result.evaluated) for cost in costs)


def _check_slots(layer: Layer, engine: ArrayEngine) -> None:
    for operand in layer.operands:
        if not engine.levels(operand.slot):
            raise TilewrightError(
                "no-mapping",
                f"layer '{layer.name}': no memory of '{engine.name}' holds {operand.name} (operand {operand.slot})",
                help=f"its memories hold {', '.join(engine.slots)}",
            )


def _rank(found: ArrayCost, objective: Objective) -> tuple[float, float]:
    if objective == "latency":
        return found.cycles, found.energy
    if objective == "energy":
        return found.energy, found.cycles
    return found.product, found.cycles


def _fixed(layer: Layer, engine: ArrayEngine, options: MapOptions) -> Mapped:
    """A given order, each memory keeping what saves most; the best of the unrollings that it suits."""
    _check_slots(layer, engine)
    ways = unrollings(layer, engine, options.unrolling)
    found: list[ArrayCost] = []
    problems: list[TilewrightError] = []
    for spatial in ways:
        try:
            order = _complete(layer, spatial, options.order)
            temporal = allocate(layer, engine, spatial, order)
            found.append(evaluate(layer, engine, spatial, temporal, corrected=options.corrected))
        except TilewrightError as error:
            problems.append(error)
    if not found:
        raise problems[0]
    return Mapped(min(found, key=lambda c: _rank(c, options.objective)), False, len(found), len(found))


def _complete(layer: Layer, spatial: SpatialMapping, order: Order) -> tuple[tuple[str, int], ...]:
    """An order with steps for every loop; dimensions that it does not name run outermost."""
    left = spatial.steps(layer)
    loops: list[tuple[str, int]] = []
    for dim, steps in order:
        if dim not in layer.dims:
            raise TilewrightError(
                "unknown-dimension",
                f"the order names {dim}, which layer '{layer.name}' does not have",
                help=f"dimensions of this layer: {', '.join(layer.dims)}",
            )
        whole = left.get(dim, 1)
        taken = whole if steps is None else steps
        if whole % taken:
            raise TilewrightError(
                "bad-argument",
                f"the order gives {dim} {taken} steps, which do not divide the {whole} left in layer '{layer.name}'",
                help=f"unrolled is {spatial}",
            )
        left[dim] = whole // taken
        loops.append((dim, taken))
    loops += [(dim, steps) for dim, steps in left.items() if steps > 1]
    return tuple(loop for loop in loops if loop[1] > 1) or (next((d, 1) for d in layer.dims),)
