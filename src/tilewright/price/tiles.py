"""Predicted cycles, bytes moved and points computed of a group of nodes that runs tile by tile.

At a step the cores compute, and transfers of buffers with one slot wait for them and they for it; other transfers run
beside. So a step takes `single + max(compute, double)`, the first loads come before and the last store behind:

    loads of the first step + sum over steps of (single + max(compute, double)) + store of the last step

Transfers are in `price.transfers`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tilewright.core.graph import Graph
from tilewright.core.plan import Choice, Group, TileBuffer
from tilewright.core.tiles import Use, left, walked
from tilewright.machine.kernel import Kernel
from tilewright.machine.parts import Device
from tilewright.machine.target import Target
from tilewright.price.copies import kept_cycles
from tilewright.price.device import kernel_cycles
from tilewright.price.formulas import Names, evaluate
from tilewright.price.grid import Array, Box, Cut, Grid, Value, begins, ends
from tilewright.price.nests import nest_cycles
from tilewright.price.operations import begun, is_function
from tilewright.price.operations import cycles as operation_cycles
from tilewright.price.tasks import Task, step_names, task
from tilewright.price.transfers import (
    ALONE,
    Flow,
    Outside,
    Traffic,
    due,
    first_work,
    flow,
    in_place,
    moved,
    overlapped,
    scaled,
    traffic,
)

OPERATIONS = {"point": 4.0, "copy": 4.0, "term": 4.0, "step": 2.0}
"""Cycles of a point of a loop nest that no kernel covers and of a step behind it, where the platform does not say."""
NOTHING: Mapping[str, int] = MappingProxyType({})
SUM_CYCLES = 1.0
"""To add what one part of a reduction gives to the sum of others, per result."""


# Compute


def part_sizes(
    grid: Grid, position: int, split: str, chunk: Value, rest: Mapping[str, int] = NOTHING
) -> dict[str, Value]:
    """Sizes of the dimensions of the largest part that a core computes, over classes; `rest` has smaller ones."""
    ranges, dims = grid.projection.ranges[position], grid.members[position].domain.dims
    sizes: dict[str, Value] = {n: grid.size(ranges[n]) if n in ranges else size for n, size in dims.items()}
    sizes |= rest
    if split:
        sizes[split] = np.minimum(grid.over_classes(chunk), sizes[split])
    return sizes


def names_of(
    grid: Grid, position: int, mine: Task, sizes: Mapping[str, Value], whole: Collection[str] = (), split: str = ""
) -> Names:
    """Names for the kernel's cycles, over classes; operands of `whole` lie in their tensors."""
    ranges = grid.projection.ranges[position]

    def extent(operand: str, axis: int) -> Value:
        domain = mine.domain
        return grid.size(grid.extent(domain, domain.access[operand][axis], domain.shapes[operand][axis], ranges))

    def outside(operand: str, axis: int) -> tuple[Value, Value]:
        domain = mine.domain
        return grid.outside(domain, domain.access[operand][axis], domain.shapes[operand][axis], ranges)

    strided = walked(mine.member, mine.kernel)
    return Names(mine.domain, mine.known, sizes, extent, strided, split, outside, whole, mine.padding)


def asks_strides(mine: Task, operand: str) -> bool:
    """Whether cycles of a node depend on the strides of an operand: in its tensor or in a tile."""
    return mine.kernel is not None and f"{operand}_s" in mine.kernel.priced_by


def work_cycles(
    grid: Grid,
    platform: Target,
    position: int,
    mine: Task,
    split: str,
    chunk: Value,
    whole: Collection[str] = (),
    rest: Mapping[str, int] = NOTHING,
) -> Array:
    """Cycles of the slowest core at a step, over classes: it has the largest part, or what is left over for the last.

    Operands of `whole` have no buffers: they lie in the engine's memory. `rest` are sizes of dimensions of which some
    lies within the result already.
    """
    sizes = part_sizes(grid, position, split, chunk, rest)
    found = _part_cycles(grid, platform, position, mine, split, sizes, whole)
    total = part_sizes(grid, position, "", 0, rest)[split] if split else 1
    last = total - (np.maximum(total, 1) - 1) // np.maximum(sizes[split], 1) * sizes[split] if split else total
    if mine.kernel is None or not split or np.all(last == sizes[split]):
        return found
    rest_sizes, own = sizes | {split: last}, sizes[split]
    return np.maximum(found, _part_cycles(grid, platform, position, mine, split, rest_sizes, whole, part=own))


