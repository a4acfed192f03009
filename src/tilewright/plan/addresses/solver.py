"""Exact search for allocations that fast packing leaves above the lower bound.

Two libraries were taken after measuring both, single-threaded, on the seven published minimalloc instances:

- `omnimalloc` (a C++ branch and bound over offsets) finds packings. Its public allocator closes in from above and
  solves none of the seven in 15 s on one thread; the same search told the target peak solves each in 0.02 to 2 s, so it
  is called below that allocator, with a limit on nodes instead of seconds. It knows neither pins nor banks nor
  alignment, and does not say whether a failed search was complete.
- CP-SAT (`ortools`) alone solves two of the seven in 20 s, but takes pins, mixed alignment and choices of bank as they
  are, and proves optima and infeasibility. So it runs second, for what the first cannot say.

A search written here in Python would visit a hundredth of the nodes per second of either.

Both searches run on one thread and count steps, not seconds: the same call gives the same result on any machine. A
"second" of effort is about a second of a slow core. Both libraries are imported when they are first needed, since
ortools takes about a second and most networks need no search.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from tilewright.base.solver import FEASIBLE, INFEASIBLE, OPTIMAL, new_model, new_solver, solved
from tilewright.plan.addresses.packing import Item, peak, round_up

if TYPE_CHECKING:
    from tilewright.base.solver import CpModel, IntervalVar, IntVar, LinearExprT

# Steps that count as one second. Seen in a second: 5 000 to 200 000 nodes of the branch and bound, and 0.03 to 0.08 of
# CP-SAT's unit of deterministic time, which counts the work of this constraint far too low.
NODES_PER_SECOND = 20_000
CP_SAT_TIME_PER_SECOND = 0.05
# What CP-SAT can prove it proves soon, so most of the effort goes to finding.
FINDING_SHARE = 0.75
FIRST_NODES = 20_000
# In which order the search takes the items: by total size of the time sections they cross, duration, area.
# The first solves all seven instances; the second solves some that the first does not.
SEARCH_ORDERS = ("TWA", "TAW")


class Tightened(Struct, frozen=True):
    """The best offsets found and the best bound proven."""

    offsets: list[int]
    bound: int


class Banked(Struct, frozen=True):
    """A bank and an offset for each item (None when none was found); `proven` when no cheaper choice exists."""

    banks: list[int] | None
    offsets: list[int]
    proven: bool


def tighten(
    items: Sequence[Item], offsets: list[int], bound: int, target: int, *, seconds: float, seed: int
) -> Tightened:
    """Lowers the peak until it is not above `target` (which is at least `bound`), or the effort is spent."""
    if all(item.pin is None for item in items):
        offsets = _branch_and_bound(items, offsets, bound, target, seconds * FINDING_SHARE)
    if peak(items, offsets) <= target:
        return Tightened(offsets, bound)
    return _prove(items, offsets, bound, target, seconds * (1 - FINDING_SHARE), seed)


def _branch_and_bound(items: Sequence[Item], offsets: list[int], bound: int, target: int, seconds: float) -> list[int]:
    """Searches with growing numbers of nodes for a packing at the bound and at the target, or half-way down."""
    from omnimalloc import _cpp as native

    # The library has no alignment: everything is counted in units of the strictest, which is exact when all are equal.
    unit = max(item.align for item in items)
    blocks = [
        native.Allocation(index, round_up(item.size, unit) // unit, item.first, item.last)
        for index, item in enumerate(items)
    ]
    partition = native.Partition.from_allocations(blocks)
    searches = [partition.reorder(code) for code in SEARCH_ORDERS]
    left, nodes = int(seconds * NODES_PER_SECOND), FIRST_NODES
    while left > 0:
        for search in searches:
            for goal in _goals(bound, target, peak(items, offsets), unit):
                allowed = min(nodes, left)
                if not allowed:
                    return offsets
                left -= allowed
                found = native.try_solve_many(
                    [search.with_bound(goal + 1)],
                    goal + 1,
                    allowed,
                    canonical=True,
                    dominance=True,
                    floor_inference=True,
                    monotonic_floor=True,
                    decompose=True,
                    timeout=None,
                    num_threads=1,
                )
                if found is None:
                    continue
                placed = {int(a.id): (a.offset or 0) * unit for a in found.allocations}
                candidate = [placed[index] for index in range(len(items))]
                if peak(items, candidate) < peak(items, offsets):
                    offsets = candidate
                if peak(items, offsets) <= target:
                    return offsets
        nodes *= 4
    return offsets


def _goals(bound: int, target: int, current: int, unit: int) -> list[int]:
    """Peaks to ask for, in units. A tight one prunes best, so it is often found soonest."""
    lowest = -(-bound // unit)
    # Without a capacity the target is the bound itself; half-way down then helps when the bound is out of reach.
    second = target if target > bound else (bound + current) // 2
    wanted = {lowest, max(lowest, second // unit)}
    return sorted(goal for goal in wanted if goal * unit < current + unit)


def _prove(items: Sequence[Item], offsets: list[int], bound: int, target: int, seconds: float, seed: int) -> Tightened:
    """Minimises the peak; where a target above the bound is given, only looks for a packing that meets it."""
    model = new_model()
    highest = target if target > bound else peak(items, offsets)
    starts = _starts(model, items, highest)
    grain = min(item.align for item in items)
    times = _compressed(items)
    lives = [model.new_fixed_size_interval_var(times[i.first], times[i.last] - times[i.first], "") for i in items]
    model.add_no_overlap_2d(
        lives,
        [
            model.new_fixed_size_interval_var(start, round_up(item.size, grain), "")
            for item, start in zip(items, starts, strict=True)
        ],
    )
    if target == bound:
        top = model.new_int_var(bound, highest, "")
        for item, start in zip(items, starts, strict=True):
            model.add(start + item.size <= top)
        model.minimize(top)
    solver = new_solver(seconds * CP_SAT_TIME_PER_SECOND, seed)
    status = solved(solver, model)
    if status in (OPTIMAL, FEASIBLE):
        found = [int(solver.value(start)) for start in starts]
        if peak(items, found) < peak(items, offsets):
            offsets = found
        if target == bound:
            bound = max(bound, round(solver.best_objective_bound))
    elif status == INFEASIBLE:
        bound = highest + 1
    return Tightened(offsets, bound)


def choose_banks(
    items: Sequence[Item], allowed: Sequence[Sequence[int]], capacity: Sequence[int], *, seconds: float, seed: int
) -> Banked:
    """Puts every item in an allowed bank without exceeding capacities, with the fewest bytes away from first choices.

    A byte in the n-th choice counts n - 1 times.
    """
    model = new_model()
    grain = min(item.align for item in items)
    times = _compressed(items)
    starts = _starts(model, items, max(capacity))
    lives: list[list[IntervalVar]] = [[] for _ in capacity]
    spans: list[list[IntervalVar]] = [[] for _ in capacity]
    chosen: list[list[IntVar]] = []
    for item, start, banks in zip(items, starts, allowed, strict=True):
        chosen.append([model.new_bool_var("") for _ in banks])
        model.add_exactly_one(chosen[-1])
        room = sum(capacity[bank] * here for bank, here in zip(banks, chosen[-1], strict=True))
        model.add(start + item.size <= room)
        for bank, here in zip(banks if item.size else (), chosen[-1], strict=False):
            length = times[item.last] - times[item.first]
            lives[bank].append(model.new_optional_fixed_size_interval_var(times[item.first], length, here, ""))
            spans[bank].append(model.new_optional_fixed_size_interval_var(start, round_up(item.size, grain), here, ""))
    for life, span in zip(lives, spans, strict=True):
        model.add_no_overlap_2d(life, span)
    model.minimize(
        sum(n * item.size * here for item, own in zip(items, chosen, strict=True) for n, here in enumerate(own))
    )
    solver = new_solver(seconds * CP_SAT_TIME_PER_SECOND, seed)
    status = solved(solver, model)
    if status not in (OPTIMAL, FEASIBLE):
        return Banked(None, [], status == INFEASIBLE)
    banks = [
        next(bank for bank, here in zip(own, picks, strict=True) if solver.boolean_value(here))
        for own, picks in zip(allowed, chosen, strict=True)
    ]
    return Banked(banks, [int(solver.value(start)) for start in starts], status == OPTIMAL)


def _starts(model: CpModel, items: Sequence[Item], highest: int) -> list[LinearExprT]:
    """Offsets as multiples of each item's alignment; a pinned one is a constant."""
    return [
        item.align * model.new_int_var(0, (highest - item.size) // item.align, "")
        if item.pin is None
        else model.new_constant(item.pin)
        for item in items
    ]


def _compressed(items: Sequence[Item]) -> dict[int, int]:
    """Times as ranks: only their order matters."""
    return {time: rank for rank, time in enumerate(sorted({t for item in items for t in (item.first, item.last)}))}
