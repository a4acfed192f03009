"""Activation functions: element-wise, of one input and attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import FLOAT64
from tilewright.core.graph import Array, Attr, TensorType
from tilewright.core.op import Body, Call, Example, example
from tilewright.ops.rules import (
    broadcast,
    elementwise,
    float_type,
    number,
    one_dtype,
    same_type,
    truncate,
    truncated,
)
from tilewright.ops.unary import FLOATS, erf

WIDE = example(np.linspace(-9, 9, 24).reshape(2, 12).astype(np.float32))
BASIC = (*FLOATS, WIDE)


def sigmoid(X: Array) -> Array:
    # Both branches of the textbook formula, so that neither overflows.
    powers = np.exp(-np.abs(X))
    return np.where(X >= 0, 1.0, powers) / (1.0 + powers)


def softplus(X: Array) -> Array:
    return np.maximum(X, 0.0) + np.log1p(np.exp(-np.abs(X)))


def gelu(X: Array) -> Array:
    return 0.5 * X * (1.0 + erf(X * np.sqrt(0.5)))


def tanh_gelu(X: Array) -> Array:
    return 0.5 * X * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (X + 0.044715 * X**3)))


SOFTPLUS_C = "(X < 0 ? 0 : X) + log1p{f}(tw_exp{f}(-fabs{f}(X)))"


def _clamped(text: str) -> str:
    """C text of an expression limited to 0..1; comparisons become vector code everywhere, fmin and fmax do not."""
    return f"({text} < 0 ? 0 : {text} > 1 ? 1 : {text})"


def _activation(
    name: str,
    function: Callable[[Array, Mapping[str, float]], Array],
    c: str,
    *,
    attrs: dict[str, Attr] | None = None,
    examples: tuple[Example, ...] = BASIC,
) -> None:
    """An activation whose attributes are numbers; `{alpha}` in the C text is the literal of the attribute `alpha`."""
    named = attrs or {}

    def reference(call: Call, X: Array) -> Array:
        return function(X.astype(np.float64), {key: call.float(key) for key in named})

    def text(call: Call) -> str:
        filled = c
        for key in named:
            filled = filled.replace("{" + key + "}", number(call.float(key), call.type("X").dtype))
        return filled

    elementwise(name, "X", reference, text, infer=float_type, attrs=named, examples=examples)


def _varied(**attributes: Attr) -> tuple[Example, ...]:
    """The basic examples, and some with other attributes."""
    return (
        *BASIC,
        Example(WIDE.inputs, attributes),
        Example(("float64[7]",), attributes),
        Example(("float16[7]",), attributes),
    )


def _relu(_call: Call, X: Array) -> Array:
    return np.maximum(X, 0)


def _relu_body(call: Call) -> Body:
    text = "X" if call.type("X").dtype.kind == "uint" else "X < 0 ? 0 : X"
    return Body(MappingProxyType({"Y": text}), lanes="X" if text == "X" else "tw_lanes_at_least(X, 0)")


# The comparison keeps NaN, and both gcc and clang turn it into a vector maximum.
elementwise(
    "Relu",
    "X",
    _relu,
    _relu_body,
    infer=same_type,
    examples=(*BASIC, example("int8[3,4]"), example("int32[5]"), example("uint8[5]")),
)
_activation(
    "LeakyRelu",
    lambda X, a: np.where(X < 0, a["alpha"] * X, X),
    "X < 0 ? {alpha} * X : X",
    attrs={"alpha": 0.01},
    examples=_varied(alpha=0.25),
)
_activation(
    "Elu",
    lambda X, a: np.where(X < 0, a["alpha"] * np.expm1(X), X),
    "X < 0 ? {alpha} * expm1{f}(X) : X",
    attrs={"alpha": 1.0},
    examples=_varied(alpha=2.5),
)
_activation(
    "Celu",
    lambda X, a: np.maximum(X, 0) + np.minimum(0, a["alpha"] * np.expm1(X / a["alpha"])),
    "X < 0 ? {alpha} * expm1{f}(X / {alpha}) : X",
    attrs={"alpha": 1.0},
    examples=_varied(alpha=2.5),
)
_activation(
    "Selu",
    lambda X, a: np.where(X <= 0, a["gamma"] * a["alpha"] * np.expm1(X), a["gamma"] * X),
    "X <= 0 ? {gamma} * {alpha} * expm1{f}(X) : {gamma} * X",
    attrs={"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875},
    examples=_varied(alpha=2.0, gamma=3.0),
)
_activation("Sigmoid", lambda X, _: sigmoid(X), "tw_sigmoid{f}(X)")
_activation(
    "HardSigmoid",
    lambda X, a: np.clip(a["alpha"] * X + a["beta"], 0.0, 1.0),
    _clamped("({alpha} * X + {beta})"),
    attrs={"alpha": 0.2, "beta": 0.5},
    examples=_varied(alpha=0.5, beta=0.6),
)
_activation(
    "HardSwish", lambda X, _: X * np.clip(X / 6 + 0.5, 0.0, 1.0), "X * " + _clamped("(X * ({T})(1.0 / 6.0) + ({T})0.5)")
)
_activation("Softplus", lambda X, _: softplus(X), SOFTPLUS_C)
_activation("Softsign", lambda X, _: X / (1.0 + np.abs(X)), "X / (1 + fabs{f}(X))")
_activation(
    "ThresholdedRelu",
    lambda X, a: np.where(a["alpha"] < X, X, 0.0),
    "X > {alpha} ? X : 0",
    attrs={"alpha": 1.0},
    examples=_varied(alpha=2.0),
)
_activation("Mish", lambda X, _: X * np.tanh(softplus(X)), f"X * tw_tanh{{f}}({SOFTPLUS_C})")
_activation(
    "Swish",
    lambda X, a: X * sigmoid(a["alpha"] * X),
    "X * tw_sigmoid{f}({alpha} * X)",
    attrs={"alpha": 1.0},
    examples=_varied(alpha=0.5),
)
_activation(
    "QuickGelu",
    lambda X, a: X * sigmoid(a["alpha"] * X),
    "X * tw_sigmoid{f}({alpha} * X)",
    attrs={"alpha": 1.702},
    examples=_varied(alpha=1.0),
)


def _gelu_c(argument: str) -> str:
    return f"({{T}})0.5 * {argument} * (1 + tw_erf{{f}}({argument} * ({{T}})0.70710678118654752))"


def _tanh_gelu_c(argument: str) -> str:
    # x + 0.044715 x^3, with x taken out; tanh(u) = 2 sigmoid(2u) - 1, so half of (1 + tanh) is one sigmoid.
    inner = f"({{T}})1.5957691216057308 * {argument} * (1 + ({{T}})0.044715 * {argument} * {argument})"
    return f"{argument} * tw_sigmoid{{f}}({inner})"


def _by_tanh(call: Call) -> bool:
    kind = call.text("approximate")
    if kind not in ("none", "tanh"):
        raise call.error("bad-attribute", f"approximate='{kind}' is not known", help="use 'none' or 'tanh'")
    return kind == "tanh"


def _gelu(call: Call, X: Array) -> Array:
    return (tanh_gelu if _by_tanh(call) else gelu)(X.astype(np.float64))


elementwise(
    "Gelu",
    "X",
    _gelu,
    lambda call: _tanh_gelu_c("X") if _by_tanh(call) else _gelu_c("X"),
    infer=float_type,
    attrs={"approximate": "none"},
    examples=_varied(approximate="tanh"),
)


def _biased(call: Call) -> tuple[TensorType, ...]:
    """The first input's type; the second, where there is one, is added along the last axis."""
    (kind,) = float_type(call)
    for operand in call.operands[1:]:
        if call.has(operand):
            one_dtype(call, (call.operands[0], operand))
            if call.shape(operand) != kind.shape[-1:]:
                raise call.error(
                    "shape-mismatch", f"{operand} {call.type(operand)} is not one number per column of {kind}"
                )
    return (kind,)


