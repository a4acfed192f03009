"""The validator of tiled plans: the split among cores, and what kernels ask of the tiles they are called with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import product as combinations
from math import prod

import numpy as np

from tilewright.core.domain import Affine, Domain, Whole
from tilewright.core.graph import Graph
from tilewright.core.matching import told_names
from tilewright.core.op import Call, call_node
from tilewright.core.plan import Choice, NodeWork
from tilewright.core.tiles import Use, walked
from tilewright.machine.kernel import Kernel, Number, formula, holds, packing, predicate
from tilewright.plan.validator.groups import Opened
from tilewright.plan.validator.regions import Box, Interval, Values, everywhere, extents, most, touched, whole


def work_problems(opened: Opened, position: int, graph: Graph, choice: Choice, cores: int) -> Iterator[str]:
    """What is wrong with how one node of a group is computed."""
    work, domain = opened.group.works[position], opened.members[position].domain
    ranges: Mapping[str, Interval] = opened.replay.ranges[position]
    where = opened.where(position)
    if work.split:
        problems = list(_split(opened, position, work, cores))
        yield from (f"{where}: {reason}" for reason in problems)
        if problems:
            return
        ranges = opened.replay.share(position, work.split, work.chunk, cores)
    if choice.kernel is not None:
        kernel = choice.kernel
        found = (
            *_dense(opened, position, kernel, ranges),
            *_blocked(kernel, domain, ranges),
            *_epilogue(opened, position, ranges),
            *_uncut(kernel, domain, ranges),
            *_scratch(graph, opened, position, kernel, ranges),
            *_asked(call_node(graph, opened.members[position].node), kernel, domain, ranges),
            *(_kept(opened, position, kernel) if kernel.keeps_sums else _sums(graph, opened, position)),
        )
        yield from (f"{where}, kernel {kernel.where}: {reason}" for reason in found)


def _split(opened: Opened, position: int, work: NodeWork, cores: int) -> Iterator[str]:
    """Cores share a parallel dimension, and their chunks cover every tile of it."""
    domain = opened.members[position].domain
    if work.split not in domain.dims:
        yield f"cores share {work.split}, which is none of its dimensions ({', '.join(domain.dims)})"
        return
    if work.split not in domain.parallel:
        why = "must stay whole" if work.split in domain.whole else "is no parallel one"
        yield f"cores share {work.split}, which {why}"
        return
    part = opened.replay.ranges[position].get(work.split, Interval(0, domain.dims[work.split]))
    if work.chunk < 1 or work.chunk * cores < most(part.size):
        yield f"{cores} cores with chunks of {work.chunk} share a tile of {most(part.size)} along {work.split}"
    for output in domain.outputs:
        for number, axis in enumerate(domain.access[output]):
            if isinstance(axis, Affine) and work.split in axis.dims and not _separate(domain, axis):
                yield f"cores share {work.split}, but write the same elements along axis {number} of {output}"


def _separate(domain: Domain, axis: Affine) -> bool:
    """Whether different indices are different elements along an axis."""
    reach = 0
    for coefficient, name in sorted((abs(c), n) for n, c in axis.terms if domain.dims[n] > 1):
        if coefficient < axis.divisor or coefficient <= reach:
            return False
        reach += coefficient * (domain.dims[name] - 1)
    return True


def _dense(opened: Opened, position: int, kernel: Kernel, ranges: Mapping[str, Interval]) -> Iterator[str]:
    """What a kernel touches lies in one run of bytes, unless it walks by strides."""
    mine = opened.members[position]
    strided = walked(mine, kernel)
    for use in mine.uses:
        if use.key in strided:
            continue
        index = opened.bound(position, use)
        block = whole(use.type.shape) if index is None else opened.blocks[index]
        part = touched(mine.domain, use.key, ranges)
        if not _one_run(part, block):
            yield (
                f"its part {extents(part)} of '{use.tensor}' ({use.key}) is not dense in "
                f"{'the tensor' if index is None else f'buffer {index}'} of {extents(block)}"
            )


def _one_run(part: Box, block: Box) -> bool:
    single = [np.asarray(p.size) == 1 for p in part]
    full = [np.asarray(p.size) == b.size for p, b in zip(part, block, strict=True)]
    first = 0
    while first < len(part) - 1 and everywhere(single[first]):
        first += 1
    if all(everywhere(f) for f in full[first + 1 :]):
        return True
    # Which axis is cut changes from step to step.
    fine = np.asarray(False)
    for p in part:
        fine = fine | (np.asarray(p.size) == 0)
    for cut in range(len(part)):
        here = np.asarray(True)
        for condition in (*single[:cut], *full[cut + 1 :]):
            here = here & condition
        fine = fine | here
    return everywhere(fine)


def _blocked(kernel: Kernel, domain: Domain, ranges: Mapping[str, Interval]) -> Iterator[str]:
    """Tiles and chunks begin and end at the blocks of packed constants."""
    for spec in kernel.pack.values():
        for packed in packing(spec).parts:
            name, size = packed.dims[0], packed.block
            if len(packed.dims) == 1 and packed.kind and name in ranges:
                part = ranges[name]
                ends = (np.asarray(part.stop) % size == 0) | (np.asarray(part.stop) == domain.dims[name])
                fine = (np.asarray(part.start) % size == 0) & ends | (np.asarray(part.size) == 0)
                if not everywhere(fine):
                    yield f"tiles of {most(part.size)} along {name} do not suit its blocks of {size}"
            for name in packed.dims if len(packed.dims) > 1 else ():
                if _is_cut(domain, name, ranges):
                    yield f"{name} is cut to {most(ranges[name].size)} of {domain.dims[name]}, but joined by its pack"


def _is_cut(domain: Domain, name: str, ranges: Mapping[str, Interval]) -> bool:
    return name in ranges and not everywhere(np.asarray(ranges[name].size) == domain.dims[name])


def _uncut(kernel: Kernel, domain: Domain, ranges: Mapping[str, Interval]) -> Iterator[str]:
    """Dimensions that the kernel needs whole are."""
    for wanted in kernel.whole:
        for name in domain.products.get(wanted, (wanted,)):
            if name in domain.dims and _is_cut(domain, name, ranges):
                yield f"{name} is cut to {most(ranges[name].size)} of {domain.dims[name]}, which it needs whole"


def _epilogue(opened: Opened, position: int, ranges: Mapping[str, Interval]) -> Iterator[str]:
    """Epilogue operands that a kernel walks by the number of the element allow cuts along the outermost axis only."""
    mine = opened.members[position]
    result = mine.output.type.shape
    outermost = next((i for i, extent in enumerate(result) if extent > 1), len(result))
    part = touched(mine.domain, mine.output.key, ranges)
    cut = [i for i in range(outermost + 1, len(part)) if not everywhere(np.asarray(part[i].size) == result[i])]
    for use in mine.uses:
        if cut and use.behind and not _any_cut(mine.domain, use, result):
            yield f"cuts axis {cut[0]} of its result, but '{use.tensor}' ({use.key}) allows axis {outermost} only"


def _any_cut(domain: Domain, use: Use, result: tuple[int, ...]) -> bool:
    """Scalars, tables, tensors of the result's shape and vectors along its last axis."""
    shape = use.type.shape
    if use.type.size == 1 or shape == result or all(isinstance(axis, Whole) for axis in domain.access[use.key]):
        return True
    return bool(shape) and use.type.size == shape[-1] == result[-1]


