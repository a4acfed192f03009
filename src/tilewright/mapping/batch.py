"""The cost of many mappings at once: the model of `tilewright.price.array` over arrays with one mapping in a row.

It runs on NumPy, or on any library with the same names for `arange`, `asarray`, `ceil`, `floor`, `log2`, `where`,
`zeros` and `zeros_like` and with the usual operators on arrays (CuPy and PyTorch, for instance), given as `xp`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from math import ceil
from typing import Any

import numpy as np
from msgspec import Struct

from tilewright.machine.array import FROM_HIGH, FROM_LOW, TO_HIGH, TO_LOW
from tilewright.mapping.batch_ports import Array, covered_cycles, levelled, reduced
from tilewright.mapping.tables import NEW, SAME, MoveTable, OperandTable, Problem

Place = tuple[int, int]
"""An operand and an entry of its nest."""
Loops = Sequence[tuple[str, int]]
"""Dimensions with their steps."""


class Profile(Struct, frozen=True):
    """What the cost depends on, a mapping in a row."""

    nodes: Mapping[Place, Array]
    """Nodes at which tiles change; entry 0 (inputs only): until when a unit keeps its operand."""
    new_runs: Mapping[Place, Array]
    """Steps of the outermost loops at a memory, as far as all of them bring other data."""
    same_runs: Mapping[Place, Array]
    """The same for loops that bring the same data."""


class BatchCosts(Struct, frozen=True):
    """A mapping in a row."""

    energy: Array
    stall: Array
    loading: Array
    storing: Array
    latency: Array


class OperandLink(Struct, frozen=True):
    """The way of an operand between two of its memories."""

    ends: tuple[Place, ...]
    """Positions of its two moves: (port, position among the moves of the port)."""
    shared: int
    """At how many of its ends another input uses the same port."""


class Evaluator:
    """Costs of mappings of one problem."""

    def __init__(self, problem: Problem, xp: Any = np) -> None:
        self.problem, self._xp = problem, xp
        lattice = problem.lattice
        self._periods = xp.asarray(lattice.periods)
        self._exact = xp.asarray(np.zeros(1)).dtype
        self._times = xp.asarray(problem.times)
        self._spans = xp.asarray(problem.spans)
        self._tiles = [[xp.asarray(tile) for tile in table.tiles] for table in problem.operands]
        self._energies = {
            (entry.operand, entry.entry): xp.asarray(entry.energy)
            for table in problem.operands
            for entry in table.entries
            if entry.entry or not table.is_output
        }
        by_port: dict[int, list[MoveTable]] = {}
        for table in problem.operands:
            for entry in table.entries:
                for move in entry.moves:
                    by_port.setdefault(move.port, []).append(move)
        self.moves = by_port
        self._present = {id(m): xp.asarray(m.present) for moves in by_port.values() for m in moves}
        self._busy = {id(m): xp.asarray(m.busy) for moves in by_port.values() for m in moves}
        self._often = {id(m): xp.asarray(m.times) for moves in by_port.values() for m in moves}
        self._least = {id(m): xp.asarray(m.least) for moves in by_port.values() for m in moves}
        self._average = {id(m): xp.asarray(m.average) for moves in by_port.values() for m in moves}
        self.links = {table.index: self._links_of(table) for table in problem.operands}

    def reached(self, orders: Array, loops: Loops) -> Array:
        """Nodes after 0, 1, 2, ... loops: a row for each number of loops, a column for each order."""
        xp, lattice = self._xp, self.problem.lattice
        rows, count = orders.shape
        found = xp.zeros((count + 1, rows), dtype=self._periods.dtype)
        strides = xp.asarray(np.array([lattice.stride(dim, steps) for dim, steps in loops], dtype=np.int64))
        for position in range(count):
            found[position + 1] = found[position] + strides[orders[:, position]]
        return found

    def profile(self, orders: Array, cuts: Sequence[Array], loops: Loops | None = None) -> Profile:
        """Of orders (numbers of loops, innermost first) and, by operand, cuts for each of its memories.

        `loops` says what the numbers stand for: by default the factors of the lattice.
        """
        xp = self._xp
        loops = self.problem.lattice.primes if loops is None else loops
        rows, count = orders.shape
        reached = self.reached(orders, loops).reshape(-1)
        row = xp.arange(rows)
        masks = self._masks(orders, loops)
        nodes: dict[Place, Array] = {}
        runs: dict[int, dict[Place, Array]] = {NEW: {}, SAME: {}}
        for table in self.problem.operands:
            new, same = masks[table.index]
            if not table.is_output:
                nodes[table.index, 0] = reached[self._after(same, 0 * row, count) * rows + row]
            lower = 0 * row
            for level in range(table.depth):
                place = (table.index, level + 1)
                cut = self._after(same, cuts[table.index][:, level], count)
                nodes[place] = reached[cut * rows + row]
                for kind, mask in ((NEW, new), (SAME, same)):
                    first = self._since(mask, cut)
                    first = xp.where(first > lower, first, lower)
                    runs[kind][place] = self._periods[nodes[place]] // self._periods[reached[first * rows + row]]
                lower = cut
        return Profile(nodes, runs[NEW], runs[SAME])

    def _masks(self, orders: Array, loops: Loops) -> list[tuple[Array, Array]]:
        """By operand, as bits: positions of loops that bring new data, and of those that bring the same data."""
        xp = self._xp
        rows, count = orders.shape
        kinds = [(table.index, kind) for table in self.problem.operands for kind in (NEW, SAME)]
        together = max(1, 62 // max(1, count))
        found: list[Array] = []
        for start in range(0, len(kinds), together):
            some = kinds[start : start + together]
            bits = [
                sum((self.problem.operands[i].kind(dim) == kind) << (count * at) for at, (i, kind) in enumerate(some))
                for dim, _ in loops
            ]
            table = xp.asarray(np.array(bits, dtype=np.int64))
            packed = xp.zeros(rows, dtype=self._periods.dtype)
            for position in range(count):
                packed = packed + (table[orders[:, position]] << position)
            found += [(packed >> (count * at)) & ((1 << count) - 1) for at in range(len(some))]
        return [(found[2 * index], found[2 * index + 1]) for index in range(len(found) // 2)]

    def _after(self, mask: Array, cut: Array, count: int) -> Array:
        """The first position not before a cut that is not in a mask."""
        free = ~(mask >> cut) & ((1 << (count + 1)) - 1)
        return cut + self._bit(free & -free)

    def _since(self, mask: Array, cut: Array) -> Array:
        """The first position of the run in a mask that ends at a cut."""
        free = ~mask & ((1 << cut) - 1)
        return self._xp.where(free > 0, self._bit(free) + 1, 0)

    def _bit(self, number: Array) -> Array:
        """The position of the highest bit; numbers have far fewer bits than a float is exact for.

        A half is added because logarithms of powers of two are not exact on all devices.
        """
        xp = self._xp
        position = xp.floor(xp.log2(self._real(xp.where(number > 0, number, 1)) + 0.5))
        return xp.asarray(position, dtype=self._periods.dtype)

    def _real(self, numbers: Array) -> Array:
        """Whole numbers as floats of 64 bits; some libraries take 32 where nothing is said."""
        return self._xp.asarray(numbers, dtype=self._exact)

    def energy(self, profile: Profile) -> Array:
        """Of each mapping."""
        total = self.problem.fixed_energy
        for place, table in self._energies.items():
            total = total + table[profile.nodes[place]]
        return total

    def costs(self, profile: Profile) -> BatchCosts:
        """All of each mapping."""
        flags = self.double_buffered(profile)
        return self.costs_with(profile, self.windows(profile, flags))

    def windows(self, profile: Profile, flags: Mapping[Place, Array]) -> dict[Place, Array]:
        """Cycles in which a tile may move without holding up the array."""
        xp, cycles = self._xp, self.problem.cycles
        found: dict[Place, Array] = {}
        for place, node in profile.nodes.items():
            span = self._spans[node]
            if place[1] == 0:
                found[place] = span
            elif place in flags:
                alone = xp.ceil(cycles * self._real(self._periods[node] // profile.same_runs[place]))
                found[place] = xp.where(flags[place], span, alone)
        return found

    def costs_with(self, profile: Profile, windows: Mapping[Place, Array]) -> BatchCosts:
        """The same with given windows."""
        held = self.held(profile, windows)
        return self.costs_when(profile, held, ceil(self.problem.computing) + held)

    def held(self, profile: Profile, windows: Mapping[Place, Array]) -> Array:
        """Cycles for which the array waits."""
        stall: Array = 0
        waiting: Array = 0
        for port in self.moves:
            if self.problem.ports[port][1].exclusive:
                waiting = waiting + self._waited(port, profile)
            else:
                held = self._stall(port, profile, windows)
                stall = self._xp.where(held > stall, held, stall)
        return stall + waiting

    def costs_when(self, profile: Profile, held: Array, working: Array, *, least: bool = False) -> BatchCosts:
        """Costs if the array waits for so long, and loads can hide behind so many cycles.

        `least`: a load is never raised to what must be there at the start. With more cycles to hide behind, loads are
        shorter then; as it is (in the original model), they can be longer.
        """
        loads = self._loads(profile, working, least)
        loading, storing = self._loading(loads), self._storing(loads)
        return BatchCosts(
            self.energy(profile), held, loading, storing, self.problem.computing + held + loading + storing
        )

    def raises(self, profile: Profile) -> Array:
        """Whether some load that comes once is shorter than what must be there at the start."""
        found: Array = False
        for port, moves in self.moves.items():
            bandwidth = self.problem.ports[port][1].bits
            for move in moves:
                if not self._ignored(move):
                    node = self._node(move, profile)
                    floor = -(-self._least[id(move)][profile.nodes[move.operand, 1]] // bandwidth)
                    found = found | ((self._times[node] == 1) & (floor > self._busy[id(move)][node]))
        return found

    def _shares(self, profile: Profile) -> tuple[dict[Place, Array], dict[int, Array]]:
        """The part of a memory that each tile needs at a time, and all tiles of each memory."""
        shares: dict[Place, Array] = {}
        used: dict[int, Array] = {}
        for table in self.problem.operands:
            for level, memory in enumerate(table.memories):
                place = (table.index, level + 1)
                tile = self._tiles[table.index][level][profile.nodes[place]]
                bits = self.problem.engine.memories[memory].bits
                shares[place] = self._real(tile // profile.new_runs[place]) / bits
                used[memory] = used[memory] + shares[place] if memory in used else shares[place]
        return shares, used

    def _two(self, memory: int) -> bool:
        """Whether a memory has two buffers, and the model minds it."""
        return self.problem.corrected and self.problem.engine.memories[memory].double_buffered

    def double_buffered_at_best(self, profile: Profile) -> dict[Place, Array]:
        """Which tiles could be filled while the one before is in use, each as if it were asked first."""
        shares, used = self._shares(profile)
        return {
            (table.index, level + 1): (used[memory] <= 0.5)
            | (shares[table.index, level + 1] <= 1 - used[memory])
            | self._two(memory)
            for table in self.problem.operands
            for level, memory in enumerate(table.memories)
        }

    def double_buffered(self, profile: Profile) -> dict[Place, Array]:
        """Which tiles can be filled while the one before is in use."""
        shares, used = self._shares(profile)
        flags: dict[Place, Array] = {}
        for table in self.problem.operands:
            for level, memory in enumerate(table.memories):
                place = (table.index, level + 1)
                whole, share = used[memory], shares[place]
                fits = share <= 1 - whole
                flags[place] = (whole <= 0.5) | fits | self._two(memory)
                used[memory] = self._xp.where((whole > 0.5) & fits, whole + share, whole)
        return flags

    def _node(self, move: MoveTable, profile: Profile) -> Array | int:
        """Outputs leave a unit in every step, which is what the first node stands for."""
        return profile.nodes.get((move.operand, move.entry), 0)

    def _waited(self, port: int, profile: Profile) -> Array:
        """Cycles of a port beside which the array cannot work."""
        total: Array = 0
        for move in self.moves[port]:
            node = self._node(move, profile)
            cycles = self._busy[id(move)][node] * (self._often[id(move)][node] - 1)
            total = total + self._xp.where(self._present[id(move)][node], cycles, 0)
        return total

    def _stall(self, port: int, profile: Profile, windows: Mapping[Place, Array]) -> Array:
        xp = self._xp
        late: Array = 0
        wanted: Array = 0
        always: Array = 0
        groups: dict[Place, tuple[Array, Array]] = {}
        covered: Array = 0
        span_most: Array = 0
        times_most: Array = 0
        for move in self.moves[port]:
            node = self._node(move, profile)
            place = (move.operand, move.entry)
            span = self._spans[node]
            window = windows.get(place, span)
            present, times = self._present[id(move)][node], self._often[id(move)][node]
            slack = (self._busy[id(move)][node] - window) * (times - 1)
            late = late + xp.where(present & (slack > 0), slack, 0)
            need = xp.where(slack > 0, window, self._busy[id(move)][node]) * (times - 1)
            wanted = wanted + xp.where(present, need, 0)
            always = xp.where((always == 0) & present & (window == span), span * times, always)
            size = xp.where(present, window, 0)
            further = present & (span > span_most)
            span_most, times_most = xp.where(further, span, span_most), xp.where(further, times, times_most)
            covered = xp.where(further, size * times, covered)
            if place in groups:
                size = xp.where(groups[place][1] > size, groups[place][1], size)
            groups[place] = (span, size)
        union = xp.where(always > 0, always, covered)
        open_rows = (wanted > union) & (always == 0)
        if len(groups) > 1 and bool(open_rows.any()):
            spans = [(xp.zeros_like(wanted) + span)[open_rows] for span, _ in groups.values()]
            sizes = [(xp.zeros_like(wanted) + size)[open_rows] for _, size in groups.values()]
            union[open_rows] = covered_cycles(xp, spans, sizes) * (xp.zeros_like(wanted) + times_most)[open_rows]
        held = wanted - union
        return late + xp.where(held > 0, held, 0)

    def _loads(self, profile: Profile, working: Array, least: bool) -> dict[tuple[int, int], Array]:
        """By port and position among its moves: cycles of the first load or last store that are not hidden."""
        found: dict[tuple[int, int], Array] = {}
        for port, moves in self.moves.items():
            kept = [i for i, move in enumerate(moves) if not self._ignored(move)]
            nodes = [self._node(moves[i], profile) for i in kept]
            busy = [self._real(self._busy[id(moves[i])][node]) for i, node in zip(kept, nodes, strict=True)]
            once = [self._times[node] == 1 for node in nodes]
            if not kept:
                continue
            used = self.problem.ports[port][1]
            if not used.exclusive:
                busy = self._hidden(profile, [moves[i] for i in kept], nodes, busy, once, used.bits, working, least)
            for i, value in zip(kept, busy, strict=True):
                found[port, i] = value
        return found

    def _ignored(self, move: MoveTable) -> bool:
        return self.problem.operands[move.operand].is_output and move.direction in (TO_LOW, FROM_HIGH)

    def _hidden(
        self,
        profile: Profile,
        moves: Sequence[MoveTable],
        nodes: Sequence[Array],
        busy: Sequence[Array],
        once: Sequence[Array],
        bandwidth: int,
        working: Array,
        clipped: bool,
    ) -> list[Array]:
        """Tiles that come once may come while others are used: takes cycles off that the port has left."""
        xp, cycles = self._xp, self.problem.cycles
        some: Array = False
        for flag in once:
            some = some | flag
        if not bool(xp.asarray(some).any()):
            return list(busy)
        needed: Array = 0
        for move, node, flag in zip(moves, nodes, once, strict=True):
            needed = needed + xp.where(flag, 0, xp.ceil(self._real(self._average[id(move)][node]) / cycles))
        surplus = (bandwidth - needed) / bandwidth * working
        surplus = xp.where(surplus > 0, surplus, 0.0)
        least = [self._real(-(-self._least[id(m)][profile.nodes[m.operand, 1]] // bandwidth)) for m in moves]
        if clipped:
            least = [xp.where(low < whole, low, whole) for low, whole in zip(least, busy, strict=True)]
        return (levelled if self.problem.corrected else reduced)(xp, busy, least, once, surplus)

    def _links_of(self, table: OperandTable) -> list[OperandLink]:
        """From the inside out."""
        found: list[OperandLink] = []
        up, down = (TO_HIGH, FROM_LOW) if table.is_output else (FROM_HIGH, TO_LOW)
        for level in range(table.depth - 1):
            ends = [
                (port, position)
                for port, moves in self.moves.items()
                for position, move in enumerate(moves)
                if move.operand == table.index and (move.level, move.direction) in ((level, up), (level + 1, down))
            ]
            shared = sum(self._is_shared(table, at, way) for at, way in ((level, up), (level + 1, down)))
            found.append(OperandLink(tuple(ends), shared))
        return found

    def _is_shared(self, table: OperandTable, level: int, direction: str) -> bool:
        memory = self.problem.engine.memories[table.memories[level]]
        port = memory.port(table.operand.slot, direction)
        others = [other for other in self.problem.layer.inputs if other is not table.operand]
        return port is not None and any(memory.port(other.slot, direction) is port for other in others)

    def _link_cycles(self, link: OperandLink, loads: Mapping[tuple[int, int], Array]) -> Array:
        cycles: Array = None
        for end in link.ends:
            cycles = loads[end] if cycles is None else self._xp.where(loads[end] > cycles, loads[end], cycles)
        if cycles is None:
            return 0.0
        return cycles if len(link.ends) == 2 else self._xp.where(cycles > 0, cycles, 0.0)

    def _loading(self, loads: Mapping[tuple[int, int], Array]) -> Array:
        parts: list[tuple[Array, Array, Array]] = []
        for table in self.problem.operands:
            if table.is_output:
                continue
            shared: Array = 0.0
            half: Array = 0.0
            separate: Array = 0.0
            for link in self.links[table.index]:
                cycles = self._link_cycles(link, loads)
                if link.shared == 2:
                    shared = shared + cycles
                elif link.shared == 1:
                    half = half + cycles if self.problem.corrected else cycles
                else:
                    separate = separate + cycles
            parts.append((shared, half, separate))
        if len(parts) == 1 and not self.problem.corrected:
            return parts[0][2]
        best: Array = None
        for order in permutations(parts):
            begun: Array = 0.0
            ended: Array = 0.0
            for shared, half, separate in order:
                begun = begun + shared
                until = self._xp.asarray(begun + half + separate)
                ended = self._xp.where(until > ended, until, ended)
            best = ended if best is None else self._xp.where(ended < best, ended, best)
        return 0.0 if best is None else best

    def _storing(self, loads: Mapping[tuple[int, int], Array]) -> Array:
        total: Array = 0.0
        for table in self.problem.operands:
            if table.is_output:
                for link in self.links[table.index]:
                    total = total + self._link_cycles(link, loads)
        return total
