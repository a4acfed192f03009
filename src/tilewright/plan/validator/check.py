"""The validator: replays a Plan byte by byte and says everything that is wrong with it.

It knows nothing of how plans are made: it shares no code with the planner, and asks only the values of `core`. Memory
is replayed step by step. Every byte of the arena and of the outputs remembers which value was written to it last, so
that a tensor is intact exactly when all its bytes still hold its own value. A violation is a mistake of the compiler,
never of the user, so it is no TilewrightError. Plans of tiled execution are checked in `check_tiles`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from msgspec import Struct

from tilewright.core.graph import Node
from tilewright.core.op import is_view
from tilewright.core.plan import Choice, Place, Plan
from tilewright.plan.validator.inplace import replaceable
from tilewright.plan.validator.nodes import label, nodes, ports, states
from tilewright.plan.validator.tiles import tiled

Memory = tuple[str, int]
"""The arena, the states, or one of the outputs."""
ARENA: Memory = ("arena", 0)


class PlanError(Exception):
    """A plan that would compute something else than its graph. An internal error: the planner is wrong."""

    def __init__(self, violations: tuple[str, ...]) -> None:
        self.violations = violations
        super().__init__("the plan is wrong:\n" + "\n".join(f"  {line}" for line in violations))


def check(plan: Plan) -> None:
    """Raises PlanError, which lists all violations, unless the plan computes what its graph says."""
    violations = (*nodes(plan), *ports(plan), *states(plan))
    if plan.schedule is not None:
        violations = violations or tuple(tiled(plan, plan.schedule))
    else:
        violations = (*violations, *_structure(plan), *_buffers(plan))
        if not violations:
            # Only a plan whose parts belong together can be replayed.
            violations = tuple(_Replay(plan).violations())
    if violations:
        raise PlanError(violations)


class _Range(Struct, frozen=True):
    """Bytes of one memory."""

    memory: Memory
    start: int
    end: int

    def overlaps(self, other: _Range) -> bool:
        return self.memory == other.memory and self.start < other.end and other.start < self.end

    def __str__(self) -> str:
        kind, index = self.memory
        return f"{f'output {index}' if kind == 'output' else kind} bytes {self.start}..{self.end}"


def _range(place: Place, size: int) -> _Range | None:
    """The bytes of a place; None where there are none that could be written."""
    if size == 0 or place.space not in ("arena", "output", "state"):
        return None
    return _Range((place.space, place.index), place.offset, place.offset + size)


def _limit(plan: Plan, memory: Memory) -> int:
    kind, index = memory
    if kind == "output":
        return plan.graph.types[plan.graph.given[index]].bytes
    return plan.arena_bytes if kind == "arena" else plan.state_bytes


# Whether the parts of a plan belong together


def _structure(plan: Plan) -> Iterator[str]:
    """Every tensor has a place, every node the scratch bytes it was chosen with."""
    for step, (node, choice) in enumerate(zip(plan.graph.nodes, plan.choices, strict=False)):
        where = label(step, node)
        for name in (*node.reads, *filter(None, node.outputs)):
            if name not in plan.places:
                yield f"{where}: '{name}' has no place"
        if (choice.scratch > 0) != (step in plan.scratch):
            yield f"{where}: {choice.scratch} bytes of scratch are chosen, offset {plan.scratch.get(step)}"
    for name in plan.graph.outputs:
        if name not in plan.places:
            yield f"output '{name}' has no place"


def _buffers(plan: Plan) -> Iterator[str]:
    """Buffers lie inside their memory, where their tensors are, and apart while they live."""
    live: list[tuple[int, _Range, str]] = []
    for buffer in sorted(plan.buffers, key=lambda b: b.first):
        place = _range(buffer.place, buffer.bytes)
        if plan.places.get(buffer.name, buffer.place) != buffer.place:
            yield f"buffer '{buffer.name}' is at {buffer.place}, its tensor at {plan.places[buffer.name]}"
        if place is None:
            continue
        yield from (f"buffer '{buffer.name}': {reason}" for reason in _outside(plan, place))
        live = [entry for entry in live if entry[0] > buffer.first]
        for _, other, name in live:
            if other.overlaps(place):
                yield f"buffer '{buffer.name}' ({place}) overlaps '{name}' ({other}) at step {buffer.first}"
        live.append((buffer.last, place, buffer.name))


def _outside(plan: Plan, place: _Range) -> Iterator[str]:
    kind, index = place.memory
    if kind == "output" and not 0 <= index < len(plan.graph.given):
        yield f"there is no {place}"
    elif place.start < 0 or place.end > _limit(plan, place.memory):
        yield f"{place} lie outside its {_limit(plan, place.memory)} bytes"


# The replay


class _Bytes:
    """One memory: which value each byte holds, as ordered ranges that do not overlap."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._cells: list[tuple[int, str]] = []

    def write(self, start: int, end: int, value: str) -> None:
        first = self._first(start)
        last = first
        left: list[tuple[int, int, str]] = []
        while last < len(self._starts) and self._starts[last] < end:
            begin, (stop, owner) = self._starts[last], self._cells[last]
            left += [(begin, start, owner)] if begin < start else []
            left += [(end, stop, owner)] if stop > end else []
            last += 1
        cells = sorted([*left, (start, end, value)])
        self._starts[first:last] = [cell[0] for cell in cells]
        self._cells[first:last] = [cell[1:] for cell in cells]

    def intruder(self, start: int, end: int, value: str) -> str | None:
        """What lies in a range besides a value (`nothing` where it was never written), or None."""
        at, index = start, self._first(start)
        while at < end:
            if index == len(self._starts) or self._starts[index] > at:
                return "nothing"
            stop, owner = self._cells[index]
            if owner != value:
                return owner
            at, index = stop, index + 1
        return None

    def _first(self, start: int) -> int:
        """The first range that ends behind `start`."""
        index = max(bisect_right(self._starts, start) - 1, 0)
        return index + 1 if index < len(self._cells) and self._cells[index][0] <= start else index


