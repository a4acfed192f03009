"""Attention as units take it that compute a head each, with its projections, from a block of memory: ITA in MemPool.

Up to four heads are a node, all of which read the same inputs. Projections before attention are part of it where their
inputs fit and that is faster; else heads are inputs themselves, and pass through projections that are the identity. So
does what leaves attention, unless each head has a projection back of its own. What is padded adds nothing to sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod

import numpy as np
from msgspec import Struct

from tilewright.core.graph import Array, Attr, Graph, Node
from tilewright.machine.parts import Engine
from tilewright.machine.permissions import ITA_SOFTMAX
from tilewright.machine.target import Target
from tilewright.ops.ita_heads import MOST, SOFTMAX, STRIP, UNITS, Head, HeadBlock
from tilewright.passes.edit import Edit, rewrite
from tilewright.passes.ita_patterns import (
    FoundHeads,
    LinearLayer,
    Scale,
    Softmax,
    heads_of,
    layer_of,
    projection_of,
    scale_of,
    sums_of,
)

ARITHMETIC = Softmax("ITAPartialMax", SOFTMAX, octave=32, one=127)
AS_IT_IS = Scale(1, 0, 0)
ADD_BITS = 32
WORD = 1 << 31
"""Beyond what sums, times their multiplier, may have."""


def ita_units(graph: Graph, platform: Target) -> Graph:
    """The graph with heads of attention as units take them, for which cores have products of two activations."""
    engines = platform.engines.values()
    engine = next((each for each in engines if any(one.op == "ITAHeads" for one in each.takes)), None)
    if engine is None or graph.bounds:
        return graph
    return rewrite(graph, {"RequantShift": _Units(platform, engine).scaled})


class _Attention(Struct, frozen=True):
    heads: FoundHeads
    inputs: Mapping[str, str]
    """Queries, turned keys and values, by `q`, `k` and `v`."""
    layers: Mapping[str, LinearLayer]
    """Those of their projections that units could compute."""


class _Back(Struct, frozen=True):
    """The projection back of each head: weights `[heads, size, columns]`, biases `[heads, columns]`."""

    weights: Array
    bias: Array
    scale: Scale


class _HeadWay(Struct, frozen=True):
    """So many heads at a time, with these projections."""

    count: int
    inside: frozenset[str]
    block: HeadBlock
    cycles: float


def _padded(extent: int) -> int:
    return -(-extent // STRIP) * STRIP


def _fits(weights: Array, bias: Array, scale: Scale) -> bool:
    """Whether no sum of bytes times weights, scaled, has more than 32 bits."""
    most = 128 * np.abs(weights.astype(np.int64)).sum(axis=-2) + np.abs(bias)
    return int(most.max(initial=0)) * scale.mult < WORD


class _Units:
    """Finds attention and has units compute it."""

    def __init__(self, platform: Target, engine: Engine) -> None:
        self.platform = platform
        self.unit = (engine.peak or float(UNITS)) / UNITS
        self.cores = platform.cores.count * (platform.cores.peak or 1.0)
        self.known: dict[str, _Attention] = {}
        """Attention by its result."""

    def scaled(self, edit: Edit, node: Node) -> bool:
        output = node.outputs[0]
        heads = heads_of(edit, node, ARITHMETIC, STRIP, ADD_BITS, replace=ITA_SOFTMAX in self.platform.allowed)
        if heads is not None:
            self.known[output] = _attention(edit, heads)
            return self._attend(edit, self.known[output], None, output)
        found = self._back(edit, node)
        return found is not None and self._attend(edit, *found, output)

    def _back(self, edit: Edit, node: Node) -> tuple[_Attention, _Back] | None:
        """Attention whose heads have projections back of their own, and these."""
        scale = scale_of(edit, node, ADD_BITS)
        for sums, bias in sums_of(edit, node.inputs[0]) if scale is not None else ():
            made = edit.producer(sums, "MatMul")
            found = self.known.get(made.inputs[0]) if made is not None else None
            weights = edit.constants.get(made.inputs[1]) if made is not None else None
            if scale is None or found is None or weights is None or weights.dtype != np.int8:
                continue
            count, _, size = found.heads.shape
            columns = weights.shape[-1]
            if weights.shape != (count, size, columns) or bias.size not in (1, columns, count * columns):
                continue
            every = np.broadcast_to(bias.reshape(-1, bias.shape[-1]), (count, columns)).astype(np.int64)
            if columns <= MOST and _fits(weights, every, scale):
                return found, _Back(weights, every, scale)
        return None

    def _attend(self, edit: Edit, found: _Attention, back: _Back | None, output: str) -> bool:
        count, _, size = found.heads.shape
        columns = size if back is None else back.weights.shape[-1]
        way = self._best(found, columns)
        if way is None:
            return False
        parts = [
            self._emit(edit, found, back, way, range(first, min(first + way.count, count)))
            for first in range(0, count, way.count)
        ]
        edit.reshape(edit.emit("Concat", parts, axis=0) if len(parts) > 1 else parts[0], edit.shape(output), output)
        return True

    def _best(self, found: _Attention, columns: int) -> _HeadWay | None:
        """The fastest way for which there is room, with units and cores at their peak."""
        count, rows, size = found.heads.shape
        room = self.platform.memories[self.platform.cores.memory].bytes
        ways: list[_HeadWay] = []
        for some, *chosen in product(range(1, min(count, UNITS) + 1), *((False, True) for _ in found.layers)):
            inside = frozenset(name for name, taken in zip(found.layers, chosen, strict=True) if taken)
            widths = {name: found.layers[name].weights.shape[0] if name in inside else some * size for name in "qkv"}
            once = {"k", "v"} <= inside and found.layers["k"].x == found.layers["v"].x
            widest = max(widths["q"], widths["k"] + (0 if once else widths["v"]), columns)
            block = HeadBlock(rows, _padded(widest), _padded(size))
            bytes_of_all = block.bytes + block.places(some - 1)[1] + some * rows * block.embedding
            if max(block.embedding, block.projection) > MOST or (room is not None and bytes_of_all > room):
                continue
            left = sum(rows * layer.weights.size for name, layer in found.layers.items() if name not in inside)
            cycles = -(-count // some) * block.products / self.unit + left / self.cores
            ways.append(_HeadWay(some, inside, block, cycles))
        return min(ways, key=lambda way: (way.cycles, way.count), default=None)

    def _emit(self, edit: Edit, found: _Attention, back: _Back | None, way: _HeadWay, heads: range) -> str:
        """A round of heads: `[heads, rows, columns]`."""
        (_, rows, size), block = found.heads.shape, way.block
        inputs = {found.layers[name].x for name in way.inside}
        flat = {x: edit.reshape(x, (rows, edit.shape(x)[-1])) for x in sorted(inputs)}
        sources = {
            name: flat[found.layers[name].x] if name in way.inside else _side_by_side(edit, found, name, heads)
            for name in "qkv"
        }
        joined = [sources["k"]] + ([sources["v"]] if sources["v"] != sources["k"] else [])
        after = 0 if len(joined) == 1 else edit.shape(sources["k"])[1]
        keys = edit.emit("Concat", joined, axis=1) if after else sources["k"]
        made = [_head(found, back, way, heads, head, after) for head in heads]
        before, behind = (edit.constant(part, "weights") for part in block.parts(made[0]))
        queries = _strips(edit, sources["q"], block.embedding)
        others = queries if keys == sources["q"] else _strips(edit, keys, block.embedding)
        x = edit.emit("Concat", (before, queries, others, behind), axis=0)
        w = edit.constant(block.others(made), "blocks")
        sizes: dict[str, Attr] = {"rows": rows, "embedding": block.embedding, "projection": block.projection}
        attributes: dict[str, Attr] = {"heads": len(heads), **sizes, "replaces": found.heads.replaces}
        (result,) = edit.emit_all("ITAHeads", (x, w), (None,), attributes)
        columns = size if back is None else back.weights.shape[-1]
        if columns == block.embedding:
            return result
        ends = (edit.integers((at,), what) for at, what in ((0, "from"), (columns, "to"), (2, "axis")))
        return edit.emit("Slice", (result, *ends))


def _attention(edit: Edit, heads: FoundHeads) -> _Attention:
    inputs = {"q": heads.q, "k": heads.turned_k, "v": heads.v}

    def layer_at(name: str) -> LinearLayer | None:
        node = edit.producer(name, "RequantShift")
        return layer_of(edit, node, ADD_BITS) if node is not None else None

    layers: dict[str, LinearLayer] = {}
    padded = heads.shape[2] % STRIP
    for name, tensor in inputs.items():
        layer = projection_of(edit, tensor, heads, layer_at)
        # Padded channels of queries and keys have to be zero.
        if layer is None or (padded and name != "v" and layer.scale.zero is None):
            continue
        if layer.weights.shape[0] <= MOST and _fits(layer.weights, layer.bias, layer.scale):
            layers[name] = layer
    return _Attention(heads, inputs, layers)


def _side_by_side(edit: Edit, found: _Attention, name: str, heads: range) -> str:
    """Some heads as `[rows, columns]`."""
    count, rows, size = found.heads.shape
    shape, perm = ((count, size, rows), (2, 0, 1)) if name == "k" else ((count, rows, size), (1, 0, 2))
    some = edit.reshape(found.inputs[name], shape)
    if len(heads) < count:
        ends = ((heads.start, "from"), (heads.stop, "to"), (0, "axis"))
        some = edit.emit("Slice", (some, *(edit.integers((at,), what) for at, what in ends)))
    return edit.reshape(edit.transpose(some, perm), (rows, len(heads) * size))


def _head(found: _Attention, back: _Back | None, way: _HeadWay, heads: range, head: int, after: int) -> Head:
    """Weights and scales of a head; values are inputs from the column `after` on."""
    size, block = found.heads.shape[2], way.block
    mine = slice(head * size, (head + 1) * size)
    weights = {name: np.zeros((block.embedding, block.projection), np.int8) for name in "qkv"}
    biases = {name: np.zeros(block.projection, np.int64) for name in "qkv"}
    scales = {"score": found.heads.score, "mix": found.heads.mix}
    for name in "qkv":
        first = after if name == "v" else 0
        if name in way.inside:
            layer = found.layers[name]
            weights[name][first : first + len(layer.weights), :size] = layer.weights[:, mine]
            biases[name][:] = layer.scale.zero or 0
            biases[name][:size] = layer.bias[mine]
            scales[name] = layer.scale
        else:
            own = first + (head - heads.start) * size
            weights[name][own : own + size, :size] = np.eye(size, dtype=np.int8)
            scales[name] = AS_IT_IS
    weights["out"] = np.zeros((block.projection, block.embedding), np.int8)
    biases["out"] = np.zeros(block.embedding, np.int64)
    if back is None:
        weights["out"][:size, :size] = np.eye(size, dtype=np.int8)
        scales["out"] = AS_IT_IS
    else:
        columns = back.weights.shape[-1]
        weights["out"][:size, :columns], biases["out"][:columns] = back.weights[head], back.bias[head]
        scales["out"] = back.scale
    return Head(weights, biases, {name: (scale.mult, scale.shift, scale.add) for name, scale in scales.items()})


def _strips(edit: Edit, name: str, columns: int) -> str:
    """The bytes of a matrix in strips, with zeros up to so many columns."""
    rows, given = edit.shape(name)
    if given < columns:
        name = edit.emit("Pad", (name, edit.integers((0, 0, 0, columns - given), f"{name}_pads")))
    turned = edit.transpose(edit.reshape(name, (rows, columns // STRIP, STRIP)), (1, 0, 2))
    return edit.reshape(turned, (prod((rows, columns)),))
