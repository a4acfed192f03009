"""Reads ONNX protobuf: files, tensors with external data, attributes, nodes and functions become raw values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import numpy_helper

from tilewright.core.descriptions import stem_of
from tilewright.core.dtype import INT8, UINT8, DType
from tilewright.core.graph import Array
from tilewright.errors import TilewrightError
from tilewright.frontend.raw import NEWEST, Declared, Function, RawAttr, RawModel, RawNode, Ref, Subgraph, Unsupported
from tilewright.ops.rules import ELEMENT_TYPES

EXACT_TYPES = "tilewright.exact_types"
"""Metadata of files written by `save`: their element types are not to be inferred again."""

QUANTISER = "PACTOps"
"""The domain of a quantiser that writes old opsets but means Softmax over the last axis, as newer ones do."""

WIDENED: dict[int, DType] = {onnx.TensorProto.INT4: INT8, onnx.TensorProto.UINT4: UINT8}
"""Element types of constants whose values are kept in wider ones; how many bits they need is seen from the values."""

CODE_OF_DTYPE = {dtype: code for code, dtype in ELEMENT_TYPES.items()}


def read_model(path: Path) -> RawModel:
    """The model of a file."""
    try:
        content = path.read_bytes()
    except OSError as reason:
        raise TilewrightError(
            "missing-file", f"'{path}' cannot be read", reasons=[str(reason)], help="pass the path of an .onnx file"
        ) from reason
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError as reason:
        raise _bad_model(path, str(reason)) from reason
    if not model.HasField("graph") or not (model.graph.node or model.graph.output):
        raise _bad_model(path, "it holds no graph")
    return Reader(path.parent, _versions(model.opset_import)).model(model, stem_of(path))


def _bad_model(path: Path, reason: str) -> TilewrightError:
    return TilewrightError(
        "bad-model",
        f"'{path}' is not an ONNX model",
        reasons=[reason],
        help="export the network again, or check that the download is complete",
    )


def _versions(imports: Iterable[onnx.OperatorSetIdProto]) -> Mapping[str, int]:
    """Opset by domain; where a file states one twice, the newest counts."""
    versions: dict[str, int] = {}
    for entry in imports:
        domain = _domain(entry.domain)
        versions[domain] = max(entry.version, versions.get(domain, 0))
    return versions


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


class Reader:
    """Turns protobuf messages into raw values; knows where external data lie and which opsets are meant."""

    def __init__(self, folder: Path, versions: Mapping[str, int]) -> None:
        self._folder = folder
        self._versions = versions

    def model(self, model: onnx.ModelProto, name: str) -> RawModel:
        graph = model.graph
        initialisers = self._initialisers(graph)
        metadata = {entry.key: entry.value for entry in model.metadata_props}
        return RawModel(
            graph.name or name,
            tuple(_declared(value) for value in graph.input if value.name not in initialisers),
            tuple(value.name for value in graph.output),
            tuple(self.node(node) for node in graph.node),
            initialisers,
            {(_domain(f.domain), f.name): self.function(f) for f in model.functions},
            {
                v.name: len(shape)
                for v in (*graph.value_info, *graph.output)
                if (shape := _declared(v).shape) is not None
            },
            metadata.get(EXACT_TYPES) == "1",
        )

    def function(self, function: onnx.FunctionProto, extra: Mapping[str, RawAttr] = MappingProxyType({})) -> Function:
        """A function; `extra` are attribute defaults stated elsewhere (in the operator's schema)."""
        versions = _versions(function.opset_import) or self._versions
        reader = Reader(self._folder, versions)
        defaults: dict[str, RawAttr] = dict(extra)
        defaults.update({a.name: reader.attribute(a) for a in function.attribute_proto})
        return Function(
            tuple(function.input), tuple(function.output), tuple(reader.node(n) for n in function.node), defaults
        )

    def node(self, node: onnx.NodeProto) -> RawNode:
        domain = _domain(node.domain)
        attrs = {attribute.name: self.attribute(attribute) for attribute in node.attribute}
        # Only the standard's own operators changed form over time in ways that `upgrade` knows.
        version = NEWEST if domain else self._versions.get("", NEWEST)
        if node.op_type == "Softmax" and "axis" not in attrs and QUANTISER in self._versions:
            version = NEWEST
        return RawNode(node.op_type, tuple(node.input), tuple(node.output), attrs, node.name, domain, version)

    def attribute(self, attribute: onnx.AttributeProto) -> RawAttr:
        if attribute.ref_attr_name:
            return Ref(attribute.ref_attr_name)
        kind = onnx.AttributeProto
        match attribute.type:
            case kind.FLOAT:
                return float(np.float32(attribute.f))
            case kind.INT:
                return attribute.i
            case kind.STRING:
                return attribute.s.decode("utf-8", "replace")
            case kind.FLOATS:
                return tuple(attribute.floats)
            case kind.INTS:
                return tuple(attribute.ints)
            case kind.STRINGS:
                return tuple(s.decode("utf-8", "replace") for s in attribute.strings)
            case kind.TENSOR:
                return self.tensor(attribute.t)
            case kind.GRAPH:
                return self._subgraph(attribute.g)
            case _:
                return Unsupported(f"attribute '{attribute.name}' of kind {kind.AttributeType.Name(attribute.type)}")

    def tensor(self, tensor: onnx.TensorProto) -> Array | Unsupported:
        external = tensor.data_location == onnx.TensorProto.EXTERNAL
        dtype = ELEMENT_TYPES.get(tensor.data_type) or (None if external else WIDENED.get(tensor.data_type))
        if dtype is None:
            return Unsupported(f"element type {_type_name(tensor.data_type)}")
        if external:
            return self._external(tensor, dtype)
        try:
            return np.asarray(numpy_helper.to_array(tensor)).astype(dtype.numpy, copy=False)
        except (ValueError, TypeError) as reason:
            raise TilewrightError(
                "bad-model",
                f"the data of tensor '{tensor.name}' do not match its type and shape",
                reasons=[str(reason)],
            ) from reason

    def _external(self, tensor: onnx.TensorProto, dtype: DType) -> Array:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        path = self._folder / location
        shape = tuple(tensor.dims)
        count = int(np.prod(shape, dtype=np.int64))
        if not location or not path.resolve().is_relative_to(self._folder.resolve()):
            raise TilewrightError(
                "bad-model",
                f"external data of tensor '{tensor.name}' lie at '{location}', outside the folder of the model",
            )
        try:
            with path.open("rb") as file:
                file.seek(int(entries.get("offset", 0)))
                content = file.read(count * dtype.numpy.itemsize)
        except OSError as reason:
            raise _missing_data(tensor.name, path, str(reason)) from reason
        if len(content) < count * dtype.numpy.itemsize:
            raise _missing_data(tensor.name, path, f"{count * dtype.numpy.itemsize} bytes needed, {len(content)} found")
        return np.frombuffer(content, dtype.numpy).reshape(shape)

    def _initialisers(self, graph: onnx.GraphProto) -> dict[str, Array | Unsupported]:
        found = {tensor.name: self.tensor(tensor) for tensor in graph.initializer}
        found.update({s.values.name: Unsupported("a sparse tensor") for s in graph.sparse_initializer})
        return found

    def _subgraph(self, graph: onnx.GraphProto) -> Subgraph:
        return Subgraph(
            tuple(value.name for value in graph.input),
            tuple(value.name for value in graph.output),
            tuple(self.node(node) for node in graph.node),
            self._initialisers(graph),
            graph,
        )


def _missing_data(name: str, path: Path, reason: str) -> TilewrightError:
    return TilewrightError(
        "missing-external-data",
        f"the data of tensor '{name}' should be in '{path}'",
        reasons=[reason],
        help="put the data file that was exported with the network beside it",
    )


def _type_name(code: int) -> str:
    known = {number: name for name, number in onnx.TensorProto.DataType.items()}
    return known.get(code, str(code)).lower()


def _declared(value: onnx.ValueInfoProto) -> Declared:
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        return Declared(value.name, Unsupported(f"kind {(kind or 'none').removesuffix('_type')}"), None)
    tensor = value.type.tensor_type
    dtype = ELEMENT_TYPES.get(tensor.elem_type) or Unsupported(f"element type {_type_name(tensor.elem_type)}")
    if not tensor.HasField("shape"):
        return Declared(value.name, dtype, None)
    return Declared(value.name, dtype, tuple(_extent(dim) for dim in tensor.shape.dim))


def _extent(dim: onnx.TensorShapeProto.Dimension) -> int | str | None:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return dim.dim_value
    return dim.dim_param or None
