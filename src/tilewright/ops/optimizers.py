"""Optimizer steps: SGD, and Adagrad, Momentum and Adam for one tensor each."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import FLOAT32, FLOAT64, DType
from tilewright.core.domain import Axis, Domain, axis_names, dim
from tilewright.core.graph import Array, Attr, TensorType
from tilewright.core.op import REQUIRED, Body, Call, Example, Operator, declare, example
from tilewright.ops.quantized_rules import f32, need_scalar, s64, scalar_access
from tilewright.ops.rules import elementwise, expression, number, one_dtype


def _sgd(call: Call, w: Array, g: Array) -> Array:
    return w.astype(np.float64) - call.float("lr") * g.astype(np.float64)


def _sgd_body(call: Call) -> Body:
    kind = call.outputs[0].dtype
    return Body(
        MappingProxyType({"updated": "w - lr * g"}), constants=((kind.compute, "lr", number(call.float("lr"), kind)),)
    )


def _tensors(call: Call) -> tuple[str, ...]:
    return tuple(name for name in call.operands if name not in ("R", "T"))


def _infer(call: Call) -> tuple[TensorType, ...]:
    if len(call.inputs) > len(call.operands):
        raise call.error(
            "unsupported-operator", "several tensors in one step are not supported", help="use one node per tensor"
        )
    tensors = _tensors(call)
    first = call.type(tensors[0])
    one_dtype(call, tensors)
    if first.dtype not in (FLOAT32, FLOAT64):
        raise call.error("type-mismatch", f"tensors must be float32 or float64, found {first.dtype}")
    if any(call.shape(name) != first.shape for name in tensors):
        raise call.error("shape-mismatch", f"{', '.join(tensors)} must have one shape")
    need_scalar(call, *(name for name in ("R", "T") if name in call.operands))
    return (first,) * len(call.op.outputs.split())


def _domain(call: Call) -> Domain:
    shape = call.outputs[0].shape
    names = axis_names(len(shape))
    row: tuple[Axis, ...] = tuple(dim(n) for n in names)
    outputs = call.op.output_names(len(call.outputs))
    access = dict.fromkeys((*_tensors(call), *outputs), row) | scalar_access(call, "R", "T")
    return Domain(
        MappingProxyType(dict(zip(names, shape, strict=True))),
        MappingProxyType(access),
        MappingProxyType({operand: call.shape(operand) for operand in access}),
        outputs,
        products=MappingProxyType({"SIZE": names}),
    )


elementwise(
    "SGD",
    "w g",
    _sgd,
    _sgd_body,
    infer=_infer,
    attrs={"lr": REQUIRED},
    examples=(example("float32[4,5]", "float32[4,5]", lr=0.01), example("float64[7]", "float64[7]", lr=0.1)),
    output="updated",
    doc="`w - lr * g`.",
)


def _numbers(call: Call, kind: DType) -> tuple[tuple[str, str, str], ...]:
    """The attributes of an optimizer as constants of its body."""
    named = (name for name in call.op.attrs if name != "mode")
    return tuple((kind.compute, name, number(call.float(name), kind)) for name in named)


def _optimizer(
    name: str,
    tensors: str,
    outputs: str,
    attrs: dict[str, Attr],
    reference: Callable[..., tuple[Array, ...]],
    body: Callable[[Call], tuple[tuple[tuple[str, str], ...], tuple[str, ...]]],
    examples: tuple[Example, ...],
    doc: str,
) -> None:
    """Declares an optimizer; `body` gives its intermediate values and the expression of each output."""

    def c(call: Call) -> Body:
        kind = call.outputs[0].dtype
        state, results = body(call)
        return Body(
            MappingProxyType(dict(zip(outputs.split(), (expression(call, text) for text in results), strict=True))),
            tuple((kind.compute, local, expression(call, text)) for local, text in state),
            constants=_numbers(call, kind),
        )

    def wide(call: Call, R: Array, T: Array, *arrays: Array) -> tuple[Array, ...]:
        return reference(call, float(R.reshape(())), int(T.reshape(())), *(a.astype(np.float64) for a in arrays))

    declare(
        Operator(
            name,
            f"R T {tensors}",
            outputs,
            _infer,
            _domain,
            wide,
            examples,
            MappingProxyType(attrs),
            "other",
            c,
            doc=doc,
        )
    )


RATE, STEP = f32(0.1), s64(3)
TENSOR, SQUARES = "float32[3,4]", np.linspace(0.1, 2, 12).reshape(3, 4).astype(np.float32)


def _adagrad(call: Call, rate: float, step: int, X: Array, G: Array, H: Array) -> tuple[Array, ...]:
    gradient = call.float("norm_coefficient") * X + G
    squares = H + gradient * gradient
    decayed = rate / (1 + step * call.float("decay_factor"))
    return X - decayed * gradient / (np.sqrt(squares) + call.float("epsilon")), squares


_optimizer(
    "Adagrad",
    "X G H",
    "X_new H_new",
    {"decay_factor": 0.0, "epsilon": 0.0, "norm_coefficient": 0.0},
    _adagrad,
    lambda _call: (
        (
            ("gradient", "norm_coefficient * X + G"),
            ("squares", "H + gradient * gradient"),
            ("rate", "({T})R / (1 + ({T})T * decay_factor)"),
        ),
        ("X - rate * gradient / (sqrt{f}(squares) + epsilon)", "squares"),
    ),
    (example(RATE, STEP, TENSOR, TENSOR, SQUARES, wanted=2, norm_coefficient=0.01, epsilon=1e-5, decay_factor=0.1),),
    "One step of Adagrad for one tensor.",
)


def _momentum(call: Call, rate: float, step: int, X: Array, G: Array, V: Array) -> tuple[Array, ...]:
    gradient = call.float("norm_coefficient") * X + G
    adjusted = call.float("beta") if step > 0 else 1.0
    velocity = call.float("alpha") * V + adjusted * gradient
    if call.text("mode") == "nesterov":
        return X - rate * (gradient + call.float("alpha") * velocity), velocity
    return X - rate * velocity, velocity


def _momentum_c(call: Call) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    if call.text("mode") not in ("standard", "nesterov"):
        raise call.error("bad-attribute", f"mode={call.text('mode')} is neither standard nor nesterov")
    step = "gradient + alpha * velocity" if call.text("mode") == "nesterov" else "velocity"
    return (
        (
            ("gradient", "norm_coefficient * X + G"),
            ("velocity", "alpha * V + (T > 0 ? beta : 1) * gradient"),
        ),
        (f"X - ({{T}})R * ({step})", "velocity"),
    )


_optimizer(
    "Momentum",
    "X G V",
    "X_new V_new",
    {"alpha": REQUIRED, "beta": REQUIRED, "mode": REQUIRED, "norm_coefficient": REQUIRED},
    _momentum,
    _momentum_c,
    tuple(
        example(RATE, step, TENSOR, TENSOR, TENSOR, wanted=2, alpha=0.95, beta=0.85, norm_coefficient=0.001, mode=mode)
        for step, mode in ((STEP, "standard"), (s64(0), "nesterov"))
    ),
    "One step of momentum or Nesterov momentum for one tensor.",
)


def _adam(call: Call, rate: float, step: int, X: Array, G: Array, V: Array, H: Array) -> tuple[Array, ...]:
    alpha, beta = call.float("alpha"), call.float("beta")
    gradient = call.float("norm_coefficient") * X + G
    mean = alpha * V + (1 - alpha) * gradient
    squares = beta * H + (1 - beta) * gradient * gradient
    adjusted = rate * np.sqrt(1 - beta**step) / (1 - alpha**step) if step > 0 else rate
    moved = X - adjusted * mean / (np.sqrt(squares) + call.float("epsilon"))
    return (1 - call.float("norm_coefficient_post")) * moved, mean, squares


_optimizer(
    "Adam",
    "X G V H",
    "X_new V_new H_new",
    {"alpha": 0.9, "beta": 0.999, "epsilon": 0.0, "norm_coefficient": 0.0, "norm_coefficient_post": 0.0},
    _adam,
    lambda _call: (
        (
            ("gradient", "norm_coefficient * X + G"),
            ("mean", "alpha * V + (1 - alpha) * gradient"),
            ("squares", "beta * H + (1 - beta) * gradient * gradient"),
            ("bias", "sqrt{f}(1 - pow{f}(beta, ({T})T)) / (1 - pow{f}(alpha, ({T})T))"),
            ("rate", "T > 0 ? ({T})R * bias : ({T})R"),
        ),
        ("(1 - norm_coefficient_post) * (X - rate * mean / (sqrt{f}(squares) + epsilon))", "mean", "squares"),
    ),
    (
        example(
            RATE, STEP, TENSOR, TENSOR, TENSOR, SQUARES, wanted=3, alpha=0.95, beta=0.1, epsilon=1e-7,
            norm_coefficient=0.001, norm_coefficient_post=0.01,
        ),
        example(RATE, s64(0), TENSOR, TENSOR, TENSOR, SQUARES, wanted=3, epsilon=1e-2),
    ),
    "One step of Adam for one tensor.",
)  # fmt: skip
