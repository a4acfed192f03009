"""What the runs and moves of a group cost, and how groups have to do with each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct

from tilewright.core.actions import GroupActions, RunAction
from tilewright.core.plan import Group, Stage, TileBuffer
from tilewright.machine.parts import Device, Link
from tilewright.machine.target import Target
from tilewright.price.copies import route
from tilewright.price.grid import Array
from tilewright.price.tiles import Priced
from tilewright.price.transfers import Flow
from tilewright.timeline.clock import OUT
from tilewright.timeline.code import Kept


class Facts(Struct, frozen=True):
    """What of a group decides where its moves and runs can be."""

    steps: int
    reads: Mapping[int, int]
    """Buffers that are loaded, with the position of the first node that reads each."""
    stores: Mapping[int, int]
    """Buffers that are stored, with how often."""
    carriers: Sequence[int]
    """Positions of nodes that run at every step."""
    by_cores: frozenset[int]
    """Buffers that the cores copy, not a DMA."""
    engines: Sequence[str]
    """Of each node; "" for the cores."""
    awaits: frozenset[int] = frozenset()
    """Buffers that the only node awaits itself."""


class Moves(Struct, frozen=True, eq=False, dict=True):
    """All transfers of a buffer; lists of numbers are by class of steps."""

    flow: Flow
    dma: Link
    lane: str
    due: list[bool]
    """Whether there is one, by step."""
    slots: list[int]
    """Which slot is used, by step."""
    cycles: list[float]
    """Beside cores at work."""
    alone: list[float]
    issue: list[float]
    bytes: list[float]
    passing: list[float]
    """Of one that passes a memory on its way: cycles on the rest of it."""
    request: list[float]
    commands: list[float]

    @cached_property
    def count(self) -> int:
        return sum(self.due)


class Costs:
    """What the parts of a group cost at every step, whenever they run."""

    def __init__(self, platform: Target, group: Group, priced: Priced, source: Mapping[str, str]) -> None:
        self.platform, self.priced = platform, priced
        grid = priced.grid
        self.classes: list[int] = grid.path.tolist()
        """Of each step."""
        self.works = [self._each(priced, values) for values in priced.works]
        """Cycles of each node, by class."""
        self.starts = [self._each(priced, values) for values in priced.starts]
        """Of these, to start it."""
        self.engines: list[Device | None] = [platform.beside(kernel) for kernel in priced.kernels]
        """What computes each node, where that is not the cores."""
        tensors = [buffer.tensor for buffer in group.buffers]
        memories = {number: source.get(tensors[number], platform.cores.memory) for number in priced.flows}
        self.flows = {
            number: self._moves(priced, flow, group.buffers[number].slots, memories[number])
            for number, flow in priced.flows.items()
        }
        self.reads: dict[int, int] = {}
        """Buffers that are loaded, with the position of the first node that reads each."""
        for position, work in enumerate(group.works):
            for use in grid.members[position].uses:
                number = work.buffers.get(use.key, -1)
                if number in self.flows and not self.flows[number].flow.store:
                    self.reads.setdefault(number, position)
        self.writes = [number for number, moves in self.flows.items() if moves.flow.store]
        first = int(group.ahead and not group.queued)
        awaits = group.awaits(priced.kernels[0])
        others = {index for key, index in group.works[0].buffers.items() if key not in awaits}
        self.awaits = frozenset(self.reads.keys() - others) if awaits else frozenset[int]()
        """Buffers that the only node awaits itself."""
        self.carriers = [p for p in range(first, len(self.works)) if min(self.works[p]) > 0]
        """Nodes that are computed at every step, so that something can be done beside each."""
        slots = [moves.slots for moves in self.flows.values()]
        seen: dict[tuple[int, ...], int] = {}
        kinds = zip(self.classes, *slots, strict=True)
        self.kinds: list[int] = [seen.setdefault(kind, len(seen)) for kind in kinds]
        """What steps that are alike have in common."""

    @cached_property
    def facts(self) -> Facts:
        return Facts(
            self.steps,
            self.reads,
            {b: self.flows[b].count for b in self.writes},
            self.carriers,
            frozenset(b for b, moves in self.flows.items() if moves.dma.by_cores),
            ["" if engine is None else engine.name for engine in self.engines],
            self.awaits,
        )

    @property
    def steps(self) -> int:
        return len(self.classes)

    @staticmethod
    def _each(priced: Priced, values: Array) -> list[float]:
        return priced.grid.flat(values).tolist()

    def _moves(self, priced: Priced, flow: Flow, slots: int, memory: str) -> Moves:
        when = priced.grid.flat(priced.due(flow))[priced.grid.path]
        fills = np.cumsum(when) - (when if flow.store else 1)
        dma = route(self.platform, memory)[0]
        lane = dma.name
        if dma.through:
            slow = self.platform.link(self.platform.home, dma.through)
            lane = lane if slow is None else slow.name
        elif flow.store and dma.duplex:
            lane = f"{lane}{OUT}"
        far = flow.far
        nothing = flow.cycles * 0.0
        further = (nothing, nothing) if far is None else (far.passing, far.request)
        values = (flow.cycles, flow.alone, flow.issue, flow.bytes, *further, flow.commands)
        numbers = [self._each(priced, value) for value in values]
        return Moves(flow, dma, lane, when.tolist(), (fills % slots).tolist(), *numbers)


class CostedGroup(Struct, frozen=True, eq=False):
    """A group of a plan."""

    number: int
    group: Group
    costs: Costs
    names: tuple[str, ...]
    """Of its nodes."""

    @property
    def far(self) -> bool:
        """Whether something of it passes a memory on its way."""
        return any(moves.flow.far is not None for moves in self.costs.flows.values())

    def buffer(self, number: int) -> TileBuffer:
        return self.group.buffers[number]


class GroupPlace(Struct, frozen=True, eq=False):
    """A group among others."""

    part: CostedGroup
    parts: Sequence[CostedGroup]
    """All of them."""
    actions: GroupActions
    stages: Sequence[Stage]
    kept: Kept
    fetched: bool
    """Whether something came from the slow home before."""

    @property
    def key(self) -> tuple[object, ...]:
        """Places of which it is the same take as long where others leave the same, while what they cost is here."""
        sections = tuple((name, tuple(done)) for name, done in self.actions.sections.items())
        groups = dict.fromkeys(
            action.run.group if isinstance(action, RunAction) else action.move.group
            for _, done in sections
            for action in done
        )
        costs = (id(self.part.costs), *(id(self.parts[number].costs) for number in groups))
        return (self.part.number, self.actions.runs, sections, costs, id(self.stages), self.kept, self.fetched)
