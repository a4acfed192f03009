"""What a fused group of nodes touches at each step of its tile loops.

A group runs its nodes depth-first: at each step the last node computes one tile of its result, and each node before it
what the nodes behind it need of its own. Everything is projected back through access maps. The same functions serve the
planner, which asks with numbers, and the code generator, which asks with expressions of the loop variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from types import MappingProxyType

from msgspec import Struct

from tilewright.core.domain import WHOLE, Affine, Axis, Domain, Whole, dim
from tilewright.core.expr import Size, at_first, bounds_of, clamp, larger, plain, smaller
from tilewright.core.graph import Graph, Node, TensorType
from tilewright.core.op import Body, Call, call_node, call_steps
from tilewright.core.sizes import ranges_of
from tilewright.machine.kernel import Kernel, Number, extent_of, named, packing


class Extent(Struct, frozen=True):
    """Part of an axis: `[start, stop)` inside the tensor, and how far the access reaches out on both sides."""

    start: Size
    stop: Size
    before: Size = 0
    after: Size = 0

    @property
    def size(self) -> Size:
        return plain(self.stop - self.start)


Region = tuple[Extent, ...]
Ranges = Mapping[str, Extent]
"""The part of each loop dimension that a tile covers."""


class Use(Struct, frozen=True):
    """A tensor that a node touches: `key` is the operand's name, `s0_B` for operand B of epilogue step 0."""

    key: str
    tensor: str
    writes: bool
    type: TensorType
    """Of the bytes in memory: a constant that the kernel wants packed has another shape than its tensor."""
    pack: str = ""
    behind: bool = False
    """Whether an epilogue step touches it, not the node's own operator."""


class Member(Struct, frozen=True):
    """A node with everything it touches, as one domain: packed constants and epilogue operands are in it."""

    node: Node
    domain: Domain
    uses: tuple[Use, ...]
    open: frozenset[str] = frozenset()
    """Loop dimensions that may be shorter when the network runs."""
    partial: bool = False
    """Whether it writes just some rows of its result, over a state that has the others."""

    @property
    def output(self) -> Use:
        return next(use for use in self.uses if use.writes)

    def in_part(self, key: str) -> bool:
        """Whether of an operand it touches those rows alone."""
        return self.partial and not self.open.isdisjoint(self.domain.relevant(key))


def member(graph: Graph, node: Node, kernel: Kernel | None) -> Member:
    """A node seen by memory."""
    call = call_node(graph, node)
    own = call.domain()
    access: dict[str, tuple[Axis, ...]] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    uses: list[Use] = []

    def add(use: Use, axes: tuple[Axis, ...]) -> None:
        access[use.key], shapes[use.key] = axes, use.type.shape
        uses.append(use)

    body = call.body if kernel is None else None
    wanted = {p.name for p in kernel.parameters} if kernel else set[str]()
    for operand, tensor in zip(call.operands, node.inputs, strict=True):
        if not tensor or operand in call.op.compile_time or operand not in own.access:
            continue
        if call.op.appends and call.int("in_place") and operand == call.operands[0]:
            continue  # the other rows are there
        if operand not in wanted and (body is None or not pointed(call, own, body, operand)):
            continue
        kind, spec = graph.types[tensor], kernel.pack.get(operand, "") if kernel else ""
        if kernel is not None and spec and tensor in graph.constants:
            with named(kernel, f"pack: {operand}"):
                axes, shape = packed_axes(spec, {**own.dims, **_counts(call)})
            add(Use(operand, tensor, False, TensorType(kind.dtype, shape), spec), axes)
        else:
            add(Use(operand, tensor, False, kind), own.access[operand])
    results = call.op.output_names(len(node.outputs))
    inner = dict(zip((f"D{i}" for i in range(call.outputs[0].rank)), own.access[results[0]], strict=True))
    for index, fused in enumerate(call_steps(graph, node)):
        domain, text = fused.domain(), fused.body
        for operand, tensor in zip(fused.operands, node.epilogue[index].inputs, strict=True):
            if tensor and isinstance(tensor, str) and text and pointed(fused, domain, text, operand):
                axes = tuple(substitute(axis, inner) for axis in domain.access[operand])
                add(Use(f"s{index}_{operand}", tensor, False, graph.types[tensor], behind=True), axes)
    for operand, tensor in zip(results, node.outputs, strict=False):
        if tensor:
            add(Use(operand, tensor, True, graph.types[tensor]), own.access[operand])
    outputs = tuple(u.key for u in uses if u.writes)
    whole = MappingProxyType(access), MappingProxyType(shapes)
    # Tiles are planned for the largest sizes; a loop whose length is known later is not cut.
    open_dims = ranges_of(graph, node)
    uncut = own.whole.union(open_dims)
    partial = any(start != 0 for start, _ in open_dims.values())
    # Over a state only new rows are touched, so many from the first on.
    new = {name: plain(stop - start) for name, (start, stop) in open_dims.items() if start != 0}
    dims = {name: bounds_of(new[name])[1] if name in new else size for name, size in own.dims.items()}
    domain = Domain(MappingProxyType(dims), *whole, outputs, uncut, own.products)
    return Member(node, domain, tuple(uses), frozenset(open_dims), partial)


