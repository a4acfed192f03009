"""Graphs of language models: some tokens at a time, with a cache of keys and values that grows, as states."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import FLOAT32, INT8, INT32, DType
from tilewright.core.graph import Array, Attr, Bound, Graph, Node, State, TensorType, attrs, type_of_array
from tilewright.core.op import REGISTRY, call_of
from tilewright.core.sizes import extents
from tilewright.language.checkpoint import Checkpoint, ModelSizes
from tilewright.language.quantised import TURN, IntegerModel, Linear, Norm, powers, sigmoids
from tilewright.language.reference import rotations

TOKENS, POSITION, LAST, LOGITS = "tokens", "past", "last", "logits"
WIDE = 1 << 24
"""Levels of what is added to the 16 bits that go along the layers."""


class _Builder:
    """A graph under construction: nodes are added in order, with types from their declarations."""

    def __init__(self, name: str, sizes: ModelSizes, rows: int) -> None:
        self.name, self.sizes, self.rows = name, sizes, rows
        self.bound = Bound(POSITION, 0, sizes.context - rows, 0)
        self.nodes: list[Node] = []
        self.constants: dict[str, Array] = {}
        self.types = {TOKENS: TensorType(INT32, (rows,)), POSITION: TensorType(INT32, ())}
        self.inputs = [*self.types]
        self.states: dict[str, str] = {}
        self.open: dict[str, tuple[tuple[int, str, int], ...]] = {}

    def constant(self, name: str, value: Array) -> str:
        self.constants.setdefault(name, value)
        self.types[name] = type_of_array(value)
        return name

    def fed(self, name: str, kind: TensorType) -> str:
        """A further input."""
        self.inputs.append(name)
        self.types[name] = kind
        return name

    def whole(self, name: str, values: Sequence[int]) -> str:
        return self.constant(name, np.asarray(values, np.int64))

    def add(self, op: str, inputs: Sequence[str], output: str, **attributes: Attr) -> str:
        return self.add_all(op, inputs, (output,), **attributes)[0]

    def add_all(self, op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Attr) -> Sequence[str]:
        types, values = [self.types[name] for name in inputs], [self.constants.get(name) for name in inputs]
        call = call_of(REGISTRY[op], types, attrs(**attributes), values=values, name=outputs[0], wanted=len(outputs))
        self.types |= dict(zip(outputs, call.outputs, strict=True))
        self.nodes.append(Node(op, tuple(inputs), tuple(outputs), attrs(**attributes), outputs[0]))
        return outputs

    def appended(self, name: str, rows: str, dtype: DType, axis: int = 1) -> str:
        """All rows of a cache so far, the new ones included; they follow each other along an axis."""
        shape = list(self.types[rows].shape)
        shape[axis] = self.sizes.context
        self.types[name] = TensorType(dtype, tuple(shape))
        self.states[name], self.open[name] = f"{name}_new", ((axis, POSITION, 0),)
        return self.add("Append", (name, rows, POSITION), f"{name}_new", axis=axis)

    def graph(self, outputs: Sequence[str]) -> Graph:
        states = tuple(State(n, np.zeros(self.types[n].shape, self.types[n].dtype.numpy)) for n in self.states)
        made = Graph(
            self.name,
            (*self.inputs, *self.states),
            (*outputs, *self.states.values()),
            tuple(self.nodes),
            MappingProxyType(self.types),
            MappingProxyType(self.constants),
            states,
            (self.bound,),
            MappingProxyType(self.open),
        )
        extents(made)
        return made


def float_graph(model: Checkpoint, name: str = "model") -> Graph:
    """One token at a time, in floats."""
    sizes, b = model.sizes, _Builder(name, model.sizes, 1)
    cosines, sines = (b.constant(n, t) for n, t in zip(("cosines", "sines"), rotations(sizes), strict=True))
    at = b.add("Reshape", (POSITION, b.whole("one_one", (1, 1))), "at")
    apart, heads = b.whole("apart", (1, sizes.heads, 1, sizes.head)), b.whole("heads", (sizes.heads, 1, sizes.head))
    flat, ones = b.whole("flat", (1, sizes.dim)), b.constant("ones", np.ones(sizes.dim, np.float32))
    scale = b.constant("scale", np.asarray(sizes.head**-0.5, np.float32))

    def norm(x: str, output: str) -> str:
        return b.add("RMSNormalization", (x, ones), output, axis=-1, epsilon=sizes.eps)

    def times(x: str, weight: str, output: str) -> str:
        turned = b.constant(weight, np.ascontiguousarray(model.weights[weight].T))
        return b.add("MatMul", (x, turned), output)

    x = b.add("Gather", (b.constant("table", model.weights["emb"]), TOKENS), "x0", axis=0)
    for number in range(sizes.layers):
        n = f"{number}."
        inner = norm(x, n + "attention_in")
        parts: dict[str, str] = {}
        for part in "qkv":
            row = times(inner, f"{n}w{part}", f"{n}{part}_row")
            if part != "v":
                split = b.add("Reshape", (row, apart), f"{n}{part}_apart")
                row = b.add("RotaryEmbedding", (split, cosines, sines, at), f"{n}{part}_turned")
            parts[part] = b.add("Reshape", (row, heads), f"{n}{part}")
        keys, values = (b.appended(f"{n}{part}_cache", parts[part], FLOAT32) for part in "kv")
        scores = b.add("MatMul", (parts["q"], keys), n + "scores", transB=1)
        weights = b.add("Softmax", (b.add("Mul", (scores, scale), n + "scaled"),), n + "weights", axis=-1)
        mixed = b.add("Reshape", (b.add("MatMul", (weights, values), n + "mixed"), flat), n + "flat")
        x = b.add("Add", (x, times(mixed, n + "wo", n + "attended")), n + "middle")
        inner = norm(x, n + "ffn_in")
        gate = times(inner, n + "gate", n + "gated")
        gate = b.add("Mul", (gate, b.add("Sigmoid", (gate,), n + "sigmoid")), n + "silu")
        hidden = b.add("Mul", (gate, times(inner, n + "up", n + "upper")), n + "hidden")
        x = b.add("Add", (x, times(hidden, n + "down", n + "fed")), n + "x")
    return b.graph([times(norm(x, "head_in"), "emb", LOGITS)])


def integer_graph(model: IntegerModel, rows: int = 1, name: str = "model", *, only_last: bool = False) -> Graph:
    """`rows` tokens at a time, in integers.

    With `only_last` there are logits of one row, which a further input names: tokens behind it may be anything. What
    they leave in the caches is never seen, because no query sees rows behind its own, and the next run begins there.
    """
    sizes = model.sizes
    b = _Builder(name, sizes, rows)
    at = b.add("Reshape", (POSITION, b.whole("one_row", (1,))), "at")
    at = b.add("Add", (at, b.constant("rows", np.arange(rows, dtype=np.int32))), "places") if rows > 1 else at
    tables = zip(("cosines", "sines"), model.tables(), strict=True)
    cosines, sines = (b.add("Gather", (b.constant(n, t), at), f"{n}_here", axis=0) for n, t in tables)
    weights_of, sigmoid = b.constant("powers", powers()), b.constant("sigmoids", sigmoids())
    none, one = (b.constant(f"just_{value}", np.asarray(value, np.int32)) for value in (0, 1))
    heads = b.whole("heads", (rows, sizes.heads, sizes.head))

    def norm(x: str, by: Norm, output: str) -> str:
        weights = b.constant(f"{output}_weights", by.weights)
        return b.add("iRMSNorm", (x, weights), output, D=1 << by.shift, n_levels=256)

    def times(x: str, by: Linear, output: str, levels: int) -> str:
        names = (f"{output}_{part}" for part in ("weights", "mul", "add"))
        weights, mul, add = (b.constant(n, a) for n, a in zip(names, (by.weights, by.mul, by.add), strict=True))
        sums = b.add("MatMul", (x, weights), f"{output}_sums")
        return b.add("RequantShift", (sums, mul, add), output, div=1 << by.shift, n_levels=levels, axis=-1)

    table, factors = b.constant("table", model.embedding), b.constant("factors", model.embedding_mul.reshape(-1, 1))
    row, factor = b.add("Gather", (table, TOKENS), "row", axis=0), b.add("Gather", (factors, TOKENS), "factor", axis=0)
    x = b.add("RequantShift", (row, factor, none), "x0", div=1 << model.embedding_shift, n_levels=1 << 16)

    def plus(x: str, more: str, output: str) -> str:
        total = b.add("Add", (x, more), f"{output}_wide", widen=1)
        return b.add("RequantShift", (total, one, none), output, div=1, n_levels=1 << 16)

    def rotated(inner: str, by: Linear, name: str, count: int) -> str:
        raw = times(inner, by, f"{name}_raw", 1 << 16)
        return b.add("iRotary", (raw, cosines, sines, none), name, heads=count, shift=TURN + 8)

    def turned(inner: str, both: Linear, n: str) -> Sequence[str]:
        return [rotated(inner, part, n + name, sizes.heads) for name, part in zip("qk", both.halves, strict=True)]

    for number, layer in enumerate(model.layers):
        n = f"{number}."
        inner = norm(x, layer.attention_norm, n + "attention_in")
        query, key = turned(inner, layer.turned, n)
        row = b.add("Reshape", (times(inner, layer.values, n + "v_row", 256), heads), n + "v_heads")
        value = b.add("Transpose", (row,), n + "v", perm=(1, 2, 0))
        b.appended(n + "k_cache", key, INT8)
        b.appended(n + "v_cache", value, INT8, axis=2)
        by = (
            b.constant(n + "score_mul", layer.score_mul),
            weights_of,
            b.constant(n + "mean_mul", layer.mean_mul.reshape(sizes.heads, sizes.head)),
        )
        shifts = {"score_shift": layer.score_shift, "mean_shift": layer.mean_shift}
        rows_of = (query, n + "k_cache", n + "v_cache", key, value)
        mixed = b.add("iAttention", (*rows_of, *by), n + "mixed", **shifts)
        x = plus(x, times(mixed, layer.output, n + "attended", WIDE), n + "middle")
        inner = norm(x, layer.ffn_norm, n + "ffn_in")
        gate = times(inner, layer.gate, n + "gate", 1 << 16)
        # What is behind the first product is computed beside the second one, before that is scaled and multiplied.
        opened = b.add("iSiLU", (gate, sigmoid), n + "opened", step=layer.step)
        up = times(inner, layer.up, n + "up", 1 << 16)
        product = b.add("Mul", (opened, up), n + "product", widen=1)
        scale = {"div": 1 << layer.hidden_shift, "n_levels": 256, "x_limit": 1 << 30}
        hidden = b.add("RequantShift", (product, one, none), n + "hidden", **scale)
        x = plus(x, times(hidden, layer.down, n + "fed", WIDE), n + "x")
    if only_last:
        x = b.add("Gather", (x, b.fed(LAST, TensorType(INT32, (1,)))), "last_x", axis=0)
    return b.graph([times(norm(x, model.norm, "head_in"), model.head, LOGITS, 1 << 16)])
