"""Attention: scaled dot products, softmax, weighted values; grouped heads, masks, caches, as ONNX defines it.

Heads are split into KV groups of G query heads that share keys and values. L counts cached positions and new ones.
"""

from __future__ import annotations

from math import sqrt
from types import MappingProxyType

import numpy as np
from msgspec import Struct

from tilewright.base.dtype import BOOL
from tilewright.core.domain import Affine, Axis, Domain, at, dim, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import REGISTRY, Call, Example, Operator, declare, example
from tilewright.ops.normalization import check_float
from tilewright.ops.sampling import resized_by_domain


class Heads(Struct, frozen=True):
    """Sizes of an attention call."""

    batch: int
    kv: int
    group: int
    queries: int
    past: int
    fresh: int
    size: int
    value_size: int

    @property
    def total(self) -> int:
        return self.past + self.fresh

    @property
    def count(self) -> int:
        return self.kv * self.group


def _heads(call: Call) -> Heads:
    q, k, v = call.shape("Q"), call.shape("K"), call.shape("V")
    past = call.shape("past_key")[2] if call.has("past_key") else 0
    if {len(q), len(k), len(v)} == {4}:
        kv, count, last = k[1], q[1], (q[3], v[3])
        batch, queries, fresh = q[0], q[2], k[2]
        sizes = (k[0], v[0], v[1], v[2], k[3])
        wanted = (batch, batch, kv, fresh, q[3])
    elif {len(q), len(k), len(v)} == {3}:
        kv, count = call.int("kv_num_heads"), call.int("q_num_heads")
        if kv < 1 or count < 1 or q[2] % count or k[2] % kv or v[2] % kv:
            raise call.error(
                "shape-mismatch", f"{count} and {kv} heads do not divide Q {list(q)}, K {list(k)}, V {list(v)}"
            )
        last = (q[2] // count, v[2] // kv)
        batch, queries, fresh = q[0], q[1], k[1]
        sizes = (k[0], v[0], v[1], k[2] // kv)
        wanted = (batch, batch, fresh, last[0])
    else:
        raise call.error(
            "shape-mismatch", f"Q, K and V need three or four axes each, found {len(q)}, {len(k)}, {len(v)}"
        )
    if sizes != wanted or kv < 1 or count % kv:
        raise call.error("shape-mismatch", f"Q {list(q)}, K {list(k)} and V {list(v)} do not fit together")
    return Heads(batch, kv, count // kv, queries, past, fresh, *last)


def _mask_shape(call: Call) -> tuple[int, ...]:
    """The mask's shape with four axes."""
    shape = call.shape("attn_mask")
    return (1,) * (4 - len(shape)) + shape


def _check_operands(call: Call, heads: Heads) -> None:
    if call.has("past_key") != call.has("past_value"):
        raise call.error("missing-input", "past_key and past_value come together")
    wanted = {
        "past_key": (heads.batch, heads.kv, heads.past, heads.size),
        "past_value": (heads.batch, heads.kv, heads.past, heads.value_size),
        "nonpad_kv_seqlen": (heads.batch,),
    }
    for name, shape in wanted.items():
        if call.has(name) and call.shape(name) != shape:
            raise call.error("shape-mismatch", f"{name} {call.type(name)} needs the shape {list(shape)}")
    if call.has("attn_mask"):
        mask = call.type("attn_mask")
        full = (heads.batch, heads.count, heads.queries)
        fits = 2 <= mask.rank <= 4 and all(e in (1, f) for e, f in zip(_mask_shape(call)[:3], full, strict=True))
        if not fits or mask.shape[-1] > heads.total or (mask.dtype != BOOL and not mask.dtype.is_float):
            raise call.error("shape-mismatch", f"attn_mask {mask} does not fit scores {[*full, heads.total]}")


def _infer(call: Call) -> tuple[TensorType, ...]:
    q, heads = check_float(call, "Q"), _heads(call)
    _check_operands(call, heads)
    if len(q.shape) == 4:
        result = (heads.batch, heads.count, heads.queries, heads.value_size)
    else:
        result = (heads.batch, heads.queries, heads.count * heads.value_size)
    key = call.type("K").with_shape((heads.batch, heads.kv, heads.total, heads.size))
    value = call.type("V").with_shape((heads.batch, heads.kv, heads.total, heads.value_size))
    scores = q.with_shape((heads.batch, heads.count, heads.queries, heads.total))
    return (call.type("V").with_shape(result), key, value, scores)[: call.wanted]


def _domain(call: Call) -> Domain:
    heads = _heads(call)
    b, kv, s, pos, d, dv = (dim(name) for name in ("BATCH", "KV", "S", "L", "D", "DV"))
    head = kv * heads.group + dim("G")
    fresh = pos - heads.past

    def packed(which: Affine, position: Affine, inner: Affine, size: int) -> list[Axis]:
        return [b, which, position, inner] if call.type("Q").rank == 4 else [b, position, which * size + inner]

    access: dict[str, list[Axis]] = {
        "Q": packed(head, s, d, heads.size),
        "K": packed(kv, fresh, d, heads.size),
        "V": packed(kv, fresh, dv, heads.value_size),
        "past_key": [b, kv, pos, d],
        "past_value": [b, kv, pos, dv],
        "nonpad_kv_seqlen": [b],
        "Y": packed(head, s, dv, heads.value_size),
        "present_key": [b, kv, pos, d],
        "present_value": [b, kv, pos, dv],
        "qk_matmul_output": [b, head, s, pos],
    }
    if call.has("attn_mask"):
        shape = _mask_shape(call)
        lead: list[Axis] = [at(0) if e == 1 else axis for e, axis in zip(shape[:3], (b, head, s), strict=True)]
        access["attn_mask"] = [*lead, pos][4 - call.type("attn_mask").rank :]
    outputs = call.op.output_names(len(call.outputs))
    used = {name: axes for name, axes in access.items() if name in outputs or call.has(name)}
    sizes = {
        "BATCH": heads.batch,
        "KV": heads.kv,
        "G": heads.group,
        "S": heads.queries,
        "L": heads.total,
        "D": heads.size,
        "DV": heads.value_size,
    }
    shapes = {name: call.shape(name) for name in used}
    return domain(sizes, used, shapes, " ".join(outputs), whole="L D DV", products={"HEADS": ["KV", "G"]})


def _scale(call: Call, heads: Heads) -> float:
    return 1 / sqrt(heads.size) if call.attrs.get("scale") is None else call.float("scale")


def _numbers(call: Call) -> dict[str, int | float]:
    """Element strides of each operand per batch, head and position, mask strides (0 where it broadcasts), and SCALE."""
    heads = _heads(call)
    numbers: dict[str, int | float] = {"SCALE": _scale(call, heads), "PAST": heads.past}
    for name, count, length, size in (
        ("Q", heads.count, heads.queries, heads.size),
        ("K", heads.kv, heads.fresh, heads.size),
        ("V", heads.kv, heads.fresh, heads.value_size),
        ("Y", heads.count, heads.queries, heads.value_size),
    ):
        inner = (length * size, size) if call.type("Q").rank == 4 else (size, count * size)
        numbers |= {f"{name}_BATCH": count * length * size, f"{name}_HEAD": inner[0], f"{name}_ROW": inner[1]}
    shape = _mask_shape(call) if call.has("attn_mask") else (1, 1, 1, 0)
    steps = (shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3])
    for name, extent, step in zip(("MASK_BATCH", "MASK_HEAD", "MASK_ROW"), shape[:3], steps, strict=True):
        numbers[name] = 0 if extent == 1 else step
    return {**numbers, "MASK_L": shape[3]}


def _bias(call: Call, heads: Heads, mask: Array | None, lengths: Array | None) -> Array:
    """What is added to the scores: the mask, minus infinity where a position is hidden."""
    bias = np.zeros((1, 1, heads.queries, heads.total))
    if mask is not None:
        wide = np.where(mask, 0.0, -np.inf) if mask.dtype == np.bool_ else mask.astype(np.float64)
        wide = wide.reshape(_mask_shape(call))
        hidden = ((0, 0), (0, 0), (0, 0), (0, heads.total - wide.shape[-1]))
        bias = bias + np.pad(wide, hidden, constant_values=-np.inf)
    positions = np.arange(heads.total)
    if call.int("is_causal"):
        late = positions[None, :] > np.arange(heads.queries)[:, None] + heads.past
        bias = np.where(late, -np.inf, bias)
    if lengths is not None:
        bias = np.where(positions >= lengths.reshape(-1, 1, 1, 1), -np.inf, bias)
    return bias


def _reference(
    call: Call,
    Q: Array,
    K: Array,
    V: Array,
    attn_mask: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
    nonpad_kv_seqlen: Array | None = None,
) -> tuple[Array, ...]:
    heads = _heads(call)

    def split(array: Array, count: int) -> Array:
        wide = array.astype(np.float64)
        if array.ndim == 4:
            return wide
        return np.swapaxes(wide.reshape(*array.shape[:2], count, -1), 1, 2)

    q, k, v = split(Q, heads.count), split(K, heads.kv), split(V, heads.kv)
    if past_key is not None and past_value is not None:
        k = np.concatenate([past_key.astype(np.float64), k], axis=2)
        v = np.concatenate([past_value.astype(np.float64), v], axis=2)
    raw = np.matmul(q, np.swapaxes(np.repeat(k, heads.group, axis=1), -1, -2)) * _scale(call, heads)
    cap = call.float("softcap")
    capped = np.tanh(raw / cap) * cap if cap > 0 else raw
    masked = capped + _bias(call, heads, attn_mask, nonpad_kv_seqlen)
    powers = np.exp(masked - masked.max(axis=-1, keepdims=True, initial=-np.inf))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    y = np.matmul(weights, np.repeat(v, heads.group, axis=1))
    if Q.ndim == 3:
        y = np.swapaxes(y, 1, 2).reshape(heads.batch, heads.queries, -1)
    return (y, k, v, (raw, capped, masked, weights)[call.int("qk_matmul_output_mode")])[: call.wanted]


def _sample(spec: Example, random: np.random.Generator) -> Example:
    """Heads of other sizes: scores and values are products of their own, so that sizes may be larger than usual."""
    sizes = {"BATCH": (1, 2), "KV": (1, 4), "S": (1, 64), "L": (4, 96), "D": (4, 64), "DV": (4, 64)}
    return resized_by_domain(REGISTRY["Attention"], spec, random, sizes)


SPLIT = ("float32[2,4,3,8]", "float32[2,4,5,8]", "float32[2,4,5,6]")
GROUPED = ("float32[2,4,3,8]", "float32[2,2,5,8]", "float32[2,2,5,6]")
PACKED = ("float32[2,3,32]", "float32[2,5,16]", "float32[2,5,12]")
CACHE = ("float32[2,2,4,8]", "float32[2,2,4,6]")
VISIBLE = np.tril(np.ones((3, 5), np.bool_), 1)

declare(
    Operator(
        "Attention",
        "Q K V attn_mask? past_key? past_value? nonpad_kv_seqlen?",
        "Y present_key? present_value? qk_matmul_output?",
        _infer,
        _domain,
        _reference,
        (
            example(*SPLIT),
            example(*SPLIT, "float32[3,5]", scale=0.2, softcap=2.0),
            example(*SPLIT, VISIBLE),
            example(*SPLIT, "float32[2,1,3,4]"),
            example(*GROUPED, "float32[4,3,5]", is_causal=1),
            example(*GROUPED, "float32[3,9]", *CACHE, wanted=3, is_causal=1),
            example(*PACKED, q_num_heads=4, kv_num_heads=2, is_causal=1),
            example(*PACKED, "float32[2,4,3,9]", *CACHE, q_num_heads=4, kv_num_heads=2, wanted=4),
            example(*PACKED, "", *CACHE, q_num_heads=4, kv_num_heads=2, wanted=4, softcap=1.0, qk_matmul_output_mode=1),
            example(*SPLIT, "float32[3,5]", wanted=4, qk_matmul_output_mode=2),
            example(*SPLIT, "float32[3,5]", wanted=4, qk_matmul_output_mode=3),
            example(*SPLIT, "", "", "", np.array([5, 2], np.int64)),
            example("float64[1,2,3,4]", "float64[1,2,3,4]", "float64[1,2,3,4]"),
        ),
        MappingProxyType(
            {
                "is_causal": 0,
                "kv_num_heads": None,
                "q_num_heads": None,
                "qk_matmul_output_mode": 0,
                "scale": None,
                "softcap": 0.0,
                "softmax_precision": None,
            }
        ),
        numbers=_numbers,
        sample=_sample,
    )
)
