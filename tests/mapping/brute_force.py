"""Every mapping of a small problem, one by one: all orders of all prime factors, all cuts of each that fit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement, product

import numpy as np

from tilewright.core.mapping import TemporalMapping
from tilewright.core.workload import Layer
from tilewright.mapping.allocate import element_bits
from tilewright.mapping.batch import Evaluator
from tilewright.mapping.lattice import prime_factors
from tilewright.mapping.tables import Problem
from tilewright.price.array_nest import loops_by_memory

Order = tuple[tuple[str, int], ...]


def orders(layer: Layer, problem: Problem) -> Iterator[Order]:
    """All different orders of the prime factors of the steps in time."""
    loops = [(dim, prime) for dim, size in problem.spatial.steps(layer).items() for prime in prime_factors(size)]

    def further(left: list[tuple[str, int]]) -> Iterator[Order]:
        if not left:
            yield ()
        for loop in dict.fromkeys(left):
            rest = list(left)
            rest.remove(loop)
            for order in further(rest):
                yield (loop, *order)

    return further(loops)


def cuts_that_fit(problem: Problem, order: Order) -> Iterator[dict[str, tuple[int, ...]]]:
    """All ways to cut an order, for every operand and memory, such that every memory has room."""
    layer, engine = problem.layer, problem.engine
    unrolled = problem.spatial.fractional(layer)
    choices: list[list[tuple[tuple[int, ...], dict[str, float]]]] = []
    for operand in layer.operands:
        entries = loops_by_memory(engine, operand.slot, unrolled)
        memories = engine.levels(operand.slot)
        found: list[tuple[tuple[int, ...], dict[str, float]]] = []
        for lower in combinations_with_replacement(range(len(order) + 1), len(memories) - 1):
            cuts = (*lower, len(order))
            taken: dict[str, float] = {}
            for level, memory in enumerate(memories):
                extents: dict[str, float] = {}
                for dim, steps in (*order[: cuts[level]], *(loop for entry in entries[: level + 1] for loop in entry)):
                    extents[dim] = extents.get(dim, 1) * steps
                below = order[cuts[level - 1] if level else 0 :]
                bits = element_bits(layer, operand, below, entries[level + 1 :])
                taken[memory.name] = layer.elements(operand, extents) * bits
            found.append((cuts, taken))
        choices.append(found)
    room = {memory.name: problem.room(index) for index, memory in enumerate(engine.memories)}
    for combination in product(*choices):
        total = dict.fromkeys(room, 0.0)
        for _, taken in combination:
            for name, bits in taken.items():
                total[name] += bits
        if all(total[name] <= bits for name, bits in room.items()):
            yield {o.name: cuts for o, (cuts, _) in zip(layer.operands, combination, strict=True)}


def all_costs(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Energy and latency of every mapping."""
    layer, evaluator = problem.layer, Evaluator(problem)
    index = {(factor.dim, factor.prime): place for place, factor in enumerate(problem.lattice.factors)}
    energies: list[np.ndarray] = []
    latencies: list[np.ndarray] = []
    for order in orders(layer, problem):
        cuts = list(cuts_that_fit(problem, order))
        if not cuts:
            continue
        rows = np.array([[index[loop] for loop in order]] * len(cuts), dtype=np.int64).reshape(len(cuts), len(order))
        columns = [np.array([cut[operand.name] for cut in cuts]) for operand in layer.operands]
        costs = evaluator.costs(evaluator.profile(rows, columns))
        energies.append(costs.energy + np.zeros(len(cuts)))
        latencies.append(costs.latency + np.zeros(len(cuts)))
    return np.concatenate(energies or [np.zeros(0)]), np.concatenate(latencies or [np.zeros(0)])


def some_mapping(problem: Problem, number: int) -> TemporalMapping | None:
    """One of the mappings, by number."""
    for order in orders(problem.layer, problem):
        for cuts in cuts_that_fit(problem, order):
            if number == 0:
                return TemporalMapping(order, cuts)
            number -= 1
    return None