class _Replay:
    """Runs the steps of a plan on memories that hold the names of values instead of numbers."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._graph = plan, plan.graph
        self._memories: dict[Memory, _Bytes] = {}
        self._values: dict[str, str] = {}
        """The value each tensor is; a view is that of its source."""

    def violations(self) -> Iterator[str]:
        for name in self._graph.updates:
            # The value that the run before has left.
            place = self._located(name) if name in self._plan.places else None
            if place is not None:
                self._memories.setdefault(place.memory, _Bytes()).write(place.start, place.end, name)
        for step, node in enumerate(self._graph.nodes):
            found = self._view(node) if is_view(node) else self._step(step, node)
            yield from (f"{label(step, node)}: {reason}" for reason in found)
        for name in self._graph.outputs:
            yield from (f"at the end: {reason}" for reason in self._damaged(name))

    def _located(self, name: str) -> _Range | None:
        return _range(self._plan.places[name], self._graph.types[name].bytes)

    def _damaged(self, name: str) -> Iterator[str]:
        """Why a tensor cannot be read now."""
        place = self._located(name)
        if place is None or any(_outside(self._plan, place)):
            return
        memory = self._memories.get(place.memory, _Bytes())
        intruder = memory.intruder(place.start, place.end, self._values.get(name, name))
        if intruder is not None:
            yield f"'{name}' ({place}) is needed, but '{intruder}' was written there"

    def _view(self, node: Node) -> Iterator[str]:
        source, output = node.inputs[0], node.outputs[0]
        if self._graph.types[output].bytes and self._plan.places[source] != self._plan.places[output]:
            yield (
                f"'{output}' at {self._plan.places[output]} is a view of '{source}' at {self._plan.places[source]}, "
                f"{self._graph.types[output].bytes} bytes"
            )
        self._values[output] = self._values.get(source, source)

    def _step(self, step: int, node: Node) -> Iterator[str]:
        choice = self._plan.choices[step]
        for name in node.reads:
            yield from self._damaged(name)
        written: list[tuple[str, _Range]] = []
        if choice.scratch:
            offset = self._plan.scratch[step]
            written.append((f"scratch of step {step}", _Range(ARENA, offset, offset + choice.scratch)))
        for name in filter(None, node.outputs):
            place = self._located(name)
            if place is not None:
                written.append((name, place))
            elif self._graph.types[name].bytes:
                yield f"writes '{name}' to {self._plan.places[name]}, which is only read"
        for index, (name, place) in enumerate(written):
            yield from self._misplaced(name, place)
            for other, taken in written[:index]:
                if taken.overlaps(place):
                    yield f"writes '{name}' ({place}) over '{other}' ({taken})"
            yield from self._replacing(node, choice, name, place)
        for name, place in written:
            self._memories.setdefault(place.memory, _Bytes()).write(place.start, place.end, name)

    def _misplaced(self, name: str, place: _Range) -> Iterator[str]:
        """Whether bytes lie outside their memory or are not aligned as code expects."""
        outside = list(_outside(self._plan, place))
        yield from (f"'{name}': {reason}" for reason in outside)
        if outside:
            return
        if place.memory[0] != "output":
            wanted = given = self._plan.platform.alignment
        else:
            wanted = self._graph.types[name].dtype.bytes if name in self._graph.types else 1
            # A caller aligns an output to its own elements, no better.
            given = self._graph.types[self._graph.given[place.memory[1]]].dtype.bytes
        if place.start % wanted or given % wanted:
            yield f"'{name}' ({place}) is not aligned to {wanted}"

    def _replacing(self, node: Node, choice: Choice, name: str, place: _Range) -> Iterator[str]:
        """Operands whose bytes are overwritten while the step still reads them, unless it may take their place."""
        for operand in node.reads:
            taken = self._located(operand)
            if taken is None or not taken.overlaps(place):
                continue
            if taken != place or name != node.outputs[0] or not replaceable(self._plan, node, choice, operand):
                yield f"writes '{name}' ({place}) over its operand '{operand}' ({taken})"
