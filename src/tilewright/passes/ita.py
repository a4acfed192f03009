"""Linear layers and attention as an engine takes them that works on tiles: ITA.

A product with a bias, a requantisation and perhaps a GELU behind it becomes one node on tiles, between nodes that cut
its input into tiles and put the result together; so do the products and the softmax of attention, and sums of what lies
in tiles anyway. What is padded to whole tiles adds nothing to sums. From one such layer to the next results stay in
tiles, and so do heads: the layers before and behind attention have weights for heads of whole tiles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tilewright.base.dtype import INT8
from tilewright.core.graph import Array, Attr, Graph, Node
from tilewright.machine.parts import Engine
from tilewright.machine.target import Target
from tilewright.ops.integer_rules import power_of_two
from tilewright.ops.ita_add import IDENTITY as EYE
from tilewright.ops.ita_rules import requantised
from tilewright.ops.ita_tiles import BIAS_BITS, GELU, MOST_TILES, TILE, packed_biases, tiles_of
from tilewright.ops.requant_shift import levels_of
from tilewright.passes.edit import Edit, rewrite
from tilewright.passes.match import operands

TILED = (0, 2, 1, 3)
"""From `[row tiles, TILE, column tiles, TILE]` to tiles side by side, and back."""


def ita(graph: Graph, platform: Target) -> Graph:
    """The graph with layers on tiles, where an engine takes them and should be faster than the cores."""
    takers = {one.op: engine for engine in platform.engines.values() for one in engine.takes}
    if "ITALinear" not in takers or graph.bounds:
        return graph
    tiling = _Tiling(platform, takers)
    return rewrite(graph, {"RequantShift": tiling.scaled, "ITAGelu": tiling.curved})


class _Scale(Struct, frozen=True):
    mult: int
    shift: int
    add: int

    @property
    def zero(self) -> int | None:
        """A sum that becomes zero; None where there is none among biases."""
        found = round(-self.add * 2**self.shift / self.mult) if self.mult else 0
        made = requantised(np.array(found), self.mult, self.shift, self.add)
        return found if made == 0 and abs(found) < 1 << BIAS_BITS - 1 else None

    def attributes(self, prefix: str = "") -> dict[str, Attr]:
        return {f"{prefix}mult": self.mult, f"{prefix}shift": self.shift, f"{prefix}add": self.add}


class _Layer(Struct, frozen=True):
    x: str
    weights: Array
    """Of all heads side by side."""
    bias: Array
    scale: _Scale
    heads: int = 0
    """The first axis of the result, where it has heads there."""

    def padded(self, heads: int = 1, shared: int = 1, fill: int = 0) -> tuple[Array, Array]:
        """Weights and biases with columns of each head that are whole tiles: zero, and `fill`, in channels that are not
        its own. These are behind its own or, where heads share a tile, where the others have theirs."""
        inner, columns = self.weights.shape
        size = columns // heads
        weights = np.zeros((_padded(inner), heads, _padded(size)), np.int8)
        bias = np.full((heads, _padded(size)), fill, np.int64)
        for head in range(heads):
            own, mine = slice(head % shared * size, (head % shared + 1) * size), slice(head * size, (head + 1) * size)
            weights[:inner, head, own], bias[head, own] = self.weights[:, mine], self.bias[mine]
        return weights.reshape(_padded(inner), -1), bias.reshape(-1)


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
        if not whole or weights is None or weights.dtype != np.int8:
            continue
        heads = weights.shape[0] if weights.ndim == 3 and prod(edit.shape(x)[:-2]) == 1 else 0
        if weights.ndim != (3 if heads else 2):
            continue
        weights = weights.swapaxes(0, 1).reshape(weights.shape[1], -1) if heads else weights
        if weights.shape[0] > MOST_TILES * TILE or np.abs(bias.astype(np.int64)).max(initial=0) >= 1 << BIAS_BITS - 1:
            continue
        if bias.size in (1, weights.shape[1]):
            return _Layer(x, weights, np.broadcast_to(bias.reshape(-1), weights.shape[1:]), scale, heads)
    return None


def _sums(edit: Edit, name: str) -> list[tuple[str, Array]]:
    """Readings of a tensor as sums and a constant bias."""
    add = edit.producer(name, "Add")
    pairs = operands(add) if add is not None and edit.single(name) else ()
    found = [(sums, edit.constants[bias]) for sums, bias in pairs if bias in edit.constants]
    return [*found, (name, np.zeros(1, np.int64))]


def _padded(extent: int) -> int:
    return -(-extent // TILE) * TILE


class _Heads(Struct, frozen=True):
    """Attention: `[heads, rows, size]`, keys turned, and how scores and results are scaled."""

    q: str
    turned_k: str
    v: str
    score: _Scale
    mix: _Scale
    shape: tuple[int, int, int]


class _Attended(Struct, frozen=True):
    """The result of attention in tiles: heads side by side, each of whole tiles."""

    tiles: str
    heads: _Heads
    shared: int
    """Heads that have their channels where they are in a tile of all of these."""


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


class _Tiling:
    """Layers become nodes on tiles; what lies in tiles, too, is known by its name."""

    def __init__(self, platform: Target, takers: Mapping[str, Engine]) -> None:
        self.platform, self.takers = platform, takers
        self.tiled: dict[str, str] = {}
        self.layers: dict[str, _Layer] = {}
        """Layers without activation by their results."""
        self.attended: dict[str, _Attended] = {}
        """Attention by its result."""

    def scaled(self, edit: Edit, node: Node) -> bool:
        output = node.outputs[0]
        readers = edit.readers(output)
        if len(readers) == 1 and readers[0].op == "ITAGelu" and not edit.is_result(output):
            return False
        heads = _heads(edit, node) if "ITAAttention" in self.takers else None
        if heads is not None:
            return self._attend(edit, heads, output)
        layer = _layer(edit, node)
        if layer is not None:
            self.layers[output] = layer
            return self._linear(edit, layer, output, {})
        return "ITAAdd" in self.takers and self._sum(edit, node)

    def curved(self, edit: Edit, node: Node) -> bool:
        before = edit.producer(node.inputs[0], "RequantShift")
        layer = _layer(edit, before) if before is not None and edit.single(node.inputs[0]) else None
        names = {"b": "b", "c": "c", "mult": "act_mult", "shift": "act_shift", "add": "act_add"}
        function: dict[str, Attr] = {ours: edit.call(node).int(theirs) for theirs, ours in names.items()}
        function["activation"] = GELU
        return layer is not None and self._linear(edit, layer, node.outputs[0], function)

    def _pays(self, op: str, sizes: Sequence[int]) -> bool:
        """Whether whole tiles take the engine less time at its best than a product takes the cores at theirs."""
        peak, cores = self.takers[op].peak, self.platform.cores.count * self.platform.cores.peak
        return not cores or not peak or prod(map(_padded, sizes)) / peak < prod(sizes) / cores

    def _tiles(self, edit: Edit, name: str) -> str:
        """A tensor in tiles, with zeros behind its rows and columns."""
        if name not in self.tiled:
            rows, columns = prod(edit.shape(name)[:-1]), edit.shape(name)[-1]
            flat, m, n = edit.reshape(name, (rows, columns)), _padded(rows), _padded(columns)
            if (m, n) != (rows, columns):
                flat = edit.emit("Pad", (flat, edit.integers((0, 0, m - rows, n - columns), f"{name}_pads")))
            self.tiled[name] = edit.transpose(edit.reshape(flat, (m // TILE, TILE, n // TILE, TILE)), TILED)
        return self.tiled[name]

    def _plain(self, edit: Edit, made: str, shape: tuple[int, ...], output: str = "") -> str:
        """The rows and columns that tiles hold, as a tensor."""
        rows, columns = prod(shape[:-1]), shape[-1]
        m, n = (extent * TILE for extent in edit.shape(made)[:2])
        flat = edit.reshape(edit.transpose(made, TILED), (m, n))
        if (m, n) != (rows, columns):
            ends = [edit.integers(to, f"{made}_{what}") for what, to in (("from", (0, 0)), ("to", (rows, columns)))]
            flat = edit.emit("Slice", (flat, *ends))
        return edit.reshape(flat, shape, output)

    def _product(
        self, edit: Edit, x: str, weights: Array, bias: Array, attributes: Mapping[str, Attr], hint: str
    ) -> str:
        """A linear layer on tiles; weights are whole tiles."""
        turned = bool(attributes.get("turned"))
        w = edit.constant(tiles_of(np.ascontiguousarray(weights.T)), f"{hint}_tiles")
        b = edit.constant(packed_biases(bias), f"{hint}_biases")
        (made,) = edit.emit_all("ITALinear", (w, x, b) if turned else (x, w, b), (None,), attributes)
        return made

    def _linear(self, edit: Edit, layer: _Layer, output: str, function: Mapping[str, Attr]) -> bool:
        shape = edit.shape(output)
        rows, (inner, columns) = prod(edit.shape(layer.x)[:-1]), layer.weights.shape
        if not self._pays("ITALinear", (rows, inner, columns)):
            return False
        attributes = {**layer.scale.attributes(), **function}
        joined = self._joined(edit, layer.x)
        if joined is not None:
            # Rows of weights are zero where a head has channels that are not its own.
            x, (count, _, _), shared = joined.tiles, joined.heads.shape, joined.shared
            turned = _Layer("", layer.weights.T, np.zeros(inner), layer.scale)
            layer = replace(layer, weights=turned.padded(count, shared)[0][:columns].T)
        else:
            x = self._tiles(edit, layer.x)
        weights, bias = layer.padded()
        made = self._product(edit, x, weights, bias, attributes, output)
        if layer.heads:
            side_by_side = edit.reshape(
                self._plain(edit, made, (rows, columns)), (rows, layer.heads, columns // layer.heads)
            )
            edit.reshape(edit.transpose(side_by_side, (1, 0, 2)), shape, output)
        else:
            self.tiled[output] = made
            self._plain(edit, made, shape, output)
        return True

    def _joined(self, edit: Edit, name: str) -> _Attended | None:
        """The result of attention whose heads a tensor has side by side."""
        view = edit.producer(name, "Reshape")
        turn = edit.producer(view.inputs[0], "Transpose") if view is not None else None
        found = self.attended.get(turn.inputs[0]) if turn is not None else None
        if found is None or turn is None or edit.call(turn).ints("perm") != (0, 2, 1, 3):
            return None
        count, rows, size = found.heads.shape
        whole = edit.shape(name)[-1] == count * size and prod(edit.shape(name)[:-1]) == rows
        return found if whole and count * _padded(size) <= MOST_TILES * TILE else None

    def _sum(self, edit: Edit, node: Node) -> bool:
        """A sum of two tensors that lie in tiles."""
        scale, add = _scale(edit, node), edit.producer(node.inputs[0], "Add")
        if scale is None or add is None or any(name not in self.tiled for name in add.inputs):
            return False
        shape, output = edit.shape(node.outputs[0]), node.outputs[0]
        if any(edit.shape(name) != shape or edit.types[name].dtype != INT8 for name in add.inputs):
            return False
        a, b = (self.tiled[name] for name in add.inputs)
        attributes = scale.attributes()
        (made,) = edit.emit_all("ITAAdd", (a, b, edit.constant(EYE, "identity")), (None,), attributes)
        self.tiled[output] = made
        self._plain(edit, made, shape, output)
        return True

    def _attend(self, edit: Edit, heads: _Heads, output: str) -> bool:
        count, rows, size = heads.shape
        if not self._pays("ITAAttention", (count * rows, size, rows)):
            return False
        s, p = rows // TILE, _padded(size) // TILE
        q, k, v = (self._projection(edit, name, heads) for name in (heads.q, heads.turned_k, heads.v))
        zero = k.scale.zero if k is not None else None
        few = TILE // size if size < TILE and TILE % size == 0 else 1
        shared = few if q is not None and v is not None and zero is not None and count % few == 0 else 1

        def projected(layer: _Layer, name: str, heads: int, fill: int = 0, turned: int = 0) -> str:
            shares = shared if heads == count else 1
            weights, bias = layer.padded(heads, shares, fill)
            attributes = {**layer.scale.attributes(), "turned": turned}
            return self._product(edit, self._tiles(edit, layer.x), weights, bias, attributes, name)

        # Padded channels add nothing to scores, as keys are zero there, and those of values nobody reads.
        wide = count if shared == 1 else 1
        tiles_q = projected(q, heads.q, wide) if q is not None else _cut(edit, heads.q, heads, 2, (1, 0, 3, 2, 4))
        tiles_k = (
            projected(k, heads.turned_k, count, zero)
            if k is not None and zero is not None
            else _cut(edit, heads.turned_k, heads, 1, (3, 0, 1, 4, 2))
        )
        tiles_v = (
            projected(v, heads.v, wide, turned=1) if v is not None else _cut(edit, heads.v, heads, 2, (0, 3, 1, 4, 2))
        )
        attributes = {**heads.score.attributes("score_"), **heads.mix.attributes("mix_")}
        attributes |= {"heads": count, "shared": shared}
        (made,) = edit.emit_all("ITAAttention", (tiles_q, tiles_k, tiles_v), (None,), attributes)
        self.attended[output] = _Attended(made, heads, shared)
        split = edit.transpose(edit.reshape(made, (s, count // shared, shared, p, TILE, TILE)), (1, 2, 0, 4, 3, 5))
        flat = edit.reshape(split, (count // shared, shared, rows, p * TILE))
        if size % TILE:
            axes = edit.integers((1, 3), f"{output}_axes")
            own = [
                edit.emit(
                    "Slice",
                    (
                        flat,
                        edit.integers((head, head * size), f"{output}_from"),
                        edit.integers((head + 1, (head + 1) * size), f"{output}_to"),
                        axes,
                    ),
                )
                for head in range(shared)
            ]
            flat = edit.emit("Concat", own, axis=1) if shared > 1 else own[0]
        edit.reshape(flat, edit.shape(output), output)
        return True

    def _projection(self, edit: Edit, name: str, heads: _Heads) -> _Layer | None:
        """The linear layer that makes heads."""
        count, rows, size = heads.shape
        keys = name == heads.turned_k
        turn = edit.producer(name, "Transpose")
        perm = edit.call(turn).ints("perm") if turn is not None else ()
        view = edit.producer(turn.inputs[0], "Reshape") if turn is not None else None
        if turn is not None and keys and perm == (0, 2, 1):
            layer, first = self.layers.get(turn.inputs[0]), count
        elif view is not None and perm == ((0, 2, 3, 1) if keys else (0, 2, 1, 3)):
            whole = edit.shape(view.outputs[0])[-3:] == (rows, count, size)
            layer, first = self.layers.get(view.inputs[0]) if whole else None, 0
        else:
            layer, first = None if keys else self.layers.get(name), count
        same = layer is not None and layer.heads == first and prod(edit.shape(layer.x)[:-1]) == rows
        return layer if same else None


def _cut(edit: Edit, name: str, heads: _Heads, axis: int, perm: tuple[int, ...]) -> str:
    """Heads in tiles: the axis of their size is padded, and the axes `heads, a, TILE, b, TILE` change places."""
    count, rows, size = heads.shape
    flat = edit.reshape(name, (count, rows, size) if axis == 2 else (count, size, rows))
    if size % TILE:
        pads = [0] * 6
        pads[3 + axis] = _padded(size) - size
        flat = edit.emit("Pad", (flat, edit.integers(pads, f"{name}_pads")))
    tiles = [extent // TILE for extent in edit.shape(flat)[1:]]
    split = edit.transpose(edit.reshape(flat, (count, tiles[0], TILE, tiles[1], TILE)), perm)
    first, second, third = edit.shape(split)[:3]
    pair = (first, second * third) if perm[0] else (first * second, third)
    return edit.reshape(split, (*pair, TILE, TILE))
