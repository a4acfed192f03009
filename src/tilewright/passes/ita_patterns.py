"""Linear layers and attention in a network, with numbers that fit ITA."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import log, log2, prod

import numpy as np
from msgspec import Struct

from tilewright.base.dtype import INT8
from tilewright.core.graph import Array, Attr, Node
from tilewright.core.op import Call
from tilewright.ops.integer_rules import power_of_two
from tilewright.ops.ita_rules import requantised
from tilewright.ops.ita_tiles import BIAS_BITS, MOST_TILES, TILE
from tilewright.ops.requant_shift import levels_of
from tilewright.passes.edit import Edit
from tilewright.passes.match import operands

MULT_BITS = 8
MOST = MOST_TILES * TILE
"""Products of a sum, and rows of attention."""


class Scale(Struct, frozen=True):
    """Times `mult` over two to the power of `shift`, and `add`."""

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


class LinearLayer(Struct, frozen=True):
    """A linear layer."""

    x: str
    weights: Array
    """Of all heads side by side."""
    bias: Array
    scale: Scale
    heads: int = 0
    """The first axis of the result, where it has heads there."""


class Softmax(Struct, frozen=True):
    """The arithmetic of a softmax on integers."""

    op: str
    attrs: Mapping[str, Attr]
    octave: float
    """Steps of scores for a factor of two."""
    one: float
    """What stands for one in its result."""


class FoundHeads(Struct, frozen=True):
    """Attention: `[heads, rows, size]`, keys turned, and how scores and results are scaled."""

    q: str
    turned_k: str
    v: str
    score: Scale
    mix: Scale
    shape: tuple[int, int, int]
    replaces: str = ""
    """The operator of a softmax whose place another arithmetic takes."""


def scale_of(edit: Edit, node: Node, add_bits: int = INT8.bits) -> Scale | None:
    """The numbers of a requantisation, where ITA has such, with so many bits of what is added."""
    call = edit.call(node)
    mult, add = (edit.uniform(name) for name in node.inputs[1:3])
    shift = power_of_two(call, "div")
    plain = _signed(call) and not call.int("half_to_even") and not call.int("zero_point")
    if not plain or mult is None or add is None or not 0 <= mult < 1 << MULT_BITS or shift >= BIAS_BITS:
        return None
    offset, rest = divmod(int(add), 1 << shift)
    return None if rest or not _has_bits(offset, add_bits) else Scale(int(mult), shift, offset)


def _has_bits(offset: int, bits: int) -> bool:
    return -(1 << bits - 1) <= offset < 1 << bits - 1


def _signed(call: Call) -> bool:
    return call.int("signed") != 0 and levels_of(call) == 1 << INT8.bits


def layer_of(edit: Edit, node: Node, add_bits: int = INT8.bits) -> LinearLayer | None:
    """The linear layer that a requantisation ends; None where ITA has no such numbers."""
    scale = scale_of(edit, node, add_bits)
    if scale is None:
        return None
    for sums, bias in sums_of(edit, node.inputs[0]):
        product = edit.producer(sums, "MatMul")
        if product is None or not _plain(edit, product):
            continue
        x, weights = product.inputs[0], edit.constants.get(product.inputs[1])
        whole = edit.types[x].dtype == INT8 and edit.types[x].rank >= 2
        if not whole or weights is None or weights.dtype != np.int8:
            continue
        heads = weights.shape[0] if weights.ndim == 3 and prod(edit.shape(x)[:-2]) == 1 else 0
        if weights.ndim != (3 if heads else 2):
            continue
        weights = weights.swapaxes(0, 1).reshape(weights.shape[1], -1) if heads else weights
        if weights.shape[0] > MOST or np.abs(bias.astype(np.int64)).max(initial=0) >= 1 << BIAS_BITS - 1:
            continue
        if bias.size in (1, weights.shape[1]):
            return LinearLayer(x, weights, np.broadcast_to(bias.reshape(-1), weights.shape[1:]), scale, heads)
    return None


def sums_of(edit: Edit, name: str) -> list[tuple[str, Array]]:
    """Readings of a tensor as sums and a constant bias."""
    add = edit.producer(name, "Add")
    pairs = operands(add) if add is not None and edit.single(name) else ()
    found = [(sums, edit.constants[bias]) for sums, bias in pairs if bias in edit.constants]
    return [*found, (name, np.zeros(1, np.int64))]


def _plain(edit: Edit, product: Node, *but: str) -> bool:
    """Whether a product has nothing but two operands, and perhaps what is named."""
    names = {"transA", "transB", "a_zero_point", "b_zero_point"} - {*but}
    return len(product.inputs) == 2 and not any(edit.call(product).attrs.get(name) for name in names)


def heads_of(
    edit: Edit, node: Node, softmax: Softmax, step: int, add_bits: int = INT8.bits, *, replace: bool
) -> FoundHeads | None:
    """The attention that a requantisation ends; None where it is none, or not one for ITA.

    Rows are a multiple of `step`. With `replace`, its softmax may be another one.
    """
    product = edit.producer(node.inputs[0], "MatMul")
    found = _softmax_of(edit, product.inputs[0]) if product is not None else None
    if product is None or found is None:
        return None
    same = found[0].op == softmax.op and dict(found[0].attrs) == dict(softmax.attrs)
    before = edit.producer(found[1], "RequantShift")
    scores = edit.producer(before.inputs[0], "MatMul") if before is not None else None
    if before is None or scores is None or not (same or replace):
        return None
    (q, k), v = scores.inputs[:2], product.inputs[1]
    plain = _plain(edit, scores) and _plain(edit, product, *(() if same else ("a_zero_point",)))
    if not plain or any(edit.types[name].dtype != INT8 for name in (q, k, v)):
        return None
    *outer, rows, size = edit.shape(q)
    square = edit.shape(v) == edit.shape(q) and edit.shape(k) == (*outer, size, rows)
    # Padded keys would have scores, too.
    if not square or rows % step or max(rows, size) > MOST:
        return None
    if same:
        score, mix = scale_of(edit, before, add_bits), scale_of(edit, node, add_bits)
    else:
        score = _rescaled(edit, before, softmax.octave / found[0].octave, add_bits, scores=True)
        mix = _rescaled(edit, node, found[0].one / softmax.one, add_bits)
    if score is None or mix is None:
        return None
    return FoundHeads(q, k, v, score, mix, (prod(outer), rows, size), "" if same else found[0].op)


def _softmax_of(edit: Edit, name: str) -> tuple[Softmax, str] | None:
    """The softmax whose result a tensor is, and its scores."""
    node = edit.producer(name, "ITASoftmax", "ITAPartialMax", "ITAMax", "iSoftmax", "QuantizeLinear")
    if node is None:
        return None
    call, x = edit.call(node), node.inputs[0]
    match node.op:
        case "ITASoftmax":
            return Softmax(node.op, {}, octave=1, one=255), x
        case "ITAPartialMax":
            attrs = {name: call.int(name) for name in ("group_width", "n_levels", "term_bits")}
            return Softmax(node.op, attrs, 32, call.int("n_levels") // 2 - 1), x
        case "ITAMax":
            return Softmax(node.op, {}, 32, call.int("n_levels") - 1), x
        case "iSoftmax":
            return Softmax(node.op, {}, call.int("log2"), call.int("n_levels") - 1), x
        case _:
            real, unit = edit.producer(x, "Softmax"), edit.uniform(node.inputs[1])
            step = edit.call(real).float("x_scale") if real is not None and "x_scale" in real.attrs else 0.0
            if real is None or not unit or step <= 0 or edit.call(real).int("axis") not in (-1, edit.types[x].rank - 1):
                return None
            return Softmax("Softmax", {}, log(2) / step, 1 / unit), real.inputs[0]


def _rescaled(edit: Edit, node: Node, ratio: float, add_bits: int, *, scores: bool = False) -> Scale | None:
    """A requantisation with another factor, as near as eight bits come.

    The zero point of `scores` is left out, as a softmax does not see what all of a row have in common.
    """
    call = edit.call(node)
    as_it_is = scale_of(edit, node, add_bits) if ratio == 1 else None
    if as_it_is is not None:
        return as_it_is
    mult, add = (edit.uniform(name) for name in node.inputs[1:3])
    if mult is None or add is None or mult <= 0 or not (scores or _signed(call)):
        return None
    div = 1 << power_of_two(call, "div")
    offset = round(add / div * ratio) if scores else round(add / div) + call.int("zero_point")
    factor = mult / div * ratio
    shift = min(MULT_BITS - 1 - int(np.floor(log2(factor))), BIAS_BITS - 1)
    near = round(factor * 2.0**shift)
    if near >= 1 << MULT_BITS:
        shift, near = shift - 1, round(factor * 2.0 ** (shift - 1))
    return Scale(near, shift, offset) if shift >= 0 and near and _has_bits(offset, add_bits) else None


def projection_of(
    edit: Edit, name: str, heads: FoundHeads, layer_at: Callable[[str], LinearLayer | None]
) -> LinearLayer | None:
    """The linear layer that makes heads; `layer_at` is the one that a tensor is the result of."""
    count, rows, size = heads.shape
    keys = name == heads.turned_k
    turn = edit.producer(name, "Transpose")
    perm = edit.call(turn).ints("perm") if turn is not None else ()
    view = edit.producer(turn.inputs[0], "Reshape") if turn is not None else None
    if turn is not None and keys and perm == (0, 2, 1):
        layer, first = layer_at(turn.inputs[0]), count
    elif view is not None and perm == ((0, 2, 3, 1) if keys else (0, 2, 1, 3)):
        whole = edit.shape(view.outputs[0])[-3:] == (rows, count, size)
        layer, first = layer_at(view.inputs[0]) if whole else None, 0
    else:
        layer, first = None if keys else layer_at(name), count
    same = layer is not None and layer.heads == first and prod(edit.shape(layer.x)[:-1]) == rows
    return layer if same else None
