"""Genetic search over allocations for several objectives at once: NSGA-II (Deb et al., 2002).

Solutions that no other one beats come first; of equally good ones those that stand apart, so that the whole front is
kept. What breaks a limit comes behind all that keeps them. It is short, so no library is asked for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Values: TypeAlias = NDArray[np.float64]
Genes: TypeAlias = tuple[int, ...]
CROSSED, MUTATED = 0.6, 0.5
"""Of children, how many have two parents, and how many of those are mutated; those of one parent always are."""
RUN = 0.3
"""Of changes, how many give one place to a run of genes instead of to a single one."""


def fronts(values: Values, violation: Values) -> NDArray[np.int64]:
    """By solution: 0 where no other one beats it, 1 where only those do, and so on. Less is better in all values."""
    no_worse = (values[:, None] <= values[None]).all(2)
    better = (values[:, None] < values[None]).any(2)
    less, same = violation[:, None] < violation[None], violation[:, None] == violation[None]
    beats = less | (same & no_worse & better)
    ranks = np.full(len(values), -1, np.int64)
    number = 0
    while (ranks < 0).any():
        left = ranks < 0
        ranks[left & ~(beats & left[:, None]).any(0)] = number
        number += 1
    return ranks


def crowding(values: Values) -> Values:
    """By solution of a front: how far its neighbours are; the ends are the farthest."""
    found = np.zeros(len(values))
    for column in values.T:
        order = np.argsort(column, kind="stable")
        wide = column[order[-1]] - column[order[0]] or 1.0
        found[order[[0, -1]]] = np.inf
        found[order[1:-1]] += (column[order[2:]] - column[order[:-2]]) / wide
    return found


def ranking(values: Values, violation: Values) -> list[int]:
    """Numbers of solutions, the best first."""
    ranks = fronts(values, violation)
    apart = np.zeros(len(values))
    for rank in range(int(ranks.max(initial=-1)) + 1):
        mine = np.flatnonzero(ranks == rank)
        apart[mine] = crowding(values[mine])
    return np.lexsort((np.arange(len(values)), -apart, ranks)).tolist()


def evolve(
    first: Sequence[Genes],
    allowed: Sequence[Sequence[int]],
    evaluate: Callable[[Sequence[Genes]], tuple[Values, Values]],
    random: Random,
    size: int,
    going: Callable[[], bool],
) -> None:
    """Generations of some size, as long as it is to go on; `evaluate` gives values and violations, and keeps them."""
    movable = [gene for gene, some in enumerate(allowed) if len(some) > 1]
    people = list(dict.fromkeys(first))[:size]
    while len(people) < size:
        people.append(tuple(random.choice(some) for some in allowed))
    values, violation = evaluate(people)
    while going():
        ranked = [people[one] for one in ranking(values, violation)]
        children = [_child(ranked, movable, allowed, random) for _ in range(size)]
        new_values, new_violation = evaluate(children)
        people, values = [*people, *children], np.concatenate([values, new_values])
        violation = np.concatenate([violation, new_violation])
        _, unique = np.unique(np.array(people), axis=0, return_index=True)
        kept = [one for one in ranking(values, violation) if one in set(unique.tolist())][:size]
        people, values, violation = [people[one] for one in kept], values[kept], violation[kept]


def _child(ranked: Sequence[Genes], movable: Sequence[int], allowed: Sequence[Sequence[int]], random: Random) -> Genes:
    """Of parents that are the better ones of two each."""
    one, other = (ranked[min(random.randrange(len(ranked)) for _ in range(2))] for _ in range(2))
    crossed = random.random() < CROSSED
    low, high = sorted(random.choices(range(len(one) + 1), k=2)) if crossed else (0, 0)
    child = (*one[:low], *other[low:high], *one[high:])
    return mutated(child, movable, allowed, random) if not crossed or random.random() < MUTATED else child


def mutated(genes: Genes, movable: Sequence[int], allowed: Sequence[Sequence[int]], random: Random) -> Genes:
    """With one gene changed, or a run of them given the same place."""
    found = list(genes)
    at = random.choice(movable)
    to = random.choice([place for place in allowed[at] if place != genes[at]])
    length = random.randint(2, max(2, len(movable) // 3)) if random.random() < RUN else 1
    for gene in movable[movable.index(at) :][:length]:
        if to in allowed[gene]:
            found[gene] = to
    return tuple(found)
