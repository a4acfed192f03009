"""The validator of moves and runs: whatever is read has arrived, and nothing is written where it is still needed.

A point is a time: group, turn of the group's loop, and a rank in that turn. What is done beside runs takes until some
time later, so points have an earliest and a latest time. Steps that are alike are looked at once: it is enough to
follow the first few and the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import inf, prod

import numpy as np
from msgspec import Struct

from tilewright.core.moves import Move, Point, Run
from tilewright.core.plan import Schedule
from tilewright.plan.validator.groups import Opened

Time = tuple[int, float, int]
RANKS: Mapping[str, tuple[int, int]] = {
    "before": (1, 1),
    "now": (2, 4),
    "beside": (2, 3),
    "inside": (2, 3),
    "ending": (3, 4),
    "after": (5, 5),
}
"""In a turn; what is done for later steps comes before all else, or behind it."""


def times(point: Point, step: int, steps: int) -> tuple[Time, Time]:
    """The earliest and the latest time of what is done at a point for a step of a group of so many."""
    fixed = {"entry": -inf, "first": 0, "last": steps - 1, "exit": inf}
    turn = fixed.get(point.turn, step + point.shift)
    first, last = RANKS[point.side]
    later = point.turn == "each" and point.shift < 0
    if (later and point.side == "before") or (turn < 0 and point.side == "beside"):
        first = last = 0
    elif point.side == "after" and (later or point.turn == "first"):
        first = last = 6
    return (point.group, turn, first), (point.group, turn, last)


class MoveIndex(Struct, frozen=True, dict=True):
    """The moves and runs of a schedule, by what they are of."""

    schedule: Schedule
    groups: Sequence[Opened]

    @cached_property
    def _of(self) -> dict[tuple[int, int], list[Move]]:
        found: dict[tuple[int, int], list[Move]] = {}
        for move in self.schedule.moves:
            if move.kind != "stage":
                found.setdefault((move.group, move.buffer), []).append(move)
        return found

    def of(self, group: int, buffer: int) -> list[Move]:
        return self._of.get((group, buffer), [])

    def span(self, group: int, buffer: int) -> tuple[int, int]:
        """The groups from first to last between which a buffer is filled, worked on and emptied."""
        mine = self.of(group, buffer)
        return min([group, *(m.issue.group for m in mine)]), max([self.end(group), *(m.wait.group for m in mine)])

    def end(self, group: int) -> int:
        """The group by whose end all of a group is computed: another engine may do that beside later ones."""
        return max([group, *(run.wait.group for run in self._ran[group])])

    def steps(self, group: int) -> int:
        return prod(loop.count for loop in self.groups[group].group.loops)

    def issued(self, move: Move, step: int) -> tuple[Time, Time]:
        return times(move.issue, step, self.steps(move.issue.group))

    def awaited(self, move: Move, step: int) -> tuple[Time, Time]:
        return times(move.wait, step, self.steps(move.wait.group))

    def before(self, move: Move, group: int, position: int) -> bool:
        """Whether the last of a move is awaited before a node begins to run."""
        run = self._ran[group][position]
        last = self.steps(move.group) - 1
        return move.wait == run.start or self.awaited(move, last)[1] <= self._begun(run, 0)

    def problems(self) -> Iterator[str]:
        """What is wrong with moves and runs by themselves, then with what they read and write."""
        found = [*self._structure()]
        yield from found
        if not found:
            for opened in self.groups:
                yield from (f"group {opened.number}: {reason}" for reason in self._runs(opened))
                for index in range(len(opened.group.buffers)):
                    name = f"group {opened.number}: buffer {index} of '{opened.group.buffers[index].tensor}'"
                    yield from (f"{name} {reason}" for reason in self._buffer(opened, index))

    def _structure(self) -> Iterator[str]:
        """Moves are of buffers that there are, runs of nodes, and their points in groups that there are."""
        count = len(self.groups)
        for move in self.schedule.moves:
            buffers = self.schedule.stages if move.kind == "stage" else ()
            known = 0 <= move.group < count
            if known and move.kind != "stage":
                buffers = self.groups[move.group].group.buffers
            ends = [p.group for p in (move.issue, move.wait, move.reuse) if p is not None]
            if not known or not 0 <= move.buffer < len(buffers) or not all(0 <= end < count for end in ends):
                yield f"{move.kind} of buffer {move.buffer} of group {move.group}: there is no such buffer or group"
        runs = [(run.group, run.position) for run in self.schedule.runs]
        wanted = [(o.number, position) for o in self.groups for position in range(len(o.members))]
        if runs != wanted:
            yield f"{len(runs)} runs of {len(wanted)} nodes, or not in their order"
        for run in self.schedule.runs if runs == wanted else ():
            if run.start.group == run.wait.group == run.group:
                if run.start.turn != "each" or run.wait.turn != "each":
                    yield f"group {run.group}: node {run.position} does not run at each of its steps"
            else:
                yield from (f"group {run.group}: node {run.position} {reason}" for reason in self._later(run))

    def _later(self, run: Run) -> Iterator[str]:
        """What is wrong with a run beside later groups."""
        first, last = run.start.group, run.wait.group
        if not run.group < first <= last < len(self.groups):
            yield f"starts in group {first} and is awaited in group {last}"
            return
        if not run.engine or self.steps(run.group) > 1 or len(self.groups[run.group].members) > 1:
            yield f"runs beside group {first}, but is not all that another engine does, at once, for its group"
        waits = run.wait == Point(last, "last", "ending") or self.by_itself(last, run.wait)
        if run.start != Point(first, "first", "beside") or not waits:
            yield f"starts at {run.start} and is awaited at {run.wait}, not beside all of these groups"
        for end in {first, last}:
            others = [other for other in self._ran[end] if other.carries and not other.engine]
            if not others:
                yield f"runs beside group {end}, in which no core works at every step"

    def runs(self, group: int) -> list[Run]:
        return self._ran[group]

    @cached_property
    def _ran(self) -> list[list[Run]]:
        found: list[list[Run]] = [[] for _ in self.groups]
        for run in self.schedule.runs:
            found[run.group].append(run)
        return found

    def _sample(self, opened: Opened) -> Sequence[int]:
        """Steps of a group that all others are like."""
        steps = self.steps(opened.number)
        most = max((b.slots for b in opened.group.buffers), default=1) + 3
        return sorted({*range(min(steps, most)), steps - 1})

    def _runs(self, opened: Opened) -> Iterator[str]:
        """Nodes find what those before them have made, and leave it there until it is read."""
        for index, users in enumerate(opened.users):
            writer = next((p for p, use in users if use.writes), None)
            if opened.role(index) != "inner" or writer is None:
                continue
            tensor = opened.group.buffers[index].tensor
            readers = {p for p, m in enumerate(opened.members) for u in m.uses if u.tensor == tensor} - {writer}
            for reader in readers:
                yield from self._between(opened, index, writer, reader)

    def _between(self, opened: Opened, index: int, writer: int, reader: int) -> Iterator[str]:
        made, read = (self._ran[opened.number][position] for position in (writer, reader))
        slots, changes = opened.group.buffers[index].slots, _changes(opened, index)
        together = made.start.side == read.start.side == "now"
        if together and slots == 1:
            # One behind the other, at every step.
            return
        for step in self._sample(opened):
            if self._done(made, step) > self._begun(read, step) and not together:
                yield f"node {reader} reads buffer {index} before node {writer} has made it"
                return
            if step >= slots and changes and self._done(read, step - slots) > self._begun(made, step):
                yield f"node {writer} writes buffer {index} while node {reader} reads it"
                return

    def _begun(self, run: Run, step: int) -> Time:
        return times(run.start, step, self.steps(run.start.group))[0]

    def _done(self, run: Run, step: int) -> Time:
        return times(run.wait, step, self.steps(run.wait.group))[1]

    def _buffer(self, opened: Opened, index: int) -> Iterator[str]:
        if not opened.users[index][0][1].type.bytes:
            return
        match opened.role(index):
            case "input":
                yield from self._loaded(opened, index)
            case "output":
                yield from self._stored(opened, index)
            case _:
                if self.of(opened.number, index):
                    yield "is moved, but stays in the group"

    # Loads

    def _loaded(self, opened: Opened, index: int) -> Iterator[str]:
        """What a step reads has arrived, and goes where nothing is read any more."""
        moves = self.of(opened.number, index)
        kinds = sorted(move.tiles for move in moves if move.kind == "load")
        if len(kinds) != len(moves) or kinds not in ([], ["all"], ["first"], ["first", "rest"]):
            yield f"is an operand, but its moves are {', '.join(f'{m.kind} {m.tiles}' for m in moves)}"
        elif kinds == ["first"] and _changes(opened, index):
            yield "is loaded early, but changes from step to step"
        else:
            yield from (reason for move in moves for reason in self._load(opened, index, move))

    def _load(self, opened: Opened, index: int, move: Move) -> Iterator[str]:
        runs = [self._ran[opened.number][position] for position, _ in opened.users[index]]
        # What is the same at every step is loaded once.
        slots = opened.group.buffers[index].slots if _changes(opened, index) else inf
        for step in [0] if move.tiles == "first" else self._sample(opened):
            if move.tiles == "rest" and not step:
                continue
            (_, issued), (arrived, there) = self.issued(move, step), self.awaited(move, step)
            # At one point, loads are started first (`core.actions.ORDER`).
            if issued > arrived and move.issue != move.wait:
                yield f"is awaited at {move.wait} before its load starts at {move.issue}"
                return
            for run in runs:
                late = there > self._begun(run, step) and move.wait != run.start
                if late and not self._inside(opened, index, move):
                    yield f"is read at {run.start} before it is awaited at {move.wait}"
                    return
                if step >= slots and self._done(run, step - int(slots)) > self.issued(move, step)[0]:
                    yield f"is loaded at {move.issue} while node {run.position} reads what is there"
                    return
        yield from self._over(opened, index, move)

    def by_itself(self, group: int, wait: Point) -> bool:
        """Whether something is awaited by the only node of a group of one step, as its kernel may."""
        opened = self.groups[group]
        alone = self.steps(group) == 1 and len(opened.members) == 1 and not opened.group.works[0].split
        return alone and wait == Point(group, "last", "inside") and bool(opened.awaits)

    def _inside(self, opened: Opened, index: int, move: Move) -> bool:
        """Whether the only node that reads what is loaded awaits that itself."""
        keys = {use.key for _, use in opened.users[index]}
        return self.by_itself(opened.number, move.wait) and keys <= opened.awaits

    def _over(self, opened: Opened, index: int, move: Move) -> Iterator[str]:
        """What was stored from the bytes that are loaded to is awaited before."""
        buffers = opened.group.buffers
        mine = buffers[index]
        for other, buffer in enumerate(buffers):
            shared = buffer.offset < mine.end and mine.offset < buffer.end
            if shared and opened.role(other) == "output" and self.steps(opened.number) > 1:
                if other not in move.behind:
                    yield f"is loaded over buffer {other}, whose stores are not awaited"
                for store in self.of(opened.number, other):
                    late = store.tiles != "last" and -buffer.slots + store.issue.shift > move.issue.shift
                    if late and move.issue.turn == "each":
                        yield f"is loaded over buffer {other}, which is stored at {store.issue}"

    # Stores

    def _stored(self, opened: Opened, index: int) -> Iterator[str]:
        """All that is made is stored, and awaited before it is made anew."""
        moves, steps = self.of(opened.number, index), self.steps(opened.number)
        kinds = sorted(move.tiles for move in moves if move.kind == "store")
        alone = (["all"], ["last"]) if steps == 1 else (["all"], ["but last", "last"])
        if len(kinds) != len(moves) or kinds not in alone:
            yield f"is a result, but its moves are {', '.join(f'{m.kind} {m.tiles}' for m in moves) or 'none'}"
            return
        for move in moves:
            yield from self._store(opened, index, move)

    def _store(self, opened: Opened, index: int, move: Move) -> Iterator[str]:
        steps, slots = self.steps(opened.number), opened.group.buffers[index].slots
        run = self._ran[opened.number][-1]
        if move.tiles != "last" and self._stores(opened) > slots and move.reuse is None:
            yield "is written again, but what was stored from it is not awaited"
            return
        for step in [steps - 1] if move.tiles == "last" else self._sample(opened):
            if move.reuse is not None and step >= slots:
                again = times(move.reuse, step, steps)
                if again[1] > self._begun(run, step) or self.issued(move, step - slots)[1] > again[0]:
                    yield f"is written again at {run.start}, but what was stored is awaited at {move.reuse}"
                    return
            if move.tiles == "but last" and step == steps - 1:
                continue
            issued, stored = self.issued(move, step)
            # At one point, runs are awaited first.
            if self._done(run, step) > issued and (move.issue != run.wait or run.wait.turn != "last"):
                yield f"is stored at {move.issue} before node {run.position} is done with it"
                return
            if move.tiles != "but last" and stored > self.awaited(move, step)[0]:
                yield f"is awaited at {move.wait} before it is stored at {move.issue}"
                return

    def _stores(self, opened: Opened) -> int:
        """How many tiles leave a group."""
        reduced = opened.members[-1].domain.reduction
        return prod(loop.count for loop in opened.group.loops if loop.dim not in reduced)


def _changes(opened: Opened, index: int) -> bool:
    """Whether a buffer holds something else at another step."""
    return any(np.ptp(np.asarray(end)) for part in opened.blocks[index] for end in (part.start, part.stop))
