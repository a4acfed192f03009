"""What may be cut: dimensions, tile sizes, and the split among cores that kernels allow."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import product
from math import lcm
from types import MappingProxyType

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tilewright.core.domain import Affine, Domain, Whole
from tilewright.core.graph import TensorType
from tilewright.core.op import Call
from tilewright.core.tiles import Extent, Member, axis_dim, left, region, shift, walked
from tilewright.errors import TilewrightError
from tilewright.machine.kernel import Kernel, packing, window_of
from tilewright.price.formulas import Names, condition
from tilewright.price.grid import Array, Box, Grid, Span, Value
from tilewright.price.tasks import Task

MOST_SIZES = 9
"""Tile sizes looked at along one dimension."""
WORD = 4
"""Elements that are whole words, however narrow they are."""
UNEVEN = 0.1
"""How much further from what is wanted a size may be that gives each core whole words."""


class Impossible(Exception):
    """Nodes that cannot run as one group, whatever the tiles are."""


class Rules(Struct, frozen=True):
    """What a node allows."""

    free: tuple[str, ...]
    """Dimensions along which its results can be cut."""
    blocks: Mapping[str, int]
    """Tiles along a dimension begin and end at multiples of this."""
    fixed: frozenset[str]
    """Dimensions that its kernel needs whole."""
    asks: tuple[tuple[str, str], ...] = ()
    """Conditions of the kernel that depend on the tile."""
    sums: tuple[str, ...] = ()
    """Reduction dimensions whose parts can be added up."""


@lru_cache(maxsize=2048)
def rules(mine: Task) -> Rules:
    """Of a node with its kernel; what was asked for last is known."""
    domain, kernel = mine.member.domain, mine.kernel
    free = tuple(name for name in domain.parallel if domain.dims[name] > 1 and _separate(domain, name))
    if kernel is None:
        return Rules(free, MappingProxyType({}), frozenset())
    fixed = {part for name in kernel.whole for part in domain.products.get(name, (name,))}
    sums = tuple(name for name in kernel.accumulate if domain.dims[name] > 1 and _summed(domain, name))
    fixed |= _numbered(mine.call, mine.domain, kernel, (*free, *sums)) | _behind_first(mine.member)
    blocks: dict[str, int] = {}
    for spec in kernel.pack.values():
        for part in packing(spec).parts:
            fixed |= {window_of(name) for name in part.dims} - {""}
            if len(part.dims) > 1:
                fixed |= {*part.dims}
            elif part.kind and part.cut:
                blocks[part.cut] = lcm(blocks.get(part.cut, 1), part.block)
    free, sums = (tuple(n for n in names if n not in fixed) for names in (free, sums))
    return Rules(free, MappingProxyType(blocks), frozenset(fixed), _asks(domain, kernel, (*free, *sums)), sums)


def _asks(domain: Domain, kernel: Kernel, free: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Conditions that mention a dimension which may be cut, an extent or a stride; that strides exist is one, too."""
    strides = [(p.name, "== " + p.name) for p in kernel.parameters if not p.pointer and "_s" in p.name]
    moving = {*free, *(name for name, parts in domain.products.items() if {*parts} & {*free})}

    def moves(name: str) -> bool:
        return name in moving or name.rpartition("_")[0] in domain.access

    found = [*kernel.when.items(), *strides]
    return tuple((name, text) for name, text in found if any(map(moves, [name, *re.findall(r"[A-Za-z]\w*", text)])))


def overwritten(mine: Task) -> frozenset[str]:
    """Operands that are read at a point of the result, and nowhere else, before the result there is written."""
    member, kernel = mine.member, mine.kernel
    result, place = member.output.type, member.domain.access[member.output.key]
    uses: dict[str, list[str]] = {}
    steps = {use.key for use in member.uses if use.behind}
    for use in member.uses:
        same = use.type.shape == result.shape and use.type.dtype.ctype == result.dtype.ctype and not use.pack
        if not use.writes:
            uses.setdefault(use.tensor, []).append(use.key if same else "")
    found: set[str] = set()
    for keys in uses.values():
        aligned = "" not in keys and all(member.domain.access[key] == place for key in keys)
        behind = steps.issuperset(keys)
        if kernel is None:
            fine = mine.call.op.kind == "elementwise" and aligned
        else:
            fine = (kernel.epilogue and behind and aligned) or (keys == [kernel.inplace] and bool(keys[0]))
        found |= {*keys} if fine else set()
    return frozenset(found)


def parts(mine: Task) -> tuple[str, ...]:
    """Operands that are side by side in the result as they are, in their order; empty for other results."""
    member, result = mine.member, mine.member.output.key
    if not mine.call.op.joins or member.node.epilogue:
        return ()
    keys = tuple(use.key for use in member.uses if not use.writes and use.type.bytes)
    apart = all(shift(member.domain, key, result) is not None and len(left(member, [key])) == 1 for key in keys)
    return keys if apart else ()