def _bias_gelu(_call: Call, A: Array, B: Array) -> Array:
    return gelu(A.astype(np.float64) + B.astype(np.float64))


def _fast_gelu(_call: Call, X: Array, bias: Array | None = None) -> Array:
    return tanh_gelu(X.astype(np.float64) + (0.0 if bias is None else bias.astype(np.float64)))


elementwise(
    "BiasGelu",
    "A B",
    _bias_gelu,
    _gelu_c("(A + B)"),
    infer=_biased,
    examples=(example("float32[2,3,8]", "float32[8]"), example("float64[3,4]", "float64[4]")),
    output="C",
)
elementwise(
    "FastGelu",
    "X bias?",
    _fast_gelu,
    lambda call: _tanh_gelu_c("(X + bias)" if call.has("bias") else "X"),
    infer=_biased,
    examples=(
        example("float32[2,3,8]"),
        example("float32[2,3,8]", "float32[8]"),
        example("float16[3,4]", "float16[4]"),
    ),
)


def _shrink(call: Call, X: Array) -> Array:
    lambd, bias, wide = call.float("lambd"), call.float("bias"), X.astype(np.float64)
    result = np.where(wide < -lambd, wide + bias, np.where(wide > lambd, wide - bias, 0.0))
    kind = call.type("X").dtype
    return result if kind.is_float else truncate(result, kind)


