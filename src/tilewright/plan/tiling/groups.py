"""Bytes and cycles of all tilings of a group, and the groups made of those that are chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tilewright.core.plan import Group, NodeWork, TileBuffer
from tilewright.core.tiles import TileLoop
from tilewright.plan.addresses.stacking import Piece, stack
from tilewright.plan.tiling.frame import Frame, Holder, Order
from tilewright.plan.tiling.rules import Option
from tilewright.price.grid import Array, Value
from tilewright.price.tiles import queue_cycles
from tilewright.price.transfers import Traffic, in_turn, overlapped


class Surroundings(Struct, frozen=True):
    """Where the tensors of a group live, and what it may take."""

    near: frozenset[str]
    """Tensors that lie whole where cores reach them."""
    source: Mapping[str, str]
    """The memory of others."""
    buffers: int
    """Slots of buffers that are filled more than once; 0: one or two."""
    most_points: float
    """Points that may be computed, those computed twice included."""


class Share(Struct, frozen=True, eq=False):
    """How cores share a node: for each tiling one of the options, -1 where none is allowed."""

    options: Sequence[Option]
    choice: Array
    cycles: Array
    """Over classes."""
    scratch: Value
    """Of all cores, for each tiling."""


class Tilings(Struct, frozen=True, eq=False):
    """All tilings of a frame with the same number of slots and the same use of cores."""

    frame: Frame
    direct: Mapping[int, Value]
    """Tilings with which near tensors need no buffer, by holder."""
    shares: Sequence[Share]
    slots: int
    bytes: Array
    cycles: Array
    """Infinite where a tiling is not allowed."""
    moved: Array
    macs: Array
    order: Array
    """Which order of the loops is the best."""
    ahead: Array
    """Whether the first node runs a step ahead, or, if it is alone, has its next step queued."""
    inlaid: frozenset[int]
    """Holders that lie within that of the result."""


def evaluated(frame: Frame, around: Surroundings) -> list[Tilings]:
    """Bytes and the best cycles of every tiling."""
    outside = {i: h.use.tensor for i, h in enumerate(frame.holders) if not h.inner}
    direct = {i: frame.direct(i) for i, tensor in outside.items() if tensor in around.near}
    near = frame.engine.memory
    memories = {
        index: near if index in direct else around.source.get(tensor, near)
        for index, tensor in outside.items()
        if not np.all(frame.absent(index, direct))
    }
    found: list[Tilings] = []
    for inlaid in dict.fromkeys((frame.inlaid(memories), frozenset[int]())):
        transfers = [frame.traffic(order, memories, direct, inlaid) for order in frame.orders]
        found += _shared(frame, around, direct, transfers, inlaid)
    return found


def _shared(
    frame: Frame,
    around: Surroundings,
    direct: Mapping[int, Value],
    transfers: Sequence[Traffic],
    inlaid: frozenset[int],
) -> list[Tilings]:
    """By all cores and, where these take more scratch, by one."""
    found: list[Tilings] = []
    for alone in (False, True) if frame.engine.count > 1 else (True,):
        if found and not any(np.any(share.scratch) for share in found[0].shares):
            # One core takes less scratch, and there is none.
            break
        shares = [_share(frame, position, direct, alone, inlaid) for position in range(len(frame.tasks))]
        allowed = frame.legal & frame.uncut(inlaid)
        for share in shares:
            allowed = allowed & (share.choice >= 0)
        if np.any(allowed):
            found += _tilings(frame, around, direct, shares, transfers, allowed, inlaid)
    return found


def _share(frame: Frame, position: int, direct: Mapping[int, Value], alone: bool, inlaid: frozenset[int]) -> Share:
    """The fastest way to share a node, of those that its kernel allows."""
    shape = (1,) * frame.grid.rank
    best, choice = np.full(shape, np.inf), np.full(shape, -1)
    cycles, scratch = np.zeros(shape), np.zeros(shape, int)
    options = frame.options(position, inlaid, direct)
    for index, option in enumerate(options):
        if alone and option.split:
            continue
        worst = np.where(frame.allowed(position, option, direct), option.worst, np.inf)
        better = worst < best
        best, choice = np.where(better, worst, best), np.where(better, index, choice)
        cycles = np.where(frame.grid.over_classes(better), option.cycles, cycles)
        scratch = np.where(better, option.scratch, scratch)
    return Share(options, choice, cycles, scratch)


def whole_cycles(frame: Frame) -> float:
    """Of a node alone that is not cut: cycles of the cores, shared in the best way; infinite where there is none."""
    share = _share(frame, 0, {}, False, frozenset())
    return float(share.cycles.sum()) if np.all(share.choice >= 0) else np.inf


def _tilings(
    frame: Frame,
    around: Surroundings,
    direct: Mapping[int, Value],
    shares: Sequence[Share],
    transfers: Sequence[Traffic],
    allowed: Array,
    inlaid: frozenset[int],
) -> list[Tilings]:
    """With each number of slots: the bytes, and the best order."""
    counts = [around.buffers] if around.buffers else [2, 1]
    shape = frame.grid.steps.shape
    timed: dict[int, list[Array]] = {count: [] for count in counts}
    ahead: dict[int, list[Array]] = {count: [] for count in counts}
    macs: list[Array] = []
    for order, moves in zip(frame.orders, transfers, strict=True):
        works = [share.cycles for share in shares]
        beside, first = frame.compute(order, works, ahead=frame.ahead)
        serial = frame.compute(order, works, ahead=False)[0] if frame.ahead and 1 in counts else beside
        points = frame.points(order)
        fine = allowed & (points <= around.most_points)
        for count in counts:
            if count > 1:
                cycles = overlapped(frame.grid, beside, moves, first=first)
            else:
                cycles = in_turn(frame.grid, serial, moves)
            sooner = np.full(shape, frame.ahead and count > 1)
            if frame.queue is not None and count > 1:
                queued = queue_cycles(frame.grid, frame.queue, beside, moves)
                sooner = np.broadcast_to((queued < cycles) & (frame.sums == 0), shape)
                cycles = np.where(sooner, queued, cycles)
            timed[count].append(np.broadcast_to(np.where(fine, cycles, np.inf), shape))
            ahead[count].append(sooner)
        macs.append(np.broadcast_to(points, shape))
    moved = [np.broadcast_to(moves.moved, shape) for moves in transfers]
    found: list[Tilings] = []
    for count in counts:
        best, (taken, most, points, sooner) = _best_of(timed[count], moved, macs, ahead[count])
        size = np.broadcast_to(_bytes(frame, direct, shares, count, inlaid), shape)
        found.append(Tilings(frame, direct, shares, count, size, taken, most, points, best, sooner, inlaid))
    return found


def _best_of(cycles: Sequence[Array], *others: Sequence[Array]) -> tuple[Array, list[Array]]:
    """Which of several orders takes the fewest cycles, for each tiling; these, and other values of that order."""
    if len(cycles) == 1:
        return np.zeros(cycles[0].shape, int), [cycles[0], *(values[0] for values in others)]
    best = np.argmin(np.stack(cycles), axis=0)[None]
    return best[0], [np.take_along_axis(np.stack(values), best, 0)[0] for values in (cycles, *others)]


def _bytes(
    frame: Frame, direct: Mapping[int, Value], shares: Sequence[Share], slots: int, inlaid: frozenset[int]
) -> Array:
    """Bytes of each tiling: what lives through a step, and the fullest moment of the rest."""
    through = np.zeros((1,) * frame.grid.rank, int) + frame.sums
    moments: list[Value] = [share.scratch for share in shares]
    for index, holder in enumerate(frame.holders):
        if index in inlaid:
            continue
        size = holder.room * np.where(holder.again, slots, 1)
        size = np.where(frame.absent(index, direct), 0, size)
        if not holder.through:
            # In place, the bytes at the node that makes it are those of the operand.
            for position in range(holder.first + (holder.over >= 0), holder.last + 1):
                moments[position] = moments[position] + size - holder.kept
            through = through + holder.kept
        elif holder.over < 0:
            through = through + size
        else:
            through = through + np.where(frame.absent(holder.over, direct), size, 0)
    peak: Value = 0
    for moment in moments:
        peak = np.maximum(peak, moment)
    return through + peak


# Groups


def built(found: Tilings, number: int, steps: Sequence[int]) -> tuple[Group, int]:
    """The group of one tiling, with offsets from 0, and the bytes that it needs."""
    frame, grid = found.frame, found.frame.grid
    index = np.unravel_index(number, found.bytes.shape)

    def at(value: Value) -> int:
        if not isinstance(value, np.ndarray) or not value.ndim:
            return int(value)
        return int(value[tuple(int(i) if n > 1 else 0 for i, n in zip(index, value.shape, strict=True))])

    chosen = [i for i in range(len(frame.holders)) if not at(frame.absent(i, found.direct))]
    bound: list[dict[str, int]] = [{} for _ in found.shares]
    for each, holder in enumerate(frame.holders):
        serving = each if each in chosen else holder.within
        if serving in chosen and not at(found.direct.get(each, 0)):
            for position, key in holder.served:
                bound[position][key] = chosen.index(serving)
    holders = [frame.holders[i] for i in chosen]
    over = [chosen.index(h.over) if h.over in chosen else -1 for h in holders]
    sizes = [at(holder.room) for holder in holders]
    slots = [found.slots if at(holder.again) else 1 for holder in holders]
    scratch = [at(share.scratch) for share in found.shares]
    parts = [chosen.index(index) for index in found.inlaid]
    taken = [0 if n in parts else size * slots[n] for n, size in enumerate(sizes)]
    kept = [at(holder.kept) for holder in holders]
    offsets, end = placed(holders, over, taken, kept, scratch)
    buffers = tuple(
        TileBuffer(h.use.tensor, offset, size, count, h.use.pack)
        for h, offset, size, count in zip(holders, offsets, sizes, slots, strict=False)
    )
    buffers = _within(buffers, bound[-1].get(frame.grid.members[-1].output.key, -1), parts)
    sums = at(frame.sums)
    works: list[NodeWork] = []
    for position, share in enumerate(found.shares):
        option = share.options[at(share.choice)]
        # Sums, which only a node that is alone has, lie behind its scratch.
        place = offsets[len(holders) + position] if scratch[position] else end if sums else 0
        own = scratch[position] // frame.callers(position, option.split)
        keys = MappingProxyType(bound[position])
        works.append(NodeWork(steps[position], keys, place, own, option.split, at(option.chunk), sums))
    order: Order = frame.orders[at(found.order)]
    loops = [TileLoop(grid.cuts[i].dim, grid.cuts[i].sizes[int(index[i])], at(grid.counts[i])) for i in order]
    # A loop that runs once keeps nothing, and is not the innermost any more.
    keep = MappingProxyType(dict(grid.keep) if grid.keep and at(grid.counts[grid.sweep]) > 1 else {})
    cycles = float(found.cycles[index])
    real = tuple(loop for loop in loops if loop.count > 1)
    ahead = bool(found.ahead[index]) and bool(real)
    return Group(tuple(works), real, buffers, keep, cycles, ahead), end + sums


def _within(buffers: tuple[TileBuffer, ...], result: int, parts: Sequence[int]) -> tuple[TileBuffer, ...]:
    """Buffers of which some have the bytes of the result's."""
    if not parts:
        return buffers
    same = replace(buffers[result], within=result)
    return tuple(replace(same, tensor=b.tensor, pack=b.pack) if n in parts else b for n, b in enumerate(buffers))