def walked(mine: Member, kernel: Kernel | None) -> frozenset[str]:
    """Operands that a kernel walks by their strides: its part of them need not be dense in its block.

    A result is none where an operand of the epilogue would have to lie in memory as the result does.
    """
    if kernel is None:
        return frozenset()
    last = mine.output.type.shape[-1:]
    free = all(
        use.type.size == 1
        or (use.type.size,) == use.type.shape[-1:] == last
        or set(mine.domain.access[use.key]) == {WHOLE}
        for use in mine.uses
        if use.behind
    )
    return frozenset(kernel.strided) if free else frozenset(kernel.strided) - {mine.output.key}


def pointed(call: Call, domain: Domain, body: Body, operand: str) -> bool:
    """Whether code printed from a body reads an operand from memory: it is used, and not one known number.

    One that says by its place which points lie inside has a place.
    """
    fixed = all(
        isinstance(axis, Affine) and not axis.constant and all(domain.dims[name] == 1 for name in axis.dims)
        for axis in domain.access[operand]
    )
    return body.reads(operand) and (not fixed or operand in body.inside or call.baked(operand) is None)


def substitute(axis: Axis, inner: Mapping[str, Axis]) -> Axis:
    """An access of an epilogue step in the dimensions of the node: its dimensions are axes of the node's result."""
    if isinstance(axis, Whole):
        return axis
    result = Affine((), axis.constant)
    for name, coefficient in axis.terms:
        mapped = inner[name]
        if isinstance(mapped, Whole) or mapped.divisor != 1:
            return WHOLE
        result = result + mapped * coefficient
    return result


def _counts(call: Call) -> dict[str, int]:
    """The attributes that are numbers, which texts about packing may name."""
    return {name: value for name, value in call.attrs.items() if isinstance(value, int)}


