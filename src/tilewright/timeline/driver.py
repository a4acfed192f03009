"""What the core that drives takes for each of its statements: to start a transfer or a job, to wait for one.

Code that runs for the first time in a group comes from a far memory line by line. Later it is in the caches.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from tilewright.core.moves import Move, Point
from tilewright.core.plan import Stage
from tilewright.machine.parts import Device
from tilewright.machine.target import Target
from tilewright.price.copies import copied, far_wake, wait_cycles
from tilewright.timeline.clock import Await, Channel, Issue, Label, Start, Statement, Wait, Work, exact
from tilewright.timeline.parts import CostedGroup, GroupPlace

Code = tuple[str, int, int]
"""Where in the code of a group: what is done there, and for which group and buffer or node."""
FarCode = Literal["start", "end", "passing"]
"""Of a transfer by way of a memory in between: to ask for it, to see that it is done and send it on, and to send a
store on before that."""


class Driver:
    """The core that drives, in one group."""

    def __init__(self, place: GroupPlace, platform: Target) -> None:
        self._place, self._platform = place, platform
        self._ran: set[Code] = set()
        self._entered = False
        self._far_ran = set[FarCode]()
        self._far_now = set[tuple[FarCode, bool]]()
        self._awaited: tuple[int, Point, Point] | None = None
        """The channel that was awaited last, among those of loads before a group."""
        self.fresh = False
        """Whether some code was cold since the turn began."""

    def enter(self) -> None:
        """Begins a turn."""
        self.fresh = self._entered = False
        self._awaited = None
        self._far_now.clear()

    def _cold(self, code: Code) -> bool:
        """Whether code runs for the first time in the group."""
        if code in self._ran:
            return False
        self._ran.add(code)
        self.fresh = True
        return True

    @cached_property
    def _waits(self) -> tuple[float, float]:
        """Cycles to wait for what is complete, and once it is."""
        costs, wait = self._platform.operations, wait_cycles(self._platform)
        more = wait - costs.get("wait", 0.0)
        return wait, costs.get("wake", 0.0) + more / 2

    @cached_property
    def _far_wake(self) -> float:
        return far_wake(self._platform)

    def _waiting(self, code: Code, *, far: bool = False) -> tuple[float, float]:
        (wait, wake), costs, cold = self._waits, self._platform.operations, self._cold(code)
        before, behind = (costs.get(name, 0.0) if cold else 0.0 for name in ("cold wait", "cold wake"))
        return exact(wait + before), exact(self._far_wake if far else wake + behind)

    def arrived(self, move: Move) -> Statement:
        """Waits for what was loaded before its group. All that was started with it has one channel; of transfers by way
        of a memory in between each has to be sent on."""
        channel, shared = (move.group, move.buffer, 0), (move.group, move.issue, move.wait)
        near = self._place.parts[move.group].costs.flows[move.buffer].flow.far is None
        again = near and shared == self._awaited
        found = Wait(channel, 0.0) if again else self.wait(channel, "early arrived")
        self._awaited = shared
        return found

    def wait(self, channel: Channel, where: str) -> Statement:
        """Waits for the transfers of a channel."""
        self._awaited = None
        number, buffer, _ = channel
        far = number < 0 or self._place.parts[number].costs.flows[buffer].flow.far is not None
        return Wait(channel, *self._waiting((where, number, buffer), far=far))

    def sent_on(self, part: CostedGroup, buffer: int, step: int) -> Statement:
        """Waits for a load; what has come to the memory in between is sent on."""
        moves = part.costs.flows[buffer]
        channel = (part.number, buffer, moves.slots[step])
        if moves.flow.far is None:
            return self.wait(channel, "arrived")
        far = moves.flow.far
        own, share = self._far_code("end", ("arrived", part.number, buffer))
        before, behind = own + share * moves.dma.cold_wait, own + share * far.cold_end
        return Wait(channel, exact(far.wait + before), exact(far.wake + behind))

    def awaited(
        self, engine: Device, part: CostedGroup, position: int, *, recent: bool = True, ends: bool = False
    ) -> Statement:
        """Waits for jobs of an engine; a group `ends` with it where nothing else is done behind it."""
        return Await(engine.name, recent, *self._waiting(("await", part.number, position)), ends)

    def start(
        self, engine: Device, part: CostedGroup, position: int, step: int, cycles: float, label: Label, where: str
    ) -> Statement:
        """Starts a job."""
        costs = part.costs
        start = costs.starts[position][costs.classes[step]]
        # At the first step the price has all code of one place.
        code = start if step else start - engine.begin
        if part.group.is_ragged(step, costs.priced.grid.members[-1].domain.dims):
            where = f"{where} ragged"
        if self._cold((where, part.number, position)):
            code += engine.begin
        kernel = costs.priced.kernels[position]
        # One job, described once, is described before the waits that it comes behind (`codegen.early`).
        early = engine.early and costs.steps == 1
        single = kernel is not None and len(kernel.jobs) == 1
        described = exact(max(code - engine.go, 0.0)) if early and single else 0.0
        return Start(engine.name, exact(code) - described, exact(cycles - start), label, described)

    def move(
        self,
        part: CostedGroup,
        buffer: int,
        step: int,
        ahead: int,
        where: str,
        *,
        beside: bool,
        joins: bool = False,
    ) -> Statement:
        """Starts a transfer, beside cores at work or not; what joins the one before takes the DMA alone some time."""
        moves, at, mine = part.costs.flows[buffer], part.costs.classes[step], part.buffer(buffer)
        issue, far, store = moves.issue[at], moves.flow.far, moves.flow.store
        label = Label("store" if store else "load", mine.tensor, ahead, moves.slots[step], int(moves.bytes[at]))
        if moves.dma.by_cores:
            code = moves.dma.cold if self._cold(("copied", 0, 0)) else 0.0
            return Work(exact(moves.alone[at] + code), (), label)
        place, channel = (where, part.number, buffer), (part.number, buffer, moves.slots[step])
        if far is None and joins:
            cycles = moves.cycles[at] if beside else moves.alone[at]
            return Issue(channel, moves.lane, 0.0, exact(cycles - moves.dma.setup), label=label)
        if far is None:
            cold = self._cold(place)
            code = "further transfer" if self._entered else "first transfer"
            more = self._platform.operations.get(code, 0.0) if cold else 0.0
            self._entered = self._entered or cold
            cycles = moves.cycles[at] if beside else moves.alone[at]
            times = (exact(issue + more), exact(cycles))
            count = max(int(moves.commands[at]), 1)
            return Issue(channel, moves.lane, *times, label=label, commands=count, room=moves.dma.queue)
        own, share = self._far_code("start", place, store=store)
        code = own + share * far.cold
        if store:
            code += self._far_code("passing", place, store=True)[1] * moves.dma.cold_passing
        if self._cold(("first", 0, 0)) and not self._place.fetched:
            code += moves.dma.cold_start
        passing = 0.0 if store else moves.passing[at]
        lasts = (exact(moves.alone[at]), exact(far.latency), exact(moves.request[at]), exact(passing))
        times = (exact(issue + code), *lasts)
        return Issue(channel, moves.lane, *times, label)

    def _far_code(self, part: FarCode, place: Code, *, store: bool = False) -> tuple[float, float]:
        """Cycles of a place's own code, and the share of code for transfers by way of a memory in between that is in
        no cache: at the first one of a group what others left none of, then, turn by turn, what nodes took the
        place of."""
        own = self._platform.operations.get("further transfer", 0.0) if self._cold(place) else 0.0
        kept, ran, now = self._place.kept, part in self._far_ran, (part, store) in self._far_now
        self._far_ran.add(part)
        self._far_now.add((part, store))
        return own, 0.0 if now else kept.far_again if ran else 1 - kept.far

    def stage(self, number: int, stage: Stage) -> Statement:
        """Starts a copy in a nearer memory."""
        dma = self._platform.link(self._platform.home, stage.place.space)
        assert dma is not None
        own, share = self._far_code("start", ("stage", number, 0))
        issue = exact(dma.issue + own + share * dma.cold)
        cycles = copied(dma, [stage.bytes])
        label = Label("stage", stage.tensor, bytes=stage.bytes)
        times = (issue, exact(cycles), exact(dma.latency), exact(dma.request))
        return Issue((-1, number, 0), dma.name, *times, label=label)
