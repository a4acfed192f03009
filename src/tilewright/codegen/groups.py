"""Groups -> routines: a loop over the steps of a group, with what is done at each turn, in order, beside its runs.

What is done when the plan says (`core.actions`); here it becomes statements under tests of the turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from tilewright.codegen.channels import Channels
from tilewright.codegen.early import described_early, queued_behind, started_first, transfers_first
from tilewright.codegen.joined import joined, lay_out
from tilewright.codegen.lowering import CORE, Lowering, index_name
from tilewright.codegen.naming import with_names
from tilewright.codegen.pieces import Pieces
from tilewright.codegen.roles import with_roles
from tilewright.core.actions import Action, GroupActions, MoveAction, RunAction, Section, actions
from tilewright.core.expr import Expr, Var
from tilewright.core.plan import Plan, Schedule
from tilewright.core.program import AwaitEngine, AwaitTransfers, For, If, Let, Mark, Release, Routine, Statement, Test
from tilewright.machine.parts import Device

STEP = "t"


def lowerings(plan: Plan, schedule: Schedule, pieces: Pieces, *, observed: bool = False) -> list[Lowering]:
    """The groups of a plan, on their way to routines."""
    channels = Channels(schedule.groups, schedule.moves)
    inside = {each.wait.group for each in (*schedule.moves, *schedule.runs) if each.wait.side == "inside"}
    return [
        Lowering(plan, schedule, index, group, pieces, channels, awaits=index in inside, observed=observed)
        for index, group in enumerate(schedule.groups)
    ]


def lower_groups(plan: Plan, schedule: Schedule, pieces: Pieces, *, observed: bool = False) -> tuple[Routine, ...]:
    """What runs, in order."""
    groups = lowerings(plan, schedule, pieces, observed=observed)
    lay_out(groups, schedule.moves)
    done = actions(len(groups), schedule.moves, schedule.runs)
    routines = [_Turns(groups, group, mine).routine() for group, mine in zip(groups, done, strict=True)]
    early = [name for name, engine in plan.platform.engines.items() if isinstance(engine, Device) and engine.early]
    ordered = transfers_first(with_roles(routines, plan.platform.engines[schedule.engine].memory))
    return joined(started_first(queued_behind(described_early(ordered, early), early)))


class _Turns(Struct, frozen=True):
    """A group among others."""

    groups: Sequence[Lowering]
    group: Lowering
    actions: GroupActions

    def routine(self) -> Routine:
        group = self.group
        nodes = [group.plan.graph.nodes[work.step] for work in group.group.works]
        what = ", ".join(f"{node.op} {node.label}" for node in nodes)
        tiles = "".join(f"; {loop.dim}: {loop.count} x {loop.size}" for loop in group.group.loops if loop.count > 1)
        loop = self._queue() if self._queued else self._pipeline()
        begin, end = (
            [s for action in self.actions.at(where) for s in self._done(action)] for where in ("entry", "exit")
        )
        body = (Mark(group.index, "begin"), *begin, *loop, Mark(group.index, "end"), *end)
        return Routine(f"group_{group.index}", f"{what}{tiles}", body)

    @property
    def _queued(self) -> bool:
        """Whether an engine has the next step's work before it is done with one."""
        return any(run.start.shift < run.wait.shift for run in self.actions.runs)

    # Turns of the loop over steps

    def _pipeline(self) -> list[Statement]:
        group, carriers, furthest = self.group, self.actions.carriers, self.actions.furthest
        inline, first, last = self._ahead(), [*self._inside(), *self._section("beside")], self._section("ending")
        now: list[Statement] = [Mark(group.index, "now"), *self._section("before")]
        for run in self.actions.now:
            now += group.work(run, [*(first if run in carriers[:1] else ()), *(last if run in carriers[-1:] else ())])
        now += self._section("after")
        turn = [*inline, *self._when(0, furthest if inline else 0, now)]
        own = [a for a in self.actions.at("ending") if isinstance(a, RunAction) and a.run.group == group.index]
        awaited = [s for action in own for s in self._done(action)]
        turn += self._before_first(1, awaited)
        turn += [s for action in self.actions.at("behind") for s in self._when(1, furthest, self._done(action))]
        return turn if group.steps == 1 else [For(STEP, -furthest if inline else 0, group.steps, tuple(turn))]

    def _inside(self) -> list[Statement]:
        """What the run of the group awaits itself."""
        found = self._section("inside")
        return [*found, Release(self.group.callers(self.actions.now[0].position))] if found else []

    def _queue(self) -> list[Statement]:
        """The same for an engine that works alone.

        A step's loads go where those of two steps before it were, so they are started when that one is done.
        """
        group, furthest = self.group, self.actions.furthest
        turn = [
            *self._when(0, furthest, [Mark(group.index, "now")]),
            *self._ahead(),
            *self._once(-1, [AwaitEngine(self.actions.runs[0].engine, recent=False)]),
            *self._when(0, furthest, [Mark(group.index, "work"), *self._section("after")]),
            *self._section("behind"),
        ]
        behind = [AwaitEngine(self.actions.runs[0].engine)] if self._awaited_behind else []
        return [For(STEP, -furthest, group.steps, tuple(turn)), *behind]

    @property
    def _awaited_behind(self) -> bool:
        """Whether the last step of a queue is awaited behind the loop: nothing is done with its results there."""
        return all(isinstance(action, RunAction) for action in self.actions.at("after"))

    def _ahead(self) -> list[Statement]:
        """What is done for later steps at the start of a turn; what is done beside turns, just for the first steps."""
        found: list[Statement] = []
        for chunk in _chunks(self.actions.at("ahead")):
            distance, beside = -chunk[0].point.shift, chunk[0].point.side == "beside"
            if beside:
                chunk = [action for action in chunk if not (distance == 1 and _rest(action))]
                found += self._before_first(distance, self._all(chunk, first=True))
            else:
                found += self._when(distance, self.actions.furthest, self._all(chunk, first=True))
        return found

    def _section(self, section: Section) -> list[Statement]:
        """What is done at a turn in which there is a step."""
        found: list[Statement] = []
        for chunk in _chunks(self.actions.at(section)):
            point, body = chunk[0].point, self._all(chunk, first=section != "beside")
            if point.turn != "each":
                found += self._once(0 if point.turn == "first" else self.group.steps - 1, body)
            elif point.shift:
                found += self._when(-point.shift, max(-point.shift, 0), body)
            else:
                found += [If((self._before_last(),), tuple(body))] if body and _but_last(chunk[0]) else body
        return found

    def _all(self, chunk: Sequence[Action], *, first: bool) -> list[Statement]:
        """Actions of the same turns; `first` says that some of these are for the first step."""
        found: list[Statement] = []
        for statement in (s for action in chunk for s in self._done(action, first=first)):
            # Transfers that are awaited together have one channel.
            if found[-1:] != [statement] or not isinstance(statement, AwaitTransfers):
                found.append(statement)
        ahead = -chunk[0].point.shift if chunk and chunk[0].what == "load" else 0
        return [Mark(self.group.index, "ahead", ahead), *found] if ahead and found else found

    def _done(self, action: Action, *, first: bool = True) -> list[Statement]:
        group, channels = self.group, self.group.channels
        if isinstance(action, RunAction):
            runs = self.groups[action.run.group]
            return runs.work(action.run) if action.what == "start" else self._awaited(action, runs)
        other, b = self.groups[action.move.group], action.move.buffer
        match action.what:
            case "stage":
                return [group.stage(b)]
            case "staged":
                return [AwaitTransfers(channels.stage(b))]
            case "load":
                load = group.load(action.move)
                return self._unless_first(-action.point.shift, load) if first and _rest(action) else load
            case "arrived" | "reuse":
                return other.awaited(b)
            case "prefetch":
                return replace(other, step="first").start(action.move)
            case "prefetched":
                return other.prefetched(b)
            case "store":
                return group.store(b, behind=action.point.shift)
            case "hand on":
                return replace(other, step="last").store(b)
            case "drain" | "drain late":
                return other.drained(b)

    def _awaited(self, action: RunAction, group: Lowering) -> list[Statement]:
        """Waits for a run of a group; the next step's may have been started meanwhile."""
        engine = action.run.engine
        if self._queued:
            before = If((self._before_last(),), (AwaitEngine(engine, recent=False),))
            last = [] if self._awaited_behind else self._once(group.steps - 1, [AwaitEngine(engine)])
            return [before, *last]
        position = action.run.position
        waited = [Mark(group.index, "await"), AwaitEngine(engine), *group.made(position)]
        return group.guarded(group.work_depth(position), waited)

    def _unless_first(self, distance: int, load: list[Statement]) -> list[Statement]:
        """The load of a later step, where that of the first one is started before the group."""
        now = Expr(((Var(STEP, -distance, self.group.steps - 1), 1),), distance)
        return [If((Test(now, ">", 0),), tuple(load))] if load else []

    def _now(self) -> Expr:
        return Expr(((Var(STEP, -self.actions.furthest, self.group.steps - 1), 1),))

    def _before_last(self) -> Test:
        return Test(self._now(), "<", self.group.steps - 1)

    def _once(self, step: int, body: list[Statement]) -> list[Statement]:
        """What is done at one step."""
        return [If((Test(self._now(), "==", step),), tuple(body))] if body and self.group.steps > 1 else body

    def _before_first(self, distance: int, body: list[Statement]) -> list[Statement]:
        """What is done for the first steps, at turns before theirs."""
        found = self._when(distance, self.actions.furthest, body)
        return [If((Test(self._now(), "<", 0),), tuple(found))] if found else []

    def _when(self, distance: int, furthest: int, body: list[Statement]) -> list[Statement]:
        """What is done at a turn for the step that lies `distance` steps ahead, where there is one."""
        group = self.group
        if group.steps == 1 or not body:
            return body
        now = Expr(((Var(STEP, -furthest, group.steps - 1), 1),), distance)
        lets: list[Statement] = []
        needed = group.names.needed(body)
        inner = group.steps
        for loop in group.group.loops:
            inner //= loop.count
            if loop.count > 1 and index_name(loop) in needed:
                # The tests below keep the step inside its range.
                low = max(-distance, 0)
                step = Expr(((Var(STEP, low, low + group.steps - 1), 1),), distance) // inner
                lets.append(Let(index_name(loop), step if inner * loop.count == group.steps else step % loop.count))
        tests = [Test(now, ">=", 0)] if distance < furthest else []
        tests += [Test(now, "<", group.steps)] if distance > 0 else []
        lets += [Let(name, value) for name, value in group.names.values(needed)]
        return [If(tuple(tests), (*lets, *with_names(_merged(body), CORE)))]


def _merged(statements: Sequence[Statement]) -> list[Statement]:
    """Neighbours under the same tests under one."""
    found: list[Statement] = []
    for statement in statements:
        last = found[-1] if found else None
        if isinstance(statement, If) and isinstance(last, If) and statement.tests == last.tests:
            found[-1] = If(last.tests, (*last.body, *statement.body))
        else:
            found.append(statement)
    return found


def _chunks(done: Sequence[Action]) -> list[list[Action]]:
    """Actions of the same turns, one behind the other."""

    def key(action: Action) -> tuple[object, ...]:
        return (action.point, action.what == "load", action.what == "hand on", _but_last(action))

    return [list(chunk) for _, chunk in groupby(done, key)]


def _rest(action: Action) -> bool:
    return isinstance(action, MoveAction) and action.move.tiles == "rest"


def _but_last(action: Action) -> bool:
    return isinstance(action, MoveAction) and action.what == "store" and action.move.tiles == "but last"
