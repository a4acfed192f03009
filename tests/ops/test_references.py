"""References against onnxruntime: every example of every standard operator as a network of one node.

Where onnxruntime has no code for some types, the reference evaluator of the onnx package takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import onnx
import onnx.defs
import onnxruntime as ort  # pyright: ignore[reportMissingTypeStubs]
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from tilewright.base.dtype import BFLOAT16
from tilewright.core.graph import Array
from tilewright.core.op import REGISTRY, Call, Example, arrays_of, call_example, evaluate
from tilewright.ops import operators

OPSET = 26
"""The newest set of operators that onnxruntime implements."""

NOT_COMPARED: Mapping[str, str] = {"GlobalLpPool": "onnxruntime and onnx have no code for it"}
"""Standard operators without any comparison, and why."""

ONLY_ONNXRUNTIME: Mapping[str, str] = {
    "GRU": "the evaluator of onnx knows no activations but the usual ones",
    "LSTM": "the evaluator of onnx does not couple gates",
    "RNN": "the evaluator of onnx knows no activations but the usual ones",
    "GlobalMaxPool": "the evaluator of onnx drops axes",
    "ReduceMax": "the evaluator of onnx says that the largest of no booleans is true",
    "ReduceSumSquare": "the evaluator of onnx gives unsigned integers another type",
}
"""Operators for which only onnxruntime is asked, and why."""

Arrays = Sequence[Array | None]


def _outside(call: Call, arrays: Arrays) -> bool:
    target, numbers = call.outputs[0].dtype, np.asarray(arrays[0])
    if not target.is_integer or numbers.dtype.kind in "iub":
        return False
    return bool(np.any(~(np.trunc(numbers) >= target.lo) | ~(np.trunc(numbers) <= target.hi)))


def _too_large(call: Call, arrays: Arrays) -> bool:
    base, exponent = (np.asarray(array).astype(np.float64) for array in arrays)
    kind = call.outputs[0].dtype
    return kind.is_integer and bool(np.any(np.abs(base**exponent) > kind.hi))


def _no_quotient(call: Call, arrays: Arrays) -> bool:
    """Integers divided by zero, or the smallest by -1: some processors trap."""
    kind = call.outputs[0].dtype
    above, below = (np.asarray(array) for array in arrays)
    return kind.is_integer and bool(np.any((below == 0) | ((kind.lo < 0) & (above == kind.lo) & (below == -1))))


def _wide_integers(call: Call) -> bool:
    return call.outputs[0].dtype.is_integer and call.outputs[0].dtype.bits == 64


ONLY_ONNX: Mapping[str, Callable[[Call], bool]] = {
    # onnxruntime compares the lower 32 bits of 64.
    "Clip": _wide_integers,
    "Sign": _wide_integers,
    # onnxruntime computes them in float64, which does not hold every int64.
    "Mod": _wide_integers,
    "ReduceSum": _wide_integers,
    # onnxruntime takes the indices in the given shape; the standard takes them in the shape before it is padded.
    "MaxUnpool": lambda call: call.has("output_shape"),
    # onnxruntime rounds the size before it aligns corners, reads past cropped regions and truncates integers.
    "Resize": lambda call: (
        call.text("coordinate_transformation_mode") in ("align_corners", "tf_crop_and_resize")
        or call.outputs[0].dtype.is_integer
    ),
}
"""Calls in which onnxruntime is known to deviate from the standard: only the evaluator of onnx is asked."""

LEFT_OPEN: Mapping[str, Callable[[Call, Arrays], bool]] = {
    # A number that the integer type does not hold.
    "Cast": _outside,
    "CastLike": _outside,
    "Div": _no_quotient,
    "Mod": _no_quotient,
    # A power that the integer type does not hold.
    "Pow": _too_large,
    # The mean of nothing.
    "ReduceMean": lambda _call, arrays: np.asarray(arrays[0]).size == 0,
    # The standard makes integers of indices first; onnxruntime and the evaluator of onnx compare them as they are.
    "OneHot": lambda _call, arrays: bool(np.any(np.asarray(arrays[0]) % 1)),
    # The numbers of an activation that is given none.
    "RNN": lambda call, _arrays: bool(call.attrs.get("activations")) and not call.attrs.get("activation_alpha"),
    # Any order is right.
    "TopK": lambda call, _arrays: not call.int("sorted"),
}
"""What the standard leaves open, or nobody else does as it says: there every implementation may differ from ours."""


def standard(call: Call, spec: Example) -> bool:
    """Whether an example means something in standard ONNX: no attribute and no element type of our own."""
    schema = onnx.defs.get_schema(call.op.name, OPSET, "")
    if not set(spec.attrs) <= set(schema.attributes):
        return False
    allowed = {c.type_param_str: set(c.allowed_type_strs) for c in schema.type_constraints}
    for index, kind in enumerate(call.inputs):
        formal = schema.inputs[min(index, len(schema.inputs) - 1)]
        names = {"float32": "float", "float64": "double"}
        if kind is not None:
            found = f"tensor({names.get(kind.dtype.name, kind.dtype.name)})"
            if found not in allowed.get(formal.type_str, {formal.type_str}):
                return False
    return True


def model_of(call: Call) -> onnx.ModelProto:
    """A network of one node; every input is an input of the network."""
    schema = onnx.defs.get_schema(call.op.name, OPSET, "")
    inputs = [("" if kind is None else f"in{i}", kind) for i, kind in enumerate(call.inputs)]
    outputs = [(f"out{i}", kind) for i, kind in enumerate(call.outputs)]
    node = helper.make_node(call.op.name, [n for n, _ in inputs], [n for n, _ in outputs])
    # onnxruntime wants to be told what the shape of the recurrent weights says.
    told = {"hidden_size": call.shape("R")[-1]} if "hidden_size" in schema.attributes else {}
    for key, value in {**call.attrs, **told}.items():
        if value is not None and key in schema.attributes:
            kind = cast("Any", schema.attributes[key].type)
            node.attribute.append(helper.make_attribute(key, value, attr_type=int(kind.value)))
    described = [
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(kind.dtype.numpy), shape)
            for name, kind, shape in rows
            if kind is not None
        ]
        for rows in ([(n, k, k.shape if k else None) for n, k in inputs], [(n, k, None) for n, k in outputs])
    ]
    graph = helper.make_graph([node], "one_node", described[0], described[1])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=11)


def by_onnxruntime(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array] | None:
    """The outputs of a network; None where onnxruntime has no code for its types."""
    options = cast("Any", ort).SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = cast("Any", ort).InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        return cast("list[Array]", session.run(None, feeds))
    except Exception as refusal:
        if not type(refusal).__module__.startswith("onnxruntime"):
            raise
        return None


def by_onnx(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array] | None:
    """The outputs by the evaluator of the onnx package; None where it gives up."""
    try:
        return cast("list[Array]", cast("Any", ReferenceEvaluator(model)).run(None, feeds))
    except (NotImplementedError, RuntimeError, TypeError, ValueError, IndexError):
        return None


def expected(call: Call, arrays: Arrays) -> list[Array] | None:
    """The outputs by an independent implementation; None where none of them takes the network."""
    name, model = call.op.name, model_of(call)
    feeds = {f"in{i}": array for i, array in enumerate(arrays) if array is not None}
    results = None if name in ONLY_ONNX and ONLY_ONNX[name](call) else by_onnxruntime(model, feeds)
    return results if results is not None or name in ONLY_ONNXRUNTIME else by_onnx(model, feeds)


def compare(found: Array, wanted: Array, what: str) -> None:
    assert found.shape == wanted.shape, what
    assert found.dtype == wanted.dtype, what
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted, err_msg=what)
        return
    tolerance = 3e-3 if wanted.dtype == np.float16 else 2e-5
    np.testing.assert_allclose(
        found.astype(np.float64), wanted.astype(np.float64), rtol=tolerance, atol=tolerance, err_msg=what
    )


def is_standard(name: str) -> bool:
    return onnx.defs.has(name, OPSET, "")


@pytest.mark.parametrize("name", [name for name in operators() if is_standard(name)])
def test_reference_agrees_with_an_independent_implementation(name: str) -> None:
    op, compared = REGISTRY[name], 0
    for index, spec in enumerate(op.examples):
        arrays = arrays_of(spec, seed=index)
        call = call_example(op, spec, arrays)
        # numpy has no bfloat16 of its own, so neither oracle takes it from here.
        half = any(kind is not None and kind.dtype == BFLOAT16 for kind in (*call.inputs, *call.outputs))
        if half or not standard(call, spec) or (name in LEFT_OPEN and LEFT_OPEN[name](call, arrays)):
            continue
        results = expected(call, arrays)
        if results is None:
            continue
        for found, wanted in zip(evaluate(call, arrays), results, strict=True):
            compare(found, np.asarray(wanted), f"{name} example {index} {spec.inputs} {dict(spec.attrs)}")
        compared += 1
    assert bool(compared) != (name in NOT_COMPARED), f"{compared} examples of {name} were compared"
