"""What the rest of a mapping costs at least, for every node at which it can go on.

A mapping cuts one order of loops at places (an operand and an entry of its nest): its nodes lie on one path. Energy is
a sum with one term for each place. Latency is not, but it is never below any of a few such sums ("families"): computing
and what one port holds up plus loads and stores, or all that crosses one port plus loads and stores of the others. For
a sum, the best way to go on from a node with some places still to cut is found for all nodes at once by dynamic
programming over the lattice: a bound is a look-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import product
from math import inf

import numpy as np

from tilewright.mapping.batch import Place
from tilewright.mapping.hiding import Hiding, LinearSum, Loads, Weights
from tilewright.mapping.parts import Part, Space
from tilewright.mapping.tables import MIXED, NEW, SAME, Flags, Floats, MoveTable

State = tuple[int, ...]
"""By operand: how many of its places are cut."""


class Bounds:
    """Lower bounds for one part: of energy (row 0), latency (as many rows), and of what has a limit (the rest)."""

    def __init__(self, space: Space, loads: Loads, part: Part) -> None:
        self.space, self.part, self.problem = space, part, space.problem
        self.places = space.open(part)
        """By operand: entries that are still to be cut; tiles above them are whole operands."""
        self.whole = space.whole(part)
        self.done: State = tuple(len(entries) for entries in self.places)
        self._open = [(operand, entry) for operand, entries in enumerate(self.places) for entry in entries]
        self._loads = loads
        self._hiding = Hiding(loads, space, part)
        self._nodes = {place: np.flatnonzero(self._allowed(place)) for place in self._open}
        self._forms = self._all_forms()
        self._rest: dict[State, Floats] = {}

    @cached_property
    def apart(self) -> tuple[float, float]:
        """The least energy and latency, if each place were cut where it costs least."""
        sums = [self._energy(), *self._latencies([LinearSum()])]
        bound = np.array([found.constant for found in sums])
        if self._open:
            rows, starts = self._compact(sums)
            bound = bound + np.minimum.reduceat(rows, starts, axis=1).sum(axis=1)
        return float(bound[0]), float(bound[1:].max())

    def _finish(self) -> None:
        """Makes tables for all nodes, of the sums that matter."""
        demands = self._demands()
        useful = self._useful(self._latencies(self._useful(self._stalls())))
        sums = [self._energy(), *useful, *(found for _, found in demands)]
        self.latencies = slice(1, 1 + len(useful))
        """Rows of which latency is not below any."""
        self.limits: Floats = np.array([limit for limit, _ in demands]).reshape(-1)
        """Of the rows after them."""
        self.constants: Floats = np.array([found.constant for found in sums])
        self._terms: dict[Place, Floats] = {}
        rows, starts = self._compact(sums)
        ends = [*starts[1:], rows.shape[1]][: len(starts)]  # none where nothing is left to cut
        for place, start, end in zip(self._open, starts, ends, strict=True):
            self._terms[place] = np.full((len(sums), self.problem.lattice.size), inf)
            self._terms[place][:, self._nodes[place]] = rows[:, start:end]
        self._solve()

    @property
    def start(self) -> State:
        return (0,) * len(self.done)

    def term(self, place: Place) -> Floats:
        """By family and node: what a place adds."""
        return self._terms[place]

    def rest(self, state: State) -> Floats:
        """By family and node: the least that is still to come."""
        return self._rest[state]

    @cached_property
    def root(self) -> tuple[float, float]:
        """The least energy and latency of any mapping."""
        self._finish()
        bound = self.constants + self._rest[self.start][:, 0]
        return float(bound[0]), float(bound[self.latencies].max())

    @property
    def demanding(self) -> bool:
        """Whether every mapping needs more of something than it may."""
        least = self.constants + self._rest[self.start][:, 0]
        return bool((least[self.latencies.stop :] > self.limits).any())

    def _allowed(self, place: Place) -> Flags:
        """Nodes at which a place that is open can be cut."""
        found = self.space.allowed(place).copy()
        found[-1] = False
        return found

    def _solve(self) -> None:
        """From the end: the rest from a node on is the least over all nodes that can follow."""
        shape = (len(self.constants), self.problem.lattice.size)
        for state in sorted(product(*(range(count + 1) for count in self.done)), key=sum, reverse=True):
            if state == self.done:
                self._rest[state] = np.zeros(shape)
                continue
            best = np.full(shape, inf)
            for operand, cut in enumerate(state):
                if cut < self.done[operand]:
                    place = (operand, self.places[operand][cut])
                    np.minimum(best, self._terms[place] + self._rest[after(state, operand)], out=best)
            self._rest[state] = self.space.onwards(best)

    def _energy(self) -> LinearSum:
        found = LinearSum(self.problem.fixed_energy)
        for operand, entry in self._open:
            found.add((operand, entry), self.problem.operands[operand].entries[entry].energy)
        for operand, entry in self.whole:
            found.constant += float(self.problem.operands[operand].entries[entry].energy[-1])
        return found

    def _latencies(self, stalls: Sequence[LinearSum]) -> list[LinearSum]:
        """Sums that latency is not below, given those that no stall is below."""
        hiding = self._hiding
        found: list[LinearSum] = []
        waits = self._waits().plus(LinearSum(self.problem.computing))
        for links, below in self._forms:
            repeated = hiding.repeated(links).plus(LinearSum(below))
            loads = hiding.single(links).plus(repeated).plus(waits)
            found += [stall.plus(loads) for stall in stalls]
            for port in hiding.ports(links):
                for left, hidden in hiding.beside(port, links):
                    crossing = self._crossing(port, hidden).plus(left).plus(repeated)
                    found += [crossing.plus(stall, 1 - hidden) for stall in (stalls if hidden < 1 else [LinearSum()])]
        return found

    def _demands(self) -> list[tuple[float, LinearSum]]:
        """What has a limit: the most, and bits in a cycle that tiles need of a port."""
        result: list[tuple[float, LinearSum]] = []
        for (memory_name, port_name), most in self.space.wanted.bandwidth.items():
            found = LinearSum()
            for port, moves in self.space.evaluator.moves.items():
                memory, named = self.problem.ports[port]
                for move in moves if (memory.name, named.name) == (memory_name, port_name) else ():
                    self._put(found, move, (move.average * move.present).astype(np.float64))
            result.append((most, found))
        return result

    def _put(self, total: LinearSum, move: MoveTable, values: Floats) -> None:
        """Adds what a move takes, wherever its tile is cut; outputs leave a unit in every step (the first node)."""
        if (move.operand, move.entry) in self._nodes:
            total.add((move.operand, move.entry), values)
        else:
            output = not move.entry and self.problem.operands[move.operand].is_output
            total.constant += float(values[0 if output else -1])

    def _stalls(self) -> list[LinearSum]:
        """Sums that no stall is below: nothing; by port what is late in any case; all that crosses less its windows.

        Windows of a port lie inside of the computing cycles, and together they are not longer than their sum.
        """
        problem = self.problem
        computing = float((problem.spans * problem.times).max())
        result = [LinearSum()]
        windows = {place: self._window(place) for place in self._open}
        spans = problem.spans.astype(np.float64)
        for port, moves in self.space.evaluator.moves.items():
            again = [move for move in moves if not self.space.once(self.part, move)]
            if problem.ports[port][1].exclusive or not again:
                continue
            late, busy = LinearSum(), LinearSum(-computing)
            for move in again:
                more: Floats = ((move.times - 1) * move.present).astype(np.float64)
                window = windows.get((move.operand, move.entry), spans)
                self._put(late, move, np.maximum(0.0, move.busy - window) * more)
                self._put(busy, move, move.busy * more)
            result += [late, busy]
            users = {(move.operand, move.entry) for move in again}
            if users <= windows.keys():
                apart = LinearSum(0.0, dict(busy.terms))
                for place in users:
                    apart.add(place, -windows[place] * problem.times)
                result.append(apart)
        return result

    def _waits(self) -> LinearSum:
        """Cycles for ports beside which the array cannot work."""
        total = LinearSum()
        for port, moves in self.space.evaluator.moves.items():
            for move in moves if self.problem.ports[port][1].exclusive else ():
                self._put(total, move, (move.busy * (move.times - 1) * move.present).astype(np.float64))
        return total

    def _window(self, place: Place) -> Floats:
        """By node: cycles in which a tile may move, at most; where the memory below is cut is not known."""
        problem, (operand, entry) = self.problem, place
        spans = problem.spans.astype(np.float64)
        if entry != 1:
            return spans
        table = problem.operands[operand]
        memory = problem.engine.memories[table.memories[0]]
        if problem.corrected and memory.double_buffered:
            return spans
        new, same, mixed = (problem.lattice.steps([k == kind for k in table.kinds]) for kind in (NEW, SAME, MIXED))
        single = table.tiles[0] // new / memory.bits > 0.5
        alone = np.ceil(problem.cycles * (problem.lattice.periods // same))
        return np.where(single & (new == 1) & (mixed == 1), alone, spans)

    def _crossing(self, port: int, hidden: float) -> LinearSum:
        """A sum that work is not below, less the cycles that a port has left for loads that come once.

        What comes once can hide only in cycles that the port has left, so it takes its time in one way or the other;
        `hidden` is the part of those cycles that is taken off the loads that count.
        """
        problem = self.problem
        rounded = float((problem.spans * problem.times).max()) - problem.computing
        total = LinearSum((1 - hidden) * problem.computing - rounded)
        for move in self.space.evaluator.moves[port]:
            if not self._loads.ignored(move) and not self.space.once(self.part, move):
                self._put(total, move, hidden * self._loads.later(move))
        return total

    def _all_forms(self) -> list[tuple[Weights, float]]:
        """Links whose sum loading and storing are not below, and how far others can bring it down.

        Those are all links of one input, the links that all inputs share, none, or all on average over the inputs.
        """
        inputs = [table for table in self.problem.operands if not table.is_output]
        storing = {(t.index, entry): 1.0 for t in self.problem.operands if t.is_output for entry in range(1, t.depth)}
        alone = len(inputs) == 1 and not self.problem.corrected
        common: dict[int, dict[Place, float]] = {}
        counted: dict[int, dict[Place, float]] = {}
        for table in inputs:
            shared = [link.shared for link in self.space.evaluator.links[table.index]]
            counted[table.index] = {
                (table.index, level + 1): 1.0
                for level, ends in enumerate(shared)
                if self.problem.corrected or (ends == 0 if alone else ends != 1 or 1 not in shared[level + 1 :])
            }
            common[table.index] = {link: 1.0 for link in counted[table.index] if shared[link[1] - 1] == 2}
        low = {index: self._dips(links) for index, links in common.items()}
        found: list[tuple[Weights, float]] = [
            (storing | links, sum(low.values()) - low[index]) for index, links in counted.items()
        ]
        if len(inputs) > 1:
            parts = {index: {k: 1.0 for k in counted[index] if k not in common[index]} for index in common}
            apart = min(self._dips(links) for links in parts.values())
            everything = {link: 1.0 for links in common.values() for link in links}
            mean = {link: 1 / len(inputs) for links in counted.values() for link in links}
            found.append((storing | everything, apart))
            found.append((storing, sum(low.values()) + apart))
            found.append((storing | mean, sum(low.values()) * (1 - 1 / len(inputs))))
        return found or [(storing, 0.0)]

    def _dips(self, links: Weights) -> float:
        return 0.0 if self.problem.corrected else self._hiding.dips(links)

    def _compact(self, sums: Sequence[LinearSum]) -> tuple[Floats, list[int]]:
        """By sum the terms of all nodes that places can be cut at, one place after the other, and where each begins."""
        sizes = [len(nodes) for nodes in self._nodes.values()]
        rows = np.zeros((len(sums), sum(sizes)))
        starts = [sum(sizes[:index]) for index in range(len(sizes))]
        for start, size, (place, nodes) in zip(starts, sizes, self._nodes.items(), strict=True):
            for row, found in enumerate(sums):
                if place in found.terms:
                    rows[row, start : start + size] = found.terms[place][nodes]
        return rows, starts

    def _useful(self, sums: Sequence[LinearSum]) -> list[LinearSum]:
        """Leaves out sums that are never above another one, wherever places can be cut."""
        if not self._open:
            return [max(sums, key=lambda found: found.constant)]
        rows, starts = self._compact(sums)
        constants = np.array([found.constant for found in sums])
        kept = list(range(len(sums)))
        for _ in range(2):  # the second time from the last one on
            chosen: list[int] = []
            for row in kept:
                if chosen:
                    above = np.maximum.reduceat(rows[row] - rows[chosen], starts, axis=1).sum(axis=1)
                    if bool((above + (constants[row] - constants[chosen]) <= 0).any()):
                        continue
                chosen.append(row)
            kept = chosen[::-1]
        return [sums[row] for row in kept]


def after(state: State, operand: int) -> State:
    """With one more place of an operand cut."""
    return (*state[:operand], state[operand] + 1, *state[operand + 1 :])
