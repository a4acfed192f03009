"""Activation functions named by attributes (recurrent and fused operators): numpy and C forms of each, said once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct

from tilewright.base.dtype import DType
from tilewright.core.graph import Array, Attr
from tilewright.core.op import Call
from tilewright.ops.rules import number


class NamedActivation(Struct, frozen=True):
    """A kind of activation: defaults of its two parameters, numpy form, C form over `{x}`, `{a}`, `{b}`, `{f}`."""

    alpha: float
    beta: float
    numpy: Callable[[Array, float, float], Array]
    c: str


def _sigmoid(x: Array) -> Array:
    return np.exp(-np.logaddexp(0, -x))


FORMS: dict[str, NamedActivation] = {
    "": NamedActivation(0, 0, lambda x, _a, _b: x, "{x}"),
    "Sigmoid": NamedActivation(0, 0, lambda x, _a, _b: _sigmoid(x), "tw_sigmoid{f}({x})"),
    "Tanh": NamedActivation(0, 0, lambda x, _a, _b: np.tanh(x), "tw_tanh{f}({x})"),
    "Relu": NamedActivation(0, 0, lambda x, _a, _b: np.maximum(x, 0), "fmax{f}({x}, 0)"),
    "Affine": NamedActivation(1, 0, lambda x, a, b: a * x + b, "{a} * {x} + {b}"),
    "LeakyRelu": NamedActivation(0.01, 0, lambda x, a, _b: np.where(x >= 0, x, a * x), "{x} >= 0 ? {x} : {a} * {x}"),
    "ThresholdedRelu": NamedActivation(1, 0, lambda x, a, _b: np.where(x >= a, x, 0), "{x} >= {a} ? {x} : 0"),
    "ScaledTanh": NamedActivation(1, 1, lambda x, a, b: a * np.tanh(b * x), "{a} * tw_tanh{f}({b} * {x})"),
    "HardSigmoid": NamedActivation(
        0.2, 0.5, lambda x, a, b: np.clip(a * x + b, 0, 1), "fmin{f}(fmax{f}({a} * {x} + {b}, 0), 1)"
    ),
    "Elu": NamedActivation(
        1,
        0,
        lambda x, a, _b: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0))),
        "{x} >= 0 ? {x} : {a} * expm1{f}({x})",
    ),
    "Softsign": NamedActivation(0, 0, lambda x, _a, _b: x / (1 + np.abs(x)), "{x} / (1 + fabs{f}({x}))"),
    "Softplus": NamedActivation(
        0, 0, lambda x, _a, _b: np.logaddexp(0, x), "fmax{f}({x}, 0) + log1p{f}(exp{f}(-fabs{f}({x})))"
    ),
    "Clip": NamedActivation(-np.inf, np.inf, lambda x, a, b: np.clip(x, a, b), "fmin{f}(fmax{f}({x}, {a}), {b})"),
    "HardSwish": NamedActivation(
        1 / 6, 0.5, lambda x, a, b: x * np.clip(a * x + b, 0, 1), "{x} * fmin{f}(fmax{f}({a} * {x} + {b}, 0), 1)"
    ),
}
CODES = {name: code for code, name in enumerate(FORMS)}
"""The number by which C kernels know each kind, in the order above."""


class Activation(Struct, frozen=True):
    """An activation with its parameters."""

    name: str
    alpha: float
    beta: float

    def reference(self, x: Array) -> Array:
        return FORMS[self.name].numpy(x, self.alpha, self.beta)

    def c(self, x: str, kind: DType) -> str:
        """The C expression over `x`, an expression of the compute type of `kind`."""
        f = "f" if kind.compute == "float" else ""
        text = FORMS[self.name].c
        for key, value in (("{a}", number(self.alpha, kind)), ("{b}", number(self.beta, kind)), ("{f}", f), ("{x}", x)):
            text = text.replace(key, value)
        return text


def with_parameters(call: Call, name: str, given: Attr) -> Activation:
    """The activation an attribute names, with parameters from a list attribute or its defaults."""
    numbers = given if isinstance(given, tuple) else ()
    values = [float(v) for v in numbers if isinstance(v, (int, float))]
    return activation(call, name, values[0] if values else None, values[1] if len(values) > 1 else None)


def activation(call: Call, name: str, alpha: float | None, beta: float | None) -> Activation:
    """An activation by name, whatever its capitals; absent parameters take their defaults."""
    known = {key.lower(): key for key in FORMS}
    if name.lower() not in known:
        raise call.error(
            "bad-attribute", f"activation '{name}' is unknown", help=f"known: {', '.join(sorted(FORMS)[1:])}"
        )
    form = FORMS[known[name.lower()]]
    return Activation(known[name.lower()], form.alpha if alpha is None else alpha, form.beta if beta is None else beta)
