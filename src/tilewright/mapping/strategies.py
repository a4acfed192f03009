"""Ways to search that other tools have, for comparison: LOMA, SALSA and fixed orders.

All of them choose an order of loops; what is kept where follows by the rule of `tilewright.mapping.allocate`, here for
many orders at once. They cover a small part of the mappings that `tilewright.mapping.search` covers.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import exp, factorial, prod

import numpy as np
from msgspec import Struct

from tilewright.core.mapping import TemporalMapping
from tilewright.errors import TilewrightError
from tilewright.mapping.allocate import allocate
from tilewright.mapping.batch import Evaluator, Loops
from tilewright.mapping.goals import Objective
from tilewright.mapping.lattice import Ints, prime_factors
from tilewright.mapping.results import Found
from tilewright.mapping.tables import Flags, Floats, OperandTable, Problem, sum_values
from tilewright.price.array_nest import loops_by_memory

ROWS = 16384
"""Orders that are taken up together."""
MOST = 5_000_000
"""Orders of one layer that are worth trying one by one."""
Order = Sequence[tuple[str, int | None]]
"""Loops from the innermost on; without steps any factor of the dimension."""


class StrategyResult(Struct, frozen=True):
    """The best mapping of those tried."""

    best: Found
    evaluated: int
    """Orders that have room in all memories."""
    tried: int


def loma(
    problem: Problem,
    objective: Objective = "latency",
    limit: int | None = None,
    order: Order = (),
    *,
    even: bool = False,
) -> StrategyResult:
    """All orders of the loops, with no more than `limit` factors; `order` fixes the innermost ones, or all of them."""
    pinned, factors = _factors(problem, limit, order)
    loops = list(dict.fromkeys([*pinned, *factors]))
    counts = tuple(factors.count(loop) for loop in loops)
    number = factorial(len(factors)) // prod(factorial(count) for count in counts)
    if number > MOST:
        raise TilewrightError(
            "too-many-orders",
            f"layer '{problem.layer.name}' has {number} orders of {len(factors)} loops",
            help="give a limit on loop factors, or use the exact search, which needs none",
        )
    head = np.array([[loops.index(loop) for loop in pinned]], dtype=np.int64)
    orders = _orders(counts)
    orders = np.concatenate([np.repeat(head, len(orders), axis=0), orders], axis=1)
    for position, (dim, _) in enumerate(order if len(pinned) < len(order) else ()):
        orders = orders[[loops[loop][0] == dim for loop in orders[:, position]]]
    return _best_of(problem, objective, loops, orders, even)


def fixed(problem: Problem, order: Order, objective: Objective = "latency", *, even: bool = False) -> StrategyResult:
    """One order of loops, complete or (steps left out, or loops at the end) with everything that it leaves open."""
    return loma(problem, objective, None, order, even=even)


def salsa(
    problem: Problem,
    objective: Objective = "energy",
    *,
    seed: int = 0,
    iterations: int = 1000,
    chains: int = 4,
    start: float = 0.05,
    cooling: float = 0.995,
) -> StrategyResult:
    """Simulated annealing: exchanges two loops of an order, and takes worse ones the less the longer it runs."""
    lattice, evaluator = problem.lattice, Evaluator(problem)
    loops = lattice.primes
    rng = random.Random(seed)
    first = [index for index, factor in enumerate(lattice.factors) for _ in range(factor.count)]
    orders = np.array([rng.sample(first, len(first)) for _ in range(chains)], dtype=np.int64).reshape(chains, -1)
    energy, latency, cuts = _costs(evaluator, loops, orders, False)
    current = _value(objective, energy, latency)
    best_row = int(np.argmin(current))
    best = (
        current[best_row],
        orders[best_row].copy(),
        [cut[best_row] for cut in cuts],
        energy[best_row],
        latency[best_row],
    )
    tried = chains
    for iteration in range(iterations if len(first) > 1 else 0):
        heat = start * cooling**iteration
        changed = orders.copy()
        for chain in range(chains):
            one, other = rng.randrange(len(first)), rng.randrange(len(first))
            changed[chain, [one, other]] = changed[chain, [other, one]]
        energy, latency, cuts = _costs(evaluator, loops, changed, False)
        after = _value(objective, energy, latency)
        tried += chains
        for chain in range(chains):
            if np.isfinite(after[chain]) and (
                not np.isfinite(current[chain])
                or rng.random() < exp(min(0.0, (current[chain] / after[chain] - 1) / heat))
            ):
                orders[chain], current[chain] = changed[chain], after[chain]
            if after[chain] < best[0]:
                best = (after[chain], changed[chain].copy(), [c[chain] for c in cuts], energy[chain], latency[chain])
    if not np.isfinite(best[0]):
        _explain(problem, loops, best[1])
    found = Found(_mapping(problem, loops, best[1], best[2]), float(best[3]), float(best[4]))
    return StrategyResult(found, tried, tried)


def _value(objective: Objective, energy: Floats, latency: Floats) -> Floats:
    return {"latency": latency, "energy": energy}.get(objective, energy * latency)


def _factors(problem: Problem, limit: int | None, order: Order) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Loops with a fixed place, and the others; if there are too many, the two smallest of a dimension are joined."""
    left = dict(problem.spatial.steps(problem.layer))
    pinned: list[tuple[str, int]] = []
    if all(steps is not None for _, steps in order):
        for dim, steps in order:
            if steps is None or left.get(dim, 1) % steps:
                there = left.get(dim, 1)
                raise TilewrightError(
                    "bad-order",
                    f"layer '{problem.layer.name}': the order has {steps} steps of {dim}, of which {there} are left",
                    help="give steps that divide those that are left",
                )
            if steps > 1:
                pinned.append((dim, steps))
            left[dim] = left.get(dim, 1) // steps
    factors = {dim: prime_factors(steps) for dim, steps in left.items() if steps > 1}
    most = max(limit if limit is not None else 10**9, len(factors))
    while sum(map(len, factors.values())) > most:
        longest = max(factors.values(), key=len)
        longest[:2] = [longest[0] * longest[1]]
        longest.sort()
    return pinned, [(dim, steps) for dim, found in factors.items() for steps in found]


