"""A model as it was given, run by somebody else: by onnxruntime where that is installed and knows all operators."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from tilewright.core.graph import Array, Graph
from tilewright.core.interpret import interpret_all
from tilewright.frontend import with_all_outputs

TYPES = {"float": "float32", "double": "float64"}
"""Element types that onnxruntime calls otherwise than numpy."""


class Given(Struct, frozen=True):
    """All tensors of a model, by name."""

    by: str
    """Who computed them."""
    why: str
    """Why it was not onnxruntime, if it was not."""
    tensors: dict[str, Array]
    """Of onnxruntime, those whose names are the network's."""


def as_given(model: Path | Graph, source: Graph, fed: Sequence[Array]) -> Given:
    """Runs a model that was imported as `source`."""
    inputs = [*fed, *(state.initial for state in source.states)]
    computed = interpret_all(source, inputs)
    if isinstance(model, Graph):
        return Given("the interpreter", "the network is no file", computed)
    try:
        runtime: Any = importlib.import_module("onnxruntime")
    except ImportError:
        return Given("the interpreter", "onnxruntime is not installed (pip install onnxruntime)", computed)
    try:
        return Given("onnxruntime", "", _by_onnxruntime(runtime, model, source, inputs))
    except Exception as reason:  # it has no class for all that it refuses
        said = next(iter(str(reason).splitlines()), "") or type(reason).__name__
        return Given("the interpreter", f"onnxruntime does not run it: {said[:200]}", computed)


def _by_onnxruntime(runtime: Any, model: Path, source: Graph, inputs: Sequence[Array]) -> dict[str, Array]:
    content, outputs = with_all_outputs(model)
    options = runtime.SessionOptions()
    # What it optimises away cannot be looked at, and is not what the standard says.
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    given = dict(zip(source.inputs, inputs, strict=True))
    feeds = {port.name: _fit(given[port.name], port.type) for port in session.get_inputs()}
    found = zip(outputs, session.run(list(outputs), feeds), strict=True)
    arrays: dict[str, Array] = {name: np.asarray(array) for name, array in found if hasattr(array, "dtype")}
    known = {name: array for name, array in arrays.items() if name in source.types}
    shaped = {n: a.reshape(source.types[n].shape) for n, a in known.items() if a.size == source.types[n].size}
    return {**given, **shaped}


def _fit(array: Array, kind: str) -> Array:
    name = kind.removeprefix("tensor(").removesuffix(")")
    return np.ascontiguousarray(array).astype(np.dtype(TYPES.get(name, name)))
