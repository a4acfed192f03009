"""The validator: replays a Plan byte by byte and says everything that is wrong with it.

It knows nothing of how plans are made: it shares no code with the planner, and asks only the values of `core`. Memory
is replayed step by step. Every byte of the arena and of the outputs remembers which value was written to it last, so
that a tensor is intact exactly when all its bytes still hold its own value. A violation is a mistake of the compiler,
never of the user, so it is no TilewrightError.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tilewright.core.graph import RESULT, Node, Step, TensorType
from tilewright.core.op import REGISTRY, call_node, call_of
from tilewright.core.plan import Choice, Place, Plan

Memory = tuple[str, int]
"""The arena, or one of the outputs."""
ARENA: Memory = ("arena", 0)


class PlanError(Exception):
    """A plan that would compute something else than its graph. An internal error: the planner is wrong."""

    def __init__(self, violations: tuple[str, ...]) -> None:
        self.violations = violations
        super().__init__("the plan is wrong:\n" + "\n".join(f"  {line}" for line in violations))


def check(plan: Plan) -> None:
    """Raises PlanError, which lists all violations, unless the plan computes what its graph says."""
    violations = (*_structure(plan), *_ports(plan), *_buffers(plan))
    if not violations:
        # Only a plan whose parts belong together can be replayed.
        violations = tuple(_Replay(plan).violations())
    if violations:
        raise PlanError(violations)


@dataclass(frozen=True)
class _Range:
    """Bytes of one memory."""

    memory: Memory
    start: int
    end: int

    def overlaps(self, other: _Range) -> bool:
        return self.memory == other.memory and self.start < other.end and other.start < self.end

    def __str__(self) -> str:
        kind, index = self.memory
        return f"{kind if kind == 'arena' else f'output {index}'} bytes {self.start}..{self.end}"


def _range(place: Place, size: int) -> _Range | None:
    """The bytes of a place; None where there are none that could be written."""
    if size == 0 or place.space not in ("arena", "output"):
        return None
    memory = ARENA if place.space == "arena" else ("output", place.index)
    return _Range(memory, place.offset, place.offset + size)


def _limit(plan: Plan, memory: Memory) -> int:
    kind, index = memory
    return plan.arena_bytes if kind == "arena" else plan.graph.types[plan.graph.outputs[index]].bytes


def _label(step: int, node: Node) -> str:
    return f"step {step}, {node.op} '{node.name or node.outputs[0]}'"


def _is_view(node: Node) -> bool:
    return REGISTRY[node.op].kind == "view" and not node.epilogue


# Whether the parts of a plan belong together


def _structure(plan: Plan) -> Iterator[str]:
    """Every node has a choice that suits it, every tensor one producer and a place."""
    graph = plan.graph
    if len(plan.choices) != len(graph.nodes):
        yield f"{len(graph.nodes)} nodes, but {len(plan.choices)} choices"
        return
    made = {*graph.inputs, *graph.constants}
    for step, (node, choice) in enumerate(zip(graph.nodes, plan.choices, strict=True)):
        where = _label(step, node)
        for name in node.reads:
            if name not in made:
                yield f"{where}: reads '{name}' before anything makes it"
        for name in filter(None, node.outputs):
            if name in made:
                yield f"{where}: makes '{name}', which is there already"
            made.add(name)
        for name in (*node.reads, *filter(None, node.outputs)):
            if name not in plan.places:
                yield f"{where}: '{name}' has no place"
        yield from (f"{where}: {reason}" for reason in _wrong_choice(plan, step, node, choice))
    for name in graph.outputs:
        if name not in made:
            yield f"output '{name}' is never made"
        if name not in plan.places:
            yield f"output '{name}' has no place"


def _wrong_choice(plan: Plan, step: int, node: Node, choice: Choice) -> Iterator[str]:
    op = REGISTRY[node.op]
    kernel = choice.kernel
    if (choice.scratch > 0) != (step in plan.scratch):
        yield f"{choice.scratch} bytes of scratch are chosen, offset {plan.scratch.get(step)}"
    if _is_view(node):
        if kernel is not None:
            yield f"is a view, but kernel {kernel.where} is chosen"
        return
    if choice.engine not in plan.platform.engines:
        yield f"engine '{choice.engine}' is none of '{plan.platform.name}'"
    if kernel is None:
        if op.body is None:
            yield "has neither a kernel nor a loop nest"
        return
    if kernel.op != node.op:
        yield f"kernel {kernel.where} computes {kernel.op}"
        return
    if node.epilogue and not kernel.epilogue:
        yield f"kernel {kernel.where} has no epilogue, needs {', '.join(s.op for s in node.epilogue)}"
    for operand, name in zip(op.operand_names(len(node.inputs)), node.inputs, strict=True):
        if operand in kernel.pack and name and name not in plan.graph.constants:
            yield f"kernel {kernel.where} packs {operand}, but '{name}' is no constant"
    for operand, kind in _operand_types(plan, node).items():
        allowed = [choice.variables.get(name, name) for name in kernel.types.get(operand, ())]
        if operand not in op.compile_time and kind.dtype.name not in allowed:
            yield f"kernel {kernel.where} takes {operand}: {' or '.join(allowed) or 'nothing'}, found {kind.dtype}"


def _operand_types(plan: Plan, node: Node) -> dict[str, TensorType]:
    """Types of a node's own operands; its result is the one before the epilogue."""
    op, types = REGISTRY[node.op], plan.graph.types
    found = {o: types[n] for o, n in zip(op.operand_names(len(node.inputs)), node.inputs, strict=True) if n}
    results = call_node(plan.graph, node).outputs if node.epilogue else [types[n] if n else None for n in node.outputs]
    for operand, kind in zip(op.output_names(len(node.outputs)), results, strict=False):
        if kind is not None:
            found[operand] = kind
    return found


