"""The best mapping of layers onto array machines, by exact search, by other strategies or in a given order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from tilewright.api.compiling import Observer
from tilewright.core.mapping import SpatialMapping, TemporalMapping
from tilewright.core.workload import Layer
from tilewright.errors import TilewrightError
from tilewright.machine.array import ArrayEngine, Arrays
from tilewright.machine.array_file import FINAL
from tilewright.machine.library import load_arrays
from tilewright.mapping.allocate import allocate
from tilewright.mapping.best import BestResult, MappingJob, best_mappings
from tilewright.mapping.goals import Objective, Wanted
from tilewright.mapping.pinned import Pinned, pinned_for
from tilewright.mapping.results import Effort
from tilewright.mapping.strategies import StrategyResult, loma, salsa
from tilewright.mapping.tables import Problem, problem
from tilewright.mapping.wired import Unrolling, unrollings
from tilewright.price.array import ArrayCost, evaluate
from tilewright.price.layers import narrow, thinned
from tilewright.price.memories import with_costs

SHORT = Effort(mappings=2000, steps=4000)
"""Some seconds for layers that resist a proof."""
Order = tuple[tuple[str, int | None], ...]
Machine = str | Path | ArrayEngine | Arrays
Strategy = Literal["exact", "loma", "salsa"]


class MapOptions(Struct, frozen=True):
    """How mappings are searched."""

    objective: Objective = "edp"
    unrolling: Unrolling = field(default_factory=Unrolling)
    order: Order = ()
    """Loops in time, innermost first, instead of a search; without steps: as many as are left."""
    wanted: Wanted = field(default_factory=Wanted)
    effort: Effort | None = None
    """When to stop before a proof; by default one layer is searched to the end, those of a network up to a limit."""
    strategy: Strategy = "exact"
    """How to search: to a proof, all orders of few factors, or by annealing; the last two for comparison."""
    factors: int = 6
    """Of loops, at most, for `loma`: the smallest are multiplied until there are so few."""
    seed: int = 0
    """Of `salsa`."""
    pinned: tuple[Pinned, ...] = ()
    """Mappings of some layers, which are taken as they are; others are searched."""
    bits: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Of elements by slot (`final` of outputs), at most; otherwise what the machine's units take."""
    density: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """The part of elements that is not zero, by operand or slot; otherwise what layers say themselves."""
    locality: bool = False
    """Whether results stay on chip until the next layer reads them, where they fit."""
    corrected: bool = False
    """Whether the model is put right where ZigZag's is known to be wrong."""
    jobs: int = 1
    """Processes that search; results do not depend on it."""


class Mapped(Struct, frozen=True):
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


def find_machine(machine: Machine) -> Arrays:
    """What a machine, by its name or file, or an engine of it maps layers onto, with energies and areas of memories
    where it leaves them to the model."""
    if isinstance(machine, ArrayEngine):
        machine = Arrays(machine.name, ((machine,),))
    found = machine if isinstance(machine, Arrays) else load_arrays(machine)
    return replace(found, engines=tuple(tuple(map(with_costs, modes)) for modes in found.engines))


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
    modes = find_machine(machine).modes
    tasks = [(as_wanted(layer, mode, chosen), mode) for mode in modes for layer in layers]
    found = best_of_each(tasks, chosen, progress)[0]
    return [_best(found[index :: len(layers)], chosen.objective) for index in range(len(layers))]


def _best(found: Sequence[tuple[Mapped, ...]], objective: Objective) -> tuple[Mapped, ...]:
    """Of what one mode of a machine gives or another, the best, or for `pareto` all that no other one beats."""
    if len(found) == 1:
        return found[0]
    every = sorted((mapped for each in found for mapped in each), key=lambda m: rank(m.cost, objective))
    if objective != "pareto":
        return (every[0],)
    front: list[Mapped] = []
    for mapped in sorted(every, key=lambda m: (m.cost.cycles, m.cost.energy)):
        if not front or mapped.cost.energy < front[-1].cost.energy:
            front.append(mapped)
    return tuple(front)


def as_wanted(layer: Layer, engine: ArrayEngine, options: MapOptions) -> Layer:
    """A layer with the bits and densities that are asked for."""
    return thinned(narrow(layer, options.bits or engine.precision), options.density)


Task = tuple[Layer, ArrayEngine]
_Key = tuple[object, ...]
Known = dict[_Key, tuple[Mapped, ...]]
"""What was found for layers of some shapes, on one machine with one set of options."""


