"""The best mapping of all: branch and bound over the nodes at which tiles change.

The mappings searched are all orders of all prime factors of the steps in time, with every way to cut each of them for
every operand and memory such that tiles fit (`docs/mapping.md` says it exactly). A mapping is built from the inside
out: the next place to cut and its node, both free. The bounds of `tilewright.mapping.bounds` say what the rest costs at
least, and what cannot be better than the best found is not looked at; what is left at the end is therefore proved best.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import ceil, inf
from time import process_time

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from tilewright.core.mapping import TemporalMapping
from tilewright.mapping.allocate import too_small
from tilewright.mapping.batch import Evaluator, Place, Profile
from tilewright.mapping.bounds import Bounds, State, after
from tilewright.mapping.goals import Goal, Objective, Wanted
from tilewright.mapping.hiding import Loads
from tilewright.mapping.lattice import Ints
from tilewright.mapping.orders import LoopSegment, Orders, combined
from tilewright.mapping.parts import Part, Space
from tilewright.mapping.results import Effort, Found, SearchResult
from tilewright.mapping.tables import MIXED, NEW, SAME, Flags, Floats, Problem, room

FOREVER = 1e18
"""Cycles, more than any layer takes."""
BLOCK = 256
"""Partial mappings that are taken up together."""
WIDTH = 64
"""Partial mappings that are pursued together to find some mapping."""
ORDERS = 4096
"""Orders of one mapping's loops that are evaluated together."""


class _CutBlock(Struct):
    """Partial mappings of one part with the same places cut."""

    bounds: Bounds
    state: State
    node: Ints
    """The last one cut."""
    operand: Ints
    """The operand that it was cut for."""
    nodes: dict[Place, Ints]
    sums: Floats
    """By mapping and family: the terms so far."""

    def take(self, rows: Ints) -> _CutBlock:
        nodes = {place: found[rows] for place, found in self.nodes.items()}
        return _CutBlock(self.bounds, self.state, self.node[rows], self.operand[rows], nodes, self.sums[rows])


_Waiting = tuple[float, float, int, int, _CutBlock | Bounds | Part]
"""What to look at first: bounds, how little is left to cut, and what came earlier; parts wait until they promise."""
_Heap = list[_Waiting]