def _ports(plan: Plan) -> Iterator[str]:
    """Inputs, constants and outputs are where callers expect them, and nothing else claims to be there."""
    graph = plan.graph
    for index, name in enumerate(graph.inputs):
        if name in plan.places and plan.places[name] != Place("input", 0, index):
            yield f"input '{name}' is at {plan.places[name]}"
    for index, name in enumerate(graph.outputs):
        if graph.types[name].bytes and plan.places.get(name) != Place("output", 0, index):
            yield f"output {index} '{name}' is at {plan.places.get(name)}"
    for name, place in plan.places.items():
        if (place.space == "constant") != (name in graph.constants):
            yield f"'{name}' is {'no' if place.space == 'constant' else 'a'} constant, but at {place}"


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
    if kind == "output" and not 0 <= index < len(plan.graph.outputs):
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
        for step, node in enumerate(self._graph.nodes):
            found = self._view(node) if _is_view(node) else self._step(step, node)
            yield from (f"{_label(step, node)}: {reason}" for reason in found)
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
        if place.memory == ARENA:
            wanted = given = self._plan.platform.alignment
        else:
            wanted = self._graph.types[name].dtype.bytes if name in self._graph.types else 1
            # A caller aligns an output to its own elements, no better.
            given = self._graph.types[self._graph.outputs[place.memory[1]]].dtype.bytes
        if place.start % wanted or given % wanted:
            yield f"'{name}' ({place}) is not aligned to {wanted}"

    def _replacing(self, node: Node, choice: Choice, name: str, place: _Range) -> Iterator[str]:
        """Operands whose bytes are overwritten while the step still reads them, unless it may take their place."""
        for operand in node.reads:
            taken = self._located(operand)
            if taken is None or not taken.overlaps(place):
                continue
            if taken != place or name != node.outputs[0] or not _replaceable(self._plan, node, choice, operand):
                yield f"writes '{name}' ({place}) over its operand '{operand}' ({taken})"


# In-place results


def _replaceable(plan: Plan, node: Node, choice: Choice, name: str) -> bool:
    """Whether a step reads each element of a tensor only for the result at the same place, everywhere it uses it."""
    kind, result = plan.graph.types[name], plan.graph.types[node.outputs[0]]
    if kind.shape != result.shape or kind.dtype.ctype != result.dtype.ctype:
        return False
    fused = [step for step in node.epilogue if name in step.inputs]
    if choice.kernel is None:
        own = REGISTRY[node.op].kind == "elementwise" and (name not in node.inputs or _aligned_node(plan, node, name))
        return own and all(_aligned_step(plan, node, step, name) for step in fused)
    if name not in node.inputs:
        return choice.kernel.epilogue and all(_aligned_step(plan, node, step, name) for step in fused)
    operands = zip(REGISTRY[node.op].operand_names(len(node.inputs)), node.inputs, strict=True)
    return not fused and {operand for operand, tensor in operands if tensor == name} == {choice.kernel.inplace}


def _aligned_node(plan: Plan, node: Node, name: str) -> bool:
    """Whether a node's own operator reads a tensor at the indices of the result only."""
    call = call_node(plan.graph, node)
    domain = call.domain()
    result = domain.access[domain.outputs[0]]
    used = [o for o, n in zip(call.operands, node.inputs, strict=True) if n == name and o not in call.op.compile_time]
    return all(domain.access[operand] == result for operand in used)


def _aligned_step(plan: Plan, node: Node, step: Step, name: str) -> bool:
    """The same for an epilogue step."""
    values = _epilogue_types(node, call_node(plan.graph, node).outputs[0])
    types = [values[n] if n.startswith(RESULT) else plan.graph.types[n] if n else None for n in step.inputs]
    constants = [plan.graph.constants.get(n) for n in step.inputs]
    call = call_of(REGISTRY[step.op], types, step.attrs, values=constants, name=node.name)
    domain = call.domain()
    result = domain.access[domain.outputs[0]]
    return all(domain.access[o] == result for o, n in zip(call.operands, step.inputs, strict=True) if n == name)


def _epilogue_types(node: Node, result: TensorType) -> Mapping[str, TensorType]:
    return {RESULT: result, **{f"{RESULT}{number}": step.type for number, step in enumerate(node.epilogue, 1)}}
