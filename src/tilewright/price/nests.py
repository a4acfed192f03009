"""Cycles of a node that is a loop nest printed from its expressions, on one core.

Operations of a result, of a term where results are sums, and of a start of the innermost loop take what the platform
says of each (`operations`), and so does each start of a loop (`loop`). Neighbouring loops that all operands walk as one
are printed as one. Terms of a sum that lie outside of its operands are left out. Cores that work side by side wait for
what they share: banks, at each element that they load or store (`meet`), and units for floats (`meet real`) and for
their quotients (`meet divide`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np

from tilewright.core.domain import Affine, Domain
from tilewright.core.op import Call
from tilewright.price.formulas import Names
from tilewright.price.grid import Array, Grid, Span, Value
from tilewright.price.operations import Counts, NestCounts, point_body, streams
from tilewright.price.operations import cycles as operation_cycles

Costs = Mapping[str, float]
DIVIDES = ("real divide", "sqrtf")
READS = ("load", "lookup", "copy")


def nest_cycles(
    grid: Grid,
    ranges: Mapping[str, Span],
    call: Call,
    domain: Domain,
    counts: NestCounts,
    sizes: Mapping[str, Value],
    split: str,
    costs: Costs,
) -> Array:
    """Cycles of a part of a nest with these sizes of dimensions, over classes."""
    kept = [name for name in sizes if name not in domain.reduction]
    reduced = [name for name in sizes if name in domain.reduction] if counts.term else []
    pieces = pieces_of(call, domain)
    starts, turns = np.asarray(0), np.asarray(1)
    before: Value = np.asarray(1)
    last = ""
    for name in (*kept, *reduced):
        if domain.dims[name] > 1:
            joined = name not in reduced and last and _joins(grid, ranges, call, domain, counts, last, name, split)
            visits = before * pieces.get(name, 1)
            starts = starts + np.where(joined, 0, visits)
            turns = np.where(joined, turns, visits)
            last = name
        before = before * np.asarray(sizes[name])
    results, points = (grid.product([sizes[name] for name in names]) for names in (kept, (*kept, *reduced)))
    result, term, turn = (operation_cycles(found, costs) for found in (counts.result, counts.term, counts.turn))
    if split:
        result = result + _side_by_side(counts.result, costs) + costs.get("meet", 0.0)
        term = term + _side_by_side(counts.term, costs)
    # Loops over a sum leave out what lies outside.
    inside = _inside(call, domain, split) if reduced else 1.0
    found = results * result + points * inside * term + turns * turn + starts * costs.get("loop", 0.0)
    return np.where(points > 0, found, 0.0)


def _side_by_side(counts: Counts, costs: Costs) -> float:
    """Cycles that operations wait for those of other cores."""
    shared = {
        "meet": sum(counts.get(name, 0.0) for name in READS),
        "meet real": sum(count for name, count in counts.items() if name.startswith("real ")),
        "meet divide": sum(counts.get(name, 0.0) for name in DIVIDES),
    }
    return operation_cycles(shared, costs)


def pieces_of(call: Call, domain: Domain) -> Mapping[str, int]:
    """Dimensions of results along which operands begin or end, and into how many loops these are cut."""
    seams: dict[str, set[int]] = {}
    for operand in streams(call):
        for axis, extent in zip(domain.access[operand], domain.shapes[operand], strict=True):
            if isinstance(axis, Affine) and len(axis.terms) == 1 and axis.divisor == 1 and axis.terms[0][1] == 1:
                name = axis.terms[0][0]
                edges = {-axis.constant, extent - axis.constant}
                seams.setdefault(name, set()).update(edge for edge in edges if 0 < edge < domain.dims[name])
    return {name: 1 + len(edges) for name, edges in seams.items() if name not in domain.reduction}


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


def _joins(
    grid: Grid,
    ranges: Mapping[str, Span],
    call: Call,
    domain: Domain,
    counts: NestCounts,
    outer: str,
    inner: str,
    split: str,
) -> Value:
    """Whether two neighbouring dimensions are printed as one loop, over classes: neither is cut, none is looked at."""
    if split in (outer, inner) or any(found.get("guard") for found in (counts.result, counts.term)):
        return np.asarray(False)
    # Strides where nothing is cut.
    names = Names(domain, {}, domain.dims, lambda operand, axis: domain.shapes[operand][axis])
    for operand in (*streams(call), domain.outputs[0]):
        if names[f"{operand}_s{outer}"] != names[f"{operand}_s{inner}"] * domain.dims[inner]:
            return np.asarray(False)
    loops = [ranges[name].loop for name in (outer, inner) if name in ranges and ranges[name].loop >= 0]
    found: Value = np.asarray(True)
    for loop in loops:
        found = found & grid.over_classes(grid.counts[loop] == 1)
    return found
