"""Cycles of a layer on an array: stalls where ports are too slow, and loading before and storing after the work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from math import ceil, prod

import numpy as np

from tilewright.core.workload import Layer
from tilewright.machine.array import FROM_HIGH, FROM_LOW, TO_HIGH, TO_LOW
from tilewright.price.array_moves import ArrayMove
from tilewright.price.array_nest import OperandNest

Flags = Mapping[tuple[str, int], bool]
"""By operand and entry of its nest."""
PortKey = tuple[str, str]
"""Names of a memory and of a port of it."""


def double_buffers(
    layer: Layer, nests: Mapping[str, OperandNest], *, corrected: bool = False
) -> dict[tuple[str, int], bool]:
    """Which tiles can be filled while the one before is in use: what is left of the memory has room for it.

    `corrected`: memories that have two buffers always can.
    """
    used: dict[str, float] = {}
    for nest in nests.values():
        for level, memory in enumerate(nest.memories):
            used[memory.name] = used.get(memory.name, 0.0) + _needed(nest, level)
    flags: dict[tuple[str, int], bool] = {(operand.name, 0): False for operand in layer.operands}
    for operand in layer.operands:
        nest = nests[operand.name]
        for level, memory in enumerate(nest.memories):
            share, whole = _needed(nest, level), used[memory.name]
            flags[operand.name, level + 1] = whole <= 0.5 or share <= 1 - whole
            if whole > 0.5 and share <= 1 - whole:
                used[memory.name] = whole + share
            if corrected and memory.double_buffered:
                flags[operand.name, level + 1] = True
    return flags


def _needed(nest: OperandNest, level: int) -> float:
    """The part of a memory that is in use at a time: a tile less what its outermost loops bring anew."""
    return nest.tile_bits(level + 1) // nest.relevant_runs[level + 1] / nest.memories[level].bits


def held(stalls: Mapping[PortKey, int], ports: Mapping[PortKey, Sequence[ArrayMove]]) -> int:
    """Cycles for which the array waits: for the slowest port, and for every one that it cannot work beside."""
    exclusive = {key for key, moves in ports.items() if moves[0].port and moves[0].port.exclusive}
    beside = max([0, *(cycles for key, cycles in stalls.items() if key not in exclusive)])
    return beside + sum(stalls[key] for key in exclusive)


def by_port(moves: Iterable[ArrayMove]) -> dict[PortKey, list[ArrayMove]]:
    """What crosses each port."""
    found: dict[PortKey, list[ArrayMove]] = {}
    for move in moves:
        if move.port is not None:
            found.setdefault((move.memory.name, move.port.name), []).append(move)
    return found


def allowed(move: ArrayMove, flags: Flags, cycles: float) -> int:
    """Cycles in which a move may happen without holding up the array."""
    if move.port is not None and move.port.exclusive:
        return 0
    return ceil(cycles * (move.period if flags[move.operand, move.entry] else move.window))


def stall(moves: Sequence[ArrayMove], flags: Flags, cycles: float) -> int:
    """Cycles for which a port holds up the array; negative where it has slack."""
    slacks = [(move.busy - allowed(move, flags, cycles)) * (move.times - 1) for move in moves]
    if len(moves) == 1 or (moves[0].port and moves[0].port.exclusive):
        return sum(slacks)
    windows = sum(allowed(move, flags, cycles) * (move.times - 1) for move in moves)
    late = sum(slack for slack in slacks if slack > 0)
    early = sum(slack for slack in slacks if slack <= 0)
    return late + max(0, early + windows - _union(moves, flags, cycles))


def _union(moves: Sequence[ArrayMove], flags: Flags, cycles: float) -> int:
    """Cycles of the whole layer that lie in the window of some move."""
    periods = [ceil(cycles * move.period) for move in moves]
    windows = [allowed(move, flags, cycles) for move in moves]
    for move, period, window in zip(moves, periods, windows, strict=True):
        if period == window:
            return period * move.times
    longest = max(range(len(moves)), key=lambda i: periods[i])
    marked = np.zeros(periods[longest], dtype=bool)
    for period, window in zip(periods, windows, strict=True):
        marked.reshape(-1, period)[:, :window] = True
    return int(marked.sum()) * moves[longest].times


def loading_times(
    moves: Sequence[ArrayMove],
    nests: Mapping[str, OperandNest],
    working: int,
    cycles: float,
    *,
    corrected: bool = False,
) -> dict[tuple[str, int, str], float]:
    """Cycles of one port for the first load and the last store of each move, as far as they are not hidden.

    `corrected`: no move takes less than its first tile for all copies of the innermost memory, and what the port has
    left is spent once.
    """
    found = [move for move in moves if not (nests[move.operand].is_output and move.direction in (TO_LOW, FROM_HIGH))]
    times = {(move.operand, move.level, move.direction): float(move.busy) for move in found}
    once = [move for move in found if move.times == 1]
    if not once or once[0].port is None or once[0].port.exclusive:
        return times
    bandwidth = once[0].port.bits
    needed = sum(ceil(move.average / cycles) for move in found if move.times > 1)
    surplus = max(0.0, (bandwidth - needed) / bandwidth * working)
    busy = [float(move.busy) for move in once]
    if corrected:
        least = [min(move.busy, ceil(_first_bits(nests[move.operand], move) / bandwidth)) for move in once]
        reduced = _levelled(busy, least, surplus)
    else:
        least = [ceil(nests[move.operand].tile_bits(1) / bandwidth) for move in once]
        reduced = _reduced(busy, least, surplus)
    for move, left in zip(once, reduced, strict=True):
        times[move.operand, move.level, move.direction] = left
    return times


def _first_bits(nest: OperandNest, move: ArrayMove) -> int:
    """Bits that have to cross a memory before the array can begin: a tile for each innermost memory with other data."""
    return nest.tile_bits(1) * prod(nest.widths[1 : move.level + 1])


def _levelled(needed: list[float], least: list[int], surplus: float) -> list[float]:
    """Takes surplus cycles off the longest ones, so that they come out as even as their least cycles allow."""
    low, high = 0.0, max(needed)
    if sum(n - m for n, m in zip(needed, least, strict=True)) <= surplus:
        return [float(m) for m in least]
    for _ in range(64):
        middle = (low + high) / 2
        taken = sum(n - min(n, max(m, middle)) for n, m in zip(needed, least, strict=True))
        low, high = (middle, high) if taken > surplus else (low, middle)
    return [min(n, max(float(m), high)) for n, m in zip(needed, least, strict=True)]


def _reduced(needed: list[float], least: list[int], surplus: float) -> list[float]:
    """Takes surplus cycles off the longest ones first."""
    order = sorted(range(len(needed)), key=lambda i: (-needed[i], -least[i]))
    left = [needed[i] for i in order]
    floors = [least[i] for i in order]
    for last in range(len(left)):
        most = (left[last] - floors[last]) * (last + 1)
        if surplus < most:
            left[: last + 1] = [value - surplus / (last + 1) for value in left[: last + 1]]
            break
        taken = left[last] - floors[last]
        left[: last + 1] = [value - taken for value in left[: last + 1]]
        surplus -= most
    result = [0.0] * len(needed)
    for place, value in zip(order, left, strict=True):
        result[place] = value
    return result


def loading(
    layer: Layer,
    nests: Mapping[str, OperandNest],
    times: Mapping[tuple[str, int, str], float],
    *,
    corrected: bool = False,
) -> float:
    """Cycles until the array has its first operands.

    `corrected`: every link that is shared on one end counts, not the outermost alone.
    """
    parts = [_links(layer, nests[operand.name], times, corrected) for operand in layer.inputs]
    return min(_in_turn(order) for order in permutations(parts)) if parts else 0.0


def _in_turn(parts: Sequence[tuple[float, float, float]]) -> float:
    """Shared links are used one operand after another, the others side by side."""
    begun, ended = 0.0, 0.0
    for shared, half, separate in parts:
        begun += shared
        ended = max(ended, begun + half + separate)
    return ended


def _links(
    layer: Layer, nest: OperandNest, times: Mapping[tuple[str, int, str], float], corrected: bool
) -> tuple[float, float, float]:
    """Cycles on links that operands share on both ends, on one end, and on neither."""
    shared = half = separate = 0.0
    name = nest.operand.name
    for level in range(nest.depth - 1):
        ends = ((level, FROM_HIGH), (level + 1, TO_LOW))
        cycles = max(times.get((name, at, direction), 0.0) for at, direction in ends)
        both = [_shared(layer, nest, at, direction) for at, direction in ends]
        if all(both):
            shared += cycles
        elif any(both):
            half = half + cycles if corrected else cycles
        else:
            separate += cycles
    return shared, half, separate


def _shared(layer: Layer, nest: OperandNest, level: int, direction: str) -> bool:
    """Whether other inputs use the same port."""
    port = nest.memories[level].port(nest.operand.slot, direction)
    others = {operand.slot for operand in layer.inputs if operand.name != nest.operand.name}
    return port is not None and any(slot in others for slot, _ in port.moves)


def storing(nest: OperandNest, times: Mapping[tuple[str, int, str], float]) -> float:
    """Cycles from the last operation until results are in the outermost memory."""
    name = nest.operand.name
    return sum(
        max(times.get((name, level, TO_HIGH), 0.0), times.get((name, level + 1, FROM_LOW), 0.0))
        for level in range(nest.depth - 1)
    )
