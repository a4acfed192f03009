"""What generated code does, in its order, with what each statement takes of who drives: turn by turn of a group's loop.

`codegen.groups` prints the same turns as C.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from tilewright.core.actions import Action, MoveAction, RunAction, Section
from tilewright.core.moves import Run
from tilewright.timeline.clock import Body, Label, Spend, Statement, Work, exact
from tilewright.timeline.driver import Driver
from tilewright.timeline.parts import GroupPlace


class Turns:
    """The turns of a group's loop."""

    def __init__(self, place: GroupPlace) -> None:
        self._place, self._part, self._actions = place, place.part, place.actions
        self._costs = place.part.costs
        self._driver = Driver(place, self._costs.platform)
        self._known: dict[object, Body] = {}

    @property
    def before(self) -> Body:
        """Before the loop."""
        network = self._costs.platform.operations.get("network", 0.0)
        begun: list[Statement] = [] if self._part.number else [Spend(network)]
        return (*begun, *self._section("entry", 0))

    @property
    def behind(self) -> Body:
        """Behind the loop, into which nothing that comes behind it is moved."""
        looped: list[Statement] = [Spend(0.0)] if self._costs.steps > 1 else []
        return (*looped, *self._section("exit", 0))

    @cached_property
    def turns(self) -> range:
        return range(-self._actions.furthest, self._costs.steps)

    def body(self, t: int) -> Body:
        """A turn; those that are alike are the same."""
        kinds, last = self._costs.kinds, self._costs.steps - 1
        around = tuple(kinds[step] if 0 <= step <= last else -1 for step in range(t - 1, t + 3))
        key = (around, min(t, 1), t == last)
        known = self._known.get(key)
        if known is None:
            self._driver.enter()
            known = tuple(self._turn(t))
            if not self._driver.fresh:
                self._known[key] = known
        return known

    def _turn(self, t: int) -> Iterator[Statement]:
        soon: dict[int, list[Statement]] = {}
        for action in self._actions.at("ahead"):
            waits = t < 0 or action.point.side == "before"
            found = self._done(action, t, beside=not waits)
            if waits:
                yield from found
            else:
                soon[id(action)] = found
        if t < 0:
            yield from self._section("ending", t)
        else:
            beside = [
                soon[id(action)] if id(action) in soon else self._done(action, t)
                for action in self._actions.at("beside")
            ]
            first = [*self._section("inside", t), *(s for mine in beside for s in mine)]
            yield from self._step(t, first, self._section("ending", t))
        yield from self._section("behind", t)

    def _step(self, t: int, first: Sequence[Statement], last: Sequence[Statement]) -> Iterator[Statement]:
        """Waits for what a step needs, and computes; `first` and `last` are done beside that."""
        carriers = self._actions.carriers
        yield from self._section("before", t)
        for run in self._actions.now:
            beside = [*(first if run in carriers[:1] else ()), *(last if run in carriers[-1:] else ())]
            yield from self._computed(run, t, beside)
        yield from self._section("after", t)

    def _section(self, section: Section, t: int) -> list[Statement]:
        return [statement for action in self._actions.at(section) for statement in self._done(action, t)]

    def _done(self, action: Action, t: int, *, beside: bool = True) -> list[Statement]:
        """An action at a turn, beside cores at work unless it has to be done before them."""
        last = self._costs.steps - 1
        step = {"first": t, "last": t, "each": t - action.point.shift}.get(action.point.turn, 0)
        there = {"first": t == 0, "last": t == last, "each": 0 <= step <= last}.get(action.point.turn, True)
        if not there:
            return []
        return (
            self._moved(action, step, beside=beside)
            if isinstance(action, MoveAction)
            else self._ran(action, step, beside=beside)
        )

    def _moved(self, action: MoveAction, step: int, *, beside: bool) -> list[Statement]:
        move = action.move
        number, b = move.group, move.buffer
        part = self._place.parts[number] if move.kind != "stage" else self._part
        match action.what:
            case "stage":
                return [self._driver.stage(b, self._place.stages[b])]
            case "staged":
                return [self._driver.wait((-1, b, 0), "staged")]
            case "load":
                return self._load(action, step, beside=beside and action.point.shift < 0)
            case "arrived":
                return [self._driver.sent_on(part, b, step)] if part.costs.flows[b].due[step] else []
            case "prefetch":
                return [self._driver.move(part, b, 0, 0, "early", beside=True, joins=move.joins)]
            case "prefetched":
                return [self._driver.arrived(move)]
            case "store":
                return self._store(action, step)
            case "reuse":
                moves = self._costs.flows[b]
                again = step == 0 or moves.due[step - 1]
                return [self._driver.wait((number, b, moves.slots[step]), "freed")] if again else []
            case "hand on":
                return [self._driver.move(part, b, part.costs.steps - 1, 0, "handed on", beside=True)]
            case "drain" | "drain late":
                slots = min(part.buffer(b).slots, part.costs.flows[b].count)
                where = "drain" if action.what == "drain" else "late"
                return [self._driver.wait((number, b, slot), where) for slot in range(slots)]

    def _load(self, action: MoveAction, step: int, *, beside: bool) -> list[Statement]:
        """Starts the load of a step; that of the first one may have been started before the group."""
        b, ahead = action.move.buffer, -action.point.shift
        moves, where = self._costs.flows[b], "ahead" if beside else "before" if ahead else "now"
        if not moves.due[step] or (action.move.tiles == "rest" and not step):
            return []
        over = action.move.behind if self._costs.steps > 1 else ()
        waits = [self._driver.wait((self._part.number, other, moves.slots[step]), where) for other in over]
        return [*waits, self._driver.move(self._part, b, step, ahead, where, beside=beside)]

    def _store(self, action: MoveAction, step: int) -> list[Statement]:
        b, later = action.move.buffer, action.point.shift
        last = action.move.tiles == "but last" and step == self._costs.steps - 1
        if last or not self._costs.flows[b].due[step]:
            return []
        return [self._driver.move(self._part, b, step, -later, "behind" if later else "store", beside=later > 0)]

    def _ran(self, action: RunAction, step: int, *, beside: bool) -> list[Statement]:
        position, part = action.run.position, self._place.parts[action.run.group]
        # One of another group has one step.
        step = step if part is self._part else 0
        costs = part.costs
        cycles, engine = costs.works[position][costs.classes[step]], costs.engines[position]
        if engine is None or not cycles:
            return []
        if action.what == "await":
            # The next step's work may have been started meanwhile.
            recent = action.run.start.shift == action.run.wait.shift or step == costs.steps - 1
            ends = step == costs.steps - 1 and part.group.queued and self._ends
            return [self._driver.awaited(engine, part, position, recent=recent, ends=ends)]
        label = Label("compute", part.names[position], -action.point.shift)
        where = "beside" if beside else "start"
        return [self._driver.start(engine, part, position, step, cycles, label, where)]

    def _computed(self, run: Run, step: int, others: Sequence[Statement]) -> list[Statement]:
        """Computes a node; others are done meanwhile."""
        position = run.position
        cycles, engine = self._costs.works[position][self._costs.classes[step]], self._costs.engines[position]
        label = Label("compute", self._part.names[position])
        if not cycles:
            return []
        if engine is None:
            kept = self._place.kept
            code = -kept.nodes[position] if step == 0 else kept.again[position] if kept.again else 0.0
            return [Work(exact(cycles + code), tuple(others), label)]
        start = self._driver.start(engine, self._part, position, step, cycles, label, "start")
        ends = self._costs.steps == 1 and run is self._actions.now[-1] and self._ends
        return [start, *others, self._driver.awaited(engine, self._part, position, ends=ends)]

    @property
    def _ends(self) -> bool:
        """Whether nothing is done behind the last run of a group, and there is another group."""
        after = all(isinstance(action, RunAction) for action in self._actions.at("after"))
        return after and self._part is not self._place.parts[-1]
