"""How far a loop nest has come: one node for each way to have run through some prime factors of each dimension.

A loop order is a path from the first node (nothing run) to the last one (everything run), one prime factor a step. What
a tile holds, how long it stays and how often it is fetched depend on the node at which the order is cut, and not on the
path to it; this is what makes an exact search possible. Nodes are numbered so that a step adds a constant: the node
after some loops is the sum of their strides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import comb, factorial, prod

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def prime_factors(number: int) -> list[int]:
    """In increasing order, with repetitions."""
    found: list[int] = []
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return [*found, number] if number > 1 else found


class Factor(Struct, frozen=True):
    """A prime factor of a dimension, and how often it occurs."""

    dim: str
    prime: int
    count: int


class Lattice(Struct, frozen=True, dict=True):
    """All nodes of a nest."""

    factors: tuple[Factor, ...]

    @staticmethod
    def of(steps: Mapping[str, int]) -> Lattice:
        """Of dimensions with their steps in time."""
        found: list[Factor] = []
        for dim, size in steps.items():
            primes = prime_factors(size)
            found += [Factor(dim, prime, primes.count(prime)) for prime in dict.fromkeys(primes)]
        return Lattice(tuple(found))

    @cached_property
    def primes(self) -> tuple[tuple[str, int], ...]:
        """The factors as loops."""
        return tuple((factor.dim, factor.prime) for factor in self.factors)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(factor.count + 1 for factor in self.factors)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def last(self) -> int:
        """The node at which everything has run."""
        return self.size - 1

    @property
    def loops(self) -> int:
        """Prime factors in all: the loops of an order."""
        return sum(factor.count for factor in self.factors)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """What a factor adds to the number of a node."""
        return tuple(prod(self.shape[i + 1 :]) for i in range(len(self.factors)))

    @cached_property
    def exponents(self) -> Ints:
        """By node and factor: how often it has run."""
        if not self.factors:
            return np.zeros((1, 0), dtype=np.int64)
        return np.stack([axis.ravel() for axis in np.indices(self.shape, dtype=np.int64)], axis=1)

    @cached_property
    def extents(self) -> dict[str, Ints]:
        """By dimension: steps run at each node."""
        found: dict[str, Ints] = {}
        for index, factor in enumerate(self.factors):
            steps = np.power(factor.prime, self.exponents[:, index])
            found[factor.dim] = found[factor.dim] * steps if factor.dim in found else steps
        return found

    @cached_property
    def periods(self) -> Ints:
        """Steps run at each node, of all dimensions together."""
        result = np.ones(self.size, dtype=np.int64)
        for steps in self.extents.values():
            result = result * steps
        return result

    def steps(self, chosen: Sequence[bool]) -> Ints:
        """By node: steps run of some factors."""
        result = np.ones(self.size, dtype=np.int64)
        for index, factor in enumerate(self.factors):
            if chosen[index]:
                result = result * np.power(factor.prime, self.exponents[:, index])
        return result

    def stride(self, dim: str, steps: int) -> int:
        """What a loop adds to the number of a node."""
        primes = prime_factors(steps)
        return sum(
            primes.count(factor.prime) * stride
            for factor, stride in zip(self.factors, self.strides, strict=True)
            if factor.dim == dim
        )

    def within(self, dims: Sequence[str] | frozenset[str]) -> NDArray[np.bool_]:
        """Nodes at which nothing has run but these dimensions."""
        result = np.ones(self.size, dtype=bool)
        for dim, steps in self.extents.items():
            if dim not in dims:
                result &= steps == 1
        return result

    @property
    def orders(self) -> int:
        """Different orders of all prime factors."""
        return factorial(self.loops) // prod(factorial(factor.count) for factor in self.factors)

    def mappings(self, memories: Sequence[int]) -> int:
        """Orders with all ways to cut them for operands that have so many memories, those that do not fit included."""
        return self.orders * prod(comb(self.loops + depth - 1, depth - 1) for depth in memories)
