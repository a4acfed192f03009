"""Small networks on a machine with scratchpads, and their groups walked step by step, without any shortcut."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

from tilewright.core.expr import Size
from tilewright.core.graph import Graph
from tilewright.core.matching import tile_names
from tilewright.core.op import call_node
from tilewright.core.plan import Choice, Group
from tilewright.core.tiles import Extent, Member, Region, Trace, hull, member, narrowed, region, trace
from tilewright.machine.kernel import formula
from tilewright.machine.parts import Link
from tilewright.machine.target import Sizes, Target, load_platform, resize
from tilewright.passes import run_pipeline
from tilewright.plan.select import select
from tilewright.price.tiles import OPERATIONS, SUM_CYCLES

SCRATCHPAD = load_platform("scratchpad")


def machine(cores: int = 8) -> Target:
    return resize(SCRATCHPAD, Sizes(cores=cores))


@dataclass(frozen=True)
class Network:
    """A lowered graph with the kernel of each node."""

    graph: Graph
    choices: tuple[Choice, ...]

    @property
    def source(self) -> Mapping[str, str]:
        return dict.fromkeys(self.graph.types, "L2")


def lowered(graph: Graph) -> Network:
    graph = run_pipeline(graph, SCRATCHPAD)
    return Network(graph, tuple(select(graph, node, SCRATCHPAD) for node in graph.nodes))


def whole(value: Size) -> int:
    assert isinstance(value, int)
    return value


def volume(region: Region) -> int:
    return prod(whole(part.size) for part in region)


@dataclass(frozen=True)
class Step:
    """One step of a group: where its loops stand, its trace, and what each buffer holds."""

    at: tuple[int, ...]
    trace: Trace
    blocks: tuple[Region, ...]


class Walk:
    """A group of a network, step by step."""

    def __init__(self, network: Network, platform: Target, group: Group) -> None:
        self.network, self.platform, self.group = network, platform, group
        nodes = [network.graph.nodes[work.step] for work in group.works]
        kernels = [network.choices[work.step].kernel for work in group.works]
        self.kernels = kernels
        self.members = [member(network.graph, n, k) for n, k in zip(nodes, kernels, strict=True)]
        self.calls = [call_node(network.graph, node) for node in nodes]
        self.inner = {m.output.tensor for m in self.members[:-1]}
        self.steps = list(self._steps())
        numbers = range(len(group.buffers))
        self.moves = [
            self._due({step.at: step.blocks[i] for step in self.steps}, last=self._stored(i)) for i in numbers
        ]
        self.runs = [self._due({s.at: s.trace.ranges[i] for s in self.steps}) for i in range(len(self.members))]

    def _steps(self) -> Iterator[Step]:
        for at in product(*(range(loop.count) for loop in self.group.loops)):
            found = trace(self.members, self.group.loops, self.group.keep, at)
            yield Step(at, found, tuple(self._block(found, index) for index in range(len(self.group.buffers))))

    def _due(self, values: Mapping[tuple[int, ...], object], *, last: bool = False) -> set[tuple[int, ...]]:
        """The steps at which loops inside the innermost one with which something moves stand at 0, or at their end."""
        inner = -1
        for at, value in values.items():
            for loop in range(len(at)):
                if value != values[(*at[:loop], 0, *at[loop + 1 :])]:
                    inner = max(inner, loop)
        ends = [loop.count - 1 if last else 0 for loop in self.group.loops]
        return {at for at in values if [*at[inner + 1 :]] == ends[inner + 1 :]}

    def _stored(self, buffer: int) -> bool:
        return any(self._writes(p, key) for p, key in self.uses(buffer))

    def uses(self, buffer: int) -> list[tuple[int, str]]:
        return [(p, key) for p, work in enumerate(self.group.works) for key, b in work.buffers.items() if b == buffer]

    def _block(self, found: Trace, buffer: int) -> Region:
        tensor = self.group.buffers[buffer].tensor
        if tensor in self.inner:
            return found.held[tensor]
        return tuple(Extent(e.start, e.stop) for e in hull([found.regions[p][key] for p, key in self.uses(buffer)]))

    # Bytes

    def element(self, buffer: int) -> int:
        return self.network.graph.types[self.group.buffers[buffer].tensor].dtype.bytes

    def room(self, buffer: int) -> int:
        """The bytes of the largest block that ever lies in a buffer."""
        return max(volume(step.blocks[buffer]) for step in self.steps) * self.element(buffer)

    # Cycles

    def cycles(self, source: Mapping[str, str]) -> tuple[float, int, int]:
        """Predicted cycles, bytes moved and points, summed over every single step."""
        total, moved, points, full = 0.0, 0, 0, 0.0
        for number, step in enumerate(self.steps):
            running = [i for i in range(len(self.members)) if step.at in self.runs[i]]
            compute = sum(self._compute(i, step) for i in running)
            points += sum(self._points(i, step) for i in running)
            single = loads = stores = 0.0
            for index, buffer in enumerate(self.group.buffers):
                if buffer.tensor in self.inner or step.at not in self.moves[index]:
                    continue
                store = self._stored(index)
                cost = self._transfer(index, step.blocks[index], source)
                moved += volume(step.blocks[index]) * self.element(index)
                if buffer.slots == 1 or len(self.moves[index]) == 1:
                    single += cost
                elif store:
                    stores += cost
                else:
                    loads += cost
            first, last = number == 0, number == len(self.steps) - 1
            full = stores if first else full
            # Beside the last step the results of the one before are stored.
            before = full if last and not first else 0.0
            total += single + max(compute, (0 if first else loads) + (0 if last else stores), before)
            total += (loads if first else 0) + (stores if last else 0)
        return total, moved, points

    def _writes(self, position: int, key: str) -> bool:
        return next(use.writes for use in self.members[position].uses if use.key == key)

    def _sizes(self, mine: Member, ranges: Mapping[str, Extent]) -> dict[str, int]:
        return {n: whole(ranges[n].size) if n in ranges else size for n, size in mine.domain.dims.items()}

    def _points(self, position: int, step: Step) -> int:
        return prod(self._sizes(self.members[position], step.trace.ranges[position]).values())

    def _compute(self, position: int, step: Step) -> float:
        work, mine = self.group.works[position], self.members[position]
        ranges: Mapping[str, Extent] = step.trace.ranges[position]
        extra = self._kept(position, step)
        if not work.split:
            return extra + self._part(position, step, ranges)
        extent = mine.domain.dims[work.split]
        parts = [narrowed(ranges, work.split, extent, work.chunk, core) for core in range(self.cores)]
        fork = next(iter(self.platform.engines.values())).fork
        return extra + fork + max(self._part(position, step, part) for part in parts)

    def _part(self, position: int, step: Step, ranges: Mapping[str, Extent]) -> float:
        """Cycles of one core."""
        work, mine, kernel = self.group.works[position], self.members[position], self.kernels[position]
        sizes = self._sizes(mine, ranges)
        if prod(sizes.values()) == 0:
            return 0.0
        results = prod(size for name, size in sizes.items() if name not in mine.domain.reduction)
        if kernel is not None:
            call = self.calls[position]
            names = tile_names(call, call.domain(), ranges) | self._around(mine, step.trace.ranges[position])
            sums = SUM_CYCLES * results if work.sums else 0.0
            return sums + float(formula(kernel.cycles, {k: v for k, v in names.items() if isinstance(v, (int, float))}))
        return prod(sizes.values()) * OPERATIONS["point"] + results * OPERATIONS["step"] * len(mine.node.epilogue)

    def _around(self, mine: Member, tile: Mapping[str, Extent]) -> dict[str, int]:
        """How far windows of a tile reach over the edges of its operands, and what all cores have of it together."""
        beyond = {
            f"{operand}_o{axis}": whole(part.before) + whole(part.after)
            for operand in mine.domain.access
            for axis, part in enumerate(region(mine.domain, operand, tile))
        }
        return beyond | {f"{name}_all": size for name, size in self._sizes(mine, tile).items()}

    def _kept(self, position: int, step: Step) -> float:
        tensor = self.members[position].output.tensor
        axis = self.group.keep.get(tensor)
        if axis is None:
            return 0.0
        held = step.trace.held[tensor]
        new = step.trace.regions[position][self.members[position].output.key]
        lines = whole(held[axis].size) - whole(new[axis].size)
        others = prod(whole(part.size) for i, part in enumerate(held) if i != axis)
        local = self.platform.link("L1", "L1")
        speed = 8.0 if local is None else local.bytes_per_cycle
        return lines * others * self.members[position].output.type.dtype.bytes / speed

    @property
    def cores(self) -> int:
        return next(iter(self.platform.engines.values())).count

    def _transfer(self, buffer: int, block: Region, source: Mapping[str, str]) -> float:
        position, key = self.uses(buffer)[0]
        use = next(use for use in self.members[position].uses if use.key == key)
        dma = self.platform.link(source[use.tensor], "L1")
        assert dma is not None
        amount = volume(block) * use.type.dtype.bytes
        return transfers(dma, block, use.type.shape) * dma.setup + amount / dma.bytes_per_cycle if amount else 0.0


def transfers(dma: Link, block: Region, shape: tuple[int, ...]) -> int:
    """Counts the transfers by listing the runs of bytes, then the rows and planes that they make."""
    counts: list[int] = []
    stride = reach = 1
    for part, extent in zip(reversed(block), reversed(shape), strict=True):
        size = whole(part.size)
        if size > 1:
            if counts and reach == stride:
                counts[-1] *= size
            elif not counts and stride == 1:
                counts.append(size)
            else:
                counts += ([1] if not counts else []) + [size]
            reach = size * stride
        stride *= extent
    return prod(counts[dma.rank :])
