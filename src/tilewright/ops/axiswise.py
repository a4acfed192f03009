"""LogSoftmax, Hardmax and LpNormalization: each result needs the whole axis it lies on."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

import numpy as np

from tilewright.core.domain import Domain
from tilewright.core.graph import Array, Attr, TensorType
from tilewright.core.op import Call, Example, Operator, declare, example
from tilewright.ops.rules import axis_domain, float_type

_EXAMPLES = (
    example("float32[2,3,4]"),
    example("float32[2,3,4]", axis=1),
    example("float32[2,3,4]", axis=0),
    example("float32[5]", axis=0),
    example("float64[3,4]"),
    example("float16[3,4]"),
    example("float32[2,0]"),
)


def _axis(call: Call) -> int:
    return call.axis("axis", call.type("X").rank)


def _declare(
    name: str,
    reference: Callable[[Call, Array], Array],
    examples: tuple[Example, ...],
    infer: Callable[[Call], tuple[TensorType, ...]] = float_type,
    attrs: dict[str, Attr] | None = None,
) -> None:
    def domain(call: Call) -> Domain:
        return axis_domain(call, _axis(call))

    declare(
        Operator(name, "X", "Y", infer, domain, reference, examples, MappingProxyType({"axis": -1, **(attrs or {})}))
    )


def _log_softmax(call: Call, X: Array) -> Array:
    wide = X.astype(np.float64)
    shifted = wide - wide.max(axis=_axis(call), keepdims=True, initial=-np.inf)
    return shifted - np.log(np.sum(np.exp(shifted), axis=_axis(call), keepdims=True))


def _hardmax(call: Call, X: Array) -> Array:
    axis = _axis(call)
    result = np.zeros_like(X)
    if X.size:
        np.put_along_axis(result, np.expand_dims(np.argmax(X, axis), axis), 1, axis)
    return result


def _norm_type(call: Call) -> tuple[TensorType, ...]:
    if call.int("p") not in (1, 2):
        raise call.error("bad-attribute", f"p={call.int('p')} is not known", help="use 1 or 2")
    return float_type(call)


def _normalised(call: Call, X: Array) -> Array:
    wide, axis = X.astype(np.float64), _axis(call)
    if call.int("p") == 1:
        norm = np.sum(np.abs(wide), axis=axis, keepdims=True)
    else:
        norm = np.sqrt(np.sum(np.square(wide), axis=axis, keepdims=True))
    # A vector of zeros stays one.
    return np.where(norm == 0, 0.0, wide / np.where(norm == 0, 1.0, norm))


_declare("LogSoftmax", _log_softmax, (*_EXAMPLES, example(np.array([[1000.0, 1001.0], [-1000.0, 0.0]], np.float32))))
_declare("Hardmax", _hardmax, (*_EXAMPLES, example(np.array([[3, 3, 1], [1, 2, 2]], np.float32))))
_declare(
    "LpNormalization",
    _normalised,
    (
        *_EXAMPLES,
        example("float32[2,3,4]", p=1),
        example("float32[2,3,4]", p=1, axis=1),
        example(np.array([[0, 0, 0], [3, 4, 0]], np.float32)),
        example(np.array([[0, 0, 0], [3, -4, 0]], np.float32), p=1),
    ),
    _norm_type,
    {"p": 2},
)
