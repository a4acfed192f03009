"""What a tiled plan costs, part by part, and when its parts run.

The prediction of a group comes from `price.tiles`. `replay` follows single steps of it as generated code runs them: a
turn first starts the transfers of later steps, as far ahead as buffers have slots, then waits for what this step needs,
computes, and starts to store the result. A DMA does one transfer after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, product
from math import exp, factorial, prod
from typing import Literal

from tilewright.core.graph import Graph
from tilewright.core.kernel import formula, named
from tilewright.core.plan import Choice, Group, Plan, Schedule, TileBuffer
from tilewright.core.platform import Platform
from tilewright.price.copies import copied, route
from tilewright.price.slow import Brought
from tilewright.price.tiles import Cost, Priced, Task, begin_cycles, priced, task
from tilewright.price.transfers import Flow

CORES = ""
"""The lane of the cores, among those named after DMAs."""

FAR_CODE = ("transfers",)
"""What runs for transfers by way of a memory in between, among the code of nodes."""

Kind = Literal["compute", "load", "store", "stage"]


@dataclass(frozen=True)
class Bar:
    """Something that keeps the cores or a DMA busy for a while, in cycles."""

    lane: str
    kind: Kind
    name: str
    """Of the node that is computed, or the tensor that is moved."""
    start: float
    stop: float
    step: int
    """Of the group; -1 for what belongs to all of them."""
    slot: int = 0
    bytes: int = 0


@dataclass(frozen=True, eq=False)
class Timed:
    """A group with its costs and when it runs."""

    index: int
    group: Group
    priced: Priced
    start: float
    source: Mapping[str, str]

    @property
    def stop(self) -> float:
        return self.start + self.group.cycles

    @cached_property
    def cost(self) -> Cost:
        return self.priced.cost

    @property
    def bound(self) -> Literal["compute", "DMA"]:
        """What would have to become faster for the group to become faster."""
        return "compute" if self.cost.compute >= self.cost.transfers else "DMA"


def timed_groups(plan: Plan, schedule: Schedule) -> tuple[Timed, ...]:
    """All groups, one behind the other."""
    found: list[Timed] = []
    start = 0.0
    for index, group in enumerate(schedule.groups):
        source = sources(plan, schedule, index)
        found.append(Timed(index, group, priced(plan.graph, plan.platform, plan.choices, group, source), start, source))
        start += group.cycles
    return tuple(found)


def held_up(
    platform: Platform, groups: Sequence[Group], costs: Sequence[Cost], source: Callable[[int, TileBuffer], str]
) -> list[float]:
    """Cycles by which loads for later groups make each group longer, given what these take by themselves.

    Such loads run one after the other beside the cores, and a group ends when those for the next one have arrived. What
    a group loads itself from its second step on waits for all that were started before. Cores wait for who starts them,
    and sees that they have arrived, where that takes longer than they work. `source` is the memory from which a group
    loads a buffer.
    """
    beside = platform.operations.get("transfer", 1.0)
    started: list[list[tuple[int, float]]] = [[] for _ in groups]
    starts, waits = [0.0] * len(groups), [0.0] * len(groups)
    for number, group in enumerate(groups):
        for buffer in group.buffers:
            if buffer.early:
                dmas = route(platform, source(number, buffer))
                cycles = sum(dma.setup + buffer.bytes / dma.bytes_per_cycle for dma in dmas) * beside
                started[number - buffer.early].append((number, max(cycles, sum(dma.issue for dma in dmas))))
                starts[number - buffer.early] += sum(dma.issue for dma in dmas)
                waits[number - 1] += platform.operations.get("seen", 0.0)
    arrive = platform.operations.get("arrive", 0.0)
    found: list[float] = []
    queue: list[tuple[int, float]] = []
    for number, cost in enumerate(costs):
        steps = prod(loop.count for loop in groups[number].loops)
        late = _late(steps, cost, queue, started[number])
        if steps * len(groups[number].works) == 1:
            late += max(starts[number] + waits[number] - cost.beside, 0.0)
        else:
            late += max(starts[number] - cost.beside, 0.0) + max(waits[number] - cost.behind, 0.0)
        queue += started[number]
        awaited = max([n + 1 for n, (target, _) in enumerate(queue) if target == number + 1], default=0)
        until = sum(cycles for _, cycles in queue[:awaited]) + arrive if awaited else 0.0
        found.append(late + max(until - cost.compute - late, 0.0))
        left = max(cost.cycles + found[-1] - cost.transfers, 0.0)
        while queue and queue[0][1] <= left:
            left -= queue.pop(0)[1]
        queue = [(target, cycles - left * (not n)) for n, (target, cycles) in enumerate(queue)]
    return found


def _late(steps: int, cost: Cost, before: Sequence[tuple[int, float]], started: Sequence[tuple[int, float]]) -> float:
    """Cycles that the cores wait for what their group loads, behind loads for later groups.

    Its second step's comes behind those that were started in groups before, its third step's behind those of its own
    first step.
    """
    if steps == 1 or not cost.transfers:
        return 0.0
    compute, own = cost.compute / steps, cost.transfers / steps
    usual = max(compute, own)
    second = max(sum(cycles for _, cycles in before) + own, compute) - usual
    # They are started during the first step: the rest of it, and the second one, pass until then.
    third = max(sum(cycles for _, cycles in started) - 1.5 * (usual - own), 0.0) if steps > 2 else 0.0
    return second + third


def repeated(
    graph: Graph, platform: Platform, choices: Sequence[Choice], groups: Sequence[Group], slow: Sequence[Brought]
) -> list[float]:
    """Cycles that each group saves as code is in the caches since an earlier one ran it: that of its nodes, and of
    transfers by way of a memory in between.
    """
    way = max((dma.cold for dma in platform.dmas.values()), default=0)
    line, own = platform.operations.get("line", 0.0), platform.operations.get("own", 0.0)
    found: list[float] = []
    ran: list[tuple[tuple[str, ...], float]] = []
    started = 0
    for number, (group, brought) in enumerate(zip(groups, slow, strict=True)):
        saved = 0.0
        if line and way and brought.any:
            saved += way * _kept(platform, FAR_CODE, ran, number - started)
            started = number
            ran.append((FAR_CODE, way / line))
        for work in group.works:
            node, kernel = graph.nodes[work.step], choices[work.step].kernel
            mine = task(graph, node, kernel)
            beside = platform.beside(kernel)
            begin = begin_cycles(platform, mine) if beside is None else beside.fork + beside.begin
            shared = kernel is not None and beside is None
            # A nest is code of its own. Kernels are compiled anew for each chain of steps behind them, and for parts.
            name = kernel.path.name if kernel is not None and shared else f"{number} {work.step}"
            cut = work is group.works[-1] and any(loop.dim in mine.member.domain.reduction for loop in group.loops)
            code = (name, _path(mine), *(step.op for step in node.epilogue), *(["sums"] * cut))
            cold = max(platform.operations.get(f"code {name}", begin) - own, 0.0)
            saved += cold * _kept(platform, code, ran) if cold else 0.0
            if line:
                ran.append((code, begin / line))
        found.append(saved)
    return found


def _path(mine: Task) -> str:
    """Which of the paths through its kernel a node takes."""
    if mine.kernel is None:
        return ""
    with named(mine.kernel, "path"):
        return str(formula(mine.kernel.path_taken, mine.known))


def _kept(
    platform: Platform, code: tuple[str, ...], ran: Sequence[tuple[tuple[str, ...], float]], groups: int = 0
) -> float:
    """The share of a kernel's code that is still in a cache, given what ran: its lines fall on sets at random.

    On the core that starts transfers, code of `groups` ran besides.
    """
    sets, ways = platform.operations.get("sets", 1.0), int(platform.operations.get("ways", 0.0))
    since: dict[tuple[str, ...], float] = {}
    for other, lines in reversed(ran):
        if other == code:
            load = (sum(since.values()) + groups * platform.operations.get("group", 0.0)) / sets
            return exp(-load) * sum(load**n / factorial(n) for n in range(ways))
        since[other] = lines
        if sum(since.values()) > 4 * sets * ways:
            break
    return 0.0


def sources(plan: Plan, schedule: Schedule, index: int) -> dict[str, str]:
    """The memory of every tensor that has a place, as a group finds it."""
    found = {name: schedule.memory(place) for name, place in plan.places.items()}
    for name in schedule.direct:
        found[name] = plan.platform.in_place
    staged = (stage for stage in schedule.stages if stage.first <= index <= stage.last)
    return found | {stage.tensor: stage.place.space for stage in staged}


def lanes(plan: Plan) -> tuple[str, ...]:
    """The cores, other engines and every DMA."""
    platform = plan.platform
    return (CORES, *(name for name, engine in platform.engines.items() if engine != platform.cores), *platform.dmas)


def _engine(plan: Plan, timed: Timed, position: int) -> str:
    """The lane in which a node of a group is computed."""
    beside = plan.platform.beside(plan.choices[timed.group.works[position].step].kernel)
    return CORES if beside is None else beside.name


def summary(plan: Plan, timed: Timed) -> tuple[Bar, ...]:
    """For each lane one bar from the group's start, as long as the lane is busy in all."""
    busy = dict.fromkeys(lanes(plan), 0.0)
    moved = dict.fromkeys(lanes(plan), 0)
    for position, works in enumerate(timed.priced.works):
        busy[_engine(plan, timed, position)] += timed.priced.total(works)
    computing = {lane for lane, cycles in busy.items() if cycles > 0}
    for number, flow in timed.priced.flows.items():
        due = timed.priced.due(flow)
        cycles, amount = timed.priced.total(flow.cycles * due), timed.priced.total(flow.bytes * due)
        for lane, share in _legs(plan, timed, number):
            busy[lane] += cycles * share
            moved[lane] += int(amount)
    return tuple(
        Bar(
            lane,
            "compute" if lane in computing else "load",
            "",
            timed.start,
            timed.start + cycles,
            -1,
            bytes=moved[lane],
        )
        for lane, cycles in busy.items()
        if cycles > 0
    )


