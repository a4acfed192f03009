"""Linear layers and attention as an engine takes them that works on tiles: ITA.

A product with a bias, a requantisation and perhaps a GELU behind it becomes one node on tiles, between nodes that cut
its input into tiles and put the result together; so do the products and the softmax of attention. What is padded to
whole tiles adds nothing to sums. From one such layer to the next, results stay in tiles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tilewright.base.dtype import INT8
from tilewright.core.graph import Array, Attr, Graph, Node
from tilewright.machine.parts import Engine
from tilewright.machine.target import Target
from tilewright.ops.integer_rules import power_of_two
from tilewright.ops.ita_tiles import BIAS_BITS, GELU, MOST_TILES, TILE, packed_biases, tiles_of
from tilewright.ops.requant_shift import levels_of
from tilewright.passes.edit import Edit, rewrite
from tilewright.passes.match import operands

TILED = (0, 2, 1, 3)
"""From `[row tiles, TILE, column tiles, TILE]` to tiles side by side, and back."""


def ita(graph: Graph, platform: Target) -> Graph:
    """The graph with linear layers on tiles, where an engine takes them and should be faster than the cores."""
    takers = {one.op: engine for engine in platform.engines.values() for one in engine.takes}
    engine = takers.get("ITALinear")
    if engine is None or graph.bounds:
        return graph
    tiled: dict[str, str] = {}

    def scaled(edit: Edit, node: Node) -> bool:
        readers = edit.readers(node.outputs[0])
        if len(readers) == 1 and readers[0].op == "ITAGelu" and not edit.is_result(node.outputs[0]):
            return False
        heads = _heads(edit, node) if "ITAAttention" in takers else None
        if heads is not None:
            return _attend(edit, heads, node.outputs[0], platform, takers["ITAAttention"])
        layer = _layer(edit, node)
        return layer is not None and _emit(edit, layer, node.outputs[0], {}, platform, engine, tiled)

    def curved(edit: Edit, node: Node) -> bool:
        before = edit.producer(node.inputs[0], "RequantShift")
        layer = _layer(edit, before) if before is not None and edit.single(node.inputs[0]) else None
        names = {"b": "b", "c": "c", "mult": "act_mult", "shift": "act_shift", "add": "act_add"}
        function: dict[str, Attr] = {ours: edit.call(node).int(theirs) for theirs, ours in names.items()}
        function["activation"] = GELU
        return layer is not None and _emit(edit, layer, node.outputs[0], function, platform, engine, tiled)

    return rewrite(graph, {"RequantShift": scaled, "ITAGelu": curved})


@dataclass(frozen=True)
class _Scale:
    mult: int
    shift: int
    add: int

    def attributes(self, prefix: str = "") -> dict[str, Attr]:
        return {f"{prefix}mult": self.mult, f"{prefix}shift": self.shift, f"{prefix}add": self.add}


@dataclass(frozen=True)
class _Layer:
    x: str
    weights: Array
    bias: Array
    scale: _Scale


def _scale(edit: Edit, node: Node) -> _Scale | None:
    """The numbers of a requantisation, where ITA has such."""
    call = edit.call(node)
    mult, add = (edit.uniform(name) for name in node.inputs[1:3])
    shift = power_of_two(call, "div")
    signed = call.int("signed") != 0 and levels_of(call) == 1 << INT8.bits
    plain = signed and not call.int("half_to_even") and not call.int("zero_point")
    if not plain or mult is None or add is None or not 0 <= mult < 1 << 8 or shift >= BIAS_BITS:
        return None
    offset, rest = divmod(int(add), 1 << shift)
    return None if rest or not INT8.lo <= offset <= INT8.hi else _Scale(int(mult), shift, offset)


def _layer(edit: Edit, node: Node) -> _Layer | None:
    """The linear layer that a requantisation ends; None where ITA has no such numbers."""
    scale = _scale(edit, node)
    if scale is None:
        return None
    for sums, bias in _sums(edit, node.inputs[0]):
        product = edit.producer(sums, "MatMul")
        if product is None or any(edit.call(product).attrs.get(name) for name in ("transA", "transB")):
            continue
        x, weights = product.inputs[0], edit.constants.get(product.inputs[1])
        whole = edit.types[x].dtype == INT8 and edit.types[x].rank >= 2 and len(product.inputs) == 2
        if not whole or weights is None or weights.ndim != 2 or weights.dtype != np.int8:
            continue
        if weights.shape[0] > MOST_TILES * TILE or np.abs(bias.astype(np.int64)).max(initial=0) >= 1 << BIAS_BITS - 1:
            continue
        if bias.size in (1, weights.shape[1]):
            return _Layer(x, weights, np.broadcast_to(bias.reshape(-1), weights.shape[1:]), scale)
    return None


def _sums(edit: Edit, name: str) -> list[tuple[str, Array]]:
    """Readings of a tensor as sums and a constant bias."""
    add = edit.producer(name, "Add")
    pairs = operands(add) if add is not None and edit.single(name) else ()
    found = [(sums, edit.constants[bias]) for sums, bias in pairs if bias in edit.constants]
    return [*found, (name, np.zeros(1, np.int64))]


def _pays(sizes: Sequence[int], platform: Target, engine: Engine) -> bool:
    """Whether whole tiles take the engine less time at its best than a product takes the cores at theirs."""
    cores = platform.cores.count * platform.cores.peak
    return not cores or not engine.peak or prod(map(_padded, sizes)) / engine.peak < prod(sizes) / cores


def _padded(extent: int) -> int:
    return -(-extent // TILE) * TILE


def _emit(
    edit: Edit,
    layer: _Layer,
    output: str,
    function: Mapping[str, Attr],
    platform: Target,
    engine: Engine,
    tiled: dict[str, str],
) -> bool:
    shape = edit.shape(output)
    rows, (inner, columns) = prod(shape[:-1]), layer.weights.shape
    if not _pays((rows, inner, columns), platform, engine):
        return False
    m, k, n = _padded(rows), _padded(inner), _padded(columns)
    if layer.x not in tiled:
        tiled[layer.x] = _cut(edit, layer.x, rows, inner)
    weights = np.pad(layer.weights, ((0, k - inner), (0, n - columns)))
    w = edit.constant(tiles_of(np.ascontiguousarray(weights.T)), f"{output}_tiles")
    b = edit.constant(packed_biases(np.pad(layer.bias, (0, n - columns))), f"{output}_biases")
    attributes = {**layer.scale.attributes(), **function}
    (made,) = edit.emit_all("ITALinear", (tiled[layer.x], w, b), (None,), attributes)
    tiled[output] = made
    flat = edit.reshape(edit.transpose(made, TILED), (m, n))
    if (m, n) != (rows, columns):
        ends = [
            edit.integers(values, f"{output}_{what}") for what, values in (("from", (0, 0)), ("to", (rows, columns)))
        ]
        flat = edit.emit("Slice", (flat, *ends))
    edit.reshape(flat, shape, output)
    return True


def _cut(edit: Edit, name: str, rows: int, columns: int) -> str:
    """A tensor in tiles, with zeros behind its rows and columns."""
    flat, m, n = edit.reshape(name, (rows, columns)), _padded(rows), _padded(columns)
    if (m, n) != (rows, columns):
        flat = edit.emit("Pad", (flat, edit.integers((0, 0, m - rows, n - columns), f"{name}_pads")))
    return edit.transpose(edit.reshape(flat, (m // TILE, TILE, n // TILE, TILE)), TILED)


@dataclass(frozen=True)
class _Heads:
    """Attention: `[heads, rows, size]`, keys turned, and how scores and results are scaled."""

    q: str
    turned_k: str
    v: str
    score: _Scale
    mix: _Scale
    shape: tuple[int, int, int]


def _heads(edit: Edit, node: Node) -> _Heads | None:
    """The attention that a requantisation ends; None where it is none, or not one for ITA."""
    product = edit.producer(node.inputs[0], "MatMul")
    softmax = edit.producer(product.inputs[0], "ITASoftmax") if product is not None else None
    before = edit.producer(softmax.inputs[0], "RequantShift") if softmax is not None else None
    scores = edit.producer(before.inputs[0], "MatMul") if before is not None else None
    if product is None or before is None or scores is None or len(product.inputs) + len(scores.inputs) != 4:
        return None
    mix, score = _scale(edit, node), _scale(edit, before)
    (q, k), v = scores.inputs, product.inputs[1]
    turned = any(edit.call(each).attrs.get(name) for each in (scores, product) for name in ("transA", "transB"))
    if mix is None or score is None or turned or any(edit.types[name].dtype != INT8 for name in (q, k, v)):
        return None
    *outer, rows, size = edit.shape(q)
    same = edit.shape(v) == edit.shape(q) and edit.shape(k) == (*outer, size, rows)
    # Padded keys would have scores, too.
    if not same or rows % TILE or max(rows, size) > MOST_TILES * TILE:
        return None
    return _Heads(q, k, v, score, mix, (prod(outer), rows, size))


def _attend(edit: Edit, heads: _Heads, output: str, platform: Target, engine: Engine) -> bool:
    count, rows, size = heads.shape
    if not _pays((count * rows, size, rows), platform, engine):
        return False
    s, p = rows // TILE, _padded(size) // TILE

    def cut(name: str, shape: tuple[int, int, int], axis: int, perm: tuple[int, ...]) -> str:
        """Heads in tiles: the axis of their size is padded, and the axes `heads, a, TILE, b, TILE` change places."""
        flat = edit.reshape(name, shape)
        if size % TILE:
            pads = [0] * 6
            pads[3 + axis] = p * TILE - size
            flat = edit.emit("Pad", (flat, edit.integers(pads, f"{output}_pads")))
        tiles = [extent // TILE for extent in edit.shape(flat)[1:]]
        split = edit.transpose(edit.reshape(flat, (count, tiles[0], TILE, tiles[1], TILE)), perm)
        first, second, third = edit.shape(split)[:3]
        pair = (first, second * third) if perm[0] else (first * second, third)
        return edit.reshape(split, (*pair, TILE, TILE))

    q = cut(heads.q, (count, rows, size), 2, (1, 0, 3, 2, 4))
    k = cut(heads.turned_k, (count, size, rows), 1, (3, 0, 1, 4, 2))
    v = cut(heads.v, (count, rows, size), 2, (0, 3, 1, 4, 2))
    attributes = {**heads.score.attributes("score_"), **heads.mix.attributes("mix_"), "heads": count}
    (made,) = edit.emit_all("ITAAttention", (q, k, v), (None,), attributes)
    flat = edit.reshape(
        edit.transpose(edit.reshape(made, (s, count, p, TILE, TILE)), (1, 0, 3, 2, 4)), (count, rows, p * TILE)
    )
    if size % TILE:
        ends = [edit.integers((end,), f"{output}_{what}") for what, end in (("from", 0), ("to", size), ("axis", 2))]
        flat = edit.emit("Slice", (flat, *ends))
    edit.reshape(flat, edit.shape(output), output)
    return True
