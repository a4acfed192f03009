"""What generated code does, in its order: for each group the statements of who drives, turn by turn of its loop.

`codegen.groups` prints the same turns as C.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from tilewright.timeline.clock import Body, Label, Spend, Statement, Work, exact
from tilewright.timeline.driver import Driver
from tilewright.timeline.parts import Part, Place


class Turns:
    """The turns of a group's loop."""

    def __init__(self, place: Place) -> None:
        self._place, self._part = place, place.part
        self._group, self._costs = place.part.group, place.part.costs
        self._driver = Driver(place, self._costs.platform)
        self._known: dict[object, Body] = {}

    @property
    def before(self) -> Body:
        """Before the loop."""
        place = self._place
        network = self._costs.platform.operations.get("network", 0.0)
        found: list[Statement] = [] if place.before is not None else [Spend(network)]
        found += [self._driver.stage(number, stage) for number, stage in place.begun]
        found += [self._driver.wait((-1, number, 0), "staged") for number in place.needed]
        if place.before is None or not place.before.costs.carriers:
            found += self._early_arrived(self._part)
        if self._group.queued:
            found += self._handed_on()
        return tuple(found)

    @property
    def behind(self) -> Body:
        """Behind the loop."""
        found: list[Statement] = []
        if self._group.queued:
            found += self._at_last()
        elif not self._costs.carriers:
            found += self._stored_late()
        return (*found, *(self._driver.wait(channel, "drain") for channel in self._part.stored(0)))

    @cached_property
    def turns(self) -> range:
        return range(-self._furthest, self._costs.steps)

    def body(self, t: int) -> Body:
        """A turn; those that are alike are the same."""
        kinds, last = self._costs.kinds, self._costs.steps - 1
        around = tuple(kinds[step] if 0 <= step <= last else -1 for step in range(t - 1, t + 3))
        key = (around, min(t, 1), t == last)
        known = self._known.get(key)
        if known is None:
            self._driver.enter()
            known = tuple(self._queue(t) if self._group.queued else self._pipeline(t))
            if not self._driver.fresh:
                self._known[key] = known
        return known

    def _queue(self, t: int) -> list[Statement]:
        """Of an engine that works alone: it has the next step's work before it is done with one."""
        part, steps, found = self._part, self._costs.steps, list[Statement]()
        streams = [b for b in self._costs.reads if not part.there(b)]
        engine = self._costs.engines[0]
        assert engine is not None
        if 0 <= t + 1 < steps:
            found += [*self._arrived(streams, t + 1), *self._freed(t + 1), *self._computed(0, t + 1, 1)]
        if t >= 0:
            found.append(self._driver.awaited(engine, 0, recent=t == steps - 1))
            if t < steps - 1 or not self._gives_stores:
                found += self._stores(t, 0, "store")
        if 0 <= t + 2 < steps:
            found += self._loads(streams, t + 2, 2, "ahead", beside=True)
        return found + (self._at_first() if t == 0 else [])

    def _pipeline(self, t: int) -> list[Statement]:
        part, steps, ahead = self._part, self._costs.steps, self._group.ahead
        found, soon, later = list[Statement](), list[Statement](), list[Statement]()
        for distance in sorted({*self._distances.values()} - {0}, reverse=True):
            mine = [b for b, far in self._distances.items() if far == distance and not part.there(b)]
            if not 0 <= t + distance < steps:
                continue
            if t < 0 or not self._driven(mine):
                found += self._loads(mine, t + distance, distance, "before")
            else:
                loads = self._loads(mine, t + distance, distance, "ahead", beside=True)
                (later if ahead and distance > 1 else soon).extend(loads)
        if ahead and 0 <= t + 1 < steps:
            lead = [b for b in self._costs.reads if self._leads(b) and not part.there(b)]
            beside = t >= 0 and self._driven(())
            start = [*self._arrived(lead, t + 1), *self._computed(0, t + 1, 1, beside=beside)]
            (soon if beside else found).extend(start)
        if t >= 0:
            found += self._step(t, soon, later)
        if ahead and 0 <= t + 1 < steps and (t < 0 or not self._costs.carriers):
            found += self._awaited(t + 1)
        return found

    def _step(self, t: int, soon: list[Statement], later: list[Statement]) -> list[Statement]:
        """Waits for what a step needs, and computes; beside that all else."""
        part, carriers, final = self._part, self._costs.carriers, t == self._costs.steps - 1
        first, last = list[Statement](), list[Statement]()
        if carriers:
            stores = self._handed_on() if t == 0 else []
            stores += self._stores(t - 1, -1, "behind", beside=True) if part.stores_behind and t > 0 else []
            # An engine that stands still is started first. Only loads into bytes that are stored come behind that.
            engine_first = self._group.ahead and not any(part.over.values())
            first = [*soon, *stores, *later] if engine_first else [*stores, *soon, *later]
            first += self._at_first() if t == 0 else []
            last = self._awaited(t + 1) if self._group.ahead and not final else []
            last += self._at_last() if final else []
        now = [b for b, distance in self._distances.items() if distance == 0 and not part.there(b)]
        found = self._loads(now, t, 0, "now")
        found += self._at_first() if not carriers and t == 0 else []
        found += self._arrived([b for b in self._costs.reads if not self._leads(b) and not part.there(b)], t)
        found += self._freed(t)
        for position in range(int(self._group.ahead), len(self._costs.works)):
            beside = first if carriers and position == carriers[0] else []
            beside = [*beside, *(last if carriers and position == carriers[-1] else [])]
            found += self._computed(position, t, 0, beside)
        if not (final and self._gives_stores) and (final or not part.stores_behind):
            found += self._stores(t, 0, "store")
        return found

    # Parts of a turn

    @cached_property
    def _distances(self) -> dict[int, int]:
        """How many steps ahead each buffer is loaded."""
        part, once = self._part, self._costs.steps == 1
        return {b: 0 if once else part.buffer(b).slots - 1 + self._leads(b) for b in self._costs.reads}

    @cached_property
    def _furthest(self) -> int:
        return 2 if self._group.queued else max([int(self._group.ahead), *self._distances.values()])

    def _leads(self, buffer: int) -> bool:
        """Whether it is read by a node that runs a step ahead."""
        return self._group.ahead and self._costs.reads[buffer] == 0

    def _driven(self, buffers: Sequence[int]) -> bool:
        """Whether something for later steps is done beside a step."""
        by_cores = any(self._costs.flows[b].dma.by_cores for b in buffers)
        return len(self._costs.carriers) > 0 and self._costs.steps > 1 and not by_cores

    @cached_property
    def _gives_stores(self) -> bool:
        """Whether the last results are stored by the group behind."""
        following = self._place.following
        return following is not None and self._part.hands_on and len(following.costs.carriers) > 0

    def _handed_on(self) -> list[Statement]:
        """Stores the last results of the group before, where that has left it to this one."""
        before = self._place.before
        if before is None or not before.hands_on or not self._costs.carriers:
            return []
        step = before.costs.steps - 1
        return [self._driver.move(before, b, step, 0, "handed on", beside=True) for b in before.costs.writes]

    def _at_first(self) -> list[Statement]:
        """What is started at the first step for later groups."""
        stages = [self._driver.stage(number, stage) for number, stage in self._place.ahead]
        return stages + [self._driver.move(part, b, 0, 0, "early", beside=True) for part, b in self._place.early]

    def _at_last(self) -> list[Statement]:
        """What is waited for at the last step."""
        following = self._place.following
        return [*self._stored_late(), *(self._early_arrived(following) if following is not None else [])]

    def _stored_late(self) -> list[Statement]:
        return [self._driver.wait(channel, "late") for channel in self._place.late]

    def _early_arrived(self, part: Part) -> list[Statement]:
        return [self._driver.wait((part.number, b, 0), "early arrived") for b in part.early]

    def _loads(
        self, buffers: Sequence[int], step: int, distance: int, where: str, *, beside: bool = False
    ) -> list[Statement]:
        """Starts loads for a step; those of the first one may have been started before the group."""
        part, found = self._part, list[Statement]()
        for b in buffers:
            moves = self._costs.flows[b]
            if moves.due[step] and (step or not part.buffer(b).early):
                over = part.over[b] if self._costs.steps > 1 else []
                found += [self._driver.wait((part.number, other, moves.slots[step]), where) for other in over]
                found.append(self._driver.move(part, b, step, distance, where, beside=beside))
        return found

    def _stores(self, step: int, ahead: int, where: str, *, beside: bool = False) -> list[Statement]:
        flows = self._costs.flows
        due = [b for b in self._costs.writes if flows[b].due[step]]
        return [self._driver.move(self._part, b, step, ahead, where, beside=beside) for b in due]

    def _arrived(self, buffers: Sequence[int], step: int) -> list[Statement]:
        """Waits for what is loaded for a step."""
        due = [b for b in buffers if self._costs.flows[b].due[step]]
        return [self._driver.sent_on(self._part, b, step) for b in due]

    def _freed(self, step: int) -> list[Statement]:
        """Waits until what lies where a step's results go has been stored."""
        found: list[Statement] = []
        for b in self._costs.writes:
            moves = self._costs.flows[b]
            if moves.count > self._part.buffer(b).slots and (step == 0 or moves.due[step - 1]):
                found.append(self._driver.wait((self._part.number, b, moves.slots[step]), "freed"))
        return found

    def _awaited(self, step: int) -> list[Statement]:
        """Waits for the engine that runs a step ahead."""
        engine, cycles = self._costs.engines[0], self._costs.works[0][self._costs.classes[step]]
        return [self._driver.awaited(engine, 0)] if engine is not None and cycles else []

    def _computed(
        self, position: int, step: int, ahead: int, others: Sequence[Statement] = (), *, beside: bool = False
    ) -> list[Statement]:
        """Computes a node; others are done meanwhile. An engine may be started beside cores at work."""
        cycles, engine = self._costs.works[position][self._costs.classes[step]], self._costs.engines[position]
        label = Label("compute", self._part.names[position], ahead)
        if not cycles:
            return []
        if engine is None:
            saved = self._place.kept.nodes[position] if step == 0 else 0.0
            return [Work(exact(cycles - saved), tuple(others), label)]
        where = "beside" if beside else "start"
        found: list[Statement] = [self._driver.start(engine, position, step, cycles, label, where), *others]
        return found if self._group.ahead else [*found, self._driver.awaited(engine, position)]
