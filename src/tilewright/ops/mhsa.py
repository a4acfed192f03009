"""MHSA: projections, attention and output projection of all heads in one node, as Deeploy joins them.

Inputs q, k, v are `[S, E]`, with axes of extent 1 before them; k and v may be longer than q. Weights of query, key and
value are `[H, E, P]` or, side by side, `[E, H * P]`, those of the output `[H, P, E]` or `[H * P, E]`; biases have one
value for each column, `[H, P]` and `[H, E]`, or `[E]` for all heads. The result is `[H, S, E]`, one for each head: what
adds them up comes behind.

Each product is scaled back to bytes, `clip((sum * mul + add + div / 2) / div)`, with one `mul` and `add` for all heads
or one for each. `softmax` is ITAPartialMax, as in exports, with `term_bits` 8, or 10 as MemPool's units have them, or
ITASoftmax, the arithmetic of later versions of ITA.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from msgspec import Struct

from tilewright.base.dtype import INT8
from tilewright.core.domain import WHOLE, Axis, Domain, dim, domain
from tilewright.core.graph import Array, Attr, TensorType
from tilewright.core.op import REGISTRY, REQUIRED, Call, Example, Operator, call_of, declare, evaluate
from tilewright.ops.integer_rules import power_of_two
from tilewright.ops.integer_softmax import TERM_BITS

STEPS = ("wq", "wk", "wv", "preattn", "postattn", "wo")
SOFTMAXES = ("ITAPartialMax", "ITASoftmax")
CONSTANT = frozenset(f"{step}_{what}" for step in ("wq", "wk", "wv", "wo") for what in ("weight", "bias"))
OPERANDS = "q k v wq_weight wq_bias wk_weight wk_bias wv_weight wv_bias wo_weight wo_bias"


class HeadSizes(Struct, frozen=True):
    heads: int
    rows: int
    keys: int
    embedding: int
    head: int


def sizes_of(call: Call) -> HeadSizes:
    """The sizes of a node; an error that names it where its operands do not fit each other."""
    heads, head = call.int("heads"), call.int("dim_head")
    rows, embedding = call.shape("q")[-2:]
    found = HeadSizes(heads, rows, call.shape("k")[-2], embedding, head)
    for name in ("q", "k", "v"):
        wanted = (rows if name == "q" else found.keys, embedding)
        shape = call.shape(name)
        if call.type(name).dtype != INT8 or shape[-2:] != wanted or any(extent != 1 for extent in shape[:-2]):
            raise call.error("shape-mismatch", f"{name} {call.type(name)} must be {TensorType(INT8, wanted)}")
    for step in ("wq", "wk", "wv", "wo"):
        inner, columns = (head, embedding) if step == "wo" else (embedding, head)
        side_by_side = (heads * head, embedding) if step == "wo" else (embedding, heads * head)
        if call.shape(f"{step}_weight") not in ((heads, inner, columns), side_by_side):
            raise call.error(
                "shape-mismatch",
                f"{step}_weight {call.type(f'{step}_weight')} must have the shape {[heads, inner, columns]}"
                f" or {list(side_by_side)}",
            )
        size = call.type(f"{step}_bias").size
        if size != heads * columns and not (step == "wo" and size == columns):
            raise call.error("shape-mismatch", f"{step}_bias has {size} values for {heads} heads of {columns}")
    return found


def by_head(name: str, weights: Array, sizes: HeadSizes) -> Array:
    """Weights or biases with heads as the first axis."""
    if name == "wo_weight":
        return weights.reshape(sizes.heads, sizes.head, sizes.embedding)
    if name == "wo_bias":
        return np.broadcast_to(weights.reshape(-1, 1, sizes.embedding), (sizes.heads, 1, sizes.embedding))
    if name.endswith("bias"):
        return weights.reshape(sizes.heads, 1, sizes.head)
    if weights.ndim == 3:
        return weights
    return weights.reshape(sizes.embedding, sizes.heads, sizes.head).swapaxes(0, 1)


def factor(call: Call, name: str) -> Array:
    """A factor as `[heads, 1, 1]`, or `[1]` where all heads have the same."""
    value = call.attrs[name]
    given = np.asarray(value, np.float64).reshape(-1).astype(np.int64)
    if given.size not in (1, call.int("heads")):
        raise call.error("bad-attribute", f"{name} has {given.size} values for {call.int('heads')} heads")
    return given if given.size == 1 else given.reshape(-1, 1, 1)


def _infer(call: Call) -> tuple[TensorType, ...]:
    sizes = sizes_of(call)
    for step in STEPS:
        power_of_two(call, f"{step}_requant_div")
    if call.int("n_levels") != 256 or call.text("softmax") not in SOFTMAXES:
        raise call.error("bad-attribute", f"n_levels must be 256, and softmax one of {', '.join(SOFTMAXES)}")
    return (TensorType(INT8, (sizes.heads, sizes.rows, sizes.embedding)),)


def _domain(call: Call) -> Domain:
    names = ("q", "k", "v")
    access: dict[str, list[Axis]] = {name: [WHOLE] * call.type(name).rank for name in names}
    h, s, e = (dim(name) for name in "HSE")
    shape = call.outputs[0].shape
    shapes = {**{name: call.shape(name) for name in names}, "Y": shape}
    return domain(dict(zip("HSE", shape, strict=True)), {**access, "Y": [h, s, e]}, shapes, "Y", whole="H S E")


def _reference(call: Call, *operands: Array) -> Array:
    sizes, given = sizes_of(call), dict(zip(call.operands, operands, strict=True))

    def product(left: Array, right: Array, step: str) -> Array:
        bias = by_head(f"{step}_bias", given[f"{step}_bias"], sizes) if f"{step}_bias" in given else 0
        sums = left.astype(np.int64) @ right.astype(np.int64) + bias
        mul, add = (factor(call, f"{step}_requant_{what}") for what in ("mul", "add"))
        shift = power_of_two(call, f"{step}_requant_div")
        return np.clip((sums * mul + add + (1 << shift >> 1)) >> shift, -128, 127).astype(np.int8)

    def projected(name: str) -> Array:
        weights = by_head(f"w{name}_weight", given[f"w{name}_weight"], sizes)
        return product(given[name].reshape(-1, sizes.embedding), weights, f"w{name}")

    query, key, value = (projected(name) for name in "qkv")
    scores = product(query, key.swapaxes(1, 2), "preattn")
    kind = call.text("softmax")
    row = call_of(REGISTRY[kind], [TensorType(INT8, scores.shape)], softmax_attributes(call))
    mixed = product(evaluate(row, [scores])[0], value, "postattn")
    return product(mixed, by_head("wo_weight", given["wo_weight"], sizes), "wo")


def softmax_attributes(call: Call) -> MappingProxyType[str, Attr]:
    """What the softmax of a node is told."""
    partial = {"group_width": 16, "n_levels": 256, "term_bits": call.int("term_bits")}
    return MappingProxyType(partial if call.text("softmax") == "ITAPartialMax" else {})


_FACTORS: dict[str, Attr] = {
    f"{step}_requant_{what}": default
    for step in STEPS
    for what, default in (("mul", REQUIRED), ("div", REQUIRED), ("add", 0))
}


def _example(heads: int, rows: int, embedding: int, head: int, *, packed: bool) -> tuple[str | Array, ...]:
    random = np.random.default_rng(heads)
    inner = (embedding, heads * head) if packed else (heads, embedding, head)
    back = (heads * head, embedding) if packed else (heads, head, embedding)
    weights = [random.integers(-128, 128, shape).astype(np.int8) for shape in (inner, inner, inner, back)]
    biases = [random.integers(-999, 999, count).astype(np.int32) for count in (*[heads * head] * 3, embedding)]
    constants = [array for pair in zip(weights, biases, strict=True) for array in pair]
    return (*[f"int8[1,{rows},{embedding}]"] * 3, *constants)


def _scaled(spec: tuple[str | Array, ...], **given: Attr) -> Example:
    factors: dict[str, Attr] = {f"{step}_requant_mul": 60 for step in STEPS}
    factors |= {f"{step}_requant_div": 1 << 14 for step in STEPS}
    return Example(spec, MappingProxyType({**factors, **given}))


declare(
    Operator(
        "MHSA",
        OPERANDS,
        "Y",
        _infer,
        _domain,
        _reference,
        (
            _scaled(
                _example(2, 20, 12, 8, packed=False),
                heads=2,
                dim_head=8,
                softmax="ITASoftmax",
                wq_requant_mul=(5, 7),
                wq_requant_add=4096,
            ),
            _scaled(_example(3, 17, 6, 4, packed=True), heads=3, dim_head=4),
            _scaled(_example(1, 33, 6, 4, packed=True), heads=1, dim_head=4, term_bits=10),
        ),
        MappingProxyType(
            {
                **_FACTORS,
                "heads": REQUIRED,
                "dim_head": REQUIRED,
                "dim": 0,
                "n_levels": 256,
                "signed": 1,
                "softmax": "ITAPartialMax",
                "term_bits": TERM_BITS,
            }
        ),
        compile_time=CONSTANT,
        doc=__doc__ or "",
    )
)
