"""Moves and runs -> what is done in each group, in order: what is printed as C, and what the clock follows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from tilewright.core.moves import Move, Point, Run

Section = Literal["entry", "ahead", "before", "inside", "beside", "ending", "after", "behind", "exit"]
"""Before the loop; in a turn, what is done for later steps first, then before, beside and after its runs, of what is
beside them first what a run itself waits for, and for later steps last; behind the loop."""
MoveWhat = Literal[
    "stage", "staged", "load", "arrived", "prefetch", "prefetched", "store", "reuse", "hand on", "drain", "drain late"
]
"""A copy in a nearer memory is started or complete; so is the load of a step, and that of a first step in a group
before. The result of a step is stored, is complete where its slot is used again, is stored by a group behind; the last
one is complete in its own group or a later one."""
RunWhat = Literal["start", "await"]
"""A run of an engine beside the cores is started, or done."""
ORDER: Mapping[Section, tuple[MoveWhat | RunWhat, ...]] = {
    "entry": ("stage", "staged", "prefetched", "hand on"),
    "ahead": ("load", "arrived", "reuse", "start"),
    "before": ("load", "stage", "prefetch", "arrived", "reuse"),
    "beside": ("hand on", "store", "load", "arrived", "prefetched", "start", "stage", "prefetch"),
    "inside": ("prefetched", "await"),
    "ending": ("await", "hand on", "drain late", "prefetched"),
    "after": ("await", "store"),
    "behind": ("load", "await", "stage", "prefetch"),
    "exit": ("drain late", "prefetched", "drain"),
}
"""Of what is done in the same section."""
ENGINE_FIRST = ("load", "arrived", "prefetched", "start", "hand on", "store", "stage", "prefetch")
"""Beside the cores: an engine that stands still is started first."""


class MoveAction(Struct, frozen=True):
    """Something about a move."""

    what: MoveWhat
    point: Point
    move: Move


class RunAction(Struct, frozen=True):
    """Something about a run."""

    what: RunWhat
    point: Point
    run: Run


Action = MoveAction | RunAction


class GroupActions(Struct, frozen=True):
    """What is done in a group, and the runs of its nodes.

    What is done beside a turn for a later step is done ahead of it, too, where there is no such turn yet.
    """

    number: int
    runs: tuple[Run, ...]
    sections: dict[Section, list[Action]] = field(default_factory=dict[Section, list[Action]])

    @property
    def now(self) -> list[Run]:
        """Runs at the turn of their own step."""
        return [run for run in self.runs if run.start.side == "now"]

    @property
    def carriers(self) -> list[Run]:
        """Those beside which something is done at every turn."""
        return [run for run in self.now if run.carries]

    @property
    def furthest(self) -> int:
        """How many turns there are before that of the first step."""
        return max((_turns_before(action) for name in ("ahead", "behind") for action in self.at(name)), default=0)

    def at(self, section: Section) -> list[Action]:
        return self.sections.get(section, [])


def actions(count: int, moves: Sequence[Move], runs: Sequence[Run]) -> list[GroupActions]:
    """What is done in each of so many groups."""
    mine: list[list[Run]] = [[] for _ in range(count)]
    for run in runs:
        mine[run.group].append(run)
    found = [GroupActions(number, tuple(each)) for number, each in enumerate(mine)]
    for action in (*_of_moves(moves), *_of_runs(runs)):
        for section in _sections(action.point):
            found[action.point.group].sections.setdefault(section, []).append(action)
    filled = {move.group for move in moves if move.behind}
    for each in found:
        for section, done in each.sections.items():
            if len(done) > 1:
                _sort(section, done, stores_first=each.number in filled)
    return found


def _turns_before(action: Action) -> int:
    """At how many turns before that of the first step something is done: loads may begin with that of the second."""
    later = isinstance(action, MoveAction) and action.what == "load" and action.move.tiles == "rest"
    return -action.point.shift - later


def _of_moves(moves: Sequence[Move]) -> Iterator[Action]:
    for move in moves:
        if move.kind == "stage":
            yield MoveAction("stage", move.issue, move)
            yield MoveAction("staged", move.wait, move)
        elif move.kind == "load":
            yield MoveAction("prefetch" if move.tiles == "first" else "load", move.issue, move)
            yield MoveAction("prefetched" if move.tiles == "first" else "arrived", move.wait, move)
        else:
            yield MoveAction("store" if move.issue.group == move.group else "hand on", move.issue, move)
            if move.reuse is not None:
                yield MoveAction("reuse", move.reuse, move)
            if move.tiles in ("all", "last"):
                # Transfers before the last are awaited with it.
                yield MoveAction("drain" if move.wait.group == move.group else "drain late", move.wait, move)


def _of_runs(runs: Sequence[Run]) -> Iterator[Action]:
    for run in runs:
        if run.wait != run.start:
            yield RunAction("start", run.start, run)
            yield RunAction("await", run.wait, run)


def _sections(point: Point) -> tuple[Section, ...]:
    if point.turn == "entry" or point.turn == "exit":
        return (point.turn,)
    later = point.turn == "each" and point.shift < 0
    match point.side:
        case "before":
            return ("ahead",) if later else ("before",)
        case "beside":
            return ("ahead", "beside") if later else ("beside",)
        case "inside" | "ending":
            return (point.side,)
        case _:
            return ("behind",) if later or point.turn == "first" else ("after",)


def _sort(section: Section, done: list[Action], *, stores_first: bool) -> None:
    """Puts the actions of a section in order. Results are stored first where loads go to their bytes."""
    needed = {action.point for action in done if action.what == "start"}
    starts = section == "beside" and len(needed) > 0
    order = ENGINE_FIRST if starts and not stores_first else ORDER[section]

    def key(action: Action) -> tuple[int, int]:
        rank = order.index(action.what)
        if action.what == "load":
            # First what the engine needs, then loads for the cores and for steps behind.
            later = starts and (action.point.shift < -1 or action.move.wait not in needed)
            return (order.index("stage") if later else rank, action.point.shift)
        return rank, -action.move.group if action.what == "drain late" else 0

    done.sort(key=key)