def placed(
    holders: Sequence[Holder],
    over: Sequence[int],
    sizes: Sequence[int],
    kept: Sequence[int],
    scratch: Sequence[int],
) -> tuple[list[int], int]:
    """Offsets of buffers and of the scratch of each node: what lives through all steps first."""
    offsets = [0] * (len(holders) + len(scratch))
    roots = [_first_of(over, number) for number in range(len(holders))]
    end = 0
    pieces: dict[int, Piece] = {}
    for number, (holder, size, lines) in enumerate(zip(holders, sizes, kept, strict=True)):
        root = roots[number]
        if holder.through:
            offsets[number] = offsets[root] if root != number else end
            end += size if root == number else 0
        elif size:
            known = pieces.get(root, Piece(size, holder.first, holder.last, lines))
            first, last = min(known.first, holder.first), max(known.last, holder.last)
            pieces[root] = Piece(max(known.size, size), first, last, max(known.kept, lines))
    for position, size in enumerate(scratch):
        if size:
            pieces[len(holders) + position] = Piece(size, position, position)
    if pieces:
        placed, top = stack(list(pieces.values()))
        for number, offset in zip(pieces, placed, strict=True):
            offsets[number] = end + offset
        for number, root in enumerate(roots):
            if root in pieces and not holders[number].through:
                offsets[number] = offsets[root]
        end += top
    return offsets, end


def _first_of(over: Sequence[int], number: int) -> int:
    """The buffer whose bytes one takes, which may have taken those of another."""
    while over[number] >= 0:
        number = over[number]
    return number
