"""GlobalAveragePool, GlobalMaxPool, GlobalLpPool: one value per channel from all its pixels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from tilewright.core.domain import Axis, Domain, at, dim, domain
from tilewright.core.graph import Array, Attr, TensorType
from tilewright.core.op import Body, Call, Example, Operator, declare, example
from tilewright.ops.pool import power_body
from tilewright.ops.rules import lowest
from tilewright.ops.windows import is_channels_last, layout

EXAMPLES = (
    example("float32[2,3,4,5]"),
    example("float32[2,3,7]"),
    example("float32[1,2,3,2,4]"),
    example("float32[2,4,5,3]", channels_last=1),
    example("float64[1,3,4]"),
    example("float16[1,3,4,4]"),
)


def _spatial(call: Call) -> tuple[int, ...]:
    rank = call.type("X").rank
    if rank < 2:
        raise call.error("shape-mismatch", f"X needs a batch and a channel axis, found {call.type('X')}")
    return tuple(range(1, rank - 1)) if is_channels_last(call) else tuple(range(2, rank))


def _infer(call: Call) -> tuple[TensorType, ...]:
    x, reduced = call.type("X"), _spatial(call)
    return (x.with_shape(1 if axis in reduced else extent for axis, extent in enumerate(x.shape)),)


def _domain(call: Call) -> Domain:
    x, reduced = call.shape("X"), _spatial(call)
    names = [f"S{i}" for i in range(len(reduced))]
    pixels: list[Axis] = [dim(name) for name in names]
    single: list[Axis] = [at(0) for _ in names]
    access = {"X": layout(call, dim("N"), dim("C"), pixels), "Y": layout(call, dim("N"), dim("C"), single)}
    channels = x[-1] if is_channels_last(call) else x[1]
    sizes = {"N": x[0], "C": channels, **{name: x[axis] for name, axis in zip(names, reduced, strict=True)}}
    return domain(sizes, access, {"X": x, "Y": call.shape("Y")}, "Y", products={"PIXELS": names})


def _global(
    name: str,
    reference: Callable[[Call, Array], Array],
    body: Callable[[Call], Body],
    attrs: Mapping[str, Attr],
    examples: tuple[Example, ...],
) -> None:
    declare(
        Operator(
            name,
            "X",
            "Y",
            _infer,
            _domain,
            reference,
            EXAMPLES + examples,
            MappingProxyType({"channels_last": 0, **attrs}),
            "reduce",
            body,
        )
    )


def _average_body(call: Call) -> Body:
    kind = call.outputs[0].dtype.compute
    count = int(np.prod([call.shape("X")[axis] for axis in _spatial(call)]))
    return Body(MappingProxyType({"Y": f"acc / {count}"}), ((kind, "acc", "0"),), "acc += X;")


def _max_body(call: Call) -> Body:
    kind = call.outputs[0].dtype
    return Body(MappingProxyType({"Y": "best"}), ((kind.compute, "best", lowest(kind)),), "best = X > best ? X : best;")


def _power(call: Call, X: Array) -> Array:
    p = call.int("p")
    return (np.abs(X.astype(np.float64)) ** p).sum(axis=_spatial(call), keepdims=True) ** (1 / p)


_global(
    "GlobalAveragePool",
    lambda call, X: X.astype(np.float64).mean(axis=_spatial(call), keepdims=True),
    _average_body,
    {},
    (),
)
_global(
    "GlobalMaxPool",
    lambda call, X: X.max(axis=_spatial(call), keepdims=True),
    _max_body,
    {},
    (example("int8[1,2,3,3]"),),
)
_global(
    "GlobalLpPool", _power, power_body, {"p": 2}, (example("float32[1,2,3,4]", p=1), example("float32[1,2,3,4]", p=3))
)