def at_ends(mine: Task, allowed: Collection[str]) -> tuple[str, ...]:
    """Which of its parts may lie within the result already: what is left between them is one part."""
    keys = parts(mine)
    if mine.kernel is not None:
        allowed = {*allowed} & {*mine.kernel.within}
    others = [number for number, key in enumerate(keys) if key not in allowed]
    return (*keys[: others[0]], *keys[others[-1] + 1 :]) if others else keys


def _separate(domain: Domain, name: str) -> bool:
    """Whether tiles along a dimension are different parts of every result."""
    axes = [axis for output in domain.outputs for axis in domain.access[output]]
    return all(axis_dim(domain, axis)[0] == name for axis in axes if isinstance(axis, Affine) and name in axis.dims)


def _summed(domain: Domain, name: str) -> bool:
    """Whether parts of a reduction are parts of each operand that it indexes, as a call of its own would have them."""
    axes = [axis for operand in domain.access for axis in domain.access[operand]]
    mixed = [axis for axis in axes if isinstance(axis, Affine) and name in axis.dims]
    alone = all(domain.dims[other] == 1 for axis in mixed for other in axis.dims if other != name)
    return alone and name in domain.reduction and name not in domain.whole


def _behind_first(mine: Member) -> set[str]:
    """Dimensions behind the first axis of a result whose epilogue walks an operand by the number of the element."""
    result = mine.output.type.shape
    odd = [use for use in mine.uses if use.behind and not _any_cut(mine.domain, use.key, result)]
    if not odd:
        return set()
    outermost = next((i for i, extent in enumerate(result) if extent > 1), len(result))
    axes = mine.domain.access[mine.output.key][outermost + 1 :]
    return {name for axis in axes if isinstance(axis, Affine) for name in axis.dims}


def _any_cut(domain: Domain, key: str, result: tuple[int, ...]) -> bool:
    """Scalars, tables, tensors of the result's shape and vectors along its last axis."""
    shape, axes = domain.shapes[key], domain.access[key]
    if all(extent == 1 for extent in shape) or shape == result or all(isinstance(axis, Whole) for axis in axes):
        return True
    return bool(shape) and all(extent == 1 for extent in shape[:-1]) and shape[-1] == result[-1]


