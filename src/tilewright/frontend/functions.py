"""Operators that are defined by others: functions of the model and function bodies of the standard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import onnx
import onnx.defs
from msgspec.structs import replace
from onnx import numpy_helper

from tilewright.core.graph import Attr, TensorType
from tilewright.frontend.proto import CODE_OF_DTYPE, ExternalData, ProtoReader
from tilewright.frontend.raw import Function, RawAttr, RawNode, Ref, Subgraph

_OPSET = onnx.defs.onnx_opset_version()


class _Schema(Protocol):
    """What onnx's type stubs leave out of an operator's schema."""

    has_function: bool
    has_context_dependent_function: bool
    function_opset_versions: list[int]
    context_dependent_function_opset_versions: list[int]

    def get_function_with_opset_version(self, version: int) -> bytes: ...
    def get_context_dependent_function_with_opset_version(
        self, version: int, node: bytes, types: list[bytes]
    ) -> bytes: ...


def _schema(op: str, domain: str = "") -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(op, _OPSET, domain)
    except onnx.defs.SchemaError:
        return None


def attribute_kind(schema: onnx.defs.OpSchema, name: str) -> int:
    """The type of an attribute as AttributeProto numbers it."""
    return int(cast("Any", schema.attributes[name].type).value)


def standard_body(node: RawNode, types: Sequence[TensorType | None]) -> Function | None:
    """The standard's definition of a node (in its newest form) by other operators, if there is one."""
    schema = _schema(node.op, node.domain)
    if schema is None or not has_standard_body(node.op, node.domain):
        return None
    known = cast("_Schema", schema)
    if known.has_function:
        message = known.get_function_with_opset_version(max(known.function_opset_versions))
    else:
        version = max(known.context_dependent_function_opset_versions)
        operands = [_type_proto(kind).SerializeToString() for kind in types]
        text = node_proto(node).SerializeToString()
        message = known.get_context_dependent_function_with_opset_version(version, text, operands)
    reader = ProtoReader(ExternalData([Path()]), {"": _OPSET})
    given = {key: a.default_value for key, a in schema.attributes.items() if a.default_value.type}
    defaults = {key: reader.attribute(value) for key, value in given.items()}
    return reader.function(onnx.FunctionProto.FromString(message), defaults)


def has_standard_body(op: str, domain: str = "") -> bool:
    known = cast("_Schema | None", _schema(op, domain))
    return known is not None and (known.has_function or known.has_context_dependent_function)


def specialise(nodes: Sequence[RawNode], given: Mapping[str, RawAttr]) -> tuple[RawNode, ...]:
    """Nodes of a function with attribute references replaced by what the caller gives; absent ones disappear."""
    return tuple(replace(node, attrs=_specialise_attrs(node.attrs, given)) for node in nodes)


def _specialise_attrs(attrs: Mapping[str, RawAttr], given: Mapping[str, RawAttr]) -> dict[str, RawAttr]:
    result: dict[str, RawAttr] = {}
    for key, value in attrs.items():
        if isinstance(value, Ref):
            if value.name in given:
                result[key] = given[value.name]
        elif isinstance(value, Subgraph):
            result[key] = replace(value, nodes=specialise(value.nodes, given))
        else:
            result[key] = value
    return result


def node_proto(node: RawNode) -> onnx.NodeProto:
    """The node as protobuf."""
    proto = onnx.NodeProto(op_type=node.op, name=node.name, domain=node.domain, input=node.inputs, output=node.outputs)
    for key, value in node.attrs.items():
        attribute = attribute_proto(key, value)
        if attribute is not None:
            proto.attribute.append(attribute)
    return proto


def attribute_proto(name: str, value: RawAttr, kind: int | None = None) -> onnx.AttributeProto | None:
    """An attribute as protobuf; `kind` is the type its operator's schema wants."""
    types = onnx.AttributeProto
    match value:
        case bool() | int() if kind != types.FLOAT:
            return onnx.AttributeProto(name=name, type=types.INT, i=int(value))
        case int() | float():
            return onnx.AttributeProto(name=name, type=types.FLOAT, f=value)
        case str():
            return onnx.AttributeProto(name=name, type=types.STRING, s=value.encode())
        case np.ndarray():
            return onnx.AttributeProto(name=name, type=types.TENSOR, t=numpy_helper.from_array(value))
        case Subgraph(source=onnx.GraphProto() as graph):
            return onnx.AttributeProto(name=name, type=types.GRAPH, g=graph)
        case tuple() if all(isinstance(v, str) for v in value) and (value or kind == types.STRINGS):
            return onnx.AttributeProto(name=name, type=types.STRINGS, strings=[str(v).encode() for v in value])
        case tuple() if kind == types.FLOATS or any(isinstance(v, float) for v in value):
            return onnx.AttributeProto(name=name, type=types.FLOATS, floats=[float(v) for v in value])
        case tuple():
            return onnx.AttributeProto(name=name, type=types.INTS, ints=[int(v) for v in value])
        case _:
            return None


def _type_proto(kind: TensorType | None) -> onnx.TypeProto:
    proto = onnx.TypeProto()
    if kind is not None:
        set_tensor_type(proto, kind)
    return proto


def set_tensor_type(proto: onnx.TypeProto, kind: TensorType) -> None:
    proto.tensor_type.elem_type = CODE_OF_DTYPE[kind.dtype]
    proto.tensor_type.shape.SetInParent()
    for extent in kind.shape:
        proto.tensor_type.shape.dim.add().dim_value = extent


_IDLE = frozenset({"momentum", "saturate", "round_mode", "storage_order", "description"})
"""Attributes that do not change what an inference network computes."""


def meant(op: str, given: Mapping[str, Attr], known: Mapping[str, Attr]) -> dict[str, Attr]:
    """The attributes of a node of a declared operator, without idle ones; a list of one number for a number is that."""
    found = {key: value for key, value in given.items() if key in known or not _is_idle(op, key, value)}
    for key, value in found.items():
        if isinstance(value, tuple) and len(value) == 1 and isinstance(known.get(key), (int, float)):
            found[key] = value[0]
    return found


def _is_idle(op: str, name: str, value: RawAttr) -> bool:
    """Whether an attribute that the declaration of an operator lacks says nothing.

    It stands at its default, it concerns training only, or the standard's operator has no such attribute (exporters
    leave attributes of operators behind that they replaced).
    """
    if name in _IDLE:
        return True
    schema = _schema(op)
    if schema is None:
        return False
    if name not in schema.attributes:
        return True
    default = schema.attributes[name].default_value
    return bool(default.type) and ProtoReader(ExternalData([Path()]), {}).attribute(default) == value