def _scratch(
    graph: Graph, opened: Opened, position: int, kernel: Kernel, ranges: Mapping[str, Interval]
) -> Iterator[str]:
    """The scratch bytes of a core are enough for the largest part."""
    work, mine = opened.group.works[position], opened.members[position]
    call = call_node(graph, mine.node)
    sizes: dict[str, Values] = {n: ranges[n].size if n in ranges else size for n, size in mine.domain.dims.items()}
    names: dict[str, Number] = {key: value for key, value in call.attrs.items() if isinstance(value, (int, float))}
    names.update({name: most(size) for name, size in sizes.items()})
    for name, parts in mine.domain.products.items():
        product = np.asarray(1)
        for part in parts:
            product = product * sizes[part]
        names[name] = most(product)
    if call.op.numbers is not None:
        names.update(call.op.numbers(call))
    # The last part of a reduction may need more than larger ones.
    parts = [[(n, int(size)) for size in sorted({*np.ravel(sizes[n]).tolist()})] for n in mine.domain.reduction]
    try:
        needed = max(formula(kernel.scratch, {**names, **dict(part)}) for part in combinations(*parts))
    except KeyError:
        # It asks for an extent or a stride of an operand, which depend on how the tile is bound.
        return
    if work.scratch_bytes < needed:
        yield f"{work.scratch_bytes} bytes of scratch, its largest part needs {needed}"


