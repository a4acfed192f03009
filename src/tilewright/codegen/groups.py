"""Groups -> routines: tile loops with DMA transfers that run ahead, kernel calls on every core, and kept lines.

A routine is one loop over the steps of a group. At each turn it waits for what this step needs and computes. Beside
that it stores the result of the step before, starts the transfers of later steps, as far ahead as the buffers have
slots, and what another engine computes for the next step. So are the last results of a group stored beside the first
step of the next one, and the first loads of later groups started.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.codegen.lowering import CORE, Lowering, index_name
from tilewright.codegen.naming import with_names
from tilewright.codegen.pieces import Pieces
from tilewright.codegen.roles import with_roles
from tilewright.core.expr import Expr, Var
from tilewright.core.plan import Plan, Schedule
from tilewright.core.program import Await, For, If, Let, Mark, Routine, Statement, Test, Wait

STEP = "t"


def lower_groups(plan: Plan, schedule: Schedule, pieces: Pieces) -> tuple[Routine, ...]:
    """What runs, in order."""
    groups = [Lowering(plan, schedule, index, group, pieces) for index, group in enumerate(schedule.groups)]
    routines = [
        _Order(tuple(groups[:index]), group, tuple(groups[index + 1 :])).routine() for index, group in enumerate(groups)
    ]
    return with_roles(routines, plan.platform.engines[schedule.engine].memory)


@dataclass(frozen=True)
class _Order:
    """A group between others."""

    earlier: tuple[Lowering, ...]
    group: Lowering
    later: tuple[Lowering, ...]

    @property
    def before(self) -> Lowering | None:
        return self.earlier[-1] if self.earlier else None

    @property
    def following(self) -> Lowering | None:
        return self.later[0] if self.later else None

    def routine(self) -> Routine:
        group = self.group
        nodes = [group.plan.graph.nodes[work.step] for work in group.group.works]
        what = ", ".join(f"{node.op} {node.label}" for node in nodes)
        tiles = "".join(f"; {loop.dim}: {loop.count} x {loop.size}" for loop in group.group.loops if loop.count > 1)
        arrived = [] if self.before is not None and self.before.carriers else group.early_arrived()
        turns = self._queue() if group.group.queued else self._pipeline()
        body = (Mark(group.index, "begin"), *group.staged(), *arrived, *turns)
        return Routine(f"group_{group.index}", f"{what}{tiles}", body)

    # What is done once

    @property
    def _gives_stores(self) -> bool:
        """Whether the last results are stored by the group behind."""
        return self.following is not None and self.group.hands_on and len(self.following.carriers) > 0

    def _handed_on(self) -> list[Statement]:
        """Stores the last results of the group before, where that has left it to this one."""
        takes = self.before is not None and self.before.hands_on and self.group.carriers
        return self.before.last_stores() if self.before is not None and takes else []

    def _at_first(self) -> list[Statement]:
        """What is started at the first step for later groups."""
        early = [s for distance, other in enumerate(self.later, 1) for s in other.early(distance)]
        return [*self.group.ahead(), *early]

    def _at_last(self) -> list[Statement]:
        """What is waited for at the last step."""
        return [*self._stored_late(), *(self.following.early_arrived() if self.following is not None else [])]

    def _stored_late(self) -> list[Statement]:
        """Waits for last results of groups before."""
        return [s for distance, other in enumerate(reversed(self.earlier), 1) for s in other.drain(distance)]

    # Turns of the loop over steps

    def _pipeline(self) -> tuple[Statement, ...]:
        group = self.group
        carried = bool(group.carriers)
        inline, soon, later = self._ahead()
        first = [*soon, *later]
        last: list[Statement] = []
        if group.group.ahead:
            last = self._when(1, 1, self._awaited())
        if carried:
            stores = [*self._once(0, self._handed_on()), *self._stored_behind()]
            # The other engine stands still until it is started. Only loads into bytes that are stored come behind that.
            behind = group.group.ahead and not group.in_place
            first = [*soon, *stores, *later] if behind else [*stores, *first]
            first += self._once(0, self._at_first())
            last += self._once(group.steps - 1, self._at_last())
        now: list[Statement] = [Mark(group.index, "now")]
        now += [s for b, mine in self._distances().items() if mine == 0 and not self._early(b) for s in group.load(b)]
        now += [] if carried else self._once(0, self._at_first())
        now += group.arrived([b for b in group.read if not self._leads(b) and not self._early(b)])
        now += self._freed()
        for position in range(int(group.group.ahead), len(group.members)):
            beside = first if carried and position == group.carriers[0] else []
            now += group.work(position, [*beside, *(last if carried and position == group.carriers[-1] else [])])
        now += self._stored()
        turn = [*inline, *self._when(0, self._furthest if inline else 0, now)]
        if group.group.ahead:
            end = self._awaited()
            turn += self._before_first(1, end) if carried else self._when(1, self._furthest, end)
        begin = -self._furthest if inline else 0
        loop = turn if group.steps == 1 else [For(STEP, begin, group.steps, tuple(turn))]
        ends = [] if carried else self._stored_late()
        return (*loop, Mark(group.index, "end"), *ends, *group.drain(0))

    def _queue(self) -> tuple[Statement, ...]:
        """The same for an engine that works alone: it always has the next step's work before it is done with one.

        A step's loads go where those of two steps before it were, so they are started when that one is done.
        """
        group, engine = self.group, self.group.choice(0).engine
        streams = [b for b in group.read if not self._early(b)]
        loads = [s for b in streams for s in self._unless_early(b, 2, group.load(b))]
        start = [*group.arrived(streams), *self._freed(), *group.work(0)]
        stores = [s for b, use in group.written.items() for s in group.store(b, use)]
        done: list[Statement] = [
            Mark(group.index, "work"),
            If((self._before_last(),), (Await(engine, recent=False),)),
            If(self._last(), (Await(engine),)),
            *([If((self._before_last(),), tuple(stores))] if self._gives_stores and stores else stores),
        ]
        turn = [
            *self._when(0, 2, [Mark(group.index, "now")]),
            *self._when(1, 2, start),
            *self._once(-1, [Await(engine, recent=False)]),
            *self._when(0, 2, done),
            *self._when(2, 2, [Mark(group.index, "ahead", 2), *loads] if loads else []),
            *self._once(0, self._at_first()),
        ]
        loop = For(STEP, -2, group.steps, tuple(turn))
        return (*self._handed_on(), loop, Mark(group.index, "end"), *self._at_last(), *group.drain(0))

    def _freed(self) -> list[Statement]:
        """Waits until what lies where a step's results go has been stored."""
        group = self.group
        full = [b for b in group.written if group.stores > group.group.buffers[b].slots]
        return group.guarded(group.outer - 1, [Wait(group.channel(b)) for b in full])

    def _leads(self, buffer: int) -> bool:
        """Whether it is read by a node that runs a step ahead."""
        return self.group.group.ahead and self.group.read[buffer][0] == 0

    def _early(self, buffer: int) -> bool:
        """Whether it is there before the group begins, and not loaded again."""
        mine = self.group.group.buffers[buffer]
        return mine.kept > 0 or (mine.early > 0 and mine.slots == 1)

    def _distances(self) -> dict[int, int]:
        """How many steps ahead each buffer is loaded."""
        group = self.group
        slots = {b: group.group.buffers[b].slots for b in group.read}
        return {b: slots[b] - 1 + self._leads(b) if group.steps > 1 else 0 for b in group.read}

    @property
    def _furthest(self) -> int:
        return 2 if self.group.group.queued else max([int(self.group.group.ahead), *self._distances().values()])

    def _ahead(self) -> tuple[list[Statement], list[Statement], list[Statement]]:
        """What is done for later steps: at the start of a turn, beside its computation, and behind that."""
        group, distances, buffers = self.group, self._distances(), self.group.group.buffers
        inline: list[Statement] = []
        beside: list[Statement] = []
        later: list[Statement] = []
        for distance in sorted({*distances.values()} - {0}, reverse=True):
            mine = [b for b, far in distances.items() if far == distance and not self._early(b)]
            loads = [s for b in mine for s in group.load(b)]
            turns = mine if distance > 1 or not self._driven(loads) else [b for b in mine if not buffers[b].early]
            first = [s for b in turns for s in self._unless_early(b, distance, group.load(b))]
            mark: list[Statement] = [Mark(group.index, "ahead", distance)]
            placed = self._placed(distance, [*mark, *first] if first else [], [*mark, *loads] if loads else [])
            inline += placed[0]
            # First what the other engine needs, then loads for steps behind.
            (later if group.group.ahead and distance > 1 else beside).extend(placed[1])
        if group.group.ahead:
            lead = [b for b in group.read if self._leads(b) and not self._early(b)]
            start = [*group.arrived(lead), *group.work(0)]
            placed = self._placed(1, start, start)
            inline += placed[0]
            beside += placed[1]
        return inline, beside, later

    def _placed(
        self, distance: int, first: list[Statement], body: list[Statement]
    ) -> tuple[list[Statement], list[Statement]]:
        """What is done so many steps ahead, at the start of a turn and beside it; `first` before the first step."""
        if self._driven(body):
            return self._before_first(distance, first), self._when(distance, distance, body)
        return self._when(distance, self._furthest, first), []

    def _driven(self, body: list[Statement]) -> bool:
        """Whether something for later steps is done beside a step."""
        return len(self.group.carriers) > 0 and self.group.steps > 1 and self.group.by_driver(body)

    def _unless_early(self, buffer: int, distance: int, load: list[Statement]) -> list[Statement]:
        """The load of a later step; that of the first one may have been started before the group."""
        if not self.group.group.buffers[buffer].early or not load:
            return load
        return [If((Test(Expr(((Var(STEP, -distance, self.group.steps - 1), 1),), distance), ">", 0),), tuple(load))]

    def _awaited(self) -> list[Statement]:
        group = self.group
        wait: list[Statement] = [Mark(group.index, "await"), Await(group.choice(0).engine)]
        return group.guarded(group.work_depth(0), wait)

    def _stored_behind(self) -> list[Statement]:
        """Stores what the step before has made."""
        group = self.group
        if not group.stores_behind or group.steps == 1:
            return []
        return self._when(-1, 0, [s for b, use in group.written.items() for s in group.store(b, use, behind=1)])

    def _stored(self) -> list[Statement]:
        """Stores what a step has made, where that is done at once."""
        group = self.group
        stores = [s for b, use in group.written.items() for s in group.store(b, use)]
        if group.steps == 1:
            return [] if self._gives_stores else stores
        final = self._last() if group.stores_behind else ()
        if self._gives_stores:
            return [] if group.stores_behind else [If((self._before_last(),), tuple(stores))]
        return [If(final, tuple(stores))] if final and stores else stores

    def _now(self) -> Expr:
        return Expr(((Var(STEP, -self._furthest, self.group.steps - 1), 1),))

    def _last(self) -> tuple[Test, ...]:
        return (Test(self._now(), "==", self.group.steps - 1),)

    def _before_last(self) -> Test:
        return Test(self._now(), "<", self.group.steps - 1)

    def _once(self, step: int, body: list[Statement]) -> list[Statement]:
        """What is done at one step."""
        return [If((Test(self._now(), "==", step),), tuple(body))] if body and self.group.steps > 1 else body

    def _before_first(self, distance: int, body: list[Statement]) -> list[Statement]:
        """What is done for the first steps, at turns before theirs."""
        found = self._when(distance, self._furthest, body)
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