def _orders(counts: tuple[int, ...]) -> Ints:
    """All different orders of numbers that occur so often."""
    known: dict[tuple[int, ...], Ints] = {}

    def further(left: tuple[int, ...]) -> Ints:
        if left not in known:
            parts: list[Ints] = []
            for number, count in enumerate(left):
                if count:
                    rest = further((*left[:number], count - 1, *left[number + 1 :]))
                    parts.append(np.concatenate([np.full((len(rest), 1), number), rest], axis=1))
            known[left] = np.concatenate(parts) if parts else np.zeros((1, 0), dtype=np.int64)
        return known[left]

    return further(counts)


def _best_of(problem: Problem, objective: Objective, loops: Loops, orders: Ints, even: bool) -> StrategyResult:
    evaluator = Evaluator(problem)
    best: tuple[tuple[float, float], int, list[Ints], float, float] | None = None
    fitting = 0
    for start in range(0, len(orders), ROWS):
        some = orders[start : start + ROWS]
        energy, latency, cuts = _costs(evaluator, loops, some, even)
        fitting += int(np.isfinite(energy).sum())
        first, second = {
            "latency": (latency, energy),
            "energy": (energy, latency),
        }.get(objective, (energy * latency, np.zeros_like(energy)))
        row = int(np.lexsort((second, first))[0])
        key = (float(first[row]), float(second[row]))
        if np.isfinite(energy[row]) and (best is None or key < best[0]):
            best = (key, start + row, [cut[row] for cut in cuts], float(energy[row]), float(latency[row]))
    if best is None:
        _explain(problem, loops, orders[0] if len(orders) else np.zeros(0, dtype=np.int64))
        raise TilewrightError(
            "no-mapping",
            f"layer '{problem.layer.name}': no order of loops is like the one given",
            help="give fewer loops of the order, or none",
        )
    mapping = _mapping(problem, loops, orders[best[1]], best[2])
    return StrategyResult(Found(mapping, best[3], best[4]), fitting, len(orders))


def _explain(problem: Problem, loops: Loops, order: Ints) -> None:
    """Raises what is wrong with an order that has no room."""
    order_given = tuple(loops[int(loop)] for loop in order)
    allocate(problem.layer, problem.engine, problem.spatial, order_given, corrected=problem.corrected)


def _mapping(problem: Problem, loops: Loops, order: Ints, cuts: Sequence[Ints]) -> TemporalMapping:
    return TemporalMapping(
        tuple(loops[int(loop)] for loop in order),
        {table.operand.name: tuple(int(cut) for cut in cuts[table.index]) for table in problem.operands},
    )


def _costs(evaluator: Evaluator, loops: Loops, orders: Ints, even: bool) -> tuple[Floats, Floats, list[Ints]]:
    """Energy and latency of orders (infinite where there is no room), and their cuts."""
    cuts, fits = kept(evaluator, loops, orders, even)
    costs = evaluator.costs(evaluator.profile(orders, cuts, loops))
    energy = np.where(fits, costs.energy, np.inf)
    return energy, np.where(fits, costs.latency, np.inf), cuts


