"""The network as a vertical flow: one row per layer in execution order, tensors that skip rows in lanes beside it."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from msgspec import Struct

from tilewright.core.graph import Graph
from tilewright.core.op import is_view
from tilewright.report.layers import LayerRow

ROW, LANE, MARGIN = 52, 12, 10
"""Pixels: height of a row, distance of lanes, room between lanes and boxes."""


class Row(Struct, frozen=True):
    """An input or output of the network, or a layer."""

    kind: Literal["input", "output", "layer"]
    title: str
    subtitle: str
    tensor: str
    layer: LayerRow | None = None


class Trunk(Struct, frozen=True):
    """A tensor that is read further down: leaves row `start` and enters each of `targets`, in lane `lane`."""

    start: int
    targets: tuple[int, ...]
    lane: int


class FlowChart(Struct, frozen=True, dict=True):
    """Rows from top to bottom. `linked` are rows whose result the next row reads."""

    rows: tuple[Row, ...]
    linked: frozenset[int]
    trunks: tuple[Trunk, ...]

    @cached_property
    def lanes(self) -> int:
        return max((trunk.lane + 1 for trunk in self.trunks), default=0)

    @property
    def height(self) -> int:
        return ROW * len(self.rows)

    @property
    def lane_width(self) -> int:
        return self.lanes * LANE + MARGIN if self.lanes else 0

    def paths(self) -> tuple[str, ...]:
        """SVG paths of the trunks, each with a branch to every target."""
        return tuple(self._path(trunk) for trunk in self.trunks)

    def _path(self, trunk: Trunk) -> str:
        edge = self.lane_width
        x = edge - MARGIN - trunk.lane * LANE
        # Leaves below the middle of a box and enters above it: a trunk never touches one that ends where it starts.
        leave = trunk.start * ROW + ROW // 2 + 7
        parts = [f"M{edge} {leave}H{x + 4}Q{x} {leave} {x} {leave + 4}"]
        for target in trunk.targets:
            enter = target * ROW + ROW // 2 - 7
            parts.append(f"M{x} {leave + 4}V{enter - 4}Q{x} {enter} {x + 4} {enter}H{edge}")
        return "".join(parts)

    def arrows(self) -> tuple[int, ...]:
        """Heights at which a branch enters a box."""
        return tuple(sorted({t * ROW + ROW // 2 - 7 for trunk in self.trunks for t in trunk.targets}))


def flow(graph: Graph, layers: tuple[LayerRow, ...]) -> FlowChart:
    """The picture of a graph. An input stands before its first reader, an output behind the layer that makes it."""
    rows: list[Row] = []
    row_of: dict[str, int] = {}
    edges: dict[int, list[int]] = {}
    roots = _roots(graph)
    inputs = set(graph.inputs)
    outputs: dict[str, list[str]] = {}
    for name in graph.outputs:
        outputs.setdefault(roots.get(name, name), []).append(name)
    position = {name: index for index, name in enumerate(graph.outputs)}

    def add(row: Row, reads: list[str], makes: list[str]) -> None:
        for source in dict.fromkeys(row_of[name] for name in reads if name in row_of):
            edges.setdefault(source, []).append(len(rows))
        row_of.update(dict.fromkeys(makes, len(rows)))
        rows.append(row)

    def add_outputs(made: list[str]) -> None:
        found = [(position[name], name, root) for root in dict.fromkeys(made) for name in outputs.get(root, ())]
        for _, name, root in sorted(found):
            add(Row("output", name, "output", str(graph.types[name])), [root], [])

    def add_inputs(names: list[str]) -> None:
        for name in names:
            if name in inputs and name not in row_of:
                add(Row("input", name, "input", str(graph.types[name])), [], [name])
                add_outputs([name])

    for layer in layers:
        node = graph.nodes[layer.step]
        reads = [roots.get(name, name) for name in node.reads]
        add_inputs(reads)
        made = [name for name in node.outputs if name]
        add(Row("layer", layer.op, layer.name, layer.output, layer), reads, made)
        add_outputs(made)
    add_inputs(list(graph.inputs))
    return FlowChart(tuple(rows), *_routed(edges))


def _roots(graph: Graph) -> dict[str, str]:
    """For the result of each view, the tensor whose bytes it shows."""
    roots: dict[str, str] = {}
    for node in graph.nodes:
        if is_view(node):
            roots[node.outputs[0]] = roots.get(node.inputs[0], node.inputs[0])
    return roots


def _routed(edges: dict[int, list[int]]) -> tuple[frozenset[int], tuple[Trunk, ...]]:
    """Edges to the next row are links; all others get the innermost lane that is free over their whole length."""
    linked = frozenset(start for start, targets in edges.items() if start + 1 in targets)
    skipping = {start: tuple(t for t in targets if t != start + 1) for start, targets in edges.items()}
    busy = _Lanes(max((t for targets in edges.values() for t in targets), default=0))
    trunks: list[Trunk] = []
    for start, targets in sorted(skipping.items(), key=lambda item: (max(item[1], default=0) - item[0], item[0])):
        if not targets:
            continue
        end = max(targets)
        trunks.append(Trunk(start, targets, busy.take(start, end)))
    return linked, tuple(sorted(trunks, key=lambda trunk: trunk.start))


class _Lanes:
    """Which lanes are taken where, as masks in a binary tree over rows."""

    def __init__(self, rows: int) -> None:
        self._leaves = 1 << max(rows - 1, 0).bit_length()
        self._throughout = [0] * (2 * self._leaves)
        """Lanes that are taken in all rows below a node, by one trunk each."""
        self._anywhere = [0] * (2 * self._leaves)
        """Lanes that are taken in some row below a node, beside those that are taken all around it."""

    def take(self, start: int, end: int) -> int:
        """Takes and returns the lowest lane that is free in rows `start` to `end`, that one left out."""
        nodes = self._subtrees(start, end)
        taken = 0
        for node in nodes:
            taken |= self._anywhere[node]
            while node := node >> 1:
                taken |= self._throughout[node]
        lane = ~taken & (taken + 1)
        for node in nodes:
            self._throughout[node] |= lane
            while node:
                self._anywhere[node] |= lane
                node >>= 1
        return lane.bit_length() - 1

    def _subtrees(self, start: int, end: int) -> list[int]:
        """The nodes whose rows together are those from `start` to `end`."""
        low, high, found = start + self._leaves, end + self._leaves, list[int]()
        while low < high:
            if low & 1:
                found.append(low)
                low += 1
            if high & 1:
                high -= 1
                found.append(high)
            low, high = low >> 1, high >> 1
        return found
