"""RequantAdd: sums of products are scaled back and added to 16 bits.

`X[S, C]` is scaled by RequantShift with a factor for each column and `n_levels`, added to `A[S, C]`, and kept in 16
bits. Sums times their factors fit 32 bits.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from msgspec.structs import replace

from tilewright.base.dtype import INT16, INT32
from tilewright.core.domain import Axis, Domain, dim, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import REQUIRED, Body, Call, Example, Operator, declare, example
from tilewright.ops.integer_rules import limits, power_of_two
from tilewright.ops.sampling import between

MOST_LEVELS = 1 << 31
"""Of what is added."""


def _infer(call: Call) -> tuple[TensorType, ...]:
    x = call.type("X")
    if x.dtype != INT32 or x.rank != 2:
        raise call.error("shape-mismatch", f"X {x} must be rows of int32")
    for name in ("mul", "add"):
        if call.type(name) != TensorType(INT32, x.shape[1:]):
            raise call.error("shape-mismatch", f"{name} {call.type(name)} must be an int32 for each column")
    if call.type("A") != x.with_dtype(INT16):
        raise call.error("shape-mismatch", f"A {call.type('A')} must be an int16 for each element of X")
    if power_of_two(call, "div") < 1 or not 1 < call.int("n_levels") <= MOST_LEVELS:
        raise call.error(
            "bad-attribute", f"div={call.attrs['div']} must be more, n_levels={call.attrs['n_levels']} less"
        )
    return (call.type("A"),)


def _domain(call: Call) -> Domain:
    rows, columns = call.outputs[0].shape
    point: list[Axis] = [dim("S"), dim("C")]
    access: dict[str, list[Axis]] = {"X": point, "mul": [dim("C")], "add": [dim("C")], "A": point, "Y": point}
    shapes = {name: call.shape(name) for name in access}
    return domain({"S": rows, "C": columns}, access, shapes, "Y")


def _reference(call: Call, X: Array, mul: Array, add: Array, A: Array) -> Array:
    shift = power_of_two(call, "div")
    total = (X.astype(np.int64) * mul + add + (1 << shift >> 1)).astype(np.int32) >> shift
    return np.clip(A + np.clip(total, *limits(call.int("n_levels"), True)), INT16.lo, INT16.hi)


def _body(call: Call) -> Body:
    shift, (lo, hi) = power_of_two(call, "div"), limits(call.int("n_levels"), True)
    total = f"(uint32_t)X * (uint32_t)mul + (uint32_t)add + {1 << shift >> 1}u"
    scaled = f"tw_clamp((int32_t)({total}) >> {shift}, {lo}, {hi})"
    return Body(MappingProxyType({"Y": f"tw_clamp((int32_t)A + {scaled}, {INT16.lo}, {INT16.hi})"}))


def _sampled(spec: Example, random: np.random.Generator) -> Example:
    """An example of other sizes."""
    rows, columns = round(between(1, 64, random)), round(between(1, 512, random))
    factors = (f"int32[{columns}]",) * 2
    return replace(spec, inputs=(f"int32[{rows},{columns}]", *factors, f"int16[{rows},{columns}]"))


declare(
    Operator(
        "RequantAdd",
        "X mul add A",
        "Y",
        _infer,
        _domain,
        _reference,
        (
            example("int32[3,10]", "int32[10]", "int32[10]", "int16[3,10]", div=1 << 16, n_levels=1 << 24),
            example("int32[1,7]", "int32[7]", "int32[7]", "int16[1,7]", div=2, n_levels=256),
        ),
        MappingProxyType({"div": REQUIRED, "n_levels": REQUIRED}),
        "other",
        _body,
        doc=__doc__ or "",
        sample=_sampled,
    )
)