def _numbered(call: Call, domain: Domain, kernel: Kernel, free: Sequence[str]) -> set[str]:
    """Dimensions along which a tile would be called with other numbers than those of the whole call."""
    if call.op.numbers is None:
        return set()
    padding = set(call.op.padding(call)) if call.op.padding is not None else set[str]()
    asked = {p.name for p in kernel.parameters if not p.pointer} - padding
    numbers = {name: value for name, value in call.op.numbers(call).items() if name in asked}
    if not numbers:
        return set()
    return {
        name
        for name in free
        for size in {1, domain.dims[name] // 2}
        if not numbers.items() <= _numbers(call, domain, name, size).items()
    }


def _numbers(call: Call, domain: Domain, name: str, size: int) -> Mapping[str, int | float]:
    ranges = {name: Extent(0, size)}

    def cut(operand: str, kind: TensorType) -> TensorType:
        if operand not in domain.access:
            return kind
        return kind.with_shape(part.size for part in region(domain, operand, ranges) if isinstance(part.size, int))

    inputs = tuple(None if t is None else cut(o, t) for o, t in zip(call.operands, call.inputs, strict=True))
    names = call.op.output_names(len(call.outputs))
    outputs = tuple(cut(o, t) for o, t in zip(names, call.outputs, strict=True))
    try:
        return call.op.numbers(replace(call, inputs=inputs, outputs=outputs)) if call.op.numbers else {}
    except (TilewrightError, ArithmeticError, LookupError):
        return {}


def tile_sizes(extent: int, block: int, cores: int, most: int = MOST_SIZES) -> tuple[int, ...]:
    """Tile sizes of balanced splits, largest first: the whole and the smallest, few between where there are many.

    Of many those are taken that give each core whole words, whatever the size of an element.
    """
    smallest = min(block, extent)
    found: set[int] = {extent, smallest}
    words = cores * block * WORD
    count = 2
    while count < extent:
        size = rounded(-(-extent // count), block)
        found.add(min(extent, int(size)))
        for whole in (cores * block, words):
            if cores > 1 and size > whole:
                found.add(min(extent, int(rounded(size, whole))))
        # Further splits differ little from each other.
        count += max(1, count // 4)
    ordered = sorted(found, reverse=True)
    if len(ordered) <= most:
        return tuple(ordered)
    ratio = (smallest / extent) ** (1 / (most - 1))
    goals = [extent * ratio**number for number in range(most)]
    uneven = {size: size % words != 0 for size in ordered}
    chosen = {min(ordered, key=lambda size: (abs(np.log(size / goal)) + UNEVEN * uneven[size], size)) for goal in goals}
    return tuple(sorted(chosen | {extent, smallest}, reverse=True))


def rounded(size: Value, block: int) -> Value:
    """The next multiple of a block."""
    return -(-size // block) * block


def legal_sizes(grid: Grid, everything: Sequence[Rules]) -> list[Array]:
    """Which sizes along each loop suit all nodes; `Impossible` where nothing depends on the size."""
    found = [np.ones_like(count, bool) for count in grid.counts]

    def need(span: Span, holds: Value | bool) -> None:
        if span.loop < 0 or not isinstance(holds, np.ndarray):
            if not np.all(holds):
                raise Impossible
        else:
            found[span.loop] &= grid.every(span.loop, holds)

    for position, (mine, asked) in enumerate(zip(grid.members, everything, strict=True)):
        for name, part in grid.projection.ranges[position].items():
            extent, empty = mine.domain.dims[name], part.size <= 0
            if name in asked.fixed:
                need(part, empty | (part.size == extent))
            block = asked.blocks.get(name, 1)
            if block > 1:
                ends = (part.stop % block == 0) | (part.stop == extent)
                need(part, empty | ((part.start % block == 0) & ends))
        if position < len(grid.members) - 1:
            made = grid.projection.regions[position][mine.output.key]
            for make, hold, want in zip(
                made, grid.projection.held[mine.output.tensor], grid.projection.wanted[mine.output.tensor], strict=True
            ):
                loop = make if make.loop >= 0 else hold
                need(loop, (make.size <= 0) | ((make.start >= hold.start) & (make.stop <= hold.stop)))
                need(loop, (want.size <= 0) | ((make.start <= want.start) & (make.stop >= want.stop)))
    return found


class Option(Struct, frozen=True, eq=False):
    """One way in which cores may share a node; `split` is "" where one core does it all."""

    split: str
    chunk: Value
    cut: Value
    """Tilings with which cores take less than the tile."""
    fits: Value
    """Tilings with which the kernel takes the part of a core."""
    cycles: Array
    """Over classes."""
    worst: Value
    """The largest of them for each tiling."""
    scratch: Value
    """Bytes of all cores for each tiling."""


class Density(Struct, frozen=True, eq=False):
    """Whether the part of a block that a node touches is one run of bytes, for each tiling."""

    whole: Value
    """Where one core takes all of it."""
    before: tuple[Value, ...]
    """For each axis whether an axis before it is longer than 1, so that cores may not share it."""

    def shared(self, axes: Sequence[int], cut: Value) -> Value:
        """Where cores take less of some axes."""
        result = self.whole
        for axis in axes:
            result = result & ~(self.before[axis] & cut)
        return result


def density(grid: Grid, box: Box, block: Sequence[Value]) -> Density:
    """Of a box inside a block of these extents."""
    whole: Value = np.asarray(True)
    longer: Value = np.asarray(False)
    before: list[Value] = []
    for span, extent in zip(box, block, strict=True):
        size = grid.size(span)
        before.append(longer)
        if size is not extent:
            whole = whole & ~(longer & grid.most(np.asarray(size != extent)))
        longer = longer | grid.most(np.asarray(size > 1))
    return Density(whole, tuple(before))


def same_box(a: Box, b: Box) -> bool:
    """Whether two boxes are the same at every step of all tilings."""
    return all(
        x is y or (x.loop == y.loop and np.array_equal(x.start, y.start) and np.array_equal(x.stop, y.stop))
        for x, y in zip(a, b, strict=True)
    )


def lies_in(a: Span, b: Span) -> bool:
    """Whether a span lies inside another one at every step of all tilings."""
    if a is b:
        return True
    if a.loop >= 0 and b.loop >= 0 and a.loop != b.loop:
        return False
    return bool(np.all(a.start >= b.start) and np.all(a.stop <= b.stop))


def conditions(grid: Grid, position: int, mine: Task, asked: Rules, split: str, chunk: Value) -> Value:
    """Whether the kernel takes what each core gets of the largest and of the smallest tile, for each tiling."""
    result: Value = np.asarray(True)
    if not asked.asks:
        return result
    for short, last in product(((), range(grid.rank)), (False, True) if split else (False,)):
        names = tile_names(grid, position, mine, split, chunk, short, last=last)
        for name, text in asked.asks:
            result = result & condition(name, text, names)
    return result


def tile_names(
    grid: Grid, position: int, mine: Task, split: str, chunk: Value, short: Sequence[int] = (), *, last: bool = False
) -> Names:
    """Names of what a core gets of the largest tile, or along loops in `short` of the smallest, for each tiling; with
    `last` of what is left for the last core that gets any."""
    ranges = grid.projection.ranges[position]

    def pick(span: Span) -> Value:
        size = grid.size(span)
        return -grid.most(-size) if span.loop in short else grid.most(size)

    domain = mine.domain
    sizes: dict[str, Value] = {n: pick(ranges[n]) if n in ranges else size for n, size in domain.dims.items()}
    if split:
        size = sizes[split]
        sizes[split] = size - (size - 1) // chunk * chunk if last else np.minimum(size, chunk)

    def extent(operand: str, axis: int) -> Value:
        found = domain.access[operand][axis]
        if isinstance(found, Affine) and split in found.dims and len(found.terms) == 1 and found.divisor == 1:
            return sizes[split]
        return pick(grid.extent(domain, found, domain.shapes[operand][axis], ranges))

    return Names(domain, mine.known, sizes, extent, walked(mine.member, mine.kernel))