def staging(plan: Plan, schedule: Schedule, groups: Sequence[Timed]) -> tuple[Bar, ...]:
    """Copies of tensors into nearer memories: begun with the group before which they are started, one by one."""
    found: list[Bar] = []
    free: dict[str, float] = {}
    for stage in schedule.stages:
        dma = plan.platform.dma(schedule.home, stage.place.space)
        if dma is not None:
            start = max(groups[stage.start].start, free.get(dma.name, 0.0))
            stop = free[dma.name] = start + copied(dma, [stage.bytes])
            found.append(Bar(dma.name, "stage", stage.tensor, start, stop, -1, bytes=stage.bytes))
    return tuple(found)


def _legs(plan: Plan, timed: Timed, buffer: int) -> list[tuple[str, float]]:
    """The DMAs that a buffer's transfers use, with the share of the time that each takes."""
    dmas = route(plan.platform, timed.source[timed.group.buffers[buffer].tensor])
    whole = sum(1 / dma.bytes_per_cycle for dma in dmas)
    return [(dma.name, 1 / dma.bytes_per_cycle / whole) for dma in dmas]


# Single steps


@dataclass
class _Clock:
    """When the cores and each DMA are free again, and what they did."""

    cores: float = 0.0
    dmas: dict[str, float] = field(default_factory=dict[str, float])
    """Other engines count here, too."""
    made: dict[int, float] = field(default_factory=dict[int, float])
    """When the first node is done with each step."""
    bars: list[Bar] = field(default_factory=list[Bar])

    def transfer(
        self, legs: Sequence[tuple[str, float]], cycles: float, kind: Kind, name: str, step: int, slot: int, amount: int
    ) -> float:
        """Starts a transfer behind those that its DMA has to do; returns when it is done."""
        now = self.cores
        for lane, share in legs:
            begin = max(now, self.dmas.get(lane, 0.0))
            now = self.dmas[lane] = begin + cycles * share
            if cycles > 0:
                self.bars.append(Bar(lane, kind, name, begin, now, step, slot, amount))
        return now


