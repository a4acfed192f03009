"""Lifetimes of many buffers: which are live at a moment, and when most bytes are, without a look at all of them.

Moments are the leaves of a binary tree, by number. A lifetime is a few whole subtrees, so that entering one and asking
for a moment look at as many nodes as the tree is deep.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator


class Moments:
    """Points in time at which something begins, numbered in their order; any other is like the next of them."""

    def __init__(self, times: Iterable[int]) -> None:
        self._times = sorted(set(times))
        self.leaves = 1 << max(len(self._times) - 1, 0).bit_length()

    def number(self, time: int) -> int:
        return bisect_left(self._times, time)

    def subtrees(self, first: int, last: int) -> Iterator[int]:
        """The nodes of the tree that together are the moments of [first, last)."""
        low, high = self.number(first) + self.leaves, self.number(last) + self.leaves
        while low < high:
            if low & 1:
                yield low
                low += 1
            if high & 1:
                high -= 1
                yield high
            low, high = low >> 1, high >> 1


class Lifetimes:
    """Lifetimes [first, last) that begin at one of the moments, numbered as they are entered."""

    def __init__(self, moments: Moments) -> None:
        self._moments = moments
        self._nodes: dict[int, dict[int, None]] = {}
        self._begins: list[tuple[int, int]] = []
        self._spans: list[tuple[int, int]] = []

    def add(self, first: int, last: int) -> None:
        number = len(self._spans)
        self._spans.append((first, last))
        for node in self._moments.subtrees(first, last):
            self._nodes.setdefault(node, {})[number] = None
        insort(self._begins, (first, number))

    def remove(self, number: int) -> None:
        first, last = self._spans[number]
        for node in self._moments.subtrees(first, last):
            del self._nodes[node][number]
        del self._begins[bisect_left(self._begins, (first, number))]

    def at(self, moment: int) -> Iterator[int]:
        """What is live at a moment, given by its number."""
        node = moment + self._moments.leaves
        while node:
            yield from self._nodes.get(node, {})
            node >>= 1

    def during(self, first: int, last: int) -> Iterator[int]:
        """What is live at any time of [first, last), where that begins at one of the moments."""
        yield from self.at(self._moments.number(first))
        begin = bisect_left(self._begins, (first + 1, 0))
        for _, number in self._begins[begin : bisect_left(self._begins, (last, 0))]:
            yield number


class LiveBytes:
    """How many bytes are live at each moment."""

    def __init__(self, moments: Moments) -> None:
        self._moments = moments
        self._all = [0] * (2 * moments.leaves)
        """Bytes that are live in the whole subtree of a node."""
        self._most = [0] * (2 * moments.leaves)
        """The most bytes live in the subtree of a node, beside what is live in all of a subtree around it."""

    def add(self, first: int, last: int, size: int) -> None:
        """Counts bytes from `first` until before `last`; a negative number takes them back."""
        for node in self._moments.subtrees(first, last):
            self._all[node] += size
            self._most[node] += size
            while node := node >> 1:
                self._most[node] = self._all[node] + max(self._most[2 * node], self._most[2 * node + 1])

    def peak(self) -> tuple[int, int]:
        """The most bytes that are live, and the number of the first moment at which they are."""
        node = 1
        while node < self._moments.leaves:
            node = 2 * node if self._most[2 * node] >= self._most[2 * node + 1] else 2 * node + 1
        return self._most[1], node - self._moments.leaves
