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
from tilewright.machine.permissions import ITA_SOFTMAX
from tilewright.machine.target import Target
from tilewright.ops.ita_add import IDENTITY as EYE
from tilewright.ops.ita_tiles import GELU, TILE, packed_biases, tiles_of
from tilewright.passes.edit import Edit, rewrite
from tilewright.passes.ita_patterns import (
    MOST,
    FoundHeads,
    LinearLayer,
    Softmax,
    heads_of,
    layer_of,
    projection_of,
    scale_of,
)

SOFTMAX = Softmax("ITASoftmax", {}, octave=1, one=255)
TILED = (0, 2, 1, 3)
"""From `[row tiles, TILE, column tiles, TILE]` to tiles side by side, and back."""


def ita(graph: Graph, platform: Target) -> Graph:
    """The graph with layers on tiles, where an engine takes them and should be faster than the cores."""
    takers = {one.op: engine for engine in platform.engines.values() for one in engine.takes}
    if "ITALinear" not in takers or graph.bounds:
        return graph
    tiling = _Tiling(platform, takers)
    return rewrite(graph, {"RequantShift": tiling.scaled, "ITAGelu": tiling.curved})


def _padded(extent: int) -> int:
    return -(-extent // TILE) * TILE


def _padded_layer(layer: LinearLayer, heads: int = 1, shared: int = 1, fill: int = 0) -> tuple[Array, Array]:
    """Weights and biases with columns of each head that are whole tiles: zero, and `fill`, in channels that are not
    its own. These are behind its own or, where heads share a tile, where the others have theirs."""
    inner, columns = layer.weights.shape
    size = columns // heads
    weights = np.zeros((_padded(inner), heads, _padded(size)), np.int8)
    bias = np.full((heads, _padded(size)), fill, np.int64)
    for head in range(heads):
        own, mine = slice(head % shared * size, (head % shared + 1) * size), slice(head * size, (head + 1) * size)
        weights[:inner, head, own], bias[head, own] = layer.weights[:, mine], layer.bias[mine]
    return weights.reshape(_padded(inner), -1), bias.reshape(-1)


class _Attended(Struct, frozen=True):
    """The result of attention in tiles: heads side by side, each of whole tiles."""

    tiles: str
    heads: FoundHeads
    shared: int
    """Heads that have their channels where they are in a tile of all of these."""


class _Tiling:
    """Layers become nodes on tiles; what lies in tiles, too, is known by its name."""

    def __init__(self, platform: Target, takers: Mapping[str, Engine]) -> None:
        self.platform, self.takers = platform, takers
        self.tiled: dict[str, str] = {}
        self.layers: dict[str, LinearLayer] = {}
        """Layers without activation by their results."""
        self.attended: dict[str, _Attended] = {}
        """Attention by its result."""

    def scaled(self, edit: Edit, node: Node) -> bool:
        output = node.outputs[0]
        readers = edit.readers(output)
        if len(readers) == 1 and readers[0].op == "ITAGelu" and not edit.is_result(output):
            return False
        heads = None
        if "ITAAttention" in self.takers:
            heads = heads_of(edit, node, SOFTMAX, TILE, replace=ITA_SOFTMAX in self.platform.allowed)
        if heads is not None:
            return self._attend(edit, heads, output)
        layer = layer_of(edit, node)
        if layer is not None:
            self.layers[output] = layer
            return self._linear(edit, layer, output, {})
        return "ITAAdd" in self.takers and self._sum(edit, node)

    def curved(self, edit: Edit, node: Node) -> bool:
        before = edit.producer(node.inputs[0], "RequantShift")
        layer = layer_of(edit, before) if before is not None and edit.single(node.inputs[0]) else None
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

    def _linear(self, edit: Edit, layer: LinearLayer, output: str, function: Mapping[str, Attr]) -> bool:
        shape = edit.shape(output)
        rows, (inner, columns) = prod(edit.shape(layer.x)[:-1]), layer.weights.shape
        if not self._pays("ITALinear", (rows, inner, columns)):
            return False
        attributes = {**layer.scale.attributes(), **function}
        joined = self._joined(edit, layer.x)
        if joined is not None:
            # Rows of weights are zero where a head has channels that are not its own.
            x, (count, _, _), shared = joined.tiles, joined.heads.shape, joined.shared
            turned = LinearLayer("", layer.weights.T, np.zeros(inner), layer.scale)
            layer = replace(layer, weights=_padded_layer(turned, count, shared)[0][:columns].T)
        else:
            x = self._tiles(edit, layer.x)
        weights, bias = _padded_layer(layer)
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
        return found if whole and count * _padded(size) <= MOST else None

    def _sum(self, edit: Edit, node: Node) -> bool:
        """A sum of two tensors that lie in tiles."""
        scale, add = scale_of(edit, node), edit.producer(node.inputs[0], "Add")
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

    def _attend(self, edit: Edit, heads: FoundHeads, output: str) -> bool:
        count, rows, size = heads.shape
        if not self._pays("ITAAttention", (count * rows, size, rows)):
            return False
        s, p = rows // TILE, _padded(size) // TILE
        q, k, v = (projection_of(edit, name, heads, self.layers.get) for name in (heads.q, heads.turned_k, heads.v))
        zero = k.scale.zero if k is not None else None
        few = TILE // size if size < TILE and TILE % size == 0 else 1
        shared = few if q is not None and v is not None and zero is not None and count % few == 0 else 1

        def projected(layer: LinearLayer, name: str, heads: int, fill: int = 0, turned: int = 0) -> str:
            shares = shared if heads == count else 1
            weights, bias = _padded_layer(layer, heads, shares, fill)
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
        attributes |= {"heads": count, "shared": shared, "replaces": heads.replaces}
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


def _cut(edit: Edit, name: str, heads: FoundHeads, axis: int, perm: tuple[int, ...]) -> str:
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