@dataclass(frozen=True, eq=False)
class _Traffic:
    """A tile buffer whose transfers are replayed."""

    flow: Flow
    name: str
    slots: int
    legs: list[tuple[str, float]]
    steps: list[int]
    """At which it is loaded or stored."""
    done: list[float]
    """When each transfer is complete."""


def replay(plan: Plan, timed: Timed, most: int) -> tuple[Bar, ...]:
    """The first steps of a group, bar by bar; cycles count from its start."""
    ways = list(islice(product(*(range(loop.count) for loop in timed.group.loops)), most))
    traffic = {number: _traffic(plan, timed, number, flow, ways) for number, flow in timed.priced.flows.items()}
    clock = _Clock()
    for step in range(len(ways)):
        _turn(plan, timed, traffic, clock, ways, step)
    return tuple(clock.bars)


def _compute(
    plan: Plan, timed: Timed, clock: _Clock, ways: Sequence[tuple[int, ...]], step: int, position: int
) -> float:
    """Computes a node as soon as its engine is free; returns when it is done."""
    cycles = timed.priced.grid.at(timed.priced.works[position], ways[step])
    node, lane = plan.graph.nodes[timed.group.works[position].step], _engine(plan, timed, position)
    start = max(clock.cores, clock.dmas.get(lane, 0.0))
    if cycles > 0:
        clock.bars.append(Bar(lane, "compute", node.label, start, start + cycles, step))
    if lane != CORES:
        clock.dmas[lane] = start + cycles
    if position == 0:
        clock.made[step] = start + cycles
    return start + cycles