def _part_cycles(
    grid: Grid,
    platform: Target,
    position: int,
    mine: Task,
    split: str,
    sizes: Mapping[str, Value],
    whole: Collection[str],
    part: Value | None = None,
) -> Array:
    """Cycles of a part of a node, over classes."""
    points = grid.product(list(sizes.values()))
    reduced = set(mine.domain.reduction)
    results = grid.product([size for name, size in sizes.items() if name not in reduced])
    if mine.kernel is not None:
        names = kernel_names(grid, platform, position, mine, split, sizes, whole, part)
        found = kernel_cycles(platform, mine.kernel, lambda text: evaluate(text, names))
        if not (mine.kernel.terms or mine.kernel.keeps_sums):
            found = found + results * (names["SUMS"] * SUM_CYCLES + names["FUSED"])
        return np.where(points > 0, found, 0.0)
    ranges, costs = grid.projection.ranges[position], platform.operations or OPERATIONS
    return nest_cycles(grid, ranges, mine.call, mine.domain, mine.nest, sizes, split, costs)


def kernel_names(
    grid: Grid,
    platform: Target,
    position: int,
    mine: Task,
    split: str,
    sizes: Mapping[str, Value],
    whole: Collection[str],
    part: Value | None = None,
) -> Names:
    """All that the cycles of a part may ask for, over classes."""
    assert mine.kernel is not None
    names = names_of(grid, position, mine, sizes, whole, split)
    names.part = names.part if part is None else part
    names["PARTS"], names["OTHERS"] = 1 if split else platform.cores.count, platform.cores.count - 1
    if "FPU_OTHERS" in mine.kernel.priced_by:
        names["FPU_OTHERS"] = _fpu_others(grid, platform, position, mine.kernel, split, names.part)
    names["FIRST"], names["SUMS"] = begins(grid), _parts(grid, position)
    names["UNEVEN"] = grid.over_classes(grid.ragged * 1 + grid.uneven)
    behind, whole_sums = step_names(platform, mine), _whole(grid, position)
    names["LAST"] = whole_sums
    # Of parts of a reduction, only the last ones are scaled: others are words that are stored as they are.
    fused = np.where(whole_sums, behind["FUSED"], 0.0)
    if mine.kernel.terms:
        # Parts are added to what is there. Formulas in one count that by themselves.
        costs = platform.fused or platform.operations
        fused = fused + names["SUMS"] * (operation_cycles({"load": 1, "plain": 1}, costs) if costs else SUM_CYCLES)
    names.update({**behind, "STEPS": behind["STEPS"] * whole_sums, "FUSED": fused})
    if "_all" in mine.kernel.priced_by:
        # Sizes of the parts of all cores together.
        names.update({f"{name}_all": size for name, size in part_sizes(grid, position, "", 0).items()})
    return names


