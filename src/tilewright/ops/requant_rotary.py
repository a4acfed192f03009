"""RequantRotary: sums of products are scaled back to 16 bits and turned, where wanted queries and keys at once.

`X[S, 2 * H * D]` has the queries of each position, then its keys. It is RequantShift with a factor for each column and
`n_levels` of 2^16, then iRotary, then Split into `Y[H, S, D]` and `Z[H, S, D]`. Without Z there are heads of one kind.
Sums times their factors fit 32 bits.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    if x.dtype != INT32 or x.rank != 2 or heads < 1 or x.shape[1] != 2 * call.wanted * heads * half:
        wanted = f"{call.wanted} times {heads} heads of {2 * half}"
        raise call.error("shape-mismatch", f"X {x} must be rows of int32 with {wanted}")
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
    return (TensorType(INT8, (heads, x.shape[0], 2 * half)),) * call.wanted


def _domain(call: Call) -> Domain:
    heads, rows, size = call.outputs[0].shape
    point: list[Axis] = [dim(name) for name in ("H", "S", "D")]
    access: dict[str, list[Axis]] = {
        "X": [dim("S"), WHOLE],
        "mul": [WHOLE],
        "add": [WHOLE],
        "cosines": [WHOLE, WHOLE],
        "sines": [WHOLE, WHOLE],
        "position": [WHOLE] * call.type("position").rank,
        "Y": point,
        **({"Z": point} if call.wanted > 1 else {}),
    }
    shapes = {name: call.shape(name) for name in access}
    return domain({"H": heads, "S": rows, "D": size}, access, shapes, "Y Z" if call.wanted > 1 else "Y")


def _reference(
    call: Call, X: Array, mul: Array, add: Array, cosines: Array, sines: Array, position: Array
) -> tuple[Array, ...]:
    shift = power_of_two(call, "div")
    total = (X.astype(np.int64) * mul + add + (1 << shift >> 1)).astype(np.int32) >> shift
    raw = np.clip(total, INT16.lo, INT16.hi)
    found = turned(raw, call.wanted * call.int("heads"), cosines, sines, position, call.int("shift"))
    return tuple(np.split(found, call.wanted))


def _body(call: Call) -> Body:
    heads, _, size = call.outputs[0].shape
    half, last, shift, scaled = size // 2, call.shape("cosines")[0] - 1, call.int("shift"), power_of_two(call, "div")
    rank = call.type("position").rank
    position = f"position_at({', '.join('0' * rank)})" if rank else "position"
    update = [
        f"const int row = tw_max(0, tw_min({position} + S, {last})), pair = D % {half};",
        "const int32_t cosine = cosines_at(row, pair), sine = sines_at(row, pair);",
    ]
    names = ("query", "key")[: call.wanted]
    for name, first in zip(names, (0, heads * size), strict=False):
        for part, at in (("own", "D"), ("other", f"(D + {half}) % {size}")):
            place = f"{first} + H * {size} + {at}"
            total = f"(uint32_t)X_at(S, {place}) * (uint32_t)mul_at({place}) + (uint32_t)add_at({place})"
            rounded = f"(int32_t)({total} + {1 << scaled >> 1}u) >> {scaled}"
            update.append(f"const int32_t {name}_{part} = tw_clamp({rounded}, {INT16.lo}, {INT16.hi});")
        other = f"(D < {half} ? -{name}_other : {name}_other)"
        update.append(
            f"{name} = (int32_t)((uint32_t)({name}_own * cosine) + (uint32_t)({other} * sine) + {1 << shift >> 1}u);"
        )
    results = {
        output: f"tw_clamp({name} >> {shift}, {INT8.lo}, {INT8.hi})" for output, name in zip("YZ", names, strict=False)
    }
    state = tuple(("int32_t", name, "0") for name in names)
    return Body(MappingProxyType(results), state, "\n".join(update))


def _sampled(spec: Example, random: np.random.Generator) -> Example:
    """An example of other sizes, as language models have them: positions are those of the tables."""
    heads, rows, half = (round(between(1, most, random)) for most in (16, 16, 32))
    columns = 2 * spec.wanted * heads * half
    tables = tuple(np.resize(table, (rows + 1, half)) for table in TABLES)
    factors = (f"int32[{columns}]",) * 2
    return replace(
        spec,
        inputs=(f"int32[{rows},{columns}]", *factors, *tables, spec.inputs[5]),
        attrs=attrs(heads=heads, shift=spec.attrs["shift"], div=spec.attrs["div"]),
    )


def _numbers(call: Call) -> Mapping[str, int]:
    return {"kinds": call.wanted}


_FACTORS = np.arange(-12, 12, dtype=np.int32), np.arange(24, dtype=np.int32) * 99 - 900

declare(
    Operator(
        "RequantRotary",
        "X mul add cosines sines position",
        "Y Z",
        _infer,
        _domain,
        _reference,
        (
            example("int32[1,24]", *_FACTORS, *TABLES, np.asarray(1, np.int32), wanted=2, heads=3, shift=14, div=16),
            example(
                "int32[2,8]",
                "int32[8]",
                "int32[8]",
                *TABLES,
                np.asarray([1], np.int32),
                wanted=2,
                heads=1,
                shift=9,
                div=2,
            ),
            example("int32[5,8]", "int32[8]", "int32[8]", *TABLES, np.asarray(-1, np.int32), heads=2, shift=9, div=4),
        ),
        MappingProxyType({"heads": REQUIRED, "shift": REQUIRED, "div": REQUIRED}),
        "other",
        _body,
        doc=__doc__ or "",
        numbers=_numbers,
        sample=_sampled,
    )
)
