"""MaxUnpool: values back at the places a MaxPool took them from, zero elsewhere.

Indices count elements of the tensor that was pooled. They must lie in the window of their own output, as MaxPool makes
them; so an output element only looks at the windows that cover it.
"""

from __future__ import annotations

from math import prod
from types import MappingProxyType

import numpy as np

from tilewright.core.domain import Axis, Domain, dim, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import REQUIRED, Body, Call, Operator, declare, example
from tilewright.ops.indexing import grid, integers


def _geometry(call: Call) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Kernel, strides and leading pads of the pool that is undone."""
    kernel = call.ints("kernel_shape")
    strides = call.ints("strides") or (1,) * len(kernel)
    pads = call.ints("pads") or (0,) * (2 * len(kernel))
    if len(kernel) != call.type("X").rank - 2 or len(strides) != len(kernel) or len(pads) != 2 * len(kernel):
        raise call.error(
            "bad-attribute", f"kernel_shape, strides and pads must suit the image axes of {call.type('X')}"
        )
    return kernel, strides, pads


def _pooled_shape(call: Call) -> tuple[int, ...]:
    """The shape that was pooled, which indices refer to."""
    kernel, strides, pads = _geometry(call)
    shape = call.shape("X")
    rank = len(kernel)
    spatial = [(shape[i + 2] - 1) * strides[i] + kernel[i] - pads[i] - pads[i + rank] for i in range(rank)]
    return (*shape[:2], *spatial)


def _infer(call: Call) -> tuple[TensorType, ...]:
    data = call.type("X")
    shape = _pooled_shape(call)
    if call.shape("I") != data.shape:
        raise call.error("shape-mismatch", f"I {call.type('I')} must have the shape of X {data}")
    if call.has("output_shape"):
        wanted = integers(call, "output_shape")
        if len(wanted) != data.rank or any(w < s for w, s in zip(wanted, shape, strict=False)):
            raise call.error("shape-mismatch", f"output_shape {list(wanted)} does not hold the pooled {list(shape)}")
        shape = wanted
    return (data.with_shape(shape),)


def _domain(call: Call) -> Domain:
    sizes, access = grid(call.shape("output"))
    kernel, strides, pads = _geometry(call)
    source: list[Axis] = [*access[:2]]
    for i, extent in enumerate(kernel):
        sizes[f"K{i}"] = extent
        source.append((access[i + 2] + pads[i] - dim(f"K{i}")).over(strides[i], exact=True))
    maps: dict[str, list[Axis]] = {"X": source, "I": source, "output": [*access]}
    return domain(sizes, maps, {name: call.shape(name) for name in maps}, "output")


def _reference(call: Call, X: Array, I: Array, *_: Array | None) -> Array:  # noqa: E741
    shape = _pooled_shape(call)
    pooled = np.zeros(prod(shape), X.dtype)
    pooled[I.reshape(-1)] = X.reshape(-1)
    result = np.zeros(call.outputs[0].shape, X.dtype)
    result[tuple(slice(extent) for extent in shape)] = pooled.reshape(shape)
    return result


def _body(call: Call) -> Body:
    shape = _pooled_shape(call)
    index = "(int64_t)D0"
    for i, extent in enumerate(shape[1:], 1):
        index = f"({index}) * {extent} + D{i}"
    inside = [f"D{i} < {s}" for i, (s, out) in enumerate(zip(shape, call.outputs[0].shape, strict=True)) if s < out]
    hit = " && ".join([*inside, f"I == {index}"])
    state = ((call.outputs[0].dtype.compute, "value", "0"),)
    return Body(MappingProxyType({"output": "value"}), state, f"if ({hit}) value = X;")


declare(
    Operator(
        "MaxUnpool",
        "X I output_shape?",
        "output",
        _infer,
        _domain,
        _reference,
        (
            example("float32[1,1,2,2]", np.array([[[[5, 7], [13, 15]]]]), kernel_shape=(2, 2), strides=(2, 2)),
            example(
                "float32[1,1,2,2]", np.array([[[[5, 7], [13, 15]]]]), [1, 1, 5, 5], kernel_shape=(2, 2), strides=(2, 2)
            ),
            example("float32[1,2,3]", np.array([[[0, 2, 4], [6, 7, 9]]]), kernel_shape=(3,), strides=(1,)),
            example("int8[1,1,2]", np.array([[[1, 3]]]), kernel_shape=(3,), strides=(2,), pads=(1, 0)),
        ),
        MappingProxyType({"kernel_shape": REQUIRED, "pads": None, "strides": None}),
        body=_body,
        compile_time=frozenset({"output_shape"}),
    )
)
