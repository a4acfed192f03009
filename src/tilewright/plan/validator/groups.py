"""The validator of tiled plans, one group at a time: loops, bindings, coverage, room in buffers, inner tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct

from tilewright.core.domain import Affine, Domain
from tilewright.core.op import REGISTRY
from tilewright.core.plan import Group, Plan, TileBuffer
from tilewright.core.tiles import Member, Use, member
from tilewright.machine.kernel import Kernel
from tilewright.plan.validator.regions import Box, Replay, Values, cover, everywhere, extents, most, rows, touched


class Opened(Struct, frozen=True, dict=True):
    """A group whose parts belong together, with its replay."""

    number: int
    group: Group
    replay: Replay
    ahead: bool
    """Whether its first node runs a step ahead of the others."""
    awaits: frozenset[str] = frozenset()
    """Operands that the kernel of its first node may await itself."""

    @property
    def members(self) -> Sequence[Member]:
        return self.replay.members

    @property
    def last(self) -> int:
        return len(self.members) - 1

    def where(self, position: int) -> str:
        return _where(self.number, self.members[position])

    def bound(self, position: int, use: Use) -> int | None:
        return self.group.works[position].buffers.get(use.key)

    @cached_property
    def users(self) -> tuple[tuple[tuple[int, Use], ...], ...]:
        """Which node touches each buffer with which use."""
        pairs = [(p, use) for p, m in enumerate(self.members) for use in m.uses]
        numbers = range(len(self.group.buffers))
        return tuple(tuple((p, use) for p, use in pairs if self.bound(p, use) == b) for b in numbers)

    @cached_property
    def blocks(self) -> tuple[Box, ...]:
        """What each buffer holds at every step."""
        return tuple(
            self.replay.held[buffer.tensor]
            if self.makes(number)
            else cover([self.replay.regions[position][use.key] for position, use in users])
            for number, (buffer, users) in enumerate(zip(self.group.buffers, self.users, strict=True))
        )

    def makes(self, buffer: int) -> bool:
        """Whether an inner tensor is made in a buffer; other buffers of it hold copies of parts, one reader each."""
        inner = self.group.buffers[buffer].tensor in self.replay.inner
        return inner and any(use.writes for _, use in self.users[buffer])

    def role(self, buffer: int) -> str:
        """`inner` for what stays in the group, `output` for what the last node makes, `input` for what is loaded."""
        if self.group.buffers[buffer].tensor in self.replay.inner:
            return "inner"
        return "output" if any(use.writes for _, use in self.users[buffer]) else "input"

    def inside(self, buffer: int) -> tuple[int, int] | None:
        """The nodes from first to last between which a buffer is needed; None where it outlives a step.

        Of a buffer with kept lines that holds behind the lines, which stay at its start.
        """
        tensor = self.group.buffers[buffer].tensor
        if self.role(buffer) != "inner" or (self.ahead and tensor == self.members[0].output.tensor):
            return None
        positions = [position for position, _ in self.users[buffer]]
        if self.makes(buffer):
            positions = [p for p, m in enumerate(self.members) if any(use.tensor == tensor for use in m.uses)]
        # A node that runs less often than its readers leaves its result for several steps.
        if self.replay.pace(min(positions)) < max(self.replay.pace(p) for p in positions):
            return None
        return min(positions), max(positions)

    def kept_bytes(self, buffer: int) -> int:
        """Bytes of the lines that stay at the start of a buffer from step to step."""
        tensor = self.group.buffers[buffer].tensor
        axis = self.group.keep.get(tensor)
        if axis is None or not self.makes(buffer):
            return 0
        held, new = self.replay.held[tensor], self.replay.missing(tensor)
        lines: Values = np.asarray(held[axis].size) - new[axis].size
        for other, part in enumerate(held):
            lines = lines * part.size if other != axis else lines
        return most(lines) * self.users[buffer][0][1].type.dtype.bytes


def uses_of(opened: Opened) -> Iterator[tuple[int, Use]]:
    for position, mine in enumerate(opened.members):
        for use in mine.uses:
            yield position, use


def open_group(plan: Plan, number: int, group: Group, *, ahead: bool) -> tuple[Opened | None, list[str]]:
    """A group ready to be checked, or why it cannot be."""
    found = [
        member(plan.graph, plan.graph.nodes[work.step], plan.choices[work.step].kernel)
        for work in group.works
        if REGISTRY[plan.graph.nodes[work.step].op].kind != "view" or plan.graph.nodes[work.step].epilogue
    ]
    kernel = plan.choices[group.works[-1].step].kernel
    problems = [*_loops(number, group, found[-1], kernel), *_bindings(number, group, found)]
    if problems:
        return None, problems
    first = plan.choices[group.works[0].step].kernel
    awaits = frozenset(first.awaits) if first is not None else frozenset[str]()
    opened = Opened(number, group, Replay(found, group.loops, group.keep), ahead, awaits)
    problems = [f"group {number}: {reason}" for reason in opened.replay.problems]
    return (None if problems else opened), problems


def _where(number: int, mine: Member) -> str:
    return f"group {number}, {mine.node.op} '{mine.node.label}'"


def _loops(number: int, group: Group, last: Member, kernel: Kernel | None) -> Iterator[str]:
    """Loops cut different dimensions of the last node into tiles that cover them without overlap.

    They are parallel ones, or reductions that the kernel of a node that is alone adds up, innermost.
    """
    where, domain = _where(number, last), last.domain
    names = [loop.dim for loop in group.loops]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{where}: {names.count(name)} loops run over {name}"
    for loop in group.loops:
        extent = domain.dims.get(loop.dim)
        tiles = f"{loop.count} tiles of {loop.size} along {loop.dim}"
        if extent is None:
            yield f"{where}: {tiles}, which is none of its dimensions ({', '.join(domain.dims)})"
        elif loop.size < 1 or loop.count < 1:
            yield f"{where}: {tiles}"
        elif loop.count > 1 and loop.dim not in domain.parallel and not (kernel and loop.dim in kernel.accumulate):
            yield f"{where}: {tiles}, which {'must stay whole' if loop.dim in domain.whole else 'is no parallel one'}"
        elif loop.size * loop.count < extent:
            yield f"{where}: {tiles} cover {loop.size * loop.count} of {extent}"
        elif loop.size * (loop.count - 1) >= extent:
            yield f"{where}: {tiles}, but {-(-extent // loop.size)} cover all {extent}"

    yield from (f"{where}: {reason}" for reason in _parts(group, domain, kernel))


def _parts(group: Group, domain: Domain, kernel: Kernel | None) -> Iterator[str]:
    """What is wrong with loops over parts of reductions."""
    cut = [loop.dim for loop in group.loops if loop.count > 1]
    reduced = [name for name in cut if name in domain.dims and name not in domain.parallel]
    if reduced and cut[-len(reduced) :] != reduced:
        yield f"loops over {', '.join(cut)}, but parts of {', '.join(reduced)} must be added up innermost"
    if reduced and len(group.works) > 1:
        yield f"parts of {reduced[0]} of one of {len(group.works)} nodes"
    if reduced and kernel is not None and not (kernel.epilogue or kernel.keeps_sums):
        yield f"parts of {reduced[0]}, but kernel {kernel.where} has no epilogue that adds them up"
    for name in reduced:
        if any(name in domain.relevant(output) for output in domain.outputs):
            yield f"parts of {name}, which is no reduction"
        for key, axes in domain.access.items():
            for axis in axes:
                others = [n for n in axis.dims if n != name and domain.dims[n] > 1] if isinstance(axis, Affine) else []
                if isinstance(axis, Affine) and name in axis.dims and others:
                    yield f"parts of {name}, which shares an axis of {key} with {others[0]}"
    if not reduced and any(work.sums for work in group.works):
        yield "has bytes for sums, but no loop over parts"


def _bindings(number: int, group: Group, members: Sequence[Member]) -> Iterator[str]:
    """Uses name buffers of their own tensor."""
    taken: dict[int, Use] = {}
    for work, mine in zip(group.works, members, strict=True):
        where, uses = _where(number, mine), {use.key: use for use in mine.uses}
        for key, index in work.buffers.items():
            if key not in uses:
                yield f"{where}: has buffer {index} for '{key}', which it does not touch ({', '.join(uses)})"
                continue
            if not 0 <= index < len(group.buffers):
                yield f"{where}: {key} is in buffer {index} of {len(group.buffers)}"
                continue
            use, buffer = uses[key], group.buffers[index]
            if (buffer.tensor, buffer.pack) != (use.tensor, use.pack):
                yield f"{where}: {key} is {_packed(use)}, its buffer {index} is for {_packed(buffer)}"
            elif taken.setdefault(index, use).type.shape != use.type.shape:
                yield f"{where}: {key} is {use.type}, but buffer {index} holds {taken[index].type}"
    for index, buffer in enumerate(group.buffers):
        if index not in taken:
            yield f"group {number}: buffer {index} of '{buffer.tensor}' serves no operand"
        if buffer.slots < 1:
            yield f"group {number}: buffer {index} of '{buffer.tensor}' has {buffer.slots} slots"


def _packed(value: Use | TileBuffer) -> str:
    return f"'{value.tensor}'" + (f" packed {value.pack}" if value.pack else "")


# Checks of an opened group


def group_problems(opened: Opened) -> Iterator[str]:
    yield from _room(opened)
    yield from _covered(opened)
    yield from _inner(opened)
    if opened.ahead:
        yield from (f"{opened.where(0)} runs ahead, but {reason}" for reason in _ahead(opened))


def _room(opened: Opened) -> Iterator[str]:
    """Buffers hold the largest region that comes to lie in them."""
    for index, (buffer, box) in enumerate(zip(opened.group.buffers, opened.blocks, strict=True)):
        element = opened.users[index][0][1].type.dtype.bytes
        bound = element
        for part in box:
            bound *= most(part.size)
        if bound <= buffer.bytes:
            continue
        # The largest extents may belong to different steps.
        sizes = np.asarray(element)
        for part in box:
            sizes = sizes * part.size
        if most(sizes) > buffer.bytes:
            yield (
                f"group {opened.number}: buffer {index} of '{buffer.tensor}' has {buffer.bytes} bytes, "
                f"its tile of {extents(box)} needs {most(sizes)}"
            )


def _covered(opened: Opened) -> Iterator[str]:
    """Tiles cover each result of the last node exactly once."""
    where, mine = opened.where(opened.last), opened.members[opened.last]
    for use in mine.uses:
        if use.writes and use.type.bytes:
            box = opened.replay.regions[opened.last][use.key]
            parallel = mine.domain.parallel
            moving = [i for i, loop in enumerate(opened.group.loops) if loop.count > 1 and loop.dim in parallel]
            for loop in moving:
                if not opened.replay.depends(box) & {loop}:
                    name = opened.group.loops[loop].dim
                    yield f"{where}: every tile along {name} writes the same part of '{use.tensor}'"
            gaps = covering(opened, box, touched(mine.domain, use.key, {}), once=True)
            yield from (f"{where}: tiles of '{use.tensor}' {reason}" for reason in gaps)


def covering(opened: Opened, box: Box, full: Box, *, once: bool) -> Iterator[str]:
    """Why regions of all steps do not cover a box, axis by axis, which is enough where no loop moves two axes."""
    moved: dict[int, int] = {}
    for axis, (part, goal) in enumerate(zip(box, full, strict=True)):
        for loop in opened.replay.depends([part]):
            if moved.setdefault(loop, axis) != axis:
                yield f"move along axes {moved[loop]} and {axis} with {opened.group.loops[loop].dim}"
        starts, stops = (array.ravel() for array in np.broadcast_arrays(part.start, part.stop))
        order = np.argsort(starts, kind="stable")
        starts, reached = starts[order], np.maximum.accumulate(stops[order])
        if starts[0] > goal.start or reached[-1] < goal.stop:
            yield f"cover {starts[0]}..{reached[-1]} of {goal.start}..{goal.stop} along axis {axis}"
        wrong = np.flatnonzero(starts[1:] > reached[:-1])
        if wrong.size:
            yield f"leave {reached[wrong[0]]}..{starts[wrong[0] + 1]} out along axis {axis}"
        wrong = np.flatnonzero(starts[1:] < reached[:-1])
        if once and wrong.size:
            yield f"overlap at {starts[wrong[0] + 1]}..{reached[wrong[0]]} along axis {axis}"


def _inner(opened: Opened) -> Iterator[str]:
    """At each step, inner tensors hold what their readers need: computed then, or kept from the step before."""
    for tensor, axis in opened.group.keep.items():
        yield from (f"group {opened.number}: {reason}" for reason in opened.replay.kept(tensor, axis))
    if opened.group.keep:
        yield from _ends(opened)
    for position in range(opened.last):
        mine, where = opened.members[position], opened.where(position)
        results = [use for use in mine.uses if use.writes]
        if len(results) > 1:
            yield f"{where}: makes {len(results)} tensors, which only the last node of a group may"
        tensor = mine.output.tensor
        uses = [(p, use) for p, m in enumerate(opened.members) for use in m.uses if use.tensor == tensor]
        bound = {opened.bound(p, use) for p, use in uses}
        served = {index for index in bound if index is None or opened.makes(index)}
        if len(served) > 1:
            names = sorted("its place" if index is None else f"buffer {index}" for index in served)
            yield f"{where}: '{tensor}' is written and read in different places: {', '.join(names)}"
        for index in bound:
            if index is None and tensor in opened.group.keep:
                yield f"{where}: keeps lines of '{tensor}', which has no buffer"
            elif index is not None and opened.group.buffers[index].slots != 1 and not (opened.ahead and not position):
                yield f"{where}: '{tensor}' stays in the group, but has {opened.group.buffers[index].slots} slots"
        yield from (f"{where}: {reason}" for reason in _made(opened, position, bound=served != {None}))


def _ahead(opened: Opened) -> Iterator[str]:
    """What a first node that runs a step ahead writes and reads is not what the others work on at that time."""
    made = opened.members[0].output.tensor
    reduced = opened.members[-1].domain.reduction
    if not opened.group.loops:
        yield "there is nothing that it could be ahead of"
    elif opened.group.works[0].sums and any(loop.dim in reduced for loop in opened.group.loops):
        yield "its results take several steps"
    if made in opened.group.keep:
        yield f"lines of '{made}' are kept"
    for index, (buffer, users) in enumerate(zip(opened.group.buffers, opened.users, strict=True)):
        mine = any(position == 0 for position, _ in users)
        if mine and buffer.tensor != made and any(position > 0 for position, _ in users):
            yield f"others use its buffer {index} of '{buffer.tensor}', too"
        changes = any(np.size(end) > 1 for part in opened.blocks[index] for end in (part.start, part.stop))
        if mine and changes and buffer.slots < 2:
            yield f"its buffer {index} of '{buffer.tensor}' has one slot"


def _made(opened: Opened, position: int, *, bound: bool) -> Iterator[str]:
    """Whether an inner node makes what is missing of its result, and nothing that does not lie in the buffer."""
    tensor, replay = opened.members[position].output.tensor, opened.replay
    makes, holds = replay.regions[position][opened.members[position].output.key], replay.held[tensor]
    for axis, (make, need, hold) in enumerate(zip(makes, replay.missing(tensor), holds, strict=True)):
        enough = (np.asarray(make.start) <= need.start) & (make.stop >= need.stop) | (np.asarray(need.size) <= 0)
        if not everywhere(enough):
            yield f"makes {rows(make, enough)} of '{tensor}' along axis {axis}, needed is {rows(need, enough)}"
        fits = (np.asarray(make.start) >= hold.start) & (make.stop <= hold.stop) | (np.asarray(make.size) <= 0)
        if bound and not everywhere(fits):
            yield f"makes {rows(make, fits)} of '{tensor}' along axis {axis}, its buffer holds {rows(hold, fits)}"


def _ends(opened: Opened) -> Iterator[str]:
    """Lines to keep are found from where the step before would end without any kept, so both must end alike."""
    plain = Replay(opened.members, opened.group.loops, {})
    for tensor, axis in opened.group.keep.items():
        if tensor in opened.replay.held and 0 <= axis < len(plain.held[tensor]):
            mine, other = opened.replay.held[tensor][axis], plain.held[tensor][axis]
            same = np.asarray(mine.stop) == other.stop
            if not everywhere(same):
                yield (
                    f"group {opened.number}: lines of '{tensor}' end at {rows(mine, same)} with lines kept, "
                    f"at {rows(other, same)} without"
                )
