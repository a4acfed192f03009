"""Reads ONNX protobuf: files, tensors with external data, attributes, nodes and functions become raw values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import cast

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import numpy_helper

from tilewright.base.descriptions import stem_of
from tilewright.base.dtype import INT8, UINT8, DType
from tilewright.core.graph import Array, TensorType
from tilewright.errors import TilewrightError
from tilewright.frontend.limits import Budget
from tilewright.frontend.raw import NEWEST, Declared, Function, RawAttr, RawModel, RawNode, Ref, Subgraph, Unsupported
from tilewright.ops.rules import ELEMENT_TYPES

EXACT_TYPES = "tilewright.exact_types"
"""Metadata of files written by `save`: their element types are not to be inferred again."""

STATES = "tilewright.states"
"""Metadata: a JSON object of inputs that are states, each with the output that is its new value."""

SIZES = "tilewright.sizes"
"""Metadata of files written by `save`: inputs that say sizes, which such files have at their largest."""

QUANTISER = "PACTOps"
"""The domain of a quantiser that writes old opsets but means Softmax over the last axis, as newer ones do."""

LARGEST = (1 << 31) - 1
"""Bytes of a protobuf file. A device may never end."""

PIECE = 1 << 24

WIDENED: dict[int, DType] = {onnx.TensorProto.INT4: INT8, onnx.TensorProto.UINT4: UINT8}
"""Element types of constants whose values are kept in wider ones; how many bits they need is seen from the values."""

EXPORT = "export the network again, or check that the download is complete"

CODE_OF_DTYPE = {dtype: code for code, dtype in ELEMENT_TYPES.items()}


def read_model(path: Path, max_bytes: int | None = None, data_folders: Sequence[Path] = ()) -> RawModel:
    """The model of a file; its external data lie in its folder, or in one of those named, and take no more bytes."""
    try:
        content = _content(path)
    except (OSError, ValueError) as reason:
        raise TilewrightError(
            "missing-file", f"'{path}' cannot be read", reasons=[str(reason)], help="pass the path of an .onnx file"
        ) from reason
    if len(content) > LARGEST:
        raise _bad_model(path, "it is larger than 2 GiB, which no protobuf file is")
    model = onnx.ModelProto()
    try:
        model.ParseFromString(bytes(content))
    except DecodeError as reason:
        raise _bad_model(path, str(reason)) from reason
    if not model.HasField("graph") or not (model.graph.node or model.graph.output):
        raise _bad_model(path, "it holds no graph")
    _check_names(model.graph, [value.name for value in model.graph.input])
    data = ExternalData((path.parent, *data_folders), max_bytes)
    return ProtoReader(data, _versions(model.opset_import)).model(model, stem_of(path))


def _content(path: Path) -> bytearray:
    """The bytes of a file. Room is made for what is there, not for what there may be."""
    found = bytearray()
    with path.open("rb") as file:
        while len(found) <= LARGEST and (piece := file.read(PIECE)):
            found += piece
    return found


def _check_names(graph: onnx.GraphProto | onnx.FunctionProto, inputs: Sequence[str]) -> None:
    """An error for names of one scope that stand for two tensors. Constants may be the defaults of inputs."""
    if "" in inputs:
        raise TilewrightError("bad-model", "an input has no name", help=EXPORT)
    constants = {tensor.name for tensor in graph.initializer} if isinstance(graph, onnx.GraphProto) else set[str]()
    made = {name for name in constants if name not in inputs}
    for name in (*inputs, *(output for node in graph.node for output in node.output if output)):
        if name in made:
            raise TilewrightError("bad-model", f"two tensors are called '{name}'", help=EXPORT)
        made.add(name)


def _bad_model(path: Path, reason: str) -> TilewrightError:
    return TilewrightError(
        "bad-model",
        f"'{path}' is not an ONNX model",
        reasons=[reason],
        help=EXPORT,
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


def _states(text: str) -> dict[str, str]:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise _bad_states(text)
    pairs = cast(dict[str, object], found)
    if not all(isinstance(new, str) for new in pairs.values()):
        raise _bad_states(text)
    return {old: str(new) for old, new in pairs.items()}


def _bad_states(text: str) -> TilewrightError:
    return TilewrightError(
        "bad-state",
        f"the metadata '{STATES}' of the network is no JSON object of names: {text[:80]}",
        help='write it like {"h_in": "h_out"}, or leave it away and use --state',
    )


class ExternalData:
    """Reads tensors from files beside the model: from below its folder, or below others that the user names."""

    def __init__(self, folders: Sequence[Path], max_bytes: int | None = None) -> None:
        self._folders = tuple(folders)
        self._budget = Budget(max_bytes)
        self._digests: dict[Path, str] = {}

    def read(self, tensor: onnx.TensorProto, dtype: DType) -> Array:
        """The values of a tensor; an error before anything is read where they take more memory than is allowed."""
        entries = {entry.key: entry.value for entry in tensor.external_data}
        path = self._place(tensor.name, entries.get("location", ""))
        shape = tuple(tensor.dims)
        needed = prod(shape) * dtype.numpy.itemsize
        offset = _whole_number(tensor.name, "offset", entries.get("offset", "0"))
        stated = _whole_number(tensor.name, "length", entries.get("length", str(needed)))
        if stated != needed:
            raise _bad_tensor(tensor.name, f"{needed} bytes needed, {stated} stated")
        try:
            # Whoever opens a pipe waits for somebody to write into it.
            if not path.is_file():
                raise _missing_data(tensor.name, path, "there is no such file")
            found = max(path.stat().st_size - offset, 0)
            if found < needed:
                raise _missing_data(tensor.name, path, f"{needed} bytes needed, {found} found")
            self._budget.constant(tensor.name, TensorType(dtype, shape))
            if "checksum" in entries and entries["checksum"].lower() != (digest := self._digest(path)):
                raise _damaged_data(tensor.name, path, entries["checksum"], digest)
            with path.open("rb") as file:
                file.seek(offset)
                return np.frombuffer(file.read(needed), dtype.numpy).reshape(shape)
        except (OSError, ValueError) as reason:
            raise _missing_data(tensor.name, path, str(reason)) from reason

    def _digest(self, path: Path) -> str:
        """SHA-1 of a file, as the standard has it."""
        if path not in self._digests:
            with path.open("rb") as file:
                self._digests[path] = hashlib.file_digest(file, "sha1").hexdigest()
        return self._digests[path]

    def _place(self, name: str, location: str) -> Path:
        """The file of external data. Links count as where they lead."""
        if not location:
            raise _bad_tensor(name, "its external data have no location")
        path = self._folders[0] / location
        try:
            real = path.resolve()
            inside = any(real.is_relative_to(folder.resolve()) for folder in self._folders)
        except (OSError, ValueError, RuntimeError) as reason:
            raise _missing_data(name, path, str(reason)) from reason
        if not inside:
            raise TilewrightError(
                "bad-model",
                f"external data of tensor '{name}' lie at '{location}', outside the folder of the model",
                help="put the data file beside the model, or name the folder that may be read with --external-data",
            )
        return path


class ProtoReader:
    """Turns protobuf messages into raw values; knows where external data lie and which opsets are meant."""

    def __init__(self, data: ExternalData, versions: Mapping[str, int]) -> None:
        self._data = data
        self._versions = versions

    def model(self, model: onnx.ModelProto, name: str) -> RawModel:
        graph = model.graph
        initialisers = self._initialisers(graph)
        metadata = {entry.key: entry.value for entry in model.metadata_props}
        if SIZES in metadata:
            raise TilewrightError(
                "bad-size",
                "the file is a stage of a network with sizes that are known when it runs",
                reasons=[f"they are {metadata[SIZES][:80]}; the file has them at their largest"],
                help="compile the network that it was made from",
            )
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
            tuple(_declared(value) for value in graph.input if value.name in initialisers),
            _states(metadata.get(STATES, "{}")),
        )

    def function(self, function: onnx.FunctionProto, extra: Mapping[str, RawAttr] = MappingProxyType({})) -> Function:
        """A function; `extra` are attribute defaults stated elsewhere (in the operator's schema)."""
        _check_names(function, function.input)
        versions = _versions(function.opset_import) or self._versions
        reader = ProtoReader(self._data, versions)
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
        shape = tuple(tensor.dims)
        if any(extent < 0 for extent in shape):
            raise _bad_tensor(tensor.name, f"its shape is {list(shape)}")
        if external:
            return self._data.read(tensor, dtype)
        try:
            return np.asarray(numpy_helper.to_array(tensor)).astype(dtype.numpy, copy=False)
        except (ValueError, TypeError, ArithmeticError, LookupError, MemoryError) as reason:
            raise _bad_tensor(tensor.name, str(reason)) from reason

    def _initialisers(self, graph: onnx.GraphProto) -> dict[str, Array | Unsupported]:
        found = {tensor.name: self.tensor(tensor) for tensor in graph.initializer}
        found.update({s.values.name: Unsupported("a sparse tensor") for s in graph.sparse_initializer})
        return found

    def _subgraph(self, graph: onnx.GraphProto) -> Subgraph:
        _check_names(graph, [value.name for value in graph.input])
        return Subgraph(
            tuple(value.name for value in graph.input),
            tuple(value.name for value in graph.output),
            tuple(self.node(node) for node in graph.node),
            self._initialisers(graph),
            graph,
        )


def _whole_number(tensor: str, what: str, text: str) -> int:
    # Texts of more digits are no numbers of bytes, and slow to read.
    if not text.isascii() or not text.isdigit() or len(text) > 20:
        raise _bad_tensor(tensor, f"the {what} of its external data is {text[:40]!r}")
    return int(text)


def _bad_tensor(name: str, reason: str) -> TilewrightError:
    return TilewrightError(
        "bad-model", f"the data of tensor '{name}' do not match its type and shape", reasons=[reason], help=EXPORT
    )


def _missing_data(name: str, path: Path, reason: str) -> TilewrightError:
    return TilewrightError(
        "missing-external-data",
        f"the data of tensor '{name}' should be in '{path}'",
        reasons=[reason],
        help="put the data file that was exported with the network beside it",
    )


def _damaged_data(name: str, path: Path, stated: str, found: str) -> TilewrightError:
    return TilewrightError(
        "bad-model",
        f"'{path}', with the data of tensor '{name}', is not the file that was exported",
        reasons=[f"its SHA-1 is {found}, and the network states {stated[:40]!r}"],
        help=EXPORT,
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