def _shape(layer: Layer, engine: ArrayEngine, *, named: bool) -> _Key:
    """What layers have in common that have the same mappings at the same cost; names count where a user gave some."""
    place: dict[str, str | int] = {dim: dim if named else index for index, dim in enumerate(layer.dims)}

    def axis(name: str) -> _Key:
        found = layer.sums[name]
        return place[found.first], place[found.second], found.first_scale, found.second_scale, found.size

    operands = tuple(
        (o.slot, tuple(place[d] for d in o.dims), tuple(map(axis, o.sums)), o.bits, o.final_bits, o.density)
        for o in layer.operands
    )
    seen = tuple((memory.name, memory.slots) for memory in engine.memories)
    return tuple(place.values()), tuple(layer.dims.values()), operands, engine.name, seen


def _as(mapped: Mapped, layer: Layer, *, corrected: bool) -> Mapped:
    """The result of a layer of the same shape as this one's."""
    found = mapped.cost
    if found.layer is layer:
        return mapped
    dims = dict(zip(found.layer.dims, layer.dims, strict=True))
    names = {mine.name: its.name for mine, its in zip(found.layer.operands, layer.operands, strict=True)}
    if all(mine == its for mine, its in (dims | names).items()):
        return replace(mapped, cost=replace(found, layer=layer))
    unrolled = {a: tuple((dims[d], steps) for d, steps in loops) for a, loops in found.spatial.loops.items()}
    order = tuple((dims[d], steps) for d, steps in found.temporal.order)
    temporal = TemporalMapping(order, {names[name]: cuts for name, cuts in found.temporal.cuts.items()})
    return replace(mapped, cost=evaluate(layer, found.engine, SpatialMapping(unrolled), temporal, corrected=corrected))


def best_of_each(
    tasks: Sequence[Task], options: MapOptions, progress: Observer, known: Known | None = None
) -> tuple[list[tuple[Mapped, ...]], int]:
    """The results of all tasks, and how many were searched: layers of one shape once, those that are known not at all.

    What is found is added to what is known.
    """
    _check_names(tasks, options)
    given = [pinned_for(*task, options.pinned) for task in tasks]
    named = bool(options.order or options.unrolling.given)
    keys = [
        (_shape(*task, named=named or pinned is not None), pinned and options.pinned.index(pinned))
        for task, pinned in zip(tasks, given, strict=True)
    ]
    by_key: Known = {} if known is None else known
    different = dict(zip(reversed(keys), reversed(tasks), strict=True))
    work = {key: task for key, task in reversed(different.items()) if key not in by_key}
    by_key.update(zip(work, _results(list(work.values()), options, progress), strict=True))
    return [
        tuple(_as(mapped, layer, corrected=options.corrected) for mapped in by_key[key])
        for key, (layer, _) in zip(keys, tasks, strict=True)
    ], len(work)


def _check_names(tasks: Sequence[Task], options: MapOptions) -> None:
    """Whether something is meant by every name that a user gives."""
    slots = {slot for _, engine in tasks for slot in engine.slots}
    operands = {operand.name for layer, _ in tasks for operand in layer.operands}
    dims = {dim for layer, _ in tasks for dim in layer.dims}
    unrolled = [dim for _, loops in options.unrolling.given for dim, _ in loops]
    for code, what, names, known in (
        ("bad-argument", "bits", options.bits, slots | {FINAL}),
        ("bad-argument", "a density", options.density, slots | operands),
        ("unknown-dimension", "unrolled steps", unrolled, dims),
    ):
        for name in names:
            if name not in known:
                raise TilewrightError(
                    code,
                    f"{what} of '{name}': nothing has this name",
                    help=f"there are {', '.join(sorted(known))}",
                )
    if options.pinned and not any(pinned_for(*task, options.pinned) for task in tasks):
        raise TilewrightError(
            "bad-mapping",
            "none of the mappings that are given is for one of these layers",
            reasons=[f"a mapping is for layer '{each.layer}' on '{each.machine}'" for each in options.pinned[:5]],
            help=f"the layers are {', '.join(layer.name for layer, _ in tasks[:5])}",
        )


def _results(work: Sequence[Task], options: MapOptions, progress: Observer) -> list[tuple[Mapped, ...]]:
    """Of tasks that differ, in order."""
    if options.jobs > 1 and not options.order and not options.pinned and options.strategy == "exact":
        progress(f"{len(work)} layers")
        results = best_mappings([_job(task, options) for task in work], options.jobs)
        return [_mapped(task, result, options) for task, result in zip(work, results, strict=True)]
    found: list[tuple[Mapped, ...]] = []
    for index, task in enumerate(work):
        progress(f"{index + 1}/{len(work)} {task[0].name}")
        found.append(_result(task, options))
    return found