class _Pending:
    """Mappings that wait to be evaluated together."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._loops = [int(count) for count in problem.lattice.exponents.sum(axis=1)]
        self.orders: list[tuple[int, ...]] = []
        self._cuts: list[list[list[int]]] = [[] for _ in problem.operands]

    def add(self, order: tuple[int, ...], nodes: Mapping[Place, int]) -> None:
        self.orders.append(order)
        for table, cuts in zip(self._problem.operands, self._cuts, strict=True):
            at = [self._loops[nodes[table.index, entry]] for entry in range(1, table.depth)]
            cuts.append([*at, self._problem.lattice.loops])

    def arrays(self) -> tuple[Ints, list[Ints]]:
        shape = (len(self.orders), self._problem.lattice.loops)
        cuts = [np.array(found, dtype=np.int64) for found in self._cuts]
        return np.array(self.orders, dtype=np.int64).reshape(shape), cuts


class Search(Struct, dict=True):
    """One search in one problem; `run` does it."""

    problem: Problem
    objective: Objective
    wanted: Wanted = field(default_factory=Wanted)
    effort: Effort = field(default_factory=Effort)
    goal: Goal | None = None
    """What was found before in other problems; only what is better is sought."""

    def __post_init__(self) -> None:
        self.evaluator = Evaluator(self.problem)
        self._goal = self.goal or new_goal(self.objective, self.wanted, self.problem)
        self._orders = Orders([table.kinds for table in self.problem.operands], self.problem.lattice.strides)
        self._space = Space(self.evaluator, self.wanted)
        self._loads = Loads(self._space)
        self._kept: dict[tuple[float, float], TemporalMapping] = {}
        self._evaluated = 0
        self._blocks = 0
        self._serial = 0

    def run(self) -> SearchResult:
        """Searches to the end or as far as the effort allows."""
        started = process_time()
        check_room(self.problem, self.wanted)
        heap = self._parts()
        bound = inf
        while heap:
            first, _, _, _, waiting = heap[0]
            # What is known about parts without tables of them is no bound worth the name.
            if isinstance(waiting, _CutBlock) and self._stops(first, started):
                bound = first
                break
            heapq.heappop(heap)
            self._blocks += 1
            if isinstance(waiting, _CutBlock):
                for child in self._expand(waiting):
                    self._push(heap, child)
            else:
                self._open(heap, waiting)
        return self._result(bound, not heap, process_time() - started)

    def _parts(self) -> _Heap:
        """All parts, with what they cost at least as far as this is known without tables of them."""
        heap: _Heap = []
        self._least_energy = inf
        for part in self._space.parts():
            energy = self._space.least_energy(part)
            self._least_energy = min(self._least_energy, energy)
            self._wait(heap, part, energy, max(0.0, self._loads.least_latency(self._space, part)))
        return heap

    def _wait(self, heap: _Heap, waiting: Part | Bounds, energy: float, latency: float) -> None:
        if bool(self._goal.hopeful(np.array(energy), np.array(latency))):
            self._serial += 1
            heapq.heappush(heap, (*self._goal.rank(energy, latency), 0, self._serial, waiting))

    def _open(self, heap: _Heap, waiting: Part | Bounds) -> None:
        """Looks closer at a part, as long as it promises something better."""
        if not isinstance(waiting, Bounds):
            bounds = Bounds(self._space, self._loads, waiting)
            self._wait(heap, bounds, *bounds.apart)
            return
        if not bool(self._goal.hopeful(*map(np.array, waiting.root))) or waiting.demanding:
            return
        nodes = {place: np.full(1, self.problem.lattice.last) for place in waiting.whole}
        zero = np.zeros(1, dtype=np.int64)
        root = _CutBlock(waiting, waiting.start, zero, zero - 1, nodes, waiting.constants[None, :].copy())
        if waiting.start == waiting.done:
            self._leaves(root)
            return
        if not self._goal.found:
            self._dive(root)
        self._push(heap, root)

    def _dive(self, block: _CutBlock) -> None:
        """Finds some mapping soon: goes on with the most promising cuts alone."""
        while True:
            children = self._expand(block)
            if not children:
                return
            ranked = [(*self._order(child), child) for child in children]
            _, _, rows, best = min(ranked, key=lambda one: (one[0][one[2][0]], one[1][one[2][0]], one[3].state))
            block = best.take(rows[:WIDTH])

    def _order(self, block: _CutBlock) -> tuple[Floats, Floats, Ints]:
        """What comes first and second, and the rows of a block from the best one on."""
        rest = block.bounds.rest(block.state)[:, block.node].T + block.sums
        first, second = self._goal.key(rest[:, 0], rest[:, block.bounds.latencies].max(axis=1))
        return first, second, np.lexsort((second, first))

    def _stops(self, first: float, started: float) -> bool:
        effort = self.effort
        seconds = process_time() - started if effort.seconds < inf else 0.0
        if seconds > effort.seconds or self._evaluated > effort.mappings or self._blocks > effort.steps:
            return bool(self._goal.found) or seconds > 10 * effort.seconds
        return bool(self._goal.found) and effort.gap > 0 and self._value() <= first * (1 + effort.gap)

    def _value(self) -> float:
        latency, energy = self._goal.found[0]
        return self._goal.rank(energy, latency)[0]

    def _result(self, bound: float, proved: bool, seconds: float) -> SearchResult:
        best = tuple(Found(self._kept[one], one[1], one[0]) for one in self._goal.found if one in self._kept)
        if self._goal.found and self.objective != "pareto":
            bound = min(bound, self._value())
        depths = [table.depth for table in self.problem.operands]
        return SearchResult(
            best=best,
            bound=0.0 if self.objective == "pareto" and not proved else bound,
            proved=proved,
            covered=self.problem.lattice.mappings(depths),
            evaluated=self._evaluated,
            steps=self._blocks,
            seconds=seconds,
        )

    def _push(self, heap: _Heap, block: _CutBlock) -> None:
        """In blocks, best first."""
        first, second, order = self._order(block)
        for start in range(0, len(order), BLOCK):
            rows = order[start : start + BLOCK]
            self._serial += 1
            depth = sum(block.state)
            entry = (float(first[rows[0]]), float(second[rows[0]]), -depth, self._serial, block.take(rows))
            heapq.heappush(heap, entry)

    def _expand(self, block: _CutBlock) -> list[_CutBlock]:
        """Partial mappings with one more place cut; whole ones are evaluated."""
        bounds = block.bounds
        now = bounds.rest(block.state)[:, block.node].T + block.sums
        block = block.take(np.flatnonzero(self._goal.hopeful(now[:, 0], now[:, bounds.latencies].max(axis=1))))
        children: list[_CutBlock] = []
        if not len(block.node):
            return children
        for operand, cut in enumerate(block.state):
            if cut == bounds.done[operand]:
                continue
            place = (operand, bounds.places[operand][cut])
            child = self._cut(block, place)
            if not len(child.node):
                continue
            if child.state == bounds.done:
                self._leaves(child)
            else:
                children.append(child)
        return children

    def _cut(self, block: _CutBlock, place: Place) -> _CutBlock:
        """All ways to cut one more place that can be better than the best found."""
        bounds, exponents = block.bounds, self.problem.lattice.exponents
        state = after(block.state, place[0])
        nodes = np.flatnonzero(np.isfinite(bounds.term(place)[0]))
        ahead = (bounds.term(place) + bounds.rest(state))[:, nodes]
        energy = block.sums[:, 0, None] + ahead[0]
        latency = block.sums[:, 1, None] + ahead[1]
        for family in range(2, bounds.latencies.stop):
            np.maximum(latency, block.sums[:, family, None] + ahead[family], out=latency)
        usable = self._goal.hopeful(energy, latency)
        for family, limit in enumerate(bounds.limits, bounds.latencies.stop):
            usable &= block.sums[:, family, None] + ahead[family] <= limit
        for axis in range(exponents.shape[1]):
            usable &= exponents[nodes, axis] >= exponents[block.node, axis][:, None]
        # Two places at one node are cut in the order of their operands, so that each mapping comes up once.
        usable &= (nodes != block.node[:, None]) | (block.operand <= place[0])[:, None]
        rows, columns = np.nonzero(usable)
        chosen = nodes[columns]
        placed = {other: found[rows] for other, found in block.nodes.items()} | {place: chosen}
        fits = self._fits(placed, chosen)
        rows, chosen = rows[fits], chosen[fits]
        return _CutBlock(
            bounds,
            state,
            chosen,
            np.full(len(chosen), place[0]),
            {other: found[fits] for other, found in placed.items()},
            block.sums[rows] + bounds.term(place)[:, chosen].T,
        )

    def _fits(self, placed: Mapping[Place, Ints], node: Ints) -> Flags:
        """Whether memories have room for the tiles so far and the least that can still come."""
        problem = self.problem
        result = np.ones(len(node), dtype=bool)
        for memory, users in problem.memories.items():
            taken = np.zeros(len(node))
            for operand, level in users:
                table = problem.operands[operand]
                outermost = level == table.depth - 1
                lower = placed.get((operand, level)) if level else np.zeros_like(node)
                upper = np.full_like(node, problem.lattice.last) if outermost else placed.get((operand, level + 1))
                if lower is None or upper is None:
                    taken = taken + self._space.least_room(operand, level)[node]
                else:
                    taken = taken + room(table, level, lower, upper)
            result &= taken <= self.wanted.bits(problem, memory)
        return result

    def _leaves(self, block: _CutBlock) -> None:
        """Evaluates whole sets of cuts, with all orders in between that matter."""
        energy, latency, watched = self._optimistic(block)
        first, second = self._goal.key(energy, latency)
        order = np.lexsort((second, first))
        start, size = 0, 1
        while start < len(order):
            # Few at first, as the best of them often rules out the others.
            rows = order[start : start + size]
            start, size = start + size, min(2 * size, BLOCK)
            rows = rows[self._goal.hopeful(energy[rows], latency[rows])]
            pending = _Pending(self.problem)
            for row in rows:
                nodes = {place: int(found[row]) for place, found in block.nodes.items()}
                for sequence in self._orders_of(nodes, watched, int(row)):
                    pending.add(sequence, nodes)
                    if len(pending.orders) == ORDERS:
                        self._offer(*pending.arrays())
                        pending = _Pending(self.problem)
            if pending.orders:
                self._offer(*pending.arrays())

    def _optimistic(self, block: _CutBlock) -> tuple[Floats, Floats, dict[Place, Flags]]:
        """Energy and least latency of sets of cuts, and for which places the order in between can matter."""
        problem, evaluator = self.problem, self.evaluator
        last = np.full(len(block.node), problem.lattice.last)
        nodes: dict[Place, Ints] = dict(block.nodes)
        fewest: dict[Place, Ints] = {}
        longest: dict[Place, Ints] = {}
        ones: dict[Place, Ints] = {}
        for table in problem.operands:
            lower = np.zeros_like(last)
            for level in range(table.depth):
                place = (table.index, level + 1)
                upper = nodes.setdefault(place, last)
                steps = {kind: self._steps(lower, upper, table.kinds, kind) for kind in (NEW, SAME, MIXED)}
                only_same = (steps[NEW] == 1) & (steps[MIXED] == 1)
                fewest[place] = np.where(only_same, steps[SAME], 1)
                longest[place] = steps[NEW]
                ones[place] = np.ones_like(last)
                lower = upper
        profile = Profile(nodes, longest, fewest)
        flags = evaluator.double_buffered_at_best(profile)
        surely = evaluator.double_buffered(Profile(nodes, ones, fewest))
        windows = evaluator.windows(profile, flags)
        held = np.asarray(evaluator.held(profile, windows)) + np.zeros(len(last))
        watched: dict[Place, Flags] = {}
        settled = np.ones(len(last), dtype=bool)
        for users in problem.memories.values():
            places = [(operand, level + 1) for operand, level in users]
            calm = np.ones(len(last), dtype=bool)
            for place in places:
                calm &= surely[place]
            settled &= calm
            watched |= dict.fromkeys(places, ~calm)
        costs = evaluator.costs_when(profile, held, ceil(problem.computing) + held)
        latency = np.asarray(costs.latency) + np.zeros(len(last))
        if not bool(settled.all()):
            latency = np.where(settled, latency, self._fastest(profile, held))
        return np.asarray(costs.energy) + np.zeros(len(last)), latency, watched

    def _fastest(self, profile: Profile, held: Floats) -> Floats:
        """The least latency if the array may wait for longer, and loads hide behind that."""
        evaluator = self.evaluator
        anything = evaluator.costs_when(profile, held, np.full(len(held), FOREVER), least=True)
        hidden = np.asarray(anything.loading + anything.storing) + np.zeros(len(held))
        working = np.minimum(self._goal.slowest(self._least_energy) - hidden, FOREVER)
        working = np.where(evaluator.raises(profile), FOREVER, working)
        return np.asarray(evaluator.costs_when(profile, held, working, least=True).latency) + np.zeros(len(held))

    def _steps(self, lower: Ints, upper: Ints, kinds: tuple[int, ...], kind: int) -> Ints:
        """Steps between two nodes of loops of one kind."""
        lattice = self.problem.lattice
        result = np.ones(len(lower), dtype=np.int64)
        for index, factor in enumerate(lattice.factors):
            if kinds[index] == kind:
                result = result * factor.prime ** (lattice.exponents[upper, index] - lattice.exponents[lower, index])
        return result

    def _orders_of(
        self, nodes: Mapping[Place, int], watched: Mapping[Place, Flags], row: int
    ) -> Iterator[tuple[int, ...]]:
        """The orders of one set of cuts that can differ in cost."""
        lattice = self.problem.lattice
        chain = sorted({0, lattice.last, *nodes.values()}, key=lambda node: int(lattice.periods[node]))
        choices = [self._orders.of(segment) for segment in self._segments(nodes, watched, row, chain)]
        return combined(choices)

    def _segments(
        self, nodes: Mapping[Place, int], watched: Mapping[Place, Flags], row: int, chain: list[int]
    ) -> list[LoopSegment]:
        """The loops between neighbouring nodes, and which operands care for their order."""
        lattice, last = self.problem.lattice, self.problem.lattice.last
        parts = [
            tuple(int(count) for count in lattice.exponents[upper] - lattice.exponents[lower])
            for lower, upper in pairwise(chain)
        ]
        caring: list[set[int]] = [set() for _ in parts]
        staying: list[set[int]] = [set() for _ in parts]
        rank = {node: index for index, node in enumerate(chain)}
        for table in self.problem.operands:
            for entry in range(0 if not table.is_output else 1, table.depth + 1):
                place = (table.index, entry)
                node = nodes.get(place, last)
                if node != last:
                    staying[rank[node]].add(table.index)
                if entry == 0 or not watched[place][row]:
                    continue
                bottom = rank[nodes[table.index, entry - 1]] if entry > 1 else 0
                for index in range(rank[node] - 1, bottom - 1, -1):
                    caring[index].add(table.index)
                    kinds = {table.kinds[factor] for factor, count in enumerate(parts[index]) if count}
                    if len(kinds) > 1 or MIXED in kinds:
                        break
        return [
            LoopSegment(counts, frozenset(care), frozenset(stay))
            for counts, care, stay in zip(parts, caring, staying, strict=True)
        ]

    def _offer(self, orders: Ints, cuts: list[Ints]) -> None:
        costs = self.evaluator.costs(self.evaluator.profile(orders, cuts))
        rows = len(orders)
        self._evaluated += rows
        energy = np.asarray(costs.energy) + np.zeros(rows)
        latency = np.asarray(costs.latency) + np.zeros(rows)
        first, second = self._goal.key(energy, latency)
        for row in np.lexsort((second, first)):
            if not self._goal.offer(float(energy[row]), float(latency[row])):
                if self.objective != "pareto":
                    break
                continue
            factors = self.problem.lattice.factors
            self._kept[float(latency[row]), float(energy[row])] = TemporalMapping(
                tuple((factors[int(factor)].dim, factors[int(factor)].prime) for factor in orders[row]),
                {t.operand.name: tuple(int(at) for at in cuts[t.index][row]) for t in self.problem.operands},
            )


def new_goal(objective: Objective, wanted: Wanted, problem: Problem) -> Goal:
    """With nothing found yet."""
    return Goal(objective, wanted.slowest(problem.ideal), wanted.energy)


def check_room(problem: Problem, wanted: Wanted) -> None:
    """Says which memory is too small if no mapping can exist: for the least tile, or at the end for the whole."""
    for memory, users in problem.memories.items():
        needs: list[tuple[str, float]] = []
        for operand, level in users:
            table = problem.operands[operand]
            nodes = np.arange(problem.lattice.size)
            upper = np.full_like(nodes, problem.lattice.last) if level == table.depth - 1 else nodes
            least = room(table, level, nodes if level else np.zeros_like(nodes), upper).min()
            needs.append((table.operand.name, float(least)))
        size = wanted.bits(problem, memory)
        if sum(bits for _, bits in needs) > size:
            raise too_small(problem.layer, replace(problem.engine.memories[memory], bits=int(size)), needs)
