"""ReverseSequence: the first `sequence_lens[b]` time steps of each batch in reverse order."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.core.domain import WHOLE, Axis, Domain, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.indexing import grid


def _axes(call: Call) -> tuple[int, int]:
    rank = call.type("input").rank
    return call.axis("time_axis", rank), call.axis("batch_axis", rank)


def _infer(call: Call) -> tuple[TensorType, ...]:
    data = call.type("input")
    time, batch = _axes(call)
    if time == batch:
        raise call.error("bad-attribute", f"time_axis and batch_axis are both {time}")
    if call.shape("sequence_lens") != (data.shape[batch],):
        raise call.error("shape-mismatch", f"sequence_lens must hold {data.shape[batch]} lengths, one for each batch")
    return (data,)


def _domain(call: Call) -> Domain:
    sizes, access = grid(call.shape("input"))
    time, batch = _axes(call)
    maps: dict[str, list[Axis]] = {
        "input": [WHOLE if i == time else place for i, place in enumerate(access)],
        "sequence_lens": [access[batch]],
        "Y": [*access],
    }
    return domain(sizes, maps, {name: call.shape(name) for name in maps}, "Y")


def _reference(call: Call, input: Array, sequence_lens: Array) -> Array:
    time, batch = _axes(call)
    source = np.moveaxis(input, (batch, time), (0, 1))
    result = source.copy()
    for row, length in enumerate(np.clip(sequence_lens, 0, source.shape[1]).tolist()):
        result[row, :length] = source[row, :length][::-1]
    return np.moveaxis(result, (0, 1), (batch, time))


def _body(call: Call) -> Body:
    time, _ = _axes(call)
    extent = call.shape("input")[time]
    step = f"D{time}"
    update = f"at = sequence_lens > {extent} ? {extent} : sequence_lens;\nat = {step} < at ? at - 1 - {step} : {step};"
    place = ", ".join("at" if i == time else f"D{i}" for i in range(call.type("input").rank))
    return Body(MappingProxyType({"Y": f"input_at({place})"}), (("int64_t", "at", "0"),), update)


declare(
    Operator(
        "ReverseSequence",
        "input sequence_lens",
        "Y",
        _infer,
        _domain,
        _reference,
        (
            example("float32[4,3,2]", [4, 1, 2]),
            example("int8[2,5]", [3, 5], time_axis=1, batch_axis=0),
        ),
        MappingProxyType({"batch_axis": 1, "time_axis": 0}),
        "move",
        _body,
    )
)
