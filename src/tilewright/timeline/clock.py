"""One clock over the cores, other engines, DMAs and who drives them.

One core drives: in the order of its program it starts transfers and jobs, waits for them, and lets the cores work. All
others do what they are asked for, one thing after the other. So when each thing begins and ends follows from a single
walk through that program, without a queue of events.

Times are relative to the moment at which a turn of a loop begins, and multiples of 1/1024 cycle, so a state that comes
again is the same number for number: what follows from it is known already.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from math import inf
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

Kind = Literal["compute", "load", "store", "stage"]
Channel = tuple[int, int, int]
"""Group, buffer and slot of a transfer; -1, number and 0 of a copy in a nearer memory."""

CORES = ""
"""The lane of the cores, among those named after engines and DMAs."""
OUT = " out"
"""Behind the name of a DMA that copies both ways at once: the lane of its stores."""


class Bar(Struct, frozen=True):
    """Something that keeps the cores, an engine or a DMA busy for a while, in cycles."""

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


class Label(Struct, frozen=True):
    """What a bar says."""

    kind: Kind
    name: str
    ahead: int = 0
    """How many steps behind the turn it is for."""
    slot: int = 0
    bytes: int = 0


@dataclasses.dataclass(frozen=True)
class Issue:
    """The driver starts a transfer."""

    channel: Channel
    lane: str
    issue: float
    """Cycles of the driver, for all its commands."""
    cycles: float
    """Of the DMA, likewise."""
    latency: float = 0.0
    """From the request until it begins, where another core drives the DMA."""
    request: float = 0.0
    """Between the begins of two transfers, likewise."""
    passing: float = 0.0
    """Cycles of the driver, once it has arrived in the memory in between, until it is where it belongs."""
    label: Label = dataclasses.field(default=Label("load", ""), compare=False)
    commands: int = 1
    """Which the driver gives the DMA one by one, for a part each."""
    room: int = 0
    """How many commands its DMA takes before it begins them: who has one more waits for that. 0 where it takes all."""


class Wait(Struct, frozen=True):
    """The driver waits for the transfers of a channel; there may be none."""

    channel: Channel
    cycles: float
    """Of the driver, if they are complete."""
    wake: float = 0.0
    """Those that pass when they are, if it waits."""


@dataclasses.dataclass(frozen=True)
class Start:
    """The driver starts a job of an engine."""

    engine: str
    issue: float
    cycles: float
    label: Label = dataclasses.field(default=Label("compute", ""), compare=False)
    described: float = 0.0
    """Cycles of the driver before `issue`, which it spends before the waits that the job comes behind."""


class Await(Struct, frozen=True):
    """The driver waits for the jobs of an engine, or for those before the last start."""

    engine: str
    recent: bool
    cycles: float
    wake: float = 0.0
    ends: bool = False
    """Whether its group ends with it, but for waits for transfers: what the next group starts there first of all is
    started before."""


@dataclasses.dataclass(frozen=True)
class Work:
    """The cores work, and the driver does something else beside them; both end together."""

    cycles: float
    beside: tuple[Statement, ...]
    label: Label = dataclasses.field(default=Label("compute", ""), compare=False)


class Spend(Struct, frozen=True):
    """Cycles of the driver."""

    cycles: float


Statement = Issue | Wait | Start | Await | Work | Spend
Body = tuple[Statement, ...]

State = tuple[
    tuple[tuple[str, float], ...],
    tuple[tuple[str, float], ...],
    tuple[tuple[Channel, float, float], ...],
    tuple[tuple[str, float, float], ...],
    tuple[tuple[str, tuple[float, ...]], ...],
    Await | None,
    float,
]
"""When lanes are free, when requests may be made, when transfers are complete and what is left to do for them, when the
last jobs and those before them are, and when commands in queues begin: all from now on, and only what lies in the
future. Then the wait for an engine that a group ends with, where nothing has been done behind it yet, and for how long
the driver has done nothing but wait."""
START: State = ((), (), (), (), (), None, 0.0)


class Clock(Struct):
    """A machine at work."""

    slows: float = 0.0
    """Cycles that cores wait for memory in each cycle of an engine beside them."""
    bars: list[Bar] | None = None
    now: float = 0.0
    free: dict[str, float] = field(default_factory=dict[str, float])
    asked: dict[str, float] = field(default_factory=dict[str, float])
    done: dict[Channel, tuple[float, float]] = field(default_factory=dict[Channel, tuple[float, float]])
    jobs: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    queued: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    ended: Await | None = None
    idle: float = 0.0
    """For how long the driver has done nothing but wait."""
    owed: float | None = None
    """Cycles of what the group before ends with: its last wait, if that is not left to this one, and what describes the
    first job of this one. None as long as nothing but transfers is awaited."""
    busy: dict[str, float] = field(default_factory=dict[str, float])
    moved: dict[str, int] = field(default_factory=dict[str, int])

    def run(self, body: Sequence[Statement], step: int = 0) -> None:
        """Does one thing after the other."""
        for statement in body:
            ended, first = self.ended, self.owed is None and not isinstance(statement, Wait)
            waited = ended is not None
            if ended is not None and not isinstance(statement, Wait):
                self.ended = None
                if not (isinstance(statement, Start) and statement.engine == ended.engine):
                    self._await(ended)
                    ended = None
            if first:
                self.owed = self.now if waited else 0.0
            match statement:
                case Issue():
                    self._issue(statement, step)
                case Wait():
                    at, passing = self.done.pop(statement.channel, (-inf, 0.0))
                    self._wait(statement.cycles, at + statement.wake)
                    if passing:
                        self.now, self.idle = self.now + passing, 0.0
                case Work():
                    self._work(statement, step)
                case Start():
                    described = self._start(statement, step)
                    if first:
                        self.owed = (self.owed or 0.0) + described
                    if ended is not None:
                        # That is done behind the start, in the group that it is for.
                        self._await(replace(ended, recent=False))
                case Await(ends=True):
                    self.ended = statement
                case Await():
                    self._await(statement)
                case Spend():
                    self.now, self.idle = self.now + statement.cycles, 0.0

    def _wait(self, cycles: float, until: float) -> None:
        """Waits for something, which takes some cycles where it has been by then."""
        self.now += cycles
        self.idle += max(until - self.now, 0.0)
        self.now = max(self.now, until)

    def _issue(self, move: Issue, step: int) -> None:
        lane, count, room = move.lane, move.commands, move.room
        issue, cycles = exact(move.issue / count), exact(move.cycles / count)
        queue, first = self.queued.setdefault(lane, []), inf
        end = max(self.free.get(lane, 0.0), self.asked.get(lane, 0.0))
        self.idle = 0.0
        for _ in range(count):
            self.now += issue
            if room:
                self.now = max(self.now, queue[-room] if len(queue) >= room else 0.0)
                queue.append(max(self.now, end))
            begin = max(self.now + move.latency, end)
            first, end = min(first, begin), begin + cycles
        del queue[: -room or None]
        if move.request:
            self.asked[lane] = first + move.request
        self._busy(lane, first, end, move.cycles, step, move.label)
        before = self.done.get(move.channel, (0.0, 0.0))
        self.done[move.channel] = (max(end, before[0]), before[1] + move.passing)

    def _work(self, work: Work, step: int) -> None:
        begin = self.now
        shared = sum(min(max(last - begin, 0.0), work.cycles) for last, _ in self.jobs.values())
        end = begin + exact(work.cycles + self.slows * shared)
        self._busy(CORES, begin, end, end - begin, step, work.label)
        self.idle = 0.0
        self.run(work.beside, step)
        self._wait(0.0, end)

    def _start(self, job: Start, step: int) -> float:
        """Starts a job; the cycles to describe it for which there was no time while the driver waited."""
        last, before = self.jobs.get(job.engine, (0.0, 0.0))
        described = max(job.described - self.idle, 0.0)
        # An engine takes one job beside the one that it works on.
        self.now = max(self.now + described, before) + job.issue
        self.idle = 0.0
        begin = max(self.now, self.free.get(job.engine, 0.0))
        self._busy(job.engine, begin, begin + job.cycles, job.cycles, step, job.label)
        self.jobs[job.engine] = (begin + job.cycles, last)
        return described

    def _await(self, job: Await) -> None:
        last, before = self.jobs.get(job.engine, (-inf, -inf))
        self._wait(job.cycles, (last if job.recent else before) + job.wake)

    def _busy(self, lane: str, begin: float, stop: float, cycles: float, step: int, label: Label) -> None:
        self.free[lane] = stop
        self.busy[lane] = self.busy.get(lane, 0.0) + cycles
        self.moved[lane] = self.moved.get(lane, 0) + label.bytes
        if self.bars is not None and cycles > 0:
            self.bars.append(
                Bar(lane, label.kind, label.name, begin, stop, step + label.ahead, label.slot, label.bytes)
            )

    def leave(self) -> State:
        """What of now matters later, from now on."""
        now = self.now
        return (
            tuple(sorted((lane, at - now) for lane, at in self.free.items() if at > now)),
            tuple(sorted((lane, at - now) for lane, at in self.asked.items() if at > now)),
            tuple(sorted((c, max(at - now, 0.0), more) for c, (at, more) in self.done.items() if at > now or more)),
            tuple(
                sorted((e, last - now, max(before - now, 0.0)) for e, (last, before) in self.jobs.items() if last > now)
            ),
            tuple(
                sorted(
                    (lane, tuple(at - now for at in q if at > now)) for lane, q in self.queued.items() if q[-1:] > [now]
                )
            ),
            self.ended,
            self.idle,
        )


def arrived(state: State, slows: float = 0.0, bars: list[Bar] | None = None) -> Clock:
    """A clock that begins with what was left."""
    free, asked, done, jobs, queued, ended, idle = state
    return Clock(
        slows,
        bars,
        free=dict(free),
        asked=dict(asked),
        done={channel: (at, more) for channel, at, more in done},
        jobs={engine: (last, before) for engine, last, before in jobs},
        queued={lane: [*begins] for lane, begins in queued},
        ended=ended,
        idle=idle,
    )


class Passed(Struct, frozen=True):
    """What a turn, or a group, took, how long each lane was busy for it, and what it leaves."""

    cycles: float
    state: State
    busy: Mapping[str, float]
    moved: Mapping[str, int]
    owed: float | None = None
    """Of its cycles, the first ones, in which it did what the group before ends with."""


def passed(body: Sequence[Statement], state: State, slows: float) -> Passed:
    """Follows a turn."""
    clock = arrived(state, slows)
    clock.run(body)
    return Passed(clock.now, clock.leave(), clock.busy, clock.moved, clock.owed)


def exact(cycles: float) -> float:
    """A number of cycles with which sums are exact."""
    return round(cycles * 1024) / 1024
