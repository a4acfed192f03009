"""Nodes of onnxruntime's own domain, which alone says what they compute."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from node_makers.drawing import Drawing, Form, Impossible, Maker, form_of
from node_makers.spatial import Window
from tilewright.base.dtype import DTYPES

DOMAIN = "com.microsoft"
_state: Any = importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state")


def forms() -> dict[str, Form]:
    schemas = [schema for schema in _state.get_all_operator_schema() if schema.domain == DOMAIN]
    return {schema.name: form_of(schema) for schema in schemas if schema.name in MAKERS}


def scale(d: Drawing, low: float = 0.01, high: float = 0.1, shape: tuple[int, ...] = ()) -> None:
    d.give(np.asarray(d.rng.uniform(low, high, shape), np.float32), constant=True)


def zero(d: Drawing, shape: tuple[int, ...] = ()) -> None:
    d.put(shape, -9, 9, constant=True)


def quantised(d: Drawing, shape: tuple[int, ...], *, constant: bool = False) -> None:
    """A tensor with scale and zero point."""
    d.put(shape, -128, 255, constant=constant)
    scale(d)
    zero(d)


def pair(d: Drawing) -> None:
    whole = d.shape(1)
    quantised(d, whole)
    quantised(d, whole if d.flip() else d.part(whole), constant=d.flip())
    scale(d, 0.05, 0.2)
    zero(d)


def activation(d: Drawing) -> None:
    shape = d.shape(1)
    if 0 in shape:
        raise Impossible
    quantised(d, shape)
    d.say("alpha", 0.2)
    scale(d)
    zero(d)


def pool(d: Drawing) -> None:
    window = Window(d, half=True)
    last = int(d.rarely())
    around = (d.between(1, 2), d.between(1, 3))
    shape = (around[0], *window.pixels, around[1]) if last else (*around, *window.pixels)
    quantised(d, shape)
    scale(d)
    zero(d)
    d.say("channels_last", last, always=True)
    if d.op == "QLinearAveragePool":
        window.say(d)
        if not window.auto:
            d.say("ceil_mode", d.below(2))
        d.say("count_include_pad", d.below(2))


def concat(d: Drawing) -> None:
    """Operands come in threes, behind scale and zero point of the result."""
    shape = d.shape(1)
    axis = d.axis(len(shape))
    kind = DTYPES[d.pick("int8", "uint8")].numpy
    scale(d)
    d.give(np.asarray(3).astype(kind), constant=True)
    for _ in range(d.between(1, 3)):
        own = list(shape)
        own[axis] = d.between(1, 3)
        d.give(d.noise(kind.name, own, -128, 255), constant=False)
        scale(d)
        d.give(np.asarray(d.between(0, 9)).astype(kind), constant=True)
    d.attributes["axis"] = axis


def gelu(d: Drawing) -> None:
    shape = d.shape(1)
    d.put(shape, constant=False)
    if d.op == "BiasGelu" or (d.op == "FastGelu" and d.flip()):
        d.put(shape[-1:])
    d.say("alpha", d.pick(1.702, 0.5))


def matmul(d: Drawing) -> None:
    lead, (m, k, n) = d.shape(0, 2), (d.between(1, 5) for _ in range(3))
    first, second = d.below(2), d.below(2)
    d.put((*lead, k, m) if first else (*lead, m, k))
    d.put((*lead, n, k) if second else (*lead, k, n))
    d.attributes.update(transA=first, transB=second)
    d.say("alpha", d.pick(0.5, -2.0))


def gemm(d: Drawing) -> None:
    m, k, n = (d.between(1, 6) for _ in range(3))
    first, second = d.below(2), d.below(2)
    d.put((k, m) if first else (m, k), constant=False)
    d.put((n, k) if second else (k, n))
    if d.flip():
        d.put(d.pick((n,), (m, 1), (1,), (m, n)))
    d.attributes.update(transA=first, transB=second, activation=d.pick("Relu", "LeakyRelu", "Sigmoid", "Tanh"))
    d.say("alpha", d.pick(0.5, -2.0))
    d.say("beta", d.pick(0.5, -2.0))
    if d.attributes["activation"] == "LeakyRelu":
        d.attributes["activation_alpha"] = 0.2


def conv(d: Drawing) -> None:
    window = Window(d)
    group, each, features = d.pick(1, 1, 2), d.between(1, 3), d.between(1, 3)
    d.put((1, group * each, *window.pixels), constant=False)
    d.put((group * features, each, *window.kernel))
    if d.flip():
        d.put((group * features,))
    window.say(d)
    d.say("group", group, always=group > 1)
    name, numbers = d.pick(("Relu", []), ("LeakyRelu", [0.2]), ("Sigmoid", []), ("Clip", [-1.0, 1.0]))
    d.attributes["activation"] = name
    if numbers:
        d.attributes["activation_params"] = numbers


def quantised_gemm(d: Drawing) -> None:
    m, k, n = (d.between(1, 6) for _ in range(3))
    first, second = d.below(2), d.below(2)
    many = (n,) if d.flip() else ()
    quantised(d, (k, m) if first else (m, k))
    d.put((n, k) if second else (k, n), -128, 255, constant=True)
    scale(d, shape=many)
    zero(d, many)
    if d.flip():
        d.put((n,), -1000, 1000, constant=True)
    else:
        d.skip()
    d.same("TYZ", "TA")
    if d.flip():
        scale(d, 0.3, 2)
        zero(d)
    d.attributes.update(transA=first, transB=second)
    d.say("alpha", d.pick(0.5, 2.0))


def scaled_matmul(d: Drawing) -> None:
    m, k, n = (d.between(1, 6) for _ in range(3))
    many = (n,) if d.flip() else ()
    dynamic = d.op == "DynamicQuantizeMatMul"
    d.put((m, k), -4 if dynamic else -128, 4 if dynamic else 255, constant=False)
    d.put((k, n), -128, 255, constant=True)
    if not dynamic:
        scale(d)
    scale(d, shape=many)
    if not dynamic:
        zero(d)
    if d.flip():
        zero(d, many)
        if d.flip():
            d.put((n,))


def skip_norm(d: Drawing) -> None:
    shape = (d.between(1, 2), d.between(1, 3), d.between(1, 7))
    d.put(shape, constant=False)
    d.put(shape)
    for _ in range(d.between(1, 3 if d.op == "SkipLayerNormalization" else 2)):
        d.put(shape[-1:])
    d.say("epsilon", d.pick(1e-5, 1e-2))


MAKERS: dict[str, Maker] = {
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), pair),
    **dict.fromkeys(("QLinearLeakyRelu", "QLinearSigmoid"), activation),
    **dict.fromkeys(("QLinearAveragePool", "QLinearGlobalAveragePool"), pool),
    **dict.fromkeys(("BiasGelu", "FastGelu", "QuickGelu"), gelu),
    **dict.fromkeys(("DynamicQuantizeMatMul", "MatMulIntegerToFloat"), scaled_matmul),
    **dict.fromkeys(("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"), skip_norm),
    "FusedConv": conv,
    "FusedGemm": gemm,
    "FusedMatMul": matmul,
    "QGemm": quantised_gemm,
    "QLinearConcat": concat,
}