def _result(task: Task, options: MapOptions) -> tuple[Mapped, ...]:
    pinned = pinned_for(*task, options.pinned)
    if pinned is not None:
        mapping = pinned.read(*task, corrected=options.corrected)
        return (Mapped(evaluate(*task, *mapping, corrected=options.corrected), False, 1, 1),)
    if options.order:
        return (_fixed(*task, options),)
    if options.strategy != "exact":
        return (_tried(*task, options),)
    return _mapped(task, best_mappings([_job(task, options)])[0], options)


def _job(task: Task, options: MapOptions) -> MappingJob:
    layer, engine = task
    _check_slots(layer, engine)
    ways = unrollings(layer, engine, options.unrolling)
    effort = options.effort or Effort()
    return MappingJob(layer, engine, ways, options.objective, options.wanted, effort, options.corrected)


def _mapped(task: Task, result: BestResult, options: MapOptions) -> tuple[Mapped, ...]:
    layer, engine = task
    if not result.best:
        raise _beyond(task, options)
    costs = (evaluate(layer, engine, b.spatial, b.temporal, corrected=options.corrected) for b in result.best)
    return tuple(Mapped(cost, result.proved, result.covered, result.evaluated) for cost in costs)


def _beyond(task: Task, options: MapOptions) -> TilewrightError:
    """Says by how much limits are missed, as far as a short search without them can tell."""
    layer, engine = task
    wanted, reasons = options.wanted, list[str]()
    free = replace(options, wanted=Wanted(), effort=SHORT)
    (fast,), (frugal,) = (_result(task, replace(free, objective=objective)) for objective in ("latency", "energy"))
    if fast.cost.cycles > wanted.latency:
        reasons.append(f"the fastest takes {fast.cost.cycles:,.0f} cycles, not {wanted.latency:,.0f}")
    if frugal.cost.energy > wanted.energy:
        reasons.append(f"the most frugal takes {frugal.cost.energy:,.0f} pJ, not {wanted.energy:,.0f}")
    if fast.cost.utilisation < wanted.utilisation:
        reasons.append(f"the fastest uses {fast.cost.utilisation:.1%} of the units, not {wanted.utilisation:.1%}")
    return TilewrightError(
        "no-mapping",
        f"layer '{layer.name}' has no mapping on '{engine.name}' within the limits that were given",
        reasons=reasons or ["each limit can be kept, but not all of them together"],
        help="--objective pareto without limits shows what there is",
    )


def _check_slots(layer: Layer, engine: ArrayEngine) -> None:
    for operand in layer.operands:
        if not engine.levels(operand.slot):
            raise TilewrightError(
                "no-mapping",
                f"layer '{layer.name}': no memory of '{engine.name}' holds {operand.name} (operand {operand.slot})",
                help=f"its memories hold {', '.join(engine.slots)}",
            )


def rank(found: ArrayCost, objective: Objective) -> tuple[float, float]:
    """What is less of a better mapping."""
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
            temporal = allocate(layer, engine, spatial, order, corrected=options.corrected)
            found.append(evaluate(layer, engine, spatial, temporal, corrected=options.corrected))
        except TilewrightError as error:
            problems.append(error)
    if not found:
        raise problems[0]
    return Mapped(min(found, key=lambda c: rank(c, options.objective)), False, len(found), len(found))


def _tried(layer: Layer, engine: ArrayEngine, options: MapOptions) -> Mapped:
    """The best that another strategy finds."""
    _check_slots(layer, engine)
    if options.objective == "pareto":
        raise TilewrightError(
            "bad-argument",
            f"the strategy {options.strategy} finds one mapping, not a Pareto front",
            help="leave --strategy away, or choose another --objective",
        )
    strategies: dict[str, Callable[[Problem], StrategyResult]] = {
        "loma": lambda one: loma(one, options.objective, options.factors),
        "salsa": lambda one: salsa(one, options.objective, seed=options.seed),
    }
    found: list[tuple[ArrayCost, StrategyResult]] = []
    problems: list[TilewrightError] = []
    for spatial in unrollings(layer, engine, options.unrolling):
        try:
            result = strategies[options.strategy](problem(layer, engine, spatial, corrected=options.corrected))
        except TilewrightError as error:
            problems.append(error)
            continue
        cost = evaluate(layer, engine, spatial, result.best.mapping, corrected=options.corrected)
        found.append((cost, result))
    if not found:
        raise problems[0]
    best = min((cost for cost, _ in found), key=lambda c: rank(c, options.objective))
    tried, evaluated = sum(r.tried for _, r in found), sum(r.evaluated for _, r in found)
    return Mapped(best, False, tried, evaluated)


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
