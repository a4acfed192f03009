"""RequantRotary: sums of products are scaled back to 16 bits and turned.

`X[S, H * D]` has the heads of each position. It is RequantShift with a factor for each column and `n_levels` of 2^16,
then iRotary, which gives `Y[H, S, D]`. Sums times their factors fit 32 bits.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from msgspec.structs import replace

from tilewright.base.dtype import INT8, INT16, INT32
from tilewright.core.domain import WHOLE, Axis, Domain, dim, domain
from tilewright.core.graph import Array, TensorType, attrs
from tilewright.core.op import REQUIRED, Body, Call, Example, Operator, declare, example
from tilewright.ops.integer_rotary import TABLES, turned
from tilewright.ops.integer_rules import power_of_two
from tilewright.ops.sampling import between


def _infer(call: Call) -> tuple[TensorType, ...]:
    x, heads, half = call.type("X"), call.int("heads"), call.shape("cosines")[-1]
    if x.dtype != INT32 or x.rank != 2 or heads < 1 or x.shape[1] != 2 * heads * half:
        raise call.error("shape-mismatch", f"X {x} must be rows of int32 with {heads} heads of {2 * half}")
    for name in ("mul", "add"):
        if call.type(name).dtype != INT32 or call.shape(name) != x.shape[1:]:
            raise call.error("shape-mismatch", f"{name} {call.type(name)} must be an int32 for each column")
    for name in ("cosines", "sines"):
        if call.type(name).dtype != INT16 or call.shape(name) != (call.shape("cosines")[0], half):
            raise call.error("shape-mismatch", f"{name} {call.type(name)} must be a row of int16 for each position")
    if call.type("position").dtype != INT32 or call.type("position").size != 1:
        raise call.error("type-mismatch", f"position must be one int32, found {call.type('position')}")
    if not 0 < call.int("shift") < 31 or power_of_two(call, "div") < 1:
        raise call.error("bad-attribute", f"shift={call.int('shift')} must be 1 to 30, div={call.attrs['div']} more")
    return (TensorType(INT8, (heads, x.shape[0], 2 * half)),)


def _domain(call: Call) -> Domain:
    heads, rows, size = call.outputs[0].shape
    access: dict[str, list[Axis]] = {
        "X": [dim("S"), WHOLE],
        "mul": [WHOLE],
        "add": [WHOLE],
        "cosines": [WHOLE, WHOLE],
        "sines": [WHOLE, WHOLE],
        "position": [WHOLE] * call.type("position").rank,
        "Y": [dim(name) for name in ("H", "S", "D")],
    }
    return domain({"H": heads, "S": rows, "D": size}, access, {name: call.shape(name) for name in access}, "Y")


def _reference(
    call: Call, X: Array, mul: Array, add: Array, cosines: Array, sines: Array, position: Array
) -> tuple[Array, ...]:
    shift = power_of_two(call, "div")
    total = (X.astype(np.int64) * mul + add + (1 << shift >> 1)).astype(np.int32) >> shift
    raw = np.clip(total, INT16.lo, INT16.hi)
    return (turned(raw, call.int("heads"), cosines, sines, position, call.int("shift")),)


def _body(call: Call) -> Body:
    size = call.outputs[0].shape[2]
    half, last, shift, scaled = size // 2, call.shape("cosines")[0] - 1, call.int("shift"), power_of_two(call, "div")
    rank = call.type("position").rank
    position = f"position_at({', '.join('0' * rank)})" if rank else "position"
    update = [
        f"const int row = tw_max(0, tw_min({position} + S, {last})), pair = D % {half};",
        "const int32_t cosine = cosines_at(row, pair), sine = sines_at(row, pair);",
    ]
    for part, at in (("own", "D"), ("other", f"(D + {half}) % {size}")):
        place = f"H * {size} + {at}"
        total = f"(uint32_t)X_at(S, {place}) * (uint32_t)mul_at({place}) + (uint32_t)add_at({place})"
        rounded = f"(int32_t)({total} + {1 << scaled >> 1}u) >> {scaled}"
        update.append(f"const int32_t {part} = tw_clamp({rounded}, {INT16.lo}, {INT16.hi});")
    other = f"(D < {half} ? -other : other)"
    update.append(f"sum = (int32_t)((uint32_t)(own * cosine) + (uint32_t)({other} * sine) + {1 << shift >> 1}u);")
    results = {"Y": f"tw_clamp(sum >> {shift}, {INT8.lo}, {INT8.hi})"}
    return Body(MappingProxyType(results), (("int32_t", "sum", "0"),), "\n".join(update))


def _sampled(spec: Example, random: np.random.Generator) -> Example:
    """An example of other sizes, as language models have them: positions are those of the tables."""
    heads, rows, half = (round(between(1, most, random)) for most in (16, 64, 32))
    columns = 2 * heads * half
    tables = tuple(np.resize(table, (rows + 1, half)) for table in TABLES)
    factors = (f"int32[{columns}]",) * 2
    return replace(
        spec,
        inputs=(f"int32[{rows},{columns}]", *factors, *tables, spec.inputs[5]),
        attrs=attrs(heads=heads, shift=spec.attrs["shift"], div=spec.attrs["div"]),
    )


_FACTORS = np.arange(-12, 12, dtype=np.int32), np.arange(24, dtype=np.int32) * 99 - 900

declare(
    Operator(
        "RequantRotary",
        "X mul add cosines sines position",
        "Y",
        _infer,
        _domain,
        _reference,
        (
            example("int32[1,24]", *_FACTORS, *TABLES, np.asarray(1, np.int32), heads=6, shift=14, div=16),
            example(
                "int32[2,8]",
                "int32[8]",
                "int32[8]",
                *TABLES,
                np.asarray([1], np.int32),
                heads=2,
                shift=9,
                div=2,
            ),
            example("int32[5,8]", "int32[8]", "int32[8]", *TABLES, np.asarray(-1, np.int32), heads=2, shift=9, div=4),
        ),
        MappingProxyType({"heads": REQUIRED, "shift": REQUIRED, "div": REQUIRED}),
        "other",
        _body,
        doc=__doc__ or "",
        sample=_sampled,
    )
)
