"""EmbedLayerNormalization: word, position and segment embeddings summed, then layer-normalised."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import INT32
from tilewright.core.domain import WHOLE, Axis, Domain, at, dim, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Call, Operator, declare, example
from tilewright.ops.normalization import check_float, check_scale

TABLES = ("word_embedding", "position_embedding", "segment_embedding")
IDS = ("input_ids", "segment_ids", "mask", "position_ids")


def _infer(call: Call) -> tuple[TensorType, ...]:
    word, ids = check_float(call, "word_embedding"), call.shape("input_ids")
    if word.rank != 2 or len(ids) != 2:
        raise call.error("shape-mismatch", f"input_ids {list(ids)} and word_embedding {word} need two axes each")
    if call.has("segment_ids") != call.has("segment_embedding"):
        raise call.error("missing-input", "segment_ids and segment_embedding come together")
    for name in IDS:
        fits = (
            not call.has(name)
            or call.shape(name) == ids
            or (name == "position_ids" and call.shape(name) == (1, ids[1]))
        )
        if not fits:
            raise call.error("shape-mismatch", f"{name} {call.type(name)} needs the shape of input_ids, {list(ids)}")
    for name in TABLES:
        if call.has(name) and call.shape(name)[1:] != word.shape[1:]:
            raise call.error("shape-mismatch", f"{name} {call.type(name)} needs rows of {word.shape[1]}")
    if not call.has("position_ids") and call.shape("position_embedding")[0] < ids[1]:
        rows = call.type("position_embedding")
        raise call.error("shape-mismatch", f"position_embedding {rows} has no row for each of {ids[1]} positions")
    check_scale(call, "gamma", word.shape[1:])
    check_scale(call, "beta", word.shape[1:])
    result = word.with_shape((*ids, word.shape[1]))
    return (result, TensorType(INT32, ids[:1]), result)[: call.wanted]


def _domain(call: Call) -> Domain:
    ids, width = call.shape("input_ids"), call.shape("word_embedding")[1]
    b, s, h = dim("BATCH"), dim("S"), dim("AXIS")
    access: dict[str, list[Axis]] = {name: [b, s] for name in IDS}
    if call.has("position_ids") and call.shape("position_ids")[0] == 1:
        access["position_ids"] = [at(0), s]
    access |= {name: [WHOLE, h] for name in TABLES}
    access |= {"gamma": [h], "beta": [h], "output": [b, s, h], "mask_index": [b], "embedding_sum": [b, s, h]}
    outputs = call.op.output_names(len(call.outputs))
    used = {name: axes for name, axes in access.items() if name in outputs or call.has(name)}
    return domain(
        {"BATCH": ids[0], "S": ids[1], "AXIS": width},
        used,
        {name: call.shape(name) for name in used},
        " ".join(outputs),
        whole="S AXIS" if "mask_index" in outputs else "AXIS",
    )


def _reference(
    call: Call,
    input_ids: Array,
    segment_ids: Array | None,
    word_embedding: Array,
    position_embedding: Array,
    segment_embedding: Array | None,
    gamma: Array,
    beta: Array,
    mask: Array | None = None,
    position_ids: Array | None = None,
) -> tuple[Array, ...]:
    places = np.array([range(input_ids.shape[1])]) if position_ids is None else position_ids
    total = word_embedding[input_ids].astype(np.float64) + position_embedding[places]
    if segment_ids is not None and segment_embedding is not None:
        total = total + segment_embedding[segment_ids]
    centred = total - total.mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + call.float("epsilon"))
    counts = np.zeros(input_ids.shape[0]) if mask is None else np.sum(mask == 1, axis=1)
    return (scaled * gamma + beta, counts, total)[: call.wanted]


ROWS = np.array([[1, 4, 0], [2, 2, 3]], np.int32)
TYPES = np.array([[0, 1, 1], [0, 0, 1]], np.int32)
SEEN = np.array([[1, 1, 0], [1, 1, 1]], np.int32)

declare(
    Operator(
        "EmbedLayerNormalization",
        "input_ids segment_ids? word_embedding position_embedding segment_embedding? gamma beta mask? position_ids?",
        "output mask_index? embedding_sum?",
        _infer,
        _domain,
        _reference,
        (
            example(
                ROWS, TYPES, "float32[5,8]", "float32[4,8]", "float32[2,8]", "float32[8]", "float32[8]", SEEN, wanted=2
            ),
            example(ROWS, "", "float32[5,8]", "float32[4,8]", "", "float32[8]", "float32[8]", "", TYPES, wanted=3),
            example(ROWS, "", "float32[5,8]", "float32[4,8]", "", "float32[8]", "float32[8]", epsilon=0.1),
        ),
        MappingProxyType({"epsilon": 1e-12, "mask_index_type": 0}),
        numbers=lambda call: {"SHARED": int(call.has("position_ids") and call.shape("position_ids")[0] == 1)},
    )
)
