"""Arrays of the test cases that ONNX itself uses: one protobuf file per input and output of a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from tilewright.core.graph import Array
from tilewright.errors import TilewrightError
from tilewright.frontend.proto import ExternalData, ProtoReader
from tilewright.frontend.raw import Unsupported


def read_test_data(model: Path, folder: Path) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Inputs and expected outputs of a model: `input_0.pb`, ... and `output_0.pb`, ... of a folder."""
    try:
        message = onnx.ModelProto()
        message.ParseFromString(model.read_bytes())
        graph = message.graph
        initialised = {tensor.name for tensor in graph.initializer}
        inputs = _arrays(graph.input, folder, "input")
        kept = [array for value, array in zip(graph.input, inputs, strict=True) if value.name not in initialised]
        return tuple(kept), _arrays(graph.output, folder, "output")
    except (OSError, DecodeError) as reason:
        raise TilewrightError("bad-case", f"the arrays of '{folder}' cannot be read", reasons=[str(reason)]) from reason


def _arrays(values: Sequence[onnx.ValueInfoProto], folder: Path, prefix: str) -> tuple[Array, ...]:
    return tuple(_array(value, folder / f"{prefix}_{index}.pb") for index, value in enumerate(values))


def _array(value: onnx.ValueInfoProto, path: Path) -> Array:
    kind = value.type.WhichOneof("value")
    # What such a file holds is written nowhere but in the model.
    if kind != "tensor_type":
        raise _unsupported(value.name, f"kind {(kind or 'none').removesuffix('_type')}")
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    array = ProtoReader(ExternalData([path.parent]), {}).tensor(tensor)
    if isinstance(array, Unsupported):
        raise _unsupported(value.name, array.what)
    return array


def _unsupported(name: str, what: str) -> TilewrightError:
    return TilewrightError(
        "unsupported-type", f"'{name}' has {what}", help="only tensors of numbers and bool are supported"
    )