def _shrink_c(call: Call) -> str:
    kind = call.type("X").dtype
    value, real_kind = ("X", "{T}") if kind.is_float else ("(double)X", "double")
    lambd, bias = (f"({real_kind}){call.float(name)!r}" for name in ("lambd", "bias"))
    result = f"{value} < -{lambd} ? {value} + {bias} : {value} > {lambd} ? {value} - {bias} : 0"
    return result if kind.is_float else truncated(f"({result})", FLOAT64, kind)


elementwise(
    "Shrink",
    "X",
    _shrink,
    _shrink_c,
    infer=same_type,
    attrs={"bias": 0.0, "lambd": 0.5},
    examples=(
        *_varied(lambd=1.5, bias=1.5),
        example("int32[9]", lambd=3.0, bias=2.0),
        example("uint8[9]", lambd=100.0, bias=2.0),
    ),
)


def _prelu_type(call: Call) -> tuple[TensorType, ...]:
    (kind,) = same_type(call)
    one_dtype(call, ("X", "slope"))
    if broadcast(call, kind.shape, call.shape("slope")) != kind.shape:
        raise call.error("shape-mismatch", f"slope {call.type('slope')} does not broadcast to {kind}")
    return (kind,)


def _prelu_c(call: Call) -> str:
    kind = call.type("X").dtype
    if kind.is_float:
        return "X < 0 ? X * slope : X"
    unsigned = f"uint{max(32, kind.bits)}_t"
    return "X" if kind.kind == "uint" else f"X < 0 ? ({kind.ctype})(({unsigned})X * ({unsigned})slope) : X"


def _prelu(_call: Call, X: Array, slope: Array) -> Array:
    return np.where(X < 0, X * slope, X)


elementwise(
    "PRelu",
    "X slope",
    _prelu,
    _prelu_c,
    infer=_prelu_type,
    examples=(
        example("float32[2,3,4]", "float32[2,3,4]"),
        example("float32[2,3,4]", "float32[3,1]"),
        example("float32[5]", "float32[1]"),
        example("float64[2,3]", "float64[3]"),
        example("float16[2,3]", "float16[3]"),
        example("int32[2,9]", "int32[9]"),
        example("uint32[4]", "uint32[4]"),
    ),
)