def packed_axes(spec: str, sizes: Mapping[str, Number]) -> tuple[tuple[Axis, ...], tuple[int, ...]]:
    """Access and shape of a packed constant: `F/16` is indexed by F, joined dimensions and remainders are whole."""
    axes: list[Axis] = []
    shape: list[int] = []
    found = packing(spec)
    for part in found.parts:
        blocks = -(-prod(extent_of(name, sizes) for name in part.dims) // part.block)
        shape.append(part.block if part.kind == "%" else blocks)
        axes.append(dim(part.cut).over(part.block) if part.cut and part.kind != "%" else WHOLE)
    if found.bits:
        axes.append(WHOLE)
        shape.append(found.run_bytes(sizes))
    return tuple(axes), tuple(shape)


def region(domain: Domain, key: str, ranges: Ranges) -> Region:
    """The part of an operand that a tile touches."""
    return tuple(
        Extent(0, extent) if isinstance(axis, Whole) else _extent(axis, extent, domain, ranges)
        for axis, extent in zip(domain.access[key], domain.shapes[key], strict=True)
    )


def _extent(axis: Affine, extent: int, domain: Domain, ranges: Ranges) -> Extent:
    if len(axis.terms) == 1 and not axis.constant and axis.divisor == 1:
        name, coefficient = axis.terms[0]
        if coefficient == 1 and domain.dims[name] == extent and name not in ranges:
            return Extent(0, extent)
    low: Size = axis.constant
    high: Size = axis.constant
    for name, coefficient in axis.terms:
        part = ranges.get(name)
        start, last = (0, domain.dims[name] - 1) if part is None else (part.start, part.stop - 1)
        low, high = (
            (low + start * coefficient, high + last * coefficient)
            if coefficient > 0
            else (
                low + last * coefficient,
                high + start * coefficient,
            )
        )
    if axis.divisor != 1:
        low, high = low // axis.divisor, high // axis.divisor
    if isinstance(low, int) and isinstance(high, int):
        begin = min(max(low, 0), extent)
        end = max(min(high + 1, extent), begin)
        return Extent(begin, end, begin - low, high + 1 - end)
    start = clamp(low, 0, extent)
    stop = larger(clamp(high + 1, 0, extent), start)
    return Extent(start, stop, plain(start - low), plain(high + 1 - stop))


def axis_dim(domain: Domain, axis: Axis) -> tuple[str, int]:
    """The dimension along which an output axis can be cut, and how many elements one step of it is; "" for none."""
    if isinstance(axis, Whole) or axis.divisor != 1 or axis.constant:
        return "", 0
    real = sorted(((c, n) for n, c in axis.terms if domain.dims[n] > 1), reverse=True)
    if not real:
        # All extents are 1: there is nothing to cut.
        return "", 0
    factor, name = real[0]
    reach = sum(c * (domain.dims[n] - 1) for c, n in real[1:])
    return (name, factor) if factor > 0 and name not in domain.whole and reach < factor else ("", 0)


def tile_of(domain: Domain, key: str, wanted: Region) -> dict[str, Extent]:
    """The tile whose result covers a region of an output; dimensions that are not cut are left out."""
    found: dict[str, Extent] = {}
    for axis, part in zip(domain.access[key], wanted, strict=True):
        name, factor = axis_dim(domain, axis)
        if name:
            stop = part.stop if factor == 1 else (part.stop + (factor - 1)) // factor
            found[name] = Extent(part.start if factor == 1 else part.start // factor, stop)
    return found


def shift(domain: Domain, key: str, output: str) -> tuple[int, ...] | None:
    """How much larger than its own the index of an operand's element is in a result, for each axis; None for others."""
    found: list[int] = []
    if len(domain.access[key]) != len(domain.access[output]):
        return None
    for mine, other in zip(domain.access[key], domain.access[output], strict=True):
        if isinstance(mine, Whole) or len(mine.dims) != 1 or other != dim(mine.dims[0]):
            return None
        if mine + -mine.constant != other or mine.divisor != 1:
            return None
        found.append(-mine.constant)
    return tuple(found)


def left(mine: Member, inlaid: Iterable[str]) -> dict[str, tuple[int, int]]:
    """What is left to compute of dimensions where operands lie at their ends, within the result: start and stop."""
    domain = mine.domain
    taken: dict[str, list[tuple[int, int]]] = {}
    for key in inlaid:
        for axis, extent in zip(domain.access[key], domain.shapes[key], strict=True):
            if isinstance(axis, Affine) and extent < domain.dims[axis.dims[0]]:
                taken.setdefault(axis.dims[0], []).append((-axis.constant, extent - axis.constant))
    found: dict[str, tuple[int, int]] = {}
    for name, parts in taken.items():
        low, high = 0, domain.dims[name]
        for start, stop in sorted(parts):
            low = stop if start == low else low
        for start, stop in sorted(parts, reverse=True):
            high = start if stop == high and start >= low else high
        found[name] = low, high
    return found


def hull(regions: Sequence[Region]) -> Region:
    """The smallest box around regions."""
    merged = list(regions[0])
    for other in regions[1:]:
        merged = [Extent(smaller(a.start, b.start), larger(a.stop, b.stop)) for a, b in zip(merged, other, strict=True)]
    return tuple(merged)


class Trace(Struct, frozen=True):
    """One step of a group: the tile each node computes, and the region of every operand."""

    ranges: tuple[Ranges, ...]
    regions: tuple[Mapping[str, Region], ...]
    """By node, then by the key of the use."""
    held: Mapping[str, Region]
    """What is held of each tensor that stays inside the group, kept lines included."""


class TileLoop(Struct, frozen=True):
    """A loop over tiles of `size` along a dimension of the group's last node."""

    dim: str
    size: int
    count: int


def trace(
    members: Sequence[Member],
    loops: Sequence[TileLoop],
    keep: Mapping[str, int],
    at: Sequence[Size],
    name: Callable[[Size], Size] | None = None,
    lengths: Sequence[Ranges] = (),
) -> Trace:
    """Projects the tile of the last node back through the group.

    `at` is the index of each loop. `keep` names tensors of which lines computed at the previous step of the innermost
    loop are kept along an axis, so that only new ones are computed. `name` may put names in the place of long
    expressions, which would grow from node to node. `lengths` are, by node, the parts of dimensions that are known when
    the network runs; without, all are as long as they may be.
    """
    before = (*at[:-1], at[-1] - 1) if keep else at
    previous = trace(members, loops, {}, before, name, lengths) if keep else None
    inside = {m.output.tensor for m in members[:-1]}
    ranges: list[Ranges] = [{} for _ in members]
    regions: list[dict[str, Region]] = [{} for _ in members]
    needs: dict[str, list[Region]] = {}
    held: dict[str, Region] = {}
    for position in reversed(range(len(members))):
        mine = members[position]
        if position == len(members) - 1:
            ranges[position] = _outer(mine, loops, at)
        else:
            tensor = mine.output.tensor
            wanted = held[tensor] = _named(hull(needs[tensor]), name)
            if previous is not None and tensor in keep:
                axis = keep[tensor]
                part, done = wanted[axis], previous.held[tensor][axis].stop
                start = at_first(at[-1], part.start, larger(part.start, done))
                wanted = _named((*wanted[:axis], Extent(start, part.stop), *wanted[axis + 1 :]), name)
            ranges[position] = tile_of(mine.domain, mine.output.key, wanted)
        if lengths:
            ranges[position] = {**lengths[position], **ranges[position]}
        for use in mine.uses:
            found = region(mine.domain, use.key, ranges[position])
            regions[position][use.key] = found
            if not use.writes and use.tensor in inside:
                needs.setdefault(use.tensor, []).append(found)
    return Trace(tuple(ranges), tuple(regions), held)


def _named(found: Region, name: Callable[[Size], Size] | None) -> Region:
    return found if name is None else tuple(Extent(name(part.start), name(part.stop)) for part in found)


def _outer(last: Member, loops: Sequence[TileLoop], at: Sequence[Size]) -> dict[str, Extent]:
    found: dict[str, Extent] = {}
    for loop, index in zip(loops, at, strict=True):
        start = index * loop.size
        found[loop.dim] = Extent(start, smaller(start + loop.size, last.domain.dims[loop.dim]))
    return found


def narrowed(ranges: Ranges, name: str, extent: int, chunk: int, core: Size) -> dict[str, Extent]:
    """The part of a tile that one core computes: `chunk` neighbours along a dimension."""
    part = ranges.get(name, Extent(0, extent))
    start = smaller(part.start + core * chunk, part.stop)
    return {**ranges, name: Extent(start, smaller(start + chunk, part.stop))}
