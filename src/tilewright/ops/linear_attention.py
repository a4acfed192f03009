"""LinearAttention: a matrix of state per head that every position decays, corrects, writes and reads."""

from __future__ import annotations

from math import sqrt
from types import MappingProxyType

import numpy as np

from tilewright.core.domain import Axis, Domain, at, dim, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import REQUIRED, Call, Operator, declare, example
from tilewright.ops.normalization import check_float

RULES = {"linear": (False, False), "gated": (True, False), "delta": (False, True), "gated_delta": (True, True)}
"""Which rules decay the state, and which correct the value by what the state already holds."""


def _sizes(call: Call) -> dict[str, int]:
    query, value = call.shape("query"), call.shape("value")
    kv, heads = call.int("kv_num_heads"), call.int("q_num_heads")
    if {len(query), len(call.shape("key")), len(value)} != {3}:
        raise call.error("shape-mismatch", "query, key and value need three axes each")
    if kv < 1 or heads % kv or query[2] % heads or value[2] % kv:
        raise call.error(
            "shape-mismatch", f"{heads} and {kv} heads do not divide query {list(query)}, value {list(value)}"
        )
    return {
        "BATCH": query[0],
        "KV": kv,
        "G": heads // kv,
        "SEQ": query[1],
        "DK": query[2] // heads,
        "DV": value[2] // kv,
    }


def _infer(call: Call) -> tuple[TensorType, ...]:
    query, size = check_float(call, "query"), _sizes(call)
    if call.text("update_rule") not in RULES:
        raise call.error("bad-attribute", f"update_rule={call.text('update_rule')} is none of {', '.join(RULES)}")
    for name, needed in zip(("decay", "beta"), RULES[call.text("update_rule")], strict=True):
        if call.has(name) != needed:
            raise call.error("missing-input", f"{call.text('update_rule')} {'needs' if needed else 'forbids'} '{name}'")
    rows, kv, dk, dv = (size["BATCH"], size["SEQ"]), size["KV"], size["DK"], size["DV"]
    state = (size["BATCH"], kv, dk, dv)
    allowed = {
        "key": [(*rows, kv * dk)],
        "value": [(*rows, kv * dv)],
        "past_state": [state],
        "decay": [(*rows, kv), (*rows, kv * dk)],
        "beta": [(*rows, kv), (*rows, 1)],
    }
    for name, shapes in allowed.items():
        if call.has(name) and call.shape(name) not in shapes:
            raise call.error("shape-mismatch", f"{name} {call.type(name)} needs the shape {list(shapes[0])}")
    kept = call.type("past_state") if call.has("past_state") else query
    return (query.with_shape((*rows, kv * size["G"] * dv)), kept.with_shape(state))[: call.wanted]


def _domain(call: Call) -> Domain:
    size = _sizes(call)
    b, kv, t, k, v = (dim(name) for name in ("BATCH", "KV", "SEQ", "DK", "DV"))
    head = kv * size["G"] + dim("G")
    state: list[Axis] = [b, kv, k, v]
    access: dict[str, list[Axis]] = {
        "query": [b, t, head * size["DK"] + k],
        "key": [b, t, kv * size["DK"] + k],
        "value": [b, t, kv * size["DV"] + v],
        "past_state": state,
        "decay": [b, t, kv * size["DK"] + k],
        "beta": [b, t, kv],
        "output": [b, t, head * size["DV"] + v],
        "present_state": state,
    }
    if call.has("decay") and call.shape("decay")[2] == size["KV"]:
        access["decay"] = [b, t, kv]
    if call.has("beta") and call.shape("beta")[2] == 1:
        access["beta"] = [b, t, at(0)]
    outputs = call.op.output_names(len(call.outputs))
    used = {name: axes for name, axes in access.items() if name in outputs or call.has(name)}
    return domain(size, used, {name: call.shape(name) for name in used}, " ".join(outputs), whole="SEQ DK DV")


def _numbers(call: Call) -> dict[str, int | float]:
    """SCALE, and how many decays and rates each position has."""
    return {
        "SCALE": call.float("scale") or 1 / sqrt(max(1, _sizes(call)["DK"])),
        "DECAYS": call.shape("decay")[2] if call.has("decay") else 0,
        "RATES": call.shape("beta")[2] if call.has("beta") else 0,
    }


def _reference(
    call: Call,
    query: Array,
    key: Array,
    value: Array,
    past_state: Array | None = None,
    decay: Array | None = None,
    beta: Array | None = None,
) -> tuple[Array, ...]:
    size = _sizes(call)
    kv = size["KV"]

    def heads(array: Array, count: int) -> Array:
        return array.astype(np.float64).reshape(*array.shape[:2], count, -1)

    q, k, v = heads(query, kv * size["G"]), heads(key, kv), heads(value, kv)
    state = np.zeros((size["BATCH"], kv, size["DK"], size["DV"]))
    if past_state is not None:
        state = past_state.astype(np.float64)
    read = np.zeros((size["BATCH"], size["SEQ"], kv * size["G"], size["DV"]))
    for t in range(size["SEQ"]):
        written = v[:, t]
        if decay is not None:
            state = state * np.exp(heads(decay, kv)[:, t])[..., None]
        if beta is not None:
            held = np.einsum("bhdm,bhd->bhm", state, k[:, t])
            written = heads(beta, beta.shape[2])[:, t] * (written - held)
        state = state + k[:, t, :, :, None] * written[:, :, None, :]
        read[:, t] = np.einsum("bhd,bhdm->bhm", q[:, t], np.repeat(state, size["G"], axis=1))
    result = read.reshape(size["BATCH"], size["SEQ"], -1) * _numbers(call)["SCALE"]
    return (result, state)[: call.wanted]


QKV = ("float32[2,3,16]", "float32[2,3,8]", "float32[2,3,6]")
STATE, PER_HEAD, PER_KEY = "float32[2,2,4,3]", "float32[2,3,2]", "float32[2,3,8]"

declare(
    Operator(
        "LinearAttention",
        "query key value past_state? decay? beta?",
        "output present_state?",
        _infer,
        _domain,
        _reference,
        (
            example(*QKV, update_rule="linear", q_num_heads=4, kv_num_heads=2),
            example(*QKV, STATE, PER_HEAD, update_rule="gated", q_num_heads=4, kv_num_heads=2, wanted=2),
            example(*QKV, STATE, "", PER_HEAD, update_rule="delta", q_num_heads=4, kv_num_heads=2, wanted=2),
            example(*QKV, "", PER_KEY, "float32[2,3,1]", q_num_heads=4, kv_num_heads=2, scale=0.3, wanted=2),
            example(
                "float64[1,2,4]",
                "float64[1,2,4]",
                "float64[1,2,4]",
                update_rule="linear",
                q_num_heads=1,
                kv_num_heads=1,
            ),
        ),
        MappingProxyType(
            {
                "chunk_size": 64,
                "kv_num_heads": REQUIRED,
                "q_num_heads": REQUIRED,
                "scale": 0.0,
                "update_rule": "gated_delta",
            }
        ),
        numbers=_numbers,
    )
)
