"""Cycles of a node that is a loop nest printed from its expressions, on one core.

Operations of a point and turns of loops cost what the platform says (`operations`). Three things cost an instruction or
two at every point, as compilers find no better way: an operand that the loops walk with other strides than the result
(`skew`), one that they walk alike from another origin (`apart`), and an innermost loop over a sum whose stride is known
at run time only, so that its turns are counted instead of compared with an end (`odd`). A result that is written over
an operand spares an address (`in place`); within other loops, one whose ends are those of a tile needs one more for
each operand (`cut`). Terms of a sum that lie outside of its operands are left out. Compilers factor the index of a
result whose inner stride is a power of two, but not that of terms which are written out where the stride of the sum is
another number: these look apart from it. Cores that work side by side wait for banks now and then, at each element that
they load or store (`meet`), more often at bytes, four of which are in one bank (`meet bytes`). Neighbouring loops that
all operands walk as one are printed as one. An operand that stays the same is loaded before the innermost loop
(`steady`). Short sums are no loops: where their terms are no neighbours, each has an address of its own (`across`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from math import prod

import numpy as np

from tilewright.core.domain import Affine, Domain, Whole
from tilewright.core.op import Call
from tilewright.core.plan import Group, Work
from tilewright.core.tiles import Member, Use
from tilewright.price.formulas import Names
from tilewright.price.grid import Array, Grid, Span, Value
from tilewright.price.operations import Counts, point_body, streams
from tilewright.price.operations import cycles as operation_cycles

Costs = Mapping[str, float]
IN_REGISTERS = 3
"""Operands of a nest whose addresses and origins a call has in registers, the result among them."""
UNROLLED = 8
"""Terms of a sum up to which compilers make no loop of it."""
WRITTEN_OUT = 2
"""Terms of a sum that compilers write out one by one instead of a loop: more would be more code."""


def nest_cycles(
    grid: Grid,
    ranges: Mapping[str, Span],
    call: Call,
    domain: Domain,
    counts: tuple[Counts, Counts],
    sizes: Mapping[str, Value],
    split: str,
    whole: Collection[str],
    costs: Costs,
    shared: Collection[str] = (),
) -> Array:
    """Cycles of a part of a nest with these sizes of dimensions, over classes.

    `counts` are operations of a result and of a point of a sum; operands of `whole` lie in their tensors, others in
    buffers of their tiles, those of `shared` where the result is written.
    """
    counts, sizes = _written_out(domain, counts, sizes)
    reduced = [name for name in sizes if name in domain.reduction]
    loops = [*(name for name in sizes if name not in reduced), *reduced]
    points = grid.product([*sizes.values()])
    results = grid.product([size for name, size in sizes.items() if name not in reduced])
    each, point = (operation_cycles(found, costs) for found in counts)
    if split:
        meet = costs.get("meet", 0.0)
        each, point = each + meet * (1 + _loads(counts[0])), point + meet * _loads(counts[1])
        if not reduced:
            each = each + costs.get("meet bytes", 0.0) * _bytes(call)
    # What cores share is a loop even where each has one turn of it.
    inner: Value = 1
    last = ""
    for name in reversed(loops):
        size = np.asarray(sizes[name])
        joins = _joins(grid, ranges, call, domain, counts, name, last, split) if last and not reduced else False
        inner = np.where(np.asarray(inner) > 1, np.where(joins, inner * size, inner), size)
        if name == split:
            break
        # Only neighbours are joined: with a loop between them that stands alone, nothing further out is.
        if domain.dims[name] > 1:
            last = name if not last or np.any(joins) else ""
            if not last:
                break
    # An index is worked out once for all turns of the innermost loop.
    index = costs.get("index", 0.0) * counts[1].get("lookup", 0.0)
    turns = points / np.maximum(inner, 1) * (costs.get("loop", 0.0) + index)
    extra: Value | float = 0.0
    if not reduced:
        mine = frozenset(shared) & frozenset(streams(call))
        each = each - costs.get("in place", 0.0) * len(mine)
        if loops and not counts[1]:
            each = each - costs.get("steady", 0.0) * _steady(call, domain, loops[-1])
        cut = np.asarray(_cut(grid, ranges, domain, sizes, split)) * costs.get("cut", 0.0)
        pair, joined = [name for name in sizes if domain.dims[name] > 1][-2:], np.asarray(False)
        if len(pair) == 2:
            joined = _joins(grid, ranges, call, domain, counts, pair[0], pair[1], split)
        extra = _skewed(grid, ranges, call, domain, sizes, whole, costs, mine, cut, joined)
        extra = extra + cut * max(_loads(counts[0]) - len(streams(call)), 0.0)
        if counts[1].get("lookup"):
            # What is looked up has a row and a column, and in tiles like the result's an address of its own.
            both = _both_tiled(grid, ranges, domain, whole) * costs.get("apart", 0.0)
            extra = extra + np.maximum(2 * cut, both) * counts[1]["lookup"]
    else:
        extra = _odd(grid, ranges, call, domain, reduced[-1], whole) * costs.get("odd", 0.0)
        extra = extra + _across(call, domain, reduced[-1]) * costs.get("across", 0.0)
    if reduced:
        # Loops over a sum leave out what lies outside.
        point = point * _inside(call, domain, split)
    return np.where(points > 0, costs.get("work", 0.0) + results * each + points * (point + extra) + turns, 0.0)


def argument_cycles(costs: Costs, operands: Sequence[Use]) -> float:
    """Cycles to hand over operands of a nest in tiles, each with its origin, beyond those that registers have."""
    return costs.get("operand", 0.0) * max(len(operands) - IN_REGISTERS, 0)


def written_over(group: Group, work: Work, node: Member) -> frozenset[str]:
    """Operands of a node of a group that its result is written over."""

    def place(key: str) -> tuple[int, int, int]:
        buffer = group.buffers[work.buffers[key]]
        return buffer.offset, buffer.bytes, buffer.slots

    buffered = [use for use in node.uses if use.key in work.buffers]
    written = {place(use.key) for use in buffered if use.writes}
    return frozenset(use.key for use in buffered if not use.writes and place(use.key) in written)


def _written_out(
    domain: Domain, counts: tuple[Counts, Counts], sizes: Mapping[str, Value]
) -> tuple[tuple[Counts, Counts], Mapping[str, Value]]:
    """Operations and sizes of loops, where those over a sum of so few terms that compilers write it out are gone."""
    terms = prod(domain.dims[name] for name in domain.reduction)
    if not counts[1] or not domain.reduction or terms > WRITTEN_OUT:
        return counts, sizes
    each = {name: count for name, count in counts[0].items() if name != "result"}
    for name, count in counts[1].items():
        each[name] = each.get(name, 0.0) + (count * terms if name != "term" else 0.0)
    return ({**each, "point": 1.0}, {}), {name: size for name, size in sizes.items() if name not in domain.reduction}


def _inside(call: Call, domain: Domain, split: str) -> float:
    """Which part of the points of a sum lies inside of its operands; along `split`, that of the busiest core."""
    body = point_body(call)
    found = 1.0
    for operand in streams(call):
        if body is not None and operand in body.fill:
            continue
        for axis, extent in zip(domain.access[operand], domain.shapes[operand], strict=True):
            if isinstance(axis, Affine):
                found *= _share(axis, tuple(domain.dims[name] for name, _ in axis.terms), extent, split)
    return found


@cache
def _share(axis: Affine, sizes: tuple[int, ...], extent: int, split: str) -> float:
    """Which part of the points of an axis lies inside of it; at the best place along `split`."""
    at = np.asarray(axis.constant)
    for n, ((_, coefficient), size) in enumerate(zip(axis.terms, sizes, strict=True)):
        along = [1] * len(sizes)
        along[n] = size
        at = at + coefficient * np.arange(size).reshape(along)
    inside = (at // axis.divisor >= 0) & (at // axis.divisor < extent) & ((at % axis.divisor == 0) | (not axis.exact))
    others = tuple(n for n, (name, _) in enumerate(axis.terms) if name != split)
    return float(np.max(np.mean(inside, axis=others))) if inside.size else 1.0


def _cut(grid: Grid, ranges: Mapping[str, Span], domain: Domain, sizes: Mapping[str, Value], split: str) -> Value:
    """Whether the ends of the innermost of several loops are known at run time only, over classes."""
    loops = [name for name in sizes if domain.dims[name] > 1]
    return _run_time(grid, ranges, loops[-1], split) if len(loops) > 1 else np.asarray(False)


def _bytes(call: Call) -> int:
    """How many operands are bytes, of which four in a row are in one bank."""
    kinds = dict(zip(call.operands, call.inputs, strict=True))
    found = [*(kinds[operand] for operand in streams(call)), call.outputs[0]]
    return sum(kind is not None and kind.dtype.bytes == 1 for kind in found)


def _steady(call: Call, domain: Domain, inner: str) -> int:
    """How many operands are the same at all turns of the innermost loop, so that they are loaded before it."""
    axes = [domain.access[operand] for operand in streams(call)]
    return sum(all(isinstance(axis, Affine) and inner not in axis.dims for axis in found) for found in axes)


def _loads(counts: Counts) -> float:
    return counts.get("load", 0.0) + counts.get("lookup", 0.0)


def _in_tensors(domain: Domain) -> Names:
    """Names of sizes and strides where nothing is cut."""
    return Names(domain, {}, domain.dims, lambda operand, axis: domain.shapes[operand][axis])


def _joins(
    grid: Grid,
    ranges: Mapping[str, Span],
    call: Call,
    domain: Domain,
    counts: tuple[Counts, Counts],
    outer: str,
    inner: str,
    split: str,
) -> Value:
    """Whether two neighbouring dimensions are printed as one loop, over classes: neither is cut, none is looked at."""
    if split in (outer, inner) or any(found.get("guard") for found in counts):
        return np.asarray(False)
    names = _in_tensors(domain)
    for operand in (*streams(call), domain.outputs[0]):
        if names[f"{operand}_s{outer}"] != names[f"{operand}_s{inner}"] * domain.dims[inner]:
            return np.asarray(False)
    loops = [ranges[name].loop for name in (outer, inner) if name in ranges and ranges[name].loop >= 0]
    found: Value = np.asarray(True)
    for loop in loops:
        found = found & grid.spread(grid.counts[loop] == 1)
    return found


def _run_time(grid: Grid, ranges: Mapping[str, Span], inner: str, split: str) -> Value:
    """Whether the ends of the innermost loop are known at run time only, over classes: cores share it, or it is cut."""
    loop = ranges[inner].loop if inner in ranges else -1
    return np.asarray(inner == split) if loop < 0 else grid.spread((grid.counts[loop] > 1) | (inner == split))


def _skewed(
    grid: Grid,
    ranges: Mapping[str, Span],
    call: Call,
    domain: Domain,
    sizes: Mapping[str, Value],
    whole: Collection[str],
    costs: Costs,
    shared: Collection[str],
    cut: Array,
    joined: Value,
) -> Value:
    """Cycles of a point for operands that loops around the innermost walk unlike the result, over classes.

    Where the two innermost loops are one, they are `joined`.
    """

    def extent(operand: str, axis: int) -> Value:
        return grid.size(grid.extent(domain, domain.access[operand][axis], domain.shapes[operand][axis], ranges))

    names = Names(domain, {}, sizes, extent, whole=whole)
    found: Value = np.asarray(0.0)
    output = domain.outputs[0]
    for operand in streams(call):
        other: Value = np.asarray(False)
        inside: Value = np.asarray(False)
        for name in reversed([*sizes]):
            many = np.asarray(sizes[name]) > 1
            unlike = names[f"{operand}_s{name}"] != names[f"{output}_s{name}"]
            other = other | (inside & many & unlike)
            inside = inside | many
        apart = _apart(grid, ranges, domain, operand, output, whole)
        own = cut * (operand not in shared)
        # From another origin, an address that is not the loop's is two additions.
        unlike = np.maximum(other * costs.get("skew", 0.0), apart * (costs.get("apart", 0.0) + own))
        found = found + np.maximum(unlike, own)
        if domain.reduction:
            term = _unfactored(grid, ranges, domain, sizes, names, operand, operand in whole) & ~apart & ~joined
            found = found + term * costs.get("apart", 0.0)
    return found


def _apart(
    grid: Grid, ranges: Mapping[str, Span], domain: Domain, operand: str, output: str, whole: Collection[str]
) -> Value:
    """Whether an operand has another origin than the result, over classes: one has tiles, one lies in its tensor."""
    found: Value = np.asarray(False)
    if (operand in whole) == (output in whole):
        return found
    return _tiled(grid, ranges, domain, output if operand in whole else operand)


def _tiled(grid: Grid, ranges: Mapping[str, Span], domain: Domain, operand: str) -> Value:
    """Whether loops cut an operand, over classes."""
    found: Value = np.asarray(False)
    for axis, size in zip(domain.access[operand], domain.shapes[operand], strict=True):
        loop = grid.extent(domain, axis, size, ranges).loop
        if loop >= 0:
            found = found | grid.spread(grid.counts[loop] > 1)
    return found


def _both_tiled(grid: Grid, ranges: Mapping[str, Span], domain: Domain, whole: Collection[str]) -> Value:
    """Whether a table and the result both lie in tiles, over classes."""
    output = domain.outputs[0]
    tables = [name for name, axes in domain.access.items() if any(isinstance(axis, Whole) for axis in axes)]
    found: Value = np.asarray(False)
    for table in tables:
        if table not in whole and output not in whole:
            found = found | (_tiled(grid, ranges, domain, table) & _tiled(grid, ranges, domain, output))
    return found


def _unfactored(
    grid: Grid,
    ranges: Mapping[str, Span],
    domain: Domain,
    sizes: Mapping[str, Value],
    names: Names,
    operand: str,
    whole: bool,
) -> Value:
    """Whether the stride of a sum that is written out keeps a compiler from factoring an operand's index, over classes.

    With three loops or more, that of the result is `(outer * n + inner) * 2**k`: strides of two neighbours are known,
    and the smaller one is a power of two that divides the other.
    """
    output, found = domain.outputs[0], np.asarray(False)
    loops = [name for name in sizes if domain.dims[name] > 1]
    if len(loops) < 3 or len(domain.reduction) != 1:
        return found
    outer, inner, _ = loops[-3:]

    def factored(a: Value, b: Value) -> Value:
        """Of two strides."""
        low, high = np.minimum(a, b), np.maximum(a, b)
        return (low > 1) & (low & (low - 1) == 0) & (high % np.maximum(low, 1) == 0)

    strides = [np.asarray(names[f"{key}_s{name}"]) for key, name in ((output, outer), (output, inner))]
    term, next_to = (np.asarray(names[f"{operand}_s{name}"]) for name in (domain.reduction[0], outer))
    uneven = _uneven(grid, ranges, domain, operand, domain.reduction[0], whole)
    alike = ((term == next_to) | factored(term, next_to)) & ~uneven
    return factored(strides[0], strides[1]) & ~alike & (term != 0)


def _across(call: Call, domain: Domain, inner: str) -> bool:
    """Whether a sum is of a few elements that are no neighbours: without a loop, each has an address of its own."""
    if prod(domain.dims[name] for name in domain.reduction) > UNROLLED:
        return False
    names = _in_tensors(domain)
    return any(names[f"{operand}_s{inner}"] > 1 for operand in streams(call))


def _odd(
    grid: Grid, ranges: Mapping[str, Span], call: Call, domain: Domain, inner: str, whole: Collection[str]
) -> Value:
    """Whether tiles of different sizes give the loop `inner` different strides, over classes."""
    found: Value = np.asarray(False)
    for operand in streams(call):
        found = found | _uneven(grid, ranges, domain, operand, inner, operand in whole)
    return found


def _uneven(grid: Grid, ranges: Mapping[str, Span], domain: Domain, operand: str, inner: str, whole: bool) -> Value:
    """Whether tiles of different sizes give an operand different strides along a dimension, over classes."""
    found: Value = np.asarray(False)
    axes, shape = domain.access[operand], domain.shapes[operand]
    along = [n for n, axis in enumerate(axes) if isinstance(axis, Affine) and inner in dict(axis.terms)]
    if whole or not along:
        return found
    for axis, size in zip(axes[along[-1] + 1 :], shape[along[-1] + 1 :], strict=True):
        loop = grid.extent(domain, axis, size, ranges).loop
        if loop >= 0:
            cut = grid.cuts[loop]
            uneven = np.asarray([cut.extent % size != 0 for size in cut.sizes])
            found = found | grid.spread(uneven.reshape([-1 if n == loop else 1 for n in range(grid.rank)]))
    return found