def _traffic(plan: Plan, timed: Timed, number: int, flow: Flow, ways: Sequence[tuple[int, ...]]) -> _Traffic:
    buffer, due = timed.group.buffers[number], timed.priced.due(flow)
    steps = [step for step, way in enumerate(ways) if timed.priced.grid.at(due, way)]
    return _Traffic(flow, buffer.tensor, buffer.slots, _legs(plan, timed, number), steps, [])


def _turn(
    plan: Plan,
    timed: Timed,
    traffic: Mapping[int, _Traffic],
    clock: _Clock,
    ways: Sequence[tuple[int, ...]],
    step: int,
) -> None:
    def move(mine: _Traffic, kind: Kind, at: int) -> None:
        grid, flow = timed.priced.grid, mine.flow
        cycles, amount = grid.at(flow.cycles, ways[at]), int(grid.at(flow.bytes, ways[at]))
        slot = len(mine.done) % mine.slots
        clock.cores += grid.at(flow.issue, ways[at])
        mine.done.append(clock.transfer(mine.legs, cycles, kind, mine.name, at, slot, amount))

    loads = [mine for mine in traffic.values() if not mine.flow.store]
    stores = [mine for mine in traffic.values() if mine.flow.store]
    for mine in loads:
        current = sum(at <= step for at in mine.steps)
        while len(mine.done) < min(current + mine.slots - 1 + timed.priced.ahead, len(mine.steps)):
            move(mine, "load", mine.steps[len(mine.done)])
    if timed.group.ahead:
        for begun in range(step + (step > 0), min(step + 2, len(ways))):
            _compute(plan, timed, clock, ways, begun, 0)
    for mine in loads:
        current = sum(at <= step for at in mine.steps)
        clock.cores = max([clock.cores, *mine.done[:current]])
    for mine in stores:
        clock.cores = max([clock.cores, *mine.done[: len(mine.done) + 1 - mine.slots]])
    for position in range(len(timed.group.works)):
        if position or not timed.group.ahead:
            clock.cores = max(clock.cores, _compute(plan, timed, clock, ways, step, position))
        else:
            clock.cores = max(clock.cores, clock.made.get(step, 0.0))
    for mine in stores:
        if step in mine.steps:
            move(mine, "store", step)
            if mine.slots == 1:
                clock.cores = max(clock.cores, mine.done[-1])