def kept(evaluator: Evaluator, loops: Loops, orders: Ints, even: bool = False) -> tuple[list[Ints], Flags]:
    """`allocate` for many orders: cuts by operand, and whether memories have room."""
    problem = evaluator.problem
    reached: Ints = evaluator.reached(orders, loops)
    ends, rows = int(reached.shape[0]), int(reached.shape[1])
    row = np.arange(rows)
    fits = np.ones(rows, dtype=bool)
    cuts = [np.full((rows, table.depth), ends - 1, dtype=np.int64) for table in problem.operands]
    by_slot = {table.operand.slot: table for table in problem.operands}
    levels = dict.fromkeys(by_slot, 0)
    paths = _Paths(problem, loops, orders)
    above = problem.steps // problem.lattice.periods[reached]
    for number, memory in enumerate(problem.engine.memories):
        bits_there = problem.room(number)
        held = [by_slot[slot] for slot in memory.slots if slot in by_slot]
        options: list[_Options] = []
        for table in held:
            level = levels[table.operand.slot]
            below = cuts[table.index][:, level - 1] if level else np.zeros(rows, dtype=np.int64)
            first = ends - 1 if level == table.depth - 1 else 0
            bits: Ints | int = table.operand.bits
            if table.is_output:
                bits = np.where(
                    table.sums_open[level][reached[below, row]], table.operand.bits, table.operand.final_bits
                )
            size = (table.elements[level][reached] if paths.whole else paths.elements(table, level, below))[
                first:
            ] * bits
            usable = (np.arange(first, ends)[:, None] >= below) & (size <= bits_there)
            cost = np.zeros_like(size) if first else above * size
            options.append(_Options(first, np.where(usable, size, np.inf), np.where(usable, cost, np.inf)))
        if not held:
            continue
        chosen = _least(options, bits_there, even)
        fits &= chosen[0] >= 0
        for table, cut in zip(held, chosen, strict=True):
            cuts[table.index][:, levels[table.operand.slot]] = np.maximum(cut, 0)
            levels[table.operand.slot] += 1
    return cuts, fits


class _Paths:
    """Elements of tiles, multiplied up in the order of the loops.

    Where a dimension is spread over units that it does not fill, extents are fractions. The original rounds them after
    each loop, and which of two equal tiles it keeps hangs on that.
    """

    def __init__(self, problem: Problem, loops: Loops, orders: Ints) -> None:
        self._layer, self._orders = problem.layer, orders
        self._dims = [dim for dim, _ in loops]
        self._steps = np.array([steps for _, steps in loops], dtype=np.float64)
        unrolled = problem.spatial.fractional(problem.layer)
        self.whole = all(count == int(count) for found in unrolled.values() for _, count in found)
        self._entries = {t.index: loops_by_memory(problem.engine, t.operand.slot, unrolled) for t in problem.operands}
        self._until: dict[int, dict[str, Floats]] = {}
        """By operand: extents at the memory below, after 0, 1, 2, ... loops."""

    def elements(self, table: OperandTable, level: int, below: Ints) -> Floats:
        """After 0, 1, 2, ... loops, of tiles that are cut at `below` in the memory below."""
        rows, count = self._orders.shape
        before = self._until.get(table.index, {})
        extents: dict[str, Floats] = {}
        for dim in self._layer.dims:
            run = np.ones((count + 1, rows))
            run[:] = before[dim][below, np.arange(rows)] if dim in before else 1.0
            for name, steps in self._entries[table.index][level]:
                run *= steps if name == dim else 1.0
            mine = np.array([name == dim for name in self._dims])
            for position in range(count):
                loop = self._orders[:, position]
                run[position + 1] = run[position] * np.where(mine[loop] & (position >= below), self._steps[loop], 1.0)
            extents[dim] = run
        self._until[table.index] = extents
        found = np.ones((count + 1, rows))
        for dim in self._layer.relevant(table.operand):
            found = found * extents[dim]
        for name in table.operand.sums:
            axis = self._layer.sums[name]
            found = found * sum_values(axis, extents[axis.first], extents[axis.second])
        return found


class _Options(Struct, frozen=True):
    """Tiles of one operand in one memory: a row for each cut, a column for each order."""

    first: int
    """The cut of the first row."""
    sizes: Floats
    costs: Floats
    """What is left to move."""


def _least(options: Sequence[_Options], room: int, even: bool) -> list[Ints]:
    """By order: the tiles that leave least to move, of equal ones the last; -1 where nothing fits."""
    rows = int(options[0].sizes.shape[1])
    shape = [len(option.sizes) for option in options]
    cost, taken = options[0].costs, options[0].sizes
    for option in options[1:]:
        cost = (cost[:, None] + option.costs).reshape(-1, rows)
        taken = (taken[:, None] + option.sizes).reshape(-1, rows)
    cost[taken > room] = np.inf
    cuts: list[Ints] = [axis.ravel() + o.first for axis, o in zip(np.indices(shape), options, strict=True)]
    if even:
        cost[np.logical_or.reduce([cut != cuts[0] for cut in cuts])] = np.inf
    last: Ints = len(cuts[0]) - 1 - np.argmin(cost[::-1], axis=0)
    possible = np.isfinite(cost[last, np.arange(rows)])
    return [np.where(possible, cut[last], -1) for cut in cuts]
