"""What the rest of a mapping costs at least, for every node at which it can go on.

A mapping cuts one order of loops at places (an operand and an entry of its nest): its nodes lie on one path. Energy is
a sum with one term for each place. Latency is not, but it is never below any of a few such sums ("families"): computing
plus loads and stores, or what crosses one port plus loads and stores. For a sum, the best way to go on from a node with
some places still to cut is found for all nodes at once by dynamic programming over the lattice: a bound is a look-up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import product
from math import inf

import numpy as np

from tilewright.core.accelerator import FROM_HIGH, TO_LOW
from tilewright.mapping.batch import Evaluator, Place
from tilewright.mapping.goals import Wanted
from tilewright.mapping.tables import MIXED, NEW, SAME, Flags, Floats, MoveTable, room

ENERGY = "energy"
"""The first family."""
State = tuple[int, ...]
"""By operand: how many of its places are cut."""


class Bounds:
    """Lower bounds for one problem: of energy (row 0), latency (as many rows), and of what has a limit (the rest)."""

    def __init__(self, evaluator: Evaluator, wanted: Wanted, slowest: float = inf) -> None:
        """Only mappings with a latency below `slowest` need to be bounded."""
        self.problem, self.evaluator = evaluator.problem, evaluator
        self._wanted, self._working = wanted, inf
        self.places: tuple[tuple[int, ...], ...] = tuple(
            tuple(range(1 if table.is_output else 0, table.depth)) for table in self.problem.operands
        )
        self._rooms: dict[tuple[int, int], Floats] = {}
        self._allowed: dict[Place, Flags] = {}
        self.done: State = tuple(len(entries) for entries in self.places)
        self._working = self._most_working(slowest)
        families = _useful(self._families())
        demands = self._demands()
        self.latencies = slice(1, len(families))
        """Rows of which latency is not below any."""
        self.demands = slice(len(families), None)
        self.limits: Floats = np.array([limit for limit, _, _ in demands]).reshape(-1)
        """Of the rows after them."""
        sums = [*families, *((constant, terms) for _, constant, terms in demands)]
        self.constants: Floats = np.array([constant for constant, _ in sums])
        self._terms = {
            (operand, entry): np.stack([terms[operand, entry] for _, terms in sums])
            for operand, entries in enumerate(self.places)
            for entry in entries
        }
        self._rest: dict[State, Floats] = {}
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
        bound = self.constants + self._rest[self.start][:, 0]
        return float(bound[0]), float(bound[self.latencies].max())

    def _solve(self) -> None:
        """From the end: the rest from a node on is the least over all nodes that can follow."""
        families = len(self.constants)
        for state in sorted(product(*(range(count + 1) for count in self.done)), key=sum, reverse=True):
            if state == self.done:
                self._rest[state] = np.zeros((families, self.problem.lattice.size))
                continue
            best = np.full((families, self.problem.lattice.size), inf)
            for operand, cut in enumerate(state):
                if cut < self.done[operand]:
                    place = (operand, self.places[operand][cut])
                    np.minimum(best, self._terms[place] + self._rest[after(state, operand)], out=best)
            self._rest[state] = self._onwards(best)

    def allowed(self, place: Place) -> Flags:
        """Nodes at which a place can be cut if the others take as little room as they can."""
        if place not in self._allowed:
            self._allowed[place] = self._find_allowed(*place)
        return self._allowed[place]

    def _find_allowed(self, operand: int, entry: int) -> Flags:
        table = self.problem.operands[operand]
        found = table.entries[entry].allowed
        if not entry:
            return found
        memory = table.memories[entry - 1]
        nodes = np.arange(self.problem.lattice.size)
        taken = room(table, entry - 1, nodes, nodes)
        for other, level in self.problem.memories[memory]:
            if other != operand:
                taken = taken + self.least_room(other, level)[0]
        return found & (taken <= self._wanted.bits(self.problem, memory))

    def least_room(self, operand: int, level: int) -> Floats:
        """By node: bits of a tile that is cut there or further out, if it is as narrow as it can be."""
        if (operand, level) not in self._rooms:
            table, size = self.problem.operands[operand], self.problem.lattice.size
            nodes = np.arange(size)
            taken = room(table, level, nodes, nodes)
            if level == table.depth - 1:
                taken[:] = taken[-1]
            self._rooms[operand, level] = self._onwards(taken[None])[0]
        return self._rooms[operand, level]

    def _onwards(self, values: Floats) -> Floats:
        """By row and node: the least at the node and all that can follow."""
        grid = values.reshape((len(values), *self.problem.lattice.shape))
        for axis in range(1, grid.ndim):
            grid = np.flip(np.minimum.accumulate(np.flip(grid, axis), axis), axis)
        return np.ascontiguousarray(grid).reshape(len(values), -1)

    def _families(self) -> dict[str, tuple[float, dict[Place, Floats]]]:
        """Name, constant and terms of each sum."""
        problem = self.problem
        places = [(operand, entry) for operand, entries in enumerate(self.places) for entry in entries]
        computing = problem.computing
        blocked = {place: np.where(self.allowed(place), 0.0, inf) for place in places}
        energies = {p: problem.operands[p[0]].entries[p[1]].energy + blocked[p] for p in places}
        found: dict[str, tuple[float, dict[Place, Floats]]] = {ENERGY: (problem.fixed_energy, energies)}
        stalls = self._stalls(places)
        always, waits = self._waits(places)
        for load_name, links in self._forms().items():
            for name, loads in self._loads(places, links).items():
                for stall_name, (constant, stall) in stalls.items():
                    terms = {p: stall[p] + waits[p] + loads[p] + blocked[p] for p in places}
                    found[f"{stall_name}, {load_name}, {name}"] = (computing + always + constant, terms)
            for port, moves in self.evaluator.moves.items():
                if problem.ports[port][1].exclusive:
                    continue
                constant, crossing = self._crossing(port, moves, links, places)
                terms = {p: crossing[p] + blocked[p] for p in places}
                found[f"all {port}, {load_name}"] = (constant, terms)
        return found

    def _demands(self) -> list[tuple[float, float, dict[Place, Floats]]]:
        """What has a limit: most, constant and terms of the bits in a cycle that tiles need of a port."""
        found: list[tuple[float, float, dict[Place, Floats]]] = []
        zero = np.zeros(self.problem.lattice.size)
        for (memory_name, port_name), most in self._wanted.bandwidth.items():
            constant = 0.0
            terms = {(operand, entry): zero for operand, entries in enumerate(self.places) for entry in entries}
            for port, moves in self.evaluator.moves.items():
                memory, named = self.problem.ports[port]
                for move in moves if (memory.name, named.name) == (memory_name, port_name) else ():
                    place, average = (move.operand, move.entry), move.average * move.present
                    if place in terms:
                        terms[place] = terms[place] + average
                    else:
                        constant += float(average[0])
            found.append((most, constant, terms))
        return found

    def _loads(self, places: Sequence[Place], links: frozenset[Place]) -> dict[str, dict[Place, Floats]]:
        """Ways to share out what some links take at least: each at its own place, or all where the innermost tile is.

        How much of a load has to come before the array can begin depends on the innermost tile (in the corrected model;
        in the other one, less may come).
        """
        zero = np.zeros(self.problem.lattice.size)
        own = {p: self._link(p) if p in links else zero for p in places}
        if not self.problem.corrected:
            return {"own": own | self._dips(links)}
        first = dict.fromkeys(places, zero)
        for operand, entry in links:
            more = own[operand, 1] if entry == 1 else self._link_from_first((operand, entry))
            first[operand, 1] = first[operand, 1] + more
        return {"own": own, "first": first}

    def _dips(self, links: frozenset[Place]) -> dict[Place, Floats]:
        """What other inputs can take off the loads of one, as far as their shared links come out below nothing."""
        found: dict[Place, Floats] = {}
        for table in self.problem.operands:
            if table.is_output:
                continue
            for level, link in enumerate(self.evaluator.links[table.index]):
                place = (table.index, level + 1)
                if link.shared == 2 and place not in links:
                    found[place] = np.minimum(0.0, self._link(place))
        return found

    def _link_from_first(self, place: Place) -> Floats:
        """By node of the innermost tile: cycles of a link further out, wherever that is cut."""
        ends = self.evaluator.links[place[0]][place[1] - 1].ends
        found, last = self._link(place), self.problem.lattice.last
        later = np.where(self.allowed(place), found, inf)
        later[last] = inf
        once = np.full_like(found, inf)
        if self.allowed(place)[last]:
            once[:] = 0.0
            for port, position in ends:
                move = self.evaluator.moves[port][position]
                least = np.minimum(move.busy[last], np.ceil(move.least / self.problem.ports[port][1].bits))
                once = np.maximum(once, np.maximum(least, move.busy[last] - self._working))
        return np.minimum(self._onwards(later[None])[0], once)

    def _stalls(self, places: Sequence[Place]) -> dict[str, tuple[float, dict[Place, Floats]]]:
        """Sums that no stall is below: nothing; by port what is late in any case; all that crosses less its windows.

        Windows of a port lie inside of the computing cycles, and together they are not longer than their sum.
        """
        problem, zero = self.problem, np.zeros(self.problem.lattice.size)
        computing = float((problem.spans * problem.times).max())
        found = {"nothing": (0.0, dict.fromkeys(places, zero))}
        windows = {place: self._window(place) for place in places}
        for port, moves in self.evaluator.moves.items():
            if problem.ports[port][1].exclusive:
                continue
            late = dict.fromkeys(places, zero)
            busy = dict.fromkeys(places, zero)
            fixed = fixed_late = 0.0
            for move in moves:
                place = (move.operand, move.entry)
                if place not in late:
                    more = int(move.times[0] - 1) * bool(move.present[0])
                    fixed += float(move.busy[0] * more)
                    fixed_late += float(max(0, move.busy[0] - problem.spans[0]) * more)
                    continue
                more = (move.times - 1) * move.present
                late[place] = late[place] + np.maximum(0, move.busy - windows[place]) * more
                busy[place] = busy[place] + move.busy * more
            found[f"late {port}"] = (fixed_late, late)
            found[f"busy {port}"] = (fixed - computing, busy)
            if not fixed:
                users = {(move.operand, move.entry) for move in moves}
                apart = {p: busy[p] - windows[p] * problem.times if p in users else zero for p in places}
                found[f"apart {port}"] = (0.0, apart)
        return found

    def _waits(self, places: Sequence[Place]) -> tuple[float, dict[Place, Floats]]:
        """Cycles for ports beside which the array cannot work."""
        constant, terms = 0.0, dict.fromkeys(places, np.zeros(self.problem.lattice.size))
        for port, moves in self.evaluator.moves.items():
            for move in moves if self.problem.ports[port][1].exclusive else ():
                place = (move.operand, move.entry)
                if place in terms:
                    terms[place] = terms[place] + move.busy * (move.times - 1) * move.present
                else:
                    constant += float(move.busy[0] * (move.times[0] - 1) * bool(move.present[0]))
        return constant, terms

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

    def _crossing(
        self, port: int, moves: Sequence[MoveTable], links: frozenset[Place], places: Sequence[Place]
    ) -> tuple[float, dict[Place, Floats]]:
        """A sum that latency is not below: all first loads at a port, and what it moves later.

        What comes once can hide only in cycles that the port has left, so it takes its time in one way or the other.
        """
        problem = self.problem
        bandwidth = problem.ports[port][1].bits
        computing = problem.computing
        zero = np.zeros(problem.lattice.size)
        ends = {p: self.evaluator.links[p[0]][p[1] - 1].ends for p in links}
        terms = {p: self._link(p) if p in links and not any(e[0] == port for e in ends[p]) else zero for p in places}
        for place, dip in self._dips(links).items():
            if not any(end[0] == port for end in self.evaluator.links[place[0]][place[1] - 1].ends):
                terms[place] = dip
        constant = 0.0
        for position, move in enumerate(moves):
            if self._ignored(move):
                continue
            place = (move.operand, move.entry)
            average = np.ceil(move.average / problem.cycles) / bandwidth * computing
            later = np.where(problem.times > 1, np.minimum(average, move.busy * (problem.times - 1.0)), 0.0)
            if place not in terms:
                constant += float(min(average[0], move.busy[0] * (problem.steps - 1)))
                continue
            terms[place] = terms[place] + later
            if place in links and (port, position) in ends[place]:
                terms[place] = terms[place] + move.busy
        rounded = float((problem.spans * problem.times).max()) - computing
        return constant - rounded - self._raised(port, moves), terms

    def _ignored(self, move: MoveTable) -> bool:
        return self.problem.operands[move.operand].is_output and move.direction in (TO_LOW, FROM_HIGH)

    def _forms(self) -> dict[str, frozenset[Place]]:
        """Links whose sum loading and storing are not below: those that all inputs share, or all of one input."""
        inputs = [table for table in self.problem.operands if not table.is_output]
        storing = frozenset(
            (t.index, entry) for t in self.problem.operands if t.is_output for entry in range(1, t.depth)
        )
        alone = len(inputs) == 1
        found: dict[str, frozenset[Place]] = {}
        both: set[Place] = set()
        for table in inputs:
            shared = [link.shared for link in self.evaluator.links[table.index]]
            both |= {(table.index, level + 1) for level, ends in enumerate(shared) if ends == 2}
            counted = {
                (table.index, level + 1)
                for level, ends in enumerate(shared)
                if self.problem.corrected or (ends == 0 if alone else ends != 1 or 1 not in shared[level + 1 :])
            }
            found[f"input {table.index}"] = storing | counted
        if not alone:
            found["shared"] = storing | both
            found["none"] = storing
        return found

    def _link(self, place: Place) -> Floats:
        """By node: cycles of a link for its first load or last store, as little as can be left of it."""
        ends = self.evaluator.links[place[0]][place[1] - 1].ends
        cycles = np.full(self.problem.lattice.size, -inf)
        for port, position in ends:
            moves = self.evaluator.moves[port]
            cycles = np.maximum(cycles, self._least_left(port, moves[position], moves))
        return np.maximum(cycles, 0.0) if len(ends) < 2 else cycles

    def _most_working(self, slowest: float) -> float:
        """Cycles in which loads can hide: all that a mapping may take, less what loading and storing take at least."""
        for _ in range(3 if slowest < inf else 0):
            least = [
                sum(
                    float(cycles[self.allowed(place)].min(initial=inf))
                    for place, cycles in ({p: self._link(p) for p in links} | self._dips(links)).items()
                )
                for links in self._forms().values()
            ]
            self._working = slowest - max(least, default=0.0)
        return self._working

    def _least_left(self, port: int, move: MoveTable, moves: Sequence[MoveTable]) -> Floats:
        """Of a load: all of it, but of one that happens once only what cannot be hidden behind the work."""
        last = self.problem.lattice.last
        result = move.busy.astype(np.float64)
        result[last] -= self._hidden(port, move, moves, self._working)
        return result

    def _hidden(self, port: int, move: MoveTable, moves: Sequence[MoveTable], working: float) -> float:
        """Cycles that can be taken off a load that comes once, at most.

        Cycles are taken off the longest load first, then off this and the next as much each, and so on.
        """
        problem, last = self.problem, self.problem.lattice.last
        if problem.corrected:
            return min(self._spare(port, move), working)
        once = [other for other in moves if self._comes_once(other)]
        longer = sum(other.busy[last] > move.busy[last] for other in once if self._surely_once(other))
        most = sum(self._spare(port, other) for other in once if other.busy[last] <= move.busy[last])
        return min(most, (working + self._raised(port, moves)) / (1 + longer))

    def _spare(self, port: int, move: MoveTable) -> float:
        """Cycles of a load beyond those that it needs at least."""
        least = -(-int(move.least.min()) // self.problem.ports[port][1].bits)
        return max(0.0, float(move.busy[-1]) - least)

    def _surely_once(self, move: MoveTable) -> bool:
        """Whether a tile is fetched a single time in every mapping."""
        return self._comes_once(move) and int(self.allowed((move.operand, move.entry)).sum()) == 1

    def sharper(self, slowest: float) -> bool:
        """Whether bounds become better if no mapping that takes longer is wanted."""
        return any(
            self._hidden(port, move, moves, slowest) < self._hidden(port, move, moves, self._working)
            for port, moves in self.evaluator.moves.items()
            for move in moves
            if self._comes_once(move)
        )

    def _raised(self, port: int, moves: Sequence[MoveTable]) -> float:
        """Cycles that the model's way to share what a port has left can give out beyond it."""
        if self.problem.corrected:
            return 0.0
        bandwidth = self.problem.ports[port][1].bits
        return len(moves) * sum(
            max(0.0, -(-int(move.least.max()) // bandwidth) - float(move.busy[-1]))
            for move in moves
            if self._comes_once(move)
        )

    def _comes_once(self, move: MoveTable) -> bool:
        """Whether a tile can be fetched a single time, and be hidden then."""
        if self._ignored(move) or self.problem.ports[move.port][1].exclusive:
            return False
        output = self.problem.operands[move.operand].is_output
        if output and not move.entry:
            return self.problem.steps == 1
        return bool(self.allowed((move.operand, move.entry))[-1])


def after(state: State, operand: int) -> State:
    """With one more place of an operand cut."""
    return (*state[:operand], state[operand] + 1, *state[operand + 1 :])


def _useful(families: Mapping[str, tuple[float, dict[Place, Floats]]]) -> list[tuple[float, dict[Place, Floats]]]:
    """Leaves out sums that are never above another one; nodes at which nothing can be cut are infinite in all."""
    kept = [families[ENERGY]]
    others = np.zeros((0, 0, 0))
    constants = np.zeros(0)
    for name, (constant, terms) in families.items():
        if name == ENERGY:
            continue
        mine = np.stack(list(terms.values()))
        if len(constants):
            with np.errstate(invalid="ignore"):
                above = np.fmax.reduce(mine - others, axis=2).sum(axis=1) + (constant - constants)
            if bool((above <= 0).any()):
                continue
        kept.append((constant, terms))
        others = np.concatenate([others.reshape(-1, *mine.shape), mine[None]])
        constants = np.append(constants, constant)
    return kept
