"""Small ONNX models for tests, written in one call."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Their types are only partly stated, and a test that uses them should not have to say so.
_onnx: Any = onnx
_checker: Any = onnx.checker
_runtime: Any = importlib.import_module("onnxruntime")

Array = np.ndarray[Any, Any]


def value(name: str, shape: Sequence[int | str | None] | None, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    """A graph input or output; extents may be names, or None."""
    return helper.make_tensor_value_info(name, kind, shape)


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    """A node with operands as space-separated names; `-` is an absent one. `domain` and `name` are no attributes."""
    given, made = (["" if name == "-" else name for name in text.split()] for text in (inputs, outputs))
    return helper.make_node(op, given, made, **attributes)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[str],
    *,
    constants: Mapping[str, Array] | None = None,
    opset: int = 20,
    functions: Sequence[onnx.FunctionProto] = (),
    domains: Sequence[str] = (),
) -> onnx.ModelProto:
    """A model whose outputs are declared float32 of unknown shape."""
    results = [value(name, None) for name in outputs]
    weights = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(list(nodes), "network", list(inputs), results, weights)
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=10)


def write(path: Path, content: onnx.ModelProto) -> Path:
    """Writes the model as it is, valid or not."""
    path.write_bytes(content.SerializeToString())
    return path


def write_apart(path: Path, content: onnx.ModelProto, data: str) -> Path:
    """Writes the model with its weights in the file `data` beside it."""
    _onnx.save_model(content, path, save_as_external_data=True, location=data, size_threshold=0)
    return path


def read(path: Path) -> onnx.ModelProto:
    """The model of a file, external data left where they are."""
    return _onnx.load(path, load_external_data=False)


def check(path: Path, *, types: bool = False) -> None:
    """Fails unless the file is a valid model; `types` has every type inferred and compared too."""
    _checker.check_model(path, full_check=types)


def onnxruntime_results(content: onnx.ModelProto, inputs: Mapping[str, Array]) -> list[Array]:
    """What onnxruntime computes."""
    options = _runtime.SessionOptions()
    # Some results depend on what each thread has.
    options.intra_op_num_threads = 1
    # On x86 it turns int8 into uint8 first, and fails with nodes of its own that have the type of neither (1.31).
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    session = _runtime.InferenceSession(content.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [np.asarray(result) for result in session.run(None, dict(inputs))]
