"""Loop nests cut at their seams: where an access leaves its tensor, one loop ends and the next one begins.

A load under a condition costs a comparison at every point, and compilers' vectorisers have got such loads wrong. So the
loops over results are cut into boxes in each of which an operand lies inside its tensor or outside of it, and loops
over a sum run from the first to the last index that lies inside. What neither decides (a window with holes whose steps
are no neighbours) is loaded at index 0 instead: every load is unconditional.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from tilewright.codegen.affine import Address, Guard, expression
from tilewright.core.domain import dim


class SeamBox(Struct, frozen=True):
    """A part of the results, and the accesses of operands there with the guards that it does not decide."""

    ranges: Mapping[str, tuple[int, int]]
    """Start and stop of each dimension of results."""
    addresses: Mapping[str, Address]
    """Of operands that do not lie outside of their tensors in all of the box."""


def boxes(sizes: Mapping[str, int], outer: Sequence[str], addresses: Mapping[str, Address]) -> Iterator[SeamBox]:
    """The dimensions `outer` cut wherever one of them alone decides that an operand begins or ends."""
    spans: dict[str, dict[str, tuple[int, int]]] = {name: {} for name in outer}
    for operand, place in addresses.items():
        for guard in place.guards:
            seam = guard.seam()
            if seam is not None and seam[0] in spans:
                name, edge = seam
                start, stop = spans[name].get(operand, (0, sizes[name]))
                rises = guard.index.terms[0][1] > 0
                spans[name][operand] = (max(start, edge), stop) if rises else (start, min(stop, edge))
    whole = {name: (0, sizes[name]) for name in outer}
    for ranges, inside in _cut(list(outer), whole, [*addresses], spans):
        points = {
            **{name: (0, size) for name, size in sizes.items()},
            **{n: (a, b - a) for n, (a, b) in ranges.items()},
        }
        yield SeamBox(ranges, _decided({operand: addresses[operand] for operand in inside}, points))


def _cut(
    names: Sequence[str],
    ranges: Mapping[str, tuple[int, int]],
    operands: Sequence[str],
    spans: Mapping[str, Mapping[str, tuple[int, int]]],
) -> Iterator[tuple[Mapping[str, tuple[int, int]], Sequence[str]]]:
    """Ranges without a seam of an operand that is inside, and the operands that are inside there."""
    if not names:
        yield ranges, operands
        return
    name, *rest = names
    start, stop = ranges[name]
    # A sweep: of a thousand operands behind each other, few are inside at a time.
    begins: dict[int, list[int]] = {}
    ends: dict[int, list[int]] = {}
    for number, operand in enumerate(operands):
        low, high = spans[name].get(operand, (start, stop))
        if low < high or start == stop:
            begins.setdefault(low, []).append(number)
            ends.setdefault(high, []).append(number)
    edges = [start, *sorted(edge for edge in {*begins, *ends} if start < edge < stop), stop]
    active: set[int] = set()
    for begin, end in pairwise(edges):
        active = active.difference(ends.get(begin, ())).union(begins.get(begin, ()))
        inside = [operands[number] for number in sorted(active)]
        yield from _cut(rest, {**ranges, name: (begin, end)}, inside, spans)


def _decided(addresses: Mapping[str, Address], points: Mapping[str, tuple[int, int]]) -> dict[str, Address]:
    """Addresses without what holds at all points, and without those of operands that lie outside at all of them."""
    if any(size == 0 for _, size in points.values()):
        return {operand: replace(place, guards=()) for operand, place in addresses.items()}
    found: dict[str, Address] = {}
    for operand, place in addresses.items():
        left = [(guard, guard.holds(points)) for guard in place.guards]
        if all(holds is not False for _, holds in left):
            found[operand] = replace(place, guards=tuple(guard for guard, holds in left if holds is None))
    return found


class SumLoops(Struct, frozen=True):
    """Loops over a sum that run from the first to the last term that lies inside."""

    before: tuple[str, ...]
    """Statements that work out their ends."""
    heads: tuple[str, ...]
    left: tuple[Guard, ...]
    """Guards that the loops leave to ask at each term."""


def sum_loops(
    inner: Sequence[str], sizes: Mapping[str, int], guards: Sequence[Guard], cut: Mapping[str, tuple[str, str]]
) -> SumLoops:
    """The loops over a sum of terms that lie inside where all of these guards hold; `cut` says ends of some."""
    low: dict[str, list[str]] = {name: [] for name in inner}
    high: dict[str, list[str]] = {name: [] for name in inner}
    stepped: dict[str, Guard] = {}
    left: list[Guard] = []
    for guard in dict.fromkeys(guards):
        own = [name for name in inner if name in guard.index.dims]
        coefficient = dict(guard.index.terms)[own[0]] if len(own) == 1 else 0
        if coefficient and guard.divisor == 1:
            (low if coefficient > 0 else high)[own[0]].append(guard.bound(own[0]))
        elif abs(coefficient) == 1 and own[0] not in stepped:
            stepped[own[0]] = guard
        else:
            left.append(guard)
    before: list[str] = []
    heads: list[str] = []
    for name in inner:
        begin, end = cut.get(name, ("0", str(sizes[name])))
        step = f"{name}++"
        if low[name]:
            before.append(f"const int {name}_first = {_nested('tw_max', begin, low[name])};")
            begin = f"{name}_first"
        if name in stepped:
            before.append(f"const int {name}_hit = {_first_multiple(stepped[name], name, begin)};")
            begin, step = f"{name}_hit", f"{name} += {stepped[name].divisor}"
        if high[name]:
            before.append(f"const int {name}_end = {_nested('tw_min', end, high[name])};")
            end = f"{name}_end"
        heads.append(f"for (int {name} = {begin}; {name} < {end}; {step}) {{")
    return SumLoops(tuple(before), tuple(heads), tuple(left))


def _nested(function: str, first: str, others: Sequence[str]) -> str:
    for other in others:
        first = f"{function}({first}, {other})"
    return first


def _first_multiple(guard: Guard, name: str, begin: str) -> str:
    """C for the first index from `begin` on at which the divisor divides the guard's index."""
    coefficient = dict(guard.index.terms)[name]
    # The coefficient is 1 or -1, so `name` is the rest times its opposite, up to multiples of the divisor.
    # C's remainder has the sign of the dividend.
    rest = expression((guard.index - dim(name) * coefficient) * -coefficient)
    d = guard.divisor
    return f"{begin} + (({rest} - {begin}) % {d} + {d}) % {d}"
