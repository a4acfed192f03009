"""The validator of tiled plans: what lies where in each memory, for how long, and how it gets there.

Time is the number of a group: a tensor occupies its bytes from the group that writes it to the last one that reads it,
a staged copy from the group before which it is started, tile buffers and scratch bytes during their own group. What
another engine computes beside later groups lasts until the group in which it is awaited.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from tilewright.core.op import REGISTRY, is_view
from tilewright.core.plan import NodeWork, Place, Plan, Schedule, Stage, TileBuffer
from tilewright.core.tiles import Use
from tilewright.machine.parts import Cores, Engine
from tilewright.plan.validator.groups import Opened, covering, uses_of
from tilewright.plan.validator.inplace import replaceable
from tilewright.plan.validator.moves import MoveIndex
from tilewright.plan.validator.regions import everywhere, whole
from tilewright.plan.validator.within import inlaid


class Held(Struct, frozen=True):
    """Bytes of a memory held from one group to another, both included."""

    label: str
    memory: str
    """Of the platform, or `output 0`."""
    start: int
    end: int
    first: int
    last: int
    tensor: str = ""
    """The whole tensor that they hold, if they do."""
    group: int = -1
    buffer: int = -1
    inside: tuple[int, int] | None = None
    """The nodes of the group between which they are needed, where they are free outside of these at every step."""

    def __str__(self) -> str:
        return f"{self.label} ({self.memory} bytes {self.start}..{self.end})"


class MemoryLayout:
    """A tiled plan seen as bytes of memories."""

    def __init__(self, plan: Plan, schedule: Schedule, groups: Sequence[Opened]) -> None:
        self._plan, self._graph, self.schedule, self.groups = plan, plan.graph, schedule, groups
        self._engine = plan.platform.engines[schedule.engine]
        self._alignment = plan.platform.alignment
        self._root: dict[str, str] = {}
        for node in self._graph.nodes:
            if is_view(node):
                self._root[node.outputs[0]] = self.root(node.inputs[0])
        self.moved = MoveIndex(schedule, groups)
        self._writer = {use.tensor: o.number for o in groups for _, use in uses_of(o) if use.writes}

    def root(self, tensor: str) -> str:
        """The tensor that a view shows."""
        return self._root.get(tensor, tensor)

    def malformed(self) -> list[str]:
        """What has no place, or moves that mean nothing; only without these can the rest be looked at."""
        found = [*self._views(), *self._tensors(), *self._in_place(), *self._stages()]
        return found or [*self.moved.problems()]

    def problems(self) -> Iterator[str]:
        yield from self._transfers()
        yield from self._memories()

    # Structure

    def _views(self) -> Iterator[str]:
        places, graph = self._plan.places, self._graph
        for view, source in self._root.items():
            if graph.types[view].bytes and places.get(view) != places.get(source):
                yield f"'{view}' at {places.get(view)} is a view of '{source}' at {places.get(source)}"
        for buffer in self._plan.buffers:
            if places.get(buffer.name, buffer.place) != buffer.place:
                yield f"buffer '{buffer.name}' is at {buffer.place}, its tensor at {places[buffer.name]}"

    def _tensors(self) -> Iterator[str]:
        """What groups read is made by groups before them; what leaves a group has a place and gets there."""
        for opened in self.groups:
            for position, use in uses_of(opened):
                if not use.type.bytes:
                    continue
                where, inner = opened.where(position), use.tensor in opened.replay.inner
                if (not inner or opened.bound(position, use) is None) and not self._known(use.tensor):
                    yield f"{where}: '{use.tensor}' has no place"
                if not use.writes and not inner and self.made(use.tensor) >= opened.number:
                    yield f"{where}: reads '{use.tensor}', which group {self.made(use.tensor)} makes"
                if use.writes and inner:
                    yield from (f"{where}: {reason}" for reason in self._leaving(opened, position, use))

    def _in_place(self) -> Iterator[str]:
        """Constants that the engine reads where they are."""
        for name in sorted(self.schedule.direct):
            if name not in self._graph.constants or not self._plan.platform.in_place:
                yield f"'{name}' is to be read in place, but " + (
                    "is no constant" if self._plan.platform.in_place else "no engine reads another memory"
                )

    def _known(self, tensor: str) -> bool:
        place = self._plan.places.get(tensor)
        return place is not None and self._memory(place) in self._plan.platform.memories

    def _memory(self, place: Place) -> str:
        ports = {"input": self.schedule.home, "output": self.schedule.home, "constant": self.schedule.home}
        return {**ports, "state": self.schedule.states}.get(place.space, place.space)

    def made(self, tensor: str) -> int:
        """The group that makes a tensor; -1 for those that are there from the beginning."""
        return self._writer.get(self.root(tensor), -1)

    def _leaving(self, opened: Opened, position: int, use: Use) -> Iterator[str]:
        """Inner tensors that something outside the group reads."""
        readers = sorted(
            {o.number for o in self.groups for _, u in uses_of(o) if not u.writes and self.root(u.tensor) == use.tensor}
            - {opened.number}
        )
        ends = [name for name in self._graph.outputs if self.root(name) == use.tensor]
        bound = opened.bound(position, use) is not None
        if bound and (readers or ends):
            by = f"group {readers[0]} reads it" if readers else f"it is the output '{ends[0]}'"
            yield f"'{use.tensor}' stays in a buffer of the group, but {by}"
        elif readers or ends:
            gaps = covering(opened, opened.replay.regions[position][use.key], whole(use.type.shape), once=False)
            yield from (f"'{use.tensor}' is needed outside the group, but its parts {reason}" for reason in gaps)

    # Stages

    def _stages(self) -> Iterator[str]:
        known: set[tuple[str, str, int]] = set()
        for stage in self.schedule.stages:
            name = f"copy of '{stage.tensor}' in {stage.place.space}"
            if stage.tensor not in self._graph.types or stage.place.space not in self._plan.platform.memories:
                yield f"{name}: there is no such tensor or memory"
                continue
            if not 0 <= stage.start <= stage.first <= stage.last < len(self.groups):
                yield f"{name}: started before group {stage.start} for groups {stage.first} to {stage.last}"
            if self.made(stage.tensor) >= stage.start:
                made = self.made(stage.tensor)
                yield f"{name}: started before group {stage.start}, but group {made} makes the tensor"
            if not self._known(stage.tensor):
                yield f"{name}: the tensor has no place"
            needed = [u.type.bytes for o in self.groups for _, u in uses_of(o) if _of(stage, u)]
            for size in sorted({*needed} - {stage.bytes}):
                yield f"{name}: copies {stage.bytes} bytes of {size}"
            if not needed:
                yield f"{name}: nothing reads it"
            for group in range(stage.first, stage.last + 1):
                if (stage.tensor, stage.pack, group) in known:
                    yield f"{name}: there is another copy for group {group}"
                known.add((stage.tensor, stage.pack, group))

    def stage(self, number: int, use: Use) -> Stage | None:
        if use.writes:
            return None
        return next((s for s in self.schedule.stages if _of(s, use) and s.first <= number <= s.last), None)

    def _source(self, number: int, use: Use) -> str:
        """The memory from which a group reads, or to which it writes, a tensor."""
        stage = self.stage(number, use)
        if stage is not None:
            return stage.place.space
        if self._direct(use.tensor) and self._plan.platform.in_place:
            return self._plan.platform.in_place
        return self._memory(self._plan.places[use.tensor])

    def _direct(self, tensor: str) -> bool:
        return self.root(tensor) in self._graph.constants and not {tensor, self.root(tensor)}.isdisjoint(
            self.schedule.direct
        )

    # Transfers

    def _transfers(self) -> Iterator[str]:
        """Whatever is not in the engine's reach is brought there by a DMA that exists, and never while it is made."""
        for opened in self.groups:
            for position, use in uses_of(opened):
                index = opened.bound(position, use)
                if use.type.bytes and (index is None or opened.role(index) != "inner"):
                    found = self._unbound(opened, position, use) if index is None else self._brought(opened, use)
                    yield from (f"{opened.where(position)}: {reason}" for reason in found)
        for opened in self.groups:
            yield from self._resident(opened)
        for stage in self.schedule.stages:
            source = self._memory(self._plan.places[stage.tensor])
            if self._plan.platform.link(source, stage.place.space) is None:
                yield f"copy of '{stage.tensor}': no DMA between {source} and {stage.place.space}"

    def _resident(self, opened: Opened) -> Iterator[str]:
        """What is not loaded is all there: a group before has left it in the same bytes, as it is needed here."""
        for index, buffer in enumerate(opened.group.buffers):
            size = opened.users[index][0][1].type.bytes
            if opened.role(index) != "input" or self.moved.of(opened.number, index) or not size:
                continue
            name = f"group {opened.number}: buffer {index} of '{buffer.tensor}' is not loaded, but"
            if buffer.within >= 0:
                yield f"{name} lies within another, so it is not loaded there"
            left = self._resides(opened, index)
            if left is None:
                yield f"{name} no group before leaves all of it in those bytes"
            elif self.moved.end(left[0]) >= opened.number and self.groups[left[0]].role(left[1]) == "output":
                yield f"{name} group {left[0]}, which makes it, is not done by then"
            elif not self._arrived(opened, index, left):
                yield f"{name} the load of group {left[0]} or one before it is not awaited by then"
            if not _all_of_it(opened, index):
                yield f"{name} is not the whole tensor"

    def _arrived(self, opened: Opened, index: int, left: tuple[int, int]) -> bool:
        """Whether what a group leaves for another, or has found itself, has been loaded before that is computed."""
        before: tuple[int, int] | None = left
        while before is not None:
            loads = [move for move in self.moved.of(*before) if move.kind == "load"]
            if not all(
                self.moved.before(move, opened.number, position)
                for move in loads
                for position, _ in opened.users[index]
            ):
                return False
            before = self._resides(self.groups[before[0]], before[1])
        return True

    def _resides(self, opened: Opened, index: int) -> tuple[int, int] | None:
        """The last group before that leaves what is not loaded, and its buffer there."""
        if opened.role(index) != "input" or self.moved.of(opened.number, index):
            return None
        for other in reversed(self.groups[: opened.number]):
            found = self._left(other, opened.group.buffers[index])
            if found is not None:
                return other.number, found
        return None

    def _left(self, opened: Opened, buffer: TileBuffer) -> int | None:
        """The buffer of a group that has a whole tensor in the same bytes at its end."""
        for index, other in enumerate(opened.group.buffers):
            same = (other.tensor, other.pack, other.offset, other.bytes) == (
                buffer.tensor,
                buffer.pack,
                buffer.offset,
                buffer.bytes,
            )
            if same and other.slots == 1 and opened.role(index) != "inner" and _all_of_it(opened, index):
                return index
        return None

    def _unbound(self, opened: Opened, position: int, use: Use) -> Iterator[str]:
        own, memory = self._engine.memory, self._source(opened.number, use)
        choice = self._plan.choices[opened.group.works[position].step]
        engine = self._plan.platform.engines.get(choice.engine, self._engine)
        if use.writes and self._plan.places[use.tensor].space in ("input", "constant"):
            yield f"writes '{use.tensor}' to {self._plan.places[use.tensor]}, which is only read"
        elif memory != own and choice.kernel is not None and use.key in choice.kernel.near:
            yield f"reads '{use.tensor}' ({use.key}) in {memory}, but its kernel needs it in {own}"
        elif memory != own and (use.writes or not self._reached(opened, position, use, engine, memory)):
            verb = "writes" if use.writes else "reads"
            why = ", which is not among the constants read in place" if use.tensor in self._graph.constants else ""
            yield f"{verb} '{use.tensor}' ({use.key}) in {memory} without a buffer in {own}{why}"
        elif not use.writes and use.tensor not in opened.replay.inner and self.made(use.tensor) == opened.number:
            yield f"reads '{use.tensor}', a view of what the group makes"

    def _reached(self, opened: Opened, position: int, use: Use, engine: Engine, memory: str) -> bool:
        """Whether an engine reads an operand in a memory that is not its own."""
        op = REGISTRY[self._graph.nodes[opened.group.works[position].step].op]
        return memory in engine.reads or (
            isinstance(engine, Cores) and memory in engine.reaches and use.key in op.picks
        )

    def _brought(self, opened: Opened, use: Use) -> Iterator[str]:
        own, memory = self._engine.memory, self._source(opened.number, use)
        if self._plan.platform.link(memory, own) is None:
            yield f"'{use.tensor}' ({use.key}) is in {memory}, and no DMA is between {memory} and {own}"
        if use.writes and self._plan.places[use.tensor].space in ("input", "constant"):
            yield f"writes '{use.tensor}' to {self._plan.places[use.tensor]}, which is only read"

    # Memories

    def _memories(self) -> Iterator[str]:
        held = [*self._whole(), *self._copies(), *(item for opened in self.groups for item in self._working(opened))]
        for item in held:
            yield from self._misplaced(item)
        yield from self._overlaps(held)
        yield from self._capacity(held)
        yield from (f"{reason} bytes is not aligned to {self._alignment}" for reason in self._strides())

    def _callers(self, work: NodeWork) -> int:
        """How many cores compute a node, each with scratch of its own."""
        kernel = self._plan.choices[work.step].kernel
        return self.schedule.cores if work.split or (kernel is not None and kernel.shared) else 1

    def _strides(self) -> Iterator[str]:
        """Slots and scratch bytes of cores that lie one behind the other, where the second is not aligned."""
        for opened in self.groups:
            for index, buffer in enumerate(opened.group.buffers):
                if buffer.slots > 1 and buffer.bytes % self._alignment:
                    yield f"group {opened.number}: buffer {index} of '{buffer.tensor}' with slots of {buffer.bytes}"
            for position, work in enumerate(opened.group.works):
                if self._callers(work) > 1 and work.scratch_bytes % self._alignment:
                    yield f"{opened.where(position)}: scratch for each core of {work.scratch_bytes}"

    def _whole(self) -> Iterator[Held]:
        """Whole tensors, from the group that writes them to the last that reads them."""
        last: dict[str, int] = {}
        for opened in self.groups:
            for position, use in uses_of(opened):
                inner = use.tensor in opened.replay.inner and opened.bound(position, use) is not None
                if not inner and self.stage(opened.number, use) is None:
                    root = self.root(use.tensor)
                    last[root] = max(last.get(root, 0), self.moved.end(opened.number))
        for stage in self.schedule.stages:
            # The copy may take until its first reader, and its source must last as long.
            root = self.root(stage.tensor)
            last[root] = max(last.get(root, 0), stage.first - 1)
        last |= {self.root(name): len(self.groups) for name in self._graph.outputs}
        for tensor, end in last.items():
            place, size = self._plan.places.get(tensor), self._graph.types[tensor].bytes
            if size and place is not None and place.space not in ("input", "constant", "state"):
                memory = f"output {place.index}" if place.space == "output" else place.space
                span = (place.offset, place.offset + size, self.made(tensor), end)
                yield Held(f"'{tensor}'", memory, *span, tensor=tensor)

    def _copies(self) -> Iterator[Held]:
        for stage in self.schedule.stages:
            start = stage.place.offset
            span = (start, start + stage.bytes, stage.start, stage.last)
            yield Held(f"copy of '{stage.tensor}'", stage.place.space, *span)

    def _working(self, opened: Opened) -> Iterator[Held]:
        number, memory, end = opened.number, self._engine.memory, self.moved.end(opened.number)
        for index, buffer in enumerate(opened.group.buffers):
            name = f"buffer {index} of '{buffer.tensor}' in group {number}"
            first, last = self.moved.span(number, index)
            left = self._resides(opened, index)
            span = (buffer.offset, buffer.end, first if left is None else left[0], last)
            yield Held(name, memory, *span, group=number, buffer=index, inside=opened.inside(index))
            kept = opened.kept_bytes(index)
            if kept and opened.inside(index) is not None:
                span = (buffer.offset, buffer.offset + kept, number, number)
                yield Held(f"lines kept in {name}", memory, *span, group=number, buffer=index)
        for position, work in enumerate(opened.group.works):
            if work.scratch_bytes:
                span = (work.scratch, work.scratch + self._callers(work) * work.scratch_bytes, number, end)
                name = f"scratch of {opened.where(position)}"
                yield Held(name, memory, *span, group=number, inside=(position, position))
            if work.sums:
                start = work.sums_at(self.schedule.cores)
                name = f"sums of {opened.where(position)}"
                yield Held(name, memory, start, start + work.sums, number, end, group=number)

    @cached_property
    def _sizes(self) -> dict[str, int | None]:
        outputs = {f"output {i}": self._graph.types[n].bytes for i, n in enumerate(self._graph.given)}
        return {**{name: memory.bytes for name, memory in self._plan.platform.memories.items()}, **outputs}

    def _misplaced(self, item: Held) -> Iterator[str]:
        if item.memory not in self._sizes:
            yield f"{item}: there is no {item.memory}"
            return
        size = self._sizes[item.memory]
        if item.start < 0 or (size is not None and item.end > size):
            yield f"{item} lies outside its {size} bytes"
        if item.start % self._alignment:
            yield f"{item} is not aligned to {self._alignment}"

    def _overlaps(self, held: Sequence[Held]) -> Iterator[str]:
        for memory in self._sizes:
            live: list[Held] = []
            for item in sorted((h for h in held if h.memory == memory), key=lambda h: h.first):
                live = [other for other in live if other.last >= item.first]
                for other in live:
                    meet = max(other.start, item.start) < min(other.end, item.end)
                    if meet and not self._may_share(other, item):
                        yield f"{other} overlaps {item} in group {max(item.first, 0)}"
                live.append(item)

    def _may_share(self, a: Held, b: Held) -> bool:
        if (a.group, a.buffer) == (b.group, b.buffer) and a.buffer >= 0:
            return True
        if a.group == b.group and a.inside and b.inside and (a.inside[1] < b.inside[0] or b.inside[1] < a.inside[0]):
            return True
        if (a.start, a.end) != (b.start, b.end):
            return False
        if a.buffer >= 0 and b.buffer >= 0 and a.group != b.group:
            return self._same(a, b) or self._same(b, a)
        if a.buffer >= 0 and b.buffer >= 0:
            opened = self.groups[a.group]
            return inlaid(opened, a.buffer, b.buffer) or self._in_buffer(opened, a, b) or self._in_buffer(opened, b, a)
        if a.tensor and b.tensor:
            return self._in_tensor(a, b) or self._in_tensor(b, a)
        return False

    def _same(self, a: Held, b: Held) -> bool:
        """Whether the second buffer holds what the first one left there, directly or through groups between them."""
        while b.group > a.group:
            left = self._resides(self.groups[b.group], b.buffer)
            if left is None:
                return False
            b = replace(b, group=left[0], buffer=left[1])
        # What lies within the result of a group is a part of what that leaves.
        same = a.buffer == b.buffer or self.groups[a.group].group.buffers[a.buffer].within == b.buffer
        return a.group == b.group and same

    def _in_buffer(self, opened: Opened, operand: Held, result: Held) -> bool:
        """Whether a node may write its result over a buffer that it reads."""
        taken, given = (opened.group.buffers[item.buffer] for item in (operand, result))
        writer = next((p for p, use in opened.users[result.buffer] if use.writes), None)
        if writer is None or max(p for p, _ in opened.users[operand.buffer]) != writer:
            return False
        for item in (operand, result):
            # What outlives a step is still needed when the result of the next one is written.
            if opened.role(item.buffer) == "inner" and (item.inside is None or opened.kept_bytes(item.buffer)):
                return False
        work = opened.group.works[writer]
        node, choice = self._graph.nodes[work.step], self._plan.choices[work.step]
        boxes = zip(opened.blocks[operand.buffer], opened.blocks[result.buffer], strict=True)
        return (
            (taken.slots, taken.bytes) == (given.slots, given.bytes)
            and len(opened.blocks[operand.buffer]) == len(opened.blocks[result.buffer])
            and all(everywhere(x.start == y.start) and everywhere(x.stop == y.stop) for x, y in boxes)
            and given.tensor == node.outputs[0]
            and replaceable(self._plan, node, choice, taken.tensor)
        )

    def _in_tensor(self, operand: Held, result: Held) -> bool:
        """Whether the last node of a group may write a whole tensor over one that it alone reads, for the last time."""
        if operand.last != result.first or result.first < 0:
            return False
        opened = self.groups[result.first]
        uses = {(p, use.tensor) for p, use in uses_of(opened) if self.root(use.tensor) == operand.tensor}
        step = opened.group.works[-1].step
        node, choice = self._graph.nodes[step], self._plan.choices[step]
        return (
            len(uses) == 1
            and next(iter(uses))[0] == opened.last
            and not opened.group.works[-1].buffers.keys()
            & {u.key for _, u in uses_of(opened) if u.tensor == operand.tensor}
            and node.outputs[0] == result.tensor
            and replaceable(self._plan, node, choice, next(iter(uses))[1])
            and not any(self._reads_later(other, result.first, operand.tensor) for other in self.groups)
        )

    def _reads_later(self, opened: Opened, number: int, tensor: str) -> bool:
        """Whether another engine reads a tensor for a group before some other one, and is not done before that."""
        read = any(not use.writes and self.root(use.tensor) == tensor for _, use in uses_of(opened))
        return read and opened.number < number <= self.moved.end(opened.number)

    def _capacity(self, held: Sequence[Held]) -> Iterator[str]:
        """Everything fits: what has an address, and in the home memory inputs, outputs and constants beside it."""
        used = {
            name: max((h.end for h in held if h.memory == name), default=0) for name in self._plan.platform.memories
        }
        types, home = self._graph.types, self.schedule.home
        more = dict.fromkeys(used, 0)
        more[home] += sum(types[name].bytes for name in (*self._graph.fed, *self._graph.given))
        if self._graph.states:
            more[self.schedule.states] += self._plan.state_bytes
        constants = {
            (use.tensor, use.pack): use.type.bytes
            for opened in self.groups
            for _, use in uses_of(opened)
            if self.root(use.tensor) in self._graph.constants
        }
        for (tensor, _), size in constants.items():
            more[self._plan.platform.in_place if self._direct(tensor) else home] += size
        for name, end in used.items():
            size, planned = self._sizes[name], self.schedule.used.get(name, 0)
            if planned < end:
                yield f"{end} bytes of {name} are used, but {planned} are asked for"
            if size is not None and end + more[name] > size:
                yield f"{name} has {size} bytes, but holds {end} of tensors and {more[name]} of ports and constants"
            if size is not None and planned > size:
                yield f"{planned} bytes of {name} are asked for, but it has {size}"


def _of(stage: Stage, use: Use) -> bool:
    return not use.writes and (stage.tensor, stage.pack) == (use.tensor, use.pack)


def _all_of_it(opened: Opened, index: int) -> bool:
    """Whether a buffer holds the whole tensor at every step; what rows are appended to is not loaded for it."""
    if any(opened.members[position].in_part(use.key) for position, use in opened.users[index]):
        return False
    wanted = whole(opened.users[index][0][1].type.shape)
    boxes = zip(opened.blocks[index], wanted, strict=True)
    return all(everywhere(x.start == y.start) and everywhere(x.stop == y.stop) for x, y in boxes)
