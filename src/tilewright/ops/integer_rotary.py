"""iRotary: pairs of integers of each head turned by the angle of their position, and heads put before positions.

`X[S, H * D]` has a row for each position, from `position` on; `Y[H, S, D]` is `clip((x * cos - other * sin) >> shift)`,
rounded half up, with tables of 2^14 times cosine and sine for each position and pair (i, i + D / 2).
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from msgspec.structs import replace

from tilewright.base.dtype import INT8, INT16, INT32
from tilewright.core.domain import WHOLE, Axis, Domain, dim, domain
from tilewright.core.graph import Array, TensorType, attrs
from tilewright.core.op import REQUIRED, Body, Call, Example, Operator, declare, example, parse_type
from tilewright.ops.sampling import between


def _infer(call: Call) -> tuple[TensorType, ...]:
    x, heads, half = call.type("X"), call.int("heads"), call.shape("cosines")[-1]
    if x.dtype not in (INT8, INT16) or x.rank != 2 or heads < 1 or x.shape[1] != 2 * heads * half:
        raise call.error("shape-mismatch", f"X {x} must be rows of int8 or int16 with {heads} heads of {2 * half}")
    for name in ("cosines", "sines"):
        if call.type(name).dtype != INT16 or call.shape(name) != (call.shape("cosines")[0], half):
            raise call.error("shape-mismatch", f"{name} {call.type(name)} must be a row of int16 for each position")
    if call.type("position").dtype != INT32 or call.type("position").size != 1:
        raise call.error("type-mismatch", f"position must be one int32, found {call.type('position')}")
    if not 0 < call.int("shift") < 31:
        raise call.error("bad-attribute", f"shift={call.int('shift')} must be 1 to 30")
    return (TensorType(INT8, (heads, x.shape[0], 2 * half)),)


def _domain(call: Call) -> Domain:
    heads, rows, size = call.outputs[0].shape
    h, s, d = (dim(name) for name in ("H", "S", "D"))
    access: dict[str, list[Axis]] = {
        "X": [s, WHOLE],
        "cosines": [WHOLE, WHOLE],
        "sines": [WHOLE, WHOLE],
        "position": [WHOLE] * call.type("position").rank,
        "Y": [h, s, d],
    }
    sizes = {"H": heads, "S": rows, "D": size}
    return domain(sizes, access, {name: call.shape(name) for name in access}, "Y")


def turned(x: Array, heads: int, cosines: Array, sines: Array, position: Array, shift: int) -> Array:
    """Rows of all heads, turned by the angles of their positions."""
    rows, size = len(x), x.shape[1] // heads
    at = np.clip(int(position.reshape(-1)[0]) + np.arange(rows), 0, len(cosines) - 1)
    cosine, sine = (table[at].astype(np.int64) for table in (cosines, sines))
    apart = x.astype(np.int64).reshape(rows, heads, size).swapaxes(0, 1)
    left, right = apart[..., : size // 2], apart[..., size // 2 :]
    found = np.concatenate([left * cosine - right * sine, left * sine + right * cosine], axis=-1)
    return np.clip((found + (1 << shift >> 1)).astype(np.int32) >> shift, INT8.lo, INT8.hi)


def _reference(call: Call, X: Array, cosines: Array, sines: Array, position: Array) -> Array:
    return turned(X, call.int("heads"), cosines, sines, position, call.int("shift"))


def _body(call: Call) -> Body:
    _, _, size = call.outputs[0].shape
    half, last, shift = size // 2, call.shape("cosines")[0] - 1, call.int("shift")
    rank = call.type("position").rank
    position = f"position_at({', '.join('0' * rank)})" if rank else "position"
    update = "\n".join(
        [
            f"const int row = tw_max(0, tw_min({position} + S, {last})), pair = D % {half};",
            f"const int32_t cosine = cosines_at(row, pair), sine = sines_at(row, pair), first = H * {size};",
            f"const int32_t own = X_at(S, first + D), other = X_at(S, first + (D + {half}) % {size});",
            # Unsigned sums wrap where tables hold more than they should.
            f"sum = (uint32_t)(own * cosine) + (uint32_t)((D < {half} ? -other : other) * sine) + {1 << shift >> 1}u;",
        ]
    )
    result = f"tw_clamp((int32_t)sum >> {shift}, {INT8.lo}, {INT8.hi})"
    return Body(MappingProxyType({"Y": result}), (("uint32_t", "sum", "0"),), update)


TABLES: tuple[Array, ...] = tuple(
    np.asarray(t, np.int16) for t in ([[9, -16384], [3, 77], [-900, 8]], [[5, 60], [16384, 1], [-77, 4]])
)


def _sampled(spec: Example, random: np.random.Generator) -> Example:
    """An example of other sizes, as language models have them."""
    heads, rows, half = (round(between(1, most, random)) for most in (32, 64, 32))
    tables = tuple(np.resize(table, (4, half)) for table in TABLES)
    x = str(parse_type(str(spec.inputs[0])).with_shape((rows, 2 * heads * half)))
    return replace(spec, inputs=(x, *tables, spec.inputs[3]), attrs=attrs(heads=heads, shift=spec.attrs["shift"]))


declare(
    Operator(
        "iRotary",
        "X cosines sines position",
        "Y",
        _infer,
        _domain,
        _reference,
        (
            example("int16[1,12]", *TABLES, np.asarray(1, np.int32), heads=3, shift=14),
            example("int8[2,8]", *TABLES, np.asarray([1], np.int32), heads=2, shift=9),
        ),
        MappingProxyType({"heads": REQUIRED, "shift": REQUIRED}),
        "other",
        _body,
        doc=__doc__ or "",
        sample=_sampled,
    )
)
