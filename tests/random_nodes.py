"""Node i of seed S: a model of one node, of any operator of the standard or some of onnxruntime, and its results."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from node_makers import contributed, elementwise, layers, moves, spatial
from node_makers.drawing import Drawing, Impossible, Maker
from random_types import by_onnxruntime
from tilewright.core.graph import Array

MAKERS: dict[str, Maker] = {**elementwise.MAKERS, **layers.MAKERS, **moves.MAKERS, **spatial.MAKERS}
FOREIGN = contributed.forms()
OPERATORS = sorted(MAKERS | contributed.MAKERS)
TRIES = 60
UNTAUGHT = frozenset({"GRU", "LRN", "LSTM", "MaxPool", "OneHot", "QLinearConv", "RNN"})
"""Operators of which the evaluator of the standard knows only the plainest form, or computes some wrong."""
FLATTENING = frozenset({"Hardmax", "LogSoftmax", "Softmax"})
"""Before opset 13 they saw a matrix, which the evaluator does not know."""
_checker: Any = onnx.checker


def by_reference(model: onnx.ModelProto, fed: dict[str, Array]) -> list[Array]:
    """The outputs by the evaluator of the standard, which is written to be read."""
    evaluator: Any = ReferenceEvaluator(model)
    with np.errstate(all="ignore"):
        return [np.asarray(array) for array in evaluator.run(None, fed)]


def node(seed: int, index: int) -> tuple[onnx.ModelProto, dict[str, Array], list[tuple[Array, ...]]]:
    """A valid model, its inputs, and what each oracle says that takes it; operators come by turns.

    Oracles differ where the standard leaves something open, and where one of them is wrong.
    """
    op = OPERATORS[index % len(OPERATORS)]
    for attempt in range(TRIES):
        try:
            drawing = Drawing(op, (seed, index, attempt), FOREIGN.get(op))
            (MAKERS.get(op) or contributed.MAKERS[op])(drawing)
        except Impossible:
            continue
        model = drawing.model()
        found = answers(model, drawing.fed)
        if found and _is_valid(model, found[0]):
            return model, drawing.fed, found
    raise RuntimeError(f"none of {TRIES} nodes {op} for {seed}, {index} is valid")


def answers(model: onnx.ModelProto, fed: dict[str, Array]) -> list[tuple[Array, ...]]:
    """What the oracles say that take a model; they refuse what they do not know by exceptions of any kind."""
    found: list[tuple[Array, ...]] = []
    op, old = model.graph.node[0].op_type, model.opset_import[0].version < 13
    alone = op in UNTAUGHT or op in FOREIGN or (old and op in FLATTENING)
    oracles = [by_onnxruntime] if alone else [by_onnxruntime, by_reference]
    for oracle in oracles:
        with suppress(Exception):
            found.append(tuple(oracle(model, fed)))
    return found


def _is_valid(model: onnx.ModelProto, results: Sequence[Array]) -> bool:
    """Whether the standard's checker agrees, with the types that were computed."""
    for output, array in zip(model.graph.output, results, strict=True):
        kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        output.CopyFrom(onnx.helper.make_tensor_value_info(output.name, kind, array.shape))
    if model.graph.node[0].domain:
        return True
    try:
        _checker.check_model(model, full_check=True)
    except (_checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True
