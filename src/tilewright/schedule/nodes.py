"""Computation nodes: operations split along some of their loops, and which node needs what of which other one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from types import MappingProxyType

import numpy as np
from msgspec import Struct, field

from tilewright.core.domain import Affine
from tilewright.core.split import OperationSplit
from tilewright.errors import TilewrightError
from tilewright.schedule.network import Access, Operation, OperationGraph
from tilewright.schedule.overlaps import Boxes, Numbers, overlapping


class Tiles(Struct, frozen=True):
    """The nodes of an operation."""

    operation: Operation
    count: int
    starts: Mapping[str, Numbers]
    """By loop that is split, for each node."""
    sizes: Mapping[str, Numbers]
    slice: Numbers
    """For each node the part of the operation that goes to one engine."""
    kind: Numbers
    """Nodes of equal numbers have equal sizes."""
    shapes: tuple[Mapping[str, int], ...]
    """By kind: sizes of all loops."""

    def boxes(self, access: Access, shape: tuple[int, ...], *, clipped: bool = True) -> Boxes:
        """What each node touches of an operand that is seen in some shape."""
        domain = self.operation.domain
        columns = [
            self._interval(axis, extent, clipped) if isinstance(axis, Affine) else self._all(extent)
            for axis, extent in zip(domain.access[access.operand], shape, strict=True)
        ]
        if not columns:
            return Boxes((), np.zeros((self.count, 0), np.int64), np.zeros((self.count, 0), np.int64))
        return Boxes(shape, np.stack([c[0] for c in columns], 1), np.stack([c[1] for c in columns], 1))

    def _all(self, extent: int) -> tuple[Numbers, Numbers]:
        return np.zeros(self.count, np.int64), np.full(self.count, extent, np.int64)

    def _interval(self, axis: Affine, extent: int, clipped: bool) -> tuple[Numbers, Numbers]:
        low = np.full(self.count, axis.constant, np.int64)
        high = low.copy()
        for name, scale in axis.terms:
            start = self.starts[name] if name in self.starts else np.int64(0)
            last = start + (self.sizes[name] if name in self.sizes else self.operation.domain.dims[name]) - 1
            ends = (scale * start, scale * last)
            low, high = low + np.minimum(*ends), high + np.maximum(*ends)
        low, high = low // axis.divisor, high // axis.divisor
        if not clipped:
            return low, high + 1
        return np.clip(low, 0, extent), np.clip(high + 1, 0, extent)


def tiles_of(operation: Operation, split: OperationSplit) -> Tiles:
    """The nodes of an operation, without those that have nothing to do."""
    loops: list[tuple[str, int]] = []
    for name, parts in (*split.across, *split.within):
        size = operation.domain.dims.get(name)
        if size is None or name not in operation.domain.parallel:
            known = ", ".join(operation.domain.parallel)
            raise TilewrightError(
                "bad-split",
                f"'{operation.name}' cannot be split along {name}",
                reasons=["its parts would not be independent" if size else "it has no such loop"],
                help=f"split it along {known}" if known else "leave it whole",
            )
        loops.append((name, size if parts == "all" else parts))
    count = prod(parts for _, parts in loops)
    numbers = np.arange(count)
    step, below = 1, dict.fromkeys((name for name, _ in loops), 1)
    whole = {name: prod(parts for other, parts in loops if other == name) for name in below}
    starts = {name: np.zeros(count, np.int64) for name in below}
    for name, parts in loops:
        span = -(-operation.domain.dims[name] // whole[name])
        starts[name] += numbers // step % parts * (span * below[name])
        step, below[name] = step * parts, below[name] * parts
    spans = {name: -(-operation.domain.dims[name] // whole[name]) for name in below}
    sizes = {name: np.minimum(operation.domain.dims[name] - starts[name], spans[name]) for name in below}
    some = np.ones(count, np.bool_)
    for size in sizes.values():
        some &= size > 0
    across = prod(parts for _, parts in loops[: len(split.across)])
    return _tiles(
        operation,
        int(some.sum()),
        {name: start[some] for name, start in starts.items()},
        {name: size[some] for name, size in sizes.items()},
        (numbers % across)[some],
    )


def _tiles(
    operation: Operation, count: int, starts: Mapping[str, Numbers], sizes: Mapping[str, Numbers], part: Numbers
) -> Tiles:
    dims = dict(operation.domain.dims)
    if sizes:
        unique, kind = np.unique(np.stack([*sizes.values()], 1), axis=0, return_inverse=True)
        shapes = tuple({**dims, **dict(zip(sizes, row, strict=True))} for row in unique.tolist())
    else:
        kind, shapes = np.zeros(count, np.int64), (dims,)
    return Tiles(operation, count, starts, sizes, part, kind.reshape(-1), shapes)


class Nodes(Struct, frozen=True):
    """All nodes of a network as arrays: by node, by tensor that a node makes or that is there from the start, and rows
    of different lengths with the beginning of each."""

    network: OperationGraph
    tiles: tuple[Tiles, ...]
    operation: Numbers
    """By node: the number of its operation."""
    first: Numbers
    """By operation: its first node."""
    group: Numbers
    """By node: what goes to one engine together."""
    groups: tuple[tuple[str, int], ...]
    """By group: the operation, and which slice of it."""
    kind: Numbers
    """By node: nodes of equal numbers cost the same."""
    kinds: tuple[tuple[int, int], ...]
    """By kind: the operation, and the kind among its nodes."""
    bits: Numbers
    """By tensor."""
    result: Numbers
    makers: Numbers
    """By tensor: the node that makes it, or -1."""
    tensor_names: tuple[str, ...]
    """By tensor of the network, as `tensor_of` numbers them."""
    tensor_of: Numbers
    before_starts: Numbers
    before: Numbers
    reads_starts: Numbers
    read_tensor: Numbers
    read_slot: Numbers
    writes_starts: Numbers
    write_tensor: Numbers
    write_slot: Numbers
    chained: int
    """How many of `before` only keep nodes of one group in order, or end fusion."""
    slots: tuple[str, ...]

    @property
    def count(self) -> int:
        return len(self.operation)

    @property
    def edges(self) -> int:
        return len(self.before)

    def name(self, node: int) -> str:
        """A node in words: its operation, and which part of it."""
        number = int(self.operation[node])
        name = self.network.operations[number].name
        return name if self.tiles[number].count == 1 else f"{name} [{node - int(self.first[number])}]"


class _NodeBuilder(Struct):
    """Columns as they grow."""

    slots: tuple[str, ...]
    tensors: int = 0
    bits: list[Numbers] = field(default_factory=list[Numbers])
    result: list[Numbers] = field(default_factory=list[Numbers])
    makers: list[Numbers] = field(default_factory=list[Numbers])
    names: dict[str, int] = field(default_factory=dict[str, int])
    of: list[Numbers] = field(default_factory=list[Numbers])
    edges: list[tuple[Numbers, Numbers]] = field(default_factory=list[tuple[Numbers, Numbers]])
    reads: list[tuple[Numbers, Numbers, int, bool]] = field(default_factory=list[tuple[Numbers, Numbers, int, bool]])
    writes: list[tuple[Numbers, Numbers, int]] = field(default_factory=list[tuple[Numbers, Numbers, int]])
    boxes: dict[tuple[str, tuple[int, ...], bytes], int] = field(
        default_factory=dict[tuple[str, tuple[int, ...], bytes], int]
    )
    """Numbers of tensors that are there from the start."""

    def given(self, name: str, boxes: Boxes, bits: int) -> Numbers:
        """Parts of a tensor that is there from the start, for each box; equal ones are one."""
        both = np.concatenate([boxes.starts, boxes.stops], axis=1)
        unique, index, inverse = np.unique(both, axis=0, return_index=True, return_inverse=True)
        keys = [(name, boxes.shape, row.tobytes()) for row in unique]
        new = np.array([key not in self.boxes for key in keys], np.bool_)
        start = self.add(name, (boxes.sizes[index] * bits)[new], np.full(int(new.sum()), -1, np.int64), False)
        fresh = (key for key, is_new in zip(keys, new.tolist(), strict=True) if is_new)
        self.boxes |= {key: start + at for at, key in enumerate(fresh)}
        return np.array([self.boxes[key] for key in keys], np.int64)[inverse.reshape(-1)]

    def add(self, name: str, bits: Numbers, makers: Numbers, result: bool) -> int:
        """Tensors, of which the first has the number that is returned."""
        first = self.tensors
        self.tensors += len(bits)
        self.bits.append(bits)
        self.makers.append(makers)
        self.result.append(np.full(len(bits), result, np.int64))
        self.of.append(np.full(len(bits), self.names.setdefault(name, len(self.names)), np.int64))
        return first


def split_network(
    network: OperationGraph,
    splits: Mapping[str, OperationSplit] = MappingProxyType({}),
    slots: Sequence[str] = ("I1", "I2", "O"),
    *,
    padded: bool = False,
    cuts: Collection[str] = (),
) -> Nodes:
    """All nodes of a network. With `padded`, what comes from outside has its padding with it, as Stream counts it. At
    the operations in `cuts` fusion ends: they and all behind them wait for all before them."""
    tiles = tuple(tiles_of(operation, splits.get(operation.name, OperationSplit())) for operation in network.operations)
    counts = np.array([each.count for each in tiles], np.int64)
    first = np.cumsum(counts) - counts
    build = _NodeBuilder(tuple(slots))
    made: dict[str, tuple[int, Tiles, Access, int]] = {}
    """By tensor: the number of its first part, what makes it, and the first node of that."""
    for number, each in enumerate(tiles):
        nodes = np.arange(each.count) + first[number]
        for access in each.operation.reads:
            tensor = network.tensors[access.tensor]
            seen = each.operation.domain.shapes[access.operand]
            slot = build.slots.index(access.slot)
            if not tensor.maker:
                parts = build.given(access.tensor, each.boxes(access, seen, clipped=not padded), tensor.bits)
                build.reads.append((nodes, parts, slot, True))
                continue
            start, maker, written, origin = made[access.tensor]
            makes = maker.boxes(written, tensor.shape)
            parts, readers = overlapping(makes, each.boxes(access, seen))
            build.edges.append((parts + origin, readers + first[number]))
            build.reads.append((readers + first[number], parts + start, slot, False))
        for access in each.operation.writes:
            tensor = network.tensors[access.tensor]
            bits = each.boxes(access, tensor.shape).sizes * tensor.bits
            start = build.add(access.tensor, bits, nodes, tensor.result)
            made[access.tensor] = (start, each, access, int(first[number]))
            build.writes.append((nodes, start + np.arange(each.count), build.slots.index(access.slot)))
    return _nodes(network, tiles, counts, first, build, cuts)


def _joined(parts: Sequence[Numbers]) -> Numbers:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _starts(nodes: Numbers, count: int) -> Numbers:
    return np.concatenate([[0], np.cumsum(np.bincount(nodes, minlength=count))]).astype(np.int64)


def _barriers(
    network: OperationGraph, first_group: Numbers, group: Numbers, cuts: Collection[str]
) -> tuple[Numbers, Numbers]:
    """Edges from the last node of each group before a cut to the first one of each group behind it, up to the next."""
    bounds = [0, *(n for n, each in enumerate(network.operations) if n and each.name in cuts), len(network.operations)]
    firsts = np.unique(group, return_index=True)[1]
    lasts = len(group) - 1 - np.unique(group[::-1], return_index=True)[1]
    sources, targets = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for start, middle, stop in zip(bounds, bounds[1:], bounds[2:], strict=False):
        before = lasts[first_group[start] : first_group[middle]]
        behind = firsts[first_group[middle] : first_group[stop]]
        sources.append(np.repeat(before, len(behind)))
        targets.append(np.tile(behind, len(before)))
    return np.concatenate(sources), np.concatenate(targets)


def _nodes(
    network: OperationGraph,
    tiles: tuple[Tiles, ...],
    counts: Numbers,
    first: Numbers,
    build: _NodeBuilder,
    cuts: Collection[str],
) -> Nodes:
    count = int(counts.sum())
    groups = [(each.operation.name, part) for each in tiles for part in range(int(each.slice.max(initial=0)) + 1)]
    firsts = np.cumsum([0, *(int(each.slice.max(initial=0)) + 1 for each in tiles)])
    kinds = [(number, kind) for number, each in enumerate(tiles) for kind in range(len(each.shapes))]
    kind_firsts = np.cumsum([0, *(len(each.shapes) for each in tiles)])
    group = _joined([each.slice + at for each, at in zip(tiles, firsts, strict=False)])
    bits = _joined(build.bits)

    order = np.argsort(group, kind="stable")
    chained = group[order][1:] == group[order][:-1]
    chain = (order[:-1][chained], order[1:][chained])
    barriers = _barriers(network, firsts, group, cuts) if cuts else (order[:0], order[:0])
    sources = _joined([chain[0], barriers[0], *(edge[0] for edge in build.edges)])
    targets = _joined([chain[1], barriers[1], *(edge[1] for edge in build.edges)])
    by_target = np.argsort(targets, kind="stable")

    readers = _joined([read[0] for read in build.reads])
    read = _joined([read[1] for read in build.reads])
    slot = _joined([np.full(len(read[0]), read[2], np.int64) for read in build.reads])
    later = _joined([np.full(len(read[0]), 0 if read[3] else 1, np.int64) for read in build.reads])
    makers = _joined(build.makers)
    by_reader = np.lexsort((makers[read], later, bits[read], readers))
    writers = _joined([write[0] for write in build.writes])
    by_writer = np.argsort(writers, kind="stable")
    return Nodes(
        network=network,
        tiles=tiles,
        operation=np.repeat(np.arange(len(tiles)), counts),
        first=first,
        group=group,
        groups=tuple(groups),
        kind=_joined([each.kind + at for each, at in zip(tiles, kind_firsts, strict=False)]),
        kinds=tuple(kinds),
        bits=bits,
        result=_joined(build.result),
        makers=makers,
        tensor_names=tuple(build.names),
        tensor_of=_joined(build.of),
        before_starts=_starts(targets, count),
        before=sources[by_target],
        reads_starts=_starts(readers, count),
        read_tensor=read[by_reader],
        read_slot=slot[by_reader],
        writes_starts=_starts(writers, count),
        write_tensor=_joined([write[1] for write in build.writes])[by_writer],
        write_slot=_joined([np.full(len(write[0]), write[2], np.int64) for write in build.writes])[by_writer],
        chained=int(chained.sum()) + len(barriers[0]),
        slots=build.slots,
    )