def _asked(call: Call, kernel: Kernel, domain: Domain, ranges: Mapping[str, Interval]) -> Iterator[str]:
    """Every part has the sizes that the kernel asks for."""
    known = told_names(call)
    sizes: dict[str, Values] = {n: ranges[n].size if n in ranges else size for n, size in domain.dims.items()}
    for name, condition in kernel.when.items():
        words = {name, *_NAME.findall(condition)}
        used = {part for word in words for part in domain.products.get(word, (word,)) if part in sizes}
        if not used & ranges.keys() or words - used - known.keys() - domain.products.keys() - {"and", "or", "not"}:
            # What depends on how a tile is bound is not known here.
            continue
        for part in _parts({dim: sizes[dim] for dim in used}):
            whole_parts = {n: prod(part[p] for p in parts) for n, parts in domain.products.items() if n in words}
            if all(part.values()) and not holds(name, condition, {**known, **part, **whole_parts}):
                found = ", ".join(f"{dim} is {size}" for dim, size in part.items())
                yield f"it asks for {predicate(name, condition)}, where {found}"
                break


def _parts(sizes: Mapping[str, Values]) -> Iterator[dict[str, int]]:
    """The sizes that there are together, at some step, of some core."""
    arrays = np.broadcast_arrays(*(np.asarray(size) for size in sizes.values()))
    rows = np.unique(np.stack([array.reshape(-1) for array in arrays], axis=1), axis=0)
    for row in rows.tolist():
        yield dict(zip(sizes, row, strict=True))


_NAME = re.compile(r"[A-Za-z_]\w*")


def _kept(opened: Opened, position: int, kernel: Kernel) -> Iterator[str]:
    """Parts are of tiles whose sums the device can keep, as its kernel says."""
    domain, ranges = opened.members[position].domain, opened.replay.ranges[position]
    reduced = [name for name in domain.reduction if _is_cut(domain, name, ranges)]
    sizes = {name: most(ranges[name].size) if name in ranges else size for name, size in domain.dims.items()}
    whole_sizes = {f"{name}_whole": size for name, size in domain.dims.items()}
    for name in reduced:
        if not holds(name, kernel.when.get(name, "> 0"), sizes | whole_sizes):
            yield f"{name} is cut to {sizes[name]} of {domain.dims[name]}, but it asks for {kernel.when[name]}"


def _sums(graph: Graph, opened: Opened, position: int) -> Iterator[str]:
    """There is room for the sums of a tile whose reduction is cut, and they lie as its result does."""
    mine = opened.members[position]
    if not any(_is_cut(mine.domain, name, opened.replay.ranges[position]) for name in mine.domain.reduction):
        return
    part = touched(mine.domain, mine.output.key, opened.replay.ranges[position])
    needed: Values = np.asarray(call_node(graph, mine.node).outputs[0].dtype.bytes)
    for axis in part:
        needed = needed * axis.size
    if opened.group.works[position].sums < most(needed):
        yield f"{opened.group.works[position].sums} bytes for the sums of a tile that needs {most(needed)}"
    index = opened.bound(position, mine.output)
    block = whole(mine.output.type.shape) if index is None else opened.blocks[index]
    if not _one_run(part, block):
        yield f"adds up parts of {extents(part)}, which do not lie so in its result of {extents(block)}"
