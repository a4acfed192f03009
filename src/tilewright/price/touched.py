"""Access maps as array machines see them: which loops index an operand by themselves, and which two at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from tilewright.core.domain import Affine, Domain, Whole
from tilewright.core.workload import Sum

MOST_PARTS = 8
"""A whole axis that is up to so many times as long as a dimension has parts of that length (gates of recurrences)."""


class Touched(Struct, frozen=True):
    """The loops that index an operand."""

    dims: tuple[str, ...] = ()
    sums: tuple[Sum, ...] = ()

    @property
    def all(self) -> frozenset[str]:
        return frozenset(self.dims) | {name for found in self.sums for name in (found.first, found.second)}


def touched(domain: Domain, operand: str, sizes: dict[str, int]) -> Touched:
    """The loops of an operand, of those with more than one step; `sizes` gets the loops that only this operand has."""
    outputs = frozenset(name for output in domain.outputs for name in domain.relevant(output))
    spans = domain.footprint(operand, {})
    dims: list[str] = []
    sums: list[Sum] = []
    whole: list[tuple[int, int]] = []
    for index, (axis, extent) in enumerate(zip(domain.access[operand], domain.shapes[operand], strict=True)):
        if isinstance(axis, Whole):
            whole.append((index, extent))
            continue
        taken = frozenset(dims).union(*({s.first, s.second} for s in sums))
        plain, pair = _split(axis, sizes, taken, outputs)
        dims += plain
        if pair is not None:
            sums.append(_sum(f"{operand}{index}", pair, sizes, max(1, spans[index].size)))
    for index, extent in whole:
        if extent > 1:
            dims += _whole(domain, f"{operand}{index}", extent, Touched(tuple(dims), tuple(sums)).all, sizes)
    return Touched(tuple(dims), tuple(sums))


Term = tuple[str, int]


def _split(
    axis: Affine, sizes: Mapping[str, int], taken: frozenset[str], outputs: frozenset[str]
) -> tuple[list[str], tuple[Term, Term] | None]:
    """The loops that each bring other elements, and the two that bring some of them twice."""
    terms = sorted(((n, abs(c)) for n, c in axis.terms if sizes.get(n, 1) > 1 and n not in taken), key=lambda t: t[1])
    reach = 0
    overlapping: list[Term] = []
    for position, (name, scale) in enumerate(terms):
        if position and scale <= reach:
            overlapping += [term for term in (terms[position - 1], (name, scale)) if term not in overlapping]
        reach += scale * (sizes[name] - 1)
    if not overlapping:
        return [name for name, _ in terms], None
    longest = sorted(overlapping, key=lambda term: -sizes[term[0]])[:2]
    first, second = sorted(longest, key=lambda term: term[0] not in outputs)
    return [name for name, _ in terms if name not in (first[0], second[0])], (first, second)


def _sum(name: str, pair: tuple[Term, Term], sizes: Mapping[str, int], extent: int) -> Sum:
    (first, first_scale), (second, second_scale) = pair
    free = Sum(name, first, second, first_scale, second_scale, 1 << 62)
    return Sum(name, first, second, first_scale, second_scale, min(extent, free.values(sizes[first], sizes[second])))


def _whole(domain: Domain, name: str, extent: int, taken: frozenset[str], sizes: dict[str, int]) -> Iterable[str]:
    """Loops for an axis of which any part may be read.

    It is a dimension that tiles never split, once or a few times, where one has that length: all of the axis is used.
    Elsewhere data choose one element for each point, and there are as many different ones as points or elements.
    """
    fitting = [
        d
        for d in domain.whole - taken
        if sizes.get(d, 1) > 1 and extent % sizes[d] == 0 and extent // sizes[d] <= MOST_PARTS
    ]
    if fitting:
        found = max(fitting, key=lambda d: (sizes[d], d))
        parts = extent // sizes[found]
        if parts == 1:
            return [found]
        sizes[f"{found}_PARTS"] = parts
        return [found, f"{found}_PARTS"]
    if not domain.dims or taken & domain.whole:
        sizes[name] = extent
        return [name]
    chosen: list[str] = []
    left = extent
    for output in domain.outputs[:1]:
        for d in sorted(domain.relevant(output) - taken, key=lambda d: (-sizes.get(d, 1), d)):
            if 1 < sizes.get(d, 1) <= left:
                chosen.append(d)
                left //= sizes[d]
    return chosen