def _fpu_others(grid: Grid, platform: Target, position: int, kernel: Kernel, split: str, part: Value) -> Value:
    """How many cores that work share the unit of one of them, over classes."""
    if kernel.shared or not split:
        return platform.others_on_unit("fp", None if kernel.shared else 1)
    working = -(-np.asarray(part_sizes(grid, position, "", 0)[split]) // np.maximum(part, 1))
    others = [platform.others_on_unit("fp", number) for number in range(platform.cores.count + 1)]
    return np.array(others)[np.minimum(working, platform.cores.count).astype(int)]


def start_cycles(grid: Grid, platform: Target, mine: Task, split: str) -> Array:
    """Cycles to start a node at a step, over classes."""
    beside = platform.beside(mine.kernel)
    if beside is not None:
        return np.where(begins(grid), beside.fork + beside.begin, _next_cycles(grid, beside))
    # Formulas of kernels count their own call.
    nest: Mapping[str, float] = platform.operations if mine.kernel is None else {}
    tiled = np.asarray(grid.over_classes(grid.steps > 1))
    more = nest.get("operand", 0.0) * len(mine.member.uses) * tiled
    start = platform.cores.fork if split else nest.get("call", 0.0)
    return start + more + begins(grid) * begin_cycles(platform, mine)


def _next_cycles(grid: Grid, engine: Device) -> Array:
    """Cycles to start an engine's work at a further step, over classes."""
    return engine.fork + engine.turn + engine.uneven * np.asarray(grid.over_classes(grid.uneven))


def begin_cycles(platform: Target, mine: Task) -> float:
    """Cycles in which a node's code comes into the caches, where it is not there from other groups."""
    if mine.kernel is None:
        # Each operation is an instruction or two, each loop a line of code.
        called = {
            "begin nest": 1.0,
            "begin operation": sum(count for _, count in mine.nest.items),
            "begin function": sum(is_function(name) for name, _ in mine.nest.items),
            "begin loop": sum(size > 1 for size in mine.domain.dims.values()),
        }
        return operation_cycles(called, platform.operations)
    name = f"begin {mine.kernel.path.name}"
    own = platform.operations.get(name, platform.cores.begin)
    if mine.steps:
        # What is fused behind a node is compiled into several places of some kernels.
        own = platform.operations.get(f"{name} fused", own)
    return own + operation_cycles(begun(mine.steps), platform.fused)


def together(grid: Grid, platform: Target, works: Sequence[Array], *, ahead: bool) -> Array:
    """Cycles of all nodes at each step. With `ahead` the first one is a step ahead and runs beside the others."""
    if not ahead:
        return sum(works, np.zeros((1,) * grid.rank))
    first, others = works[0], sum(works[1:], np.zeros((1,) * grid.rank))
    slows = max(engine.slows for engine in platform.engines.values())
    slower = others + slows * np.minimum(first, others)
    return np.maximum(first, slower) + np.where(begins(grid), np.minimum(first, others), 0.0)


def queue_cycles(grid: Grid, engine: Device, work: Array, moves: Traffic) -> Array:
    """Cycles of all steps of a node that is alone on an engine, which has the next step's work before it is done.

    What it takes to start a step passes while the engine works on the one before. Only where transfers take longer it
    comes in between, with the waits for them and for the engine: what a step reads comes to where that of two steps
    before was, and so do results.
    """
    start = _next_cycles(grid, engine)
    jobs = np.where(begins(grid), work, np.maximum(work - start, start))
    between = start + (moves.moving + 1.0) * moves.waits.each
    return overlapped(grid, jobs, replace(moves, moving=moves.moving * 0.0), between)


def parted(grid: Grid) -> Value:
    """Tilings with which a reduction of the last node is cut into parts."""
    reduced = grid.members[-1].domain.reduction
    counts = [grid.counts[loop] for loop, cut in enumerate(grid.cuts) if cut.dim in reduced]
    return grid.product(counts) > 1 if counts else np.asarray(False)


def _whole(grid: Grid, position: int) -> Array:
    """Steps at which a node's reduction is complete, over classes."""
    found = np.ones((1,) * grid.rank, bool)
    if position < len(grid.members) - 1:
        return found
    for cut, edge in zip(grid.cuts, grid.last, strict=True):
        if cut.dim in grid.members[position].domain.reduction:
            found = found & edge
    return found


def _parts(grid: Grid, position: int) -> Value:
    """Where a node's reduction is cut into parts, over classes."""
    return grid.over_classes(parted(grid) if position == len(grid.members) - 1 else np.asarray(False))


def work_points(grid: Grid, position: int) -> Array:
    """Points that a node computes at a step, over classes."""
    return grid.product(list(part_sizes(grid, position, "", 0).values()))


# One group


class Cost(Struct, frozen=True):
    """What a group takes."""

    cycles: float
    moved: int
    """Bytes copied between the engine's memory and others."""
    macs: int
    """Points of all nodes, those computed twice included."""
    compute: float
    """Cycles of the cores alone."""
    transfers: float
    """Cycles of all transfers alone."""


class Priced(Struct, frozen=True, eq=False):
    """A group with what its parts cost at every step, over classes."""

    platform: Target
    grid: Grid
    works: tuple[Array, ...]
    """Cycles of each node; 0 at steps at which it is not computed anew."""
    starts: tuple[Array, ...]
    """Of these, to start it."""
    kernels: tuple[Kernel | None, ...]
    points: tuple[Array, ...]
    """What each node computes, likewise."""
    flows: Mapping[int, Flow]
    """Transfers of tile buffers, by their number."""
    ahead: bool = False
    """Whether the first node runs a step ahead, beside the others."""
    queue: Device | None = None
    """What has two steps at a time on their way."""

    @property
    def order(self) -> range:
        """Of loops: as the group has them."""
        return range(self.grid.rank)

    def due(self, flow: Flow) -> Array:
        """Steps at which a buffer is loaded or stored, over classes."""
        return due(self.grid, flow.moves, self.order, store=flow.store)

    def total(self, values: Array) -> float:
        """The sum over all steps."""
        return float(self.grid.total(values).sum())

    @property
    def lead(self) -> float:
        """Cycles until the first loads have arrived."""
        return float(self._moves.lead(self.grid).sum())

    @property
    def _moves(self) -> Traffic:
        return traffic(self.grid, [moved(self.grid, flow, self.due(flow)) for flow in self.flows.values()])

    @property
    def cost(self) -> Cost:
        nothing = np.zeros((1,) * self.grid.rank)
        compute = together(self.grid, self.platform, self.works, ahead=self.ahead)
        moves = self._moves
        if self.queue is None:
            cycles = overlapped(self.grid, compute, moves, first=first_work(self.works, ahead=self.ahead))
        else:
            cycles = queue_cycles(self.grid, self.queue, self.works[0], moves)
        return Cost(
            float(cycles.sum()),
            int(moves.moved.sum()),
            int(self.total(sum(self.points, nothing))),
            self.total(compute),
            self.total(sum((flow.cycles * self.due(flow) for flow in self.flows.values()), nothing)),
        )


def group_cost(
    graph: Graph, platform: Target, choices: Sequence[Choice], group: Group, source: Mapping[str, str]
) -> Cost:
    """Predicts a group. `choices` are those of all nodes of the graph, `source` the memory of each outside tensor."""
    return priced(graph, platform, choices, group, source).cost


def priced(
    graph: Graph,
    platform: Target,
    choices: Sequence[Choice],
    group: Group,
    source: Mapping[str, str],
    outside: Outside = ALONE,
) -> Priced:
    """What the parts of a group cost, but for what is done `outside` of it; other arguments as of `group_cost`."""
    tasks = [task(graph, graph.nodes[work.step], choices[work.step].kernel) for work in group.works]
    sink = tasks[-1].member.domain
    cuts = [Cut(loop.dim, sink.dims[loop.dim], (loop.size,)) for loop in group.loops]
    grid = Grid([t.member for t in tasks], cuts, group.keep, len(cuts) - 1)
    bound = _bound(grid, group)
    engine = platform.cores
    works: list[Array] = []
    starts: list[Array] = []
    points: list[Array] = []
    for position, (work, mine) in enumerate(zip(group.works, tasks, strict=True)):
        whole = {use.key for use in mine.member.uses if use.key not in work.buffers}
        rest = {name: stop - start for name, (start, stop) in left(mine.member, group.inlaid(work)).items()}
        start = start_cycles(grid, platform, mine, work.split)
        starts.append(start)
        cycles = start + work_cycles(grid, platform, position, mine, work.split, work.chunk, whole, rest)
        when = due(grid, grid.moves(tuple(grid.projection.ranges[position].values())), range(grid.rank))
        works.append(when * (cycles + kept_cycles(grid, platform, mine.member.output)))
        points.append(when * work_points(grid, position))
    flows: dict[int, Flow] = {}
    for index, use, box in bound:
        if group.buffers[index].within >= 0:
            # Its runs of bytes are as long as those in the result.
            use = replace(use, type=tasks[-1].member.output.type)
        found = flow(grid, platform, box, use, source.get(use.tensor, engine.memory), [t.kernel for t in tasks])
        if found.store and any(_meet(group.buffers[index], group.buffers[other]) for other, _, _ in bound):
            found = in_place(found)
        flows[index] = found if group.buffers[index].slots > 1 else replace(found, beside=found.beside & False)
        if index in outside.begun:
            flows[index] = scaled(flows[index], ~begins(grid))
        if index in outside.there:
            flows[index] = scaled(flows[index], np.zeros((1,) * grid.rank))
        if index in outside.ended:
            flows[index] = scaled(flows[index], ~ends(grid))
    queue = platform.beside(tasks[0].kernel) if group.queued else None
    kernels = tuple(t.kernel for t in tasks)
    ahead = group.ahead and queue is None
    return Priced(platform, grid, tuple(works), tuple(starts), kernels, tuple(points), flows, ahead, queue)


def _meet(a: TileBuffer, b: TileBuffer) -> bool:
    return a is not b and a.offset < b.end and b.offset < a.end


def _bound(grid: Grid, group: Group) -> list[tuple[int, Use, Box]]:
    """The buffers of tensors from outside, with what they hold."""
    found: dict[int, list[tuple[Use, Box]]] = {}
    for position, work in enumerate(group.works):
        for use in grid.members[position].uses:
            if use.key in work.buffers and use.tensor not in grid.projection.held:
                box = grid.projection.regions[position][use.key]
                found.setdefault(work.buffers[use.key], []).append((use, box))
    return [(index, uses[0][0], grid.hull([box for _, box in uses])) for index, uses in sorted(found.items())]
