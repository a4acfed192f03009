"""Writes a Graph of any stage as an ONNX file.

A node is written in the standard's domain where the standard has the operator with these operands, types and
attributes, and in the domain `ai.tilewright` otherwise. Fused epilogues are written as the nodes they were made from.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnx.defs
from msgspec.structs import replace

from tilewright.base.dtype import dtype_of
from tilewright.base.files import write_file
from tilewright.base.folders import write_folder
from tilewright.core.graph import Array, FreshNames, Graph, Node, Result, TensorType
from tilewright.core.op import REGISTRY, call_node
from tilewright.frontend.functions import attribute_kind, attribute_proto, set_tensor_type
from tilewright.frontend.proto import CODE_OF_DTYPE, EXACT_TYPES, SIZES, STATES

DOMAIN = "ai.tilewright"
INLINE_LIMIT = 1_000_000_000
"""Protobuf messages end at 2 GB; more weights than this go into a file beside the network."""


def export_file(graph: Graph, path: Path) -> None:
    """Writes the file, and `PATH.data` with the weights where they are too many."""
    flat = unfused(graph)
    model = onnx.ModelProto(ir_version=onnx.IR_VERSION, producer_name="tilewright")
    model.opset_import.add(domain="", version=onnx.defs.onnx_opset_version())
    model.opset_import.add(domain=DOMAIN, version=1)
    model.metadata_props.add(key=EXACT_TYPES, value="1")
    if flat.states:
        model.metadata_props.add(key=STATES, value=json.dumps(flat.updates))
    if flat.bounds:
        model.metadata_props.add(key=SIZES, value=", ".join(bound.name for bound in flat.bounds))
    initial = {old: state.initial for old, state in zip(flat.updates, flat.states, strict=True)}
    model.graph.name = graph.name or "network"
    for field, names in ((model.graph.input, flat.inputs), (model.graph.output, flat.outputs)):
        field.extend(_value_info(name, flat.type(name)) for name in names)
    shown = {*flat.inputs, *flat.outputs, *flat.constants}
    model.graph.value_info.extend(_value_info(n, t) for n, t in flat.types.items() if n not in shown)
    model.graph.node.extend(_node(flat, node, index) for index, node in enumerate(flat.nodes))

    def fill(folder: Path) -> None:
        model.graph.initializer.extend(_initialisers({**flat.constants, **initial}, folder / f"{path.name}.data"))
        (folder / path.name).write_bytes(model.SerializeToString(deterministic=True))

    if _weights(flat) > INLINE_LIMIT:
        write_folder(path.parent, fill)
    else:
        model.graph.initializer.extend(_initialisers({**flat.constants, **initial}, None))
        write_file(path, model.SerializeToString(deterministic=True))


def unfused(graph: Graph) -> Graph:
    """The same graph with every epilogue written as nodes of its own."""
    names = FreshNames(graph)
    types: dict[str, TensorType] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        nodes += _unfused_node(graph, node, names, types)
    return graph.with_nodes(nodes, types=types)


def _unfused_node(graph: Graph, node: Node, names: FreshNames, types: dict[str, TensorType]) -> Iterator[Node]:
    if not node.epilogue:
        yield node
        return
    output = node.outputs[0]
    made = [names.fresh(f"{output}_raw")]
    types[made[0]] = call_node(graph, node).outputs[0]
    yield replace(node, outputs=(made[0], *node.outputs[1:]), epilogue=())
    for number, step in enumerate(node.epilogue, 1):
        last = number == len(node.epilogue)
        made.append(output if last else names.fresh(f"{output}_step{number}"))
        types[made[number]] = step.type
        inputs = tuple(made[i.number] if isinstance(i, Result) else i for i in step.inputs)
        yield Node(step.op, inputs, (made[number],), step.attrs, f"{node.name or output}_{step.op}_{number}")


def _weights(graph: Graph) -> int:
    return sum(array.nbytes for array in graph.constants.values())


def _value_info(name: str, kind: TensorType) -> onnx.ValueInfoProto:
    value = onnx.ValueInfoProto(name=name)
    set_tensor_type(value.type, kind)
    return value


def _initialisers(constants: Mapping[str, Array], beside: Path | None) -> Iterator[onnx.TensorProto]:
    offset = 0
    content = beside.open("wb") if beside is not None else None
    for name, array in constants.items():
        tensor = onnx.TensorProto(name=name, data_type=CODE_OF_DTYPE[dtype_of(array)], dims=array.shape)
        data = np.ascontiguousarray(array).tobytes()
        if content is None or beside is None:
            tensor.raw_data = data
        else:
            content.write(data)
            tensor.data_location = onnx.TensorProto.EXTERNAL
            for key, value in (("location", beside.name), ("offset", str(offset)), ("length", str(len(data)))):
                tensor.external_data.add(key=key, value=value)
            offset += len(data)
        yield tensor
    if content is not None:
        content.close()


def _node(graph: Graph, node: Node, index: int) -> onnx.NodeProto:
    schema = _standard_schema(graph, node)
    proto = onnx.NodeProto(
        op_type=node.op,
        name=node.name or f"{node.op}_{index}",
        domain="" if schema is not None else DOMAIN,
        input=node.inputs,
        output=node.outputs,
    )
    for key in _meaningful(node):
        value = node.attrs[key]
        kind = attribute_kind(schema, key) if schema is not None else None
        attribute = attribute_proto(key, value, kind)
        if attribute is not None:
            proto.attribute.append(attribute)
    return proto


def _standard_schema(graph: Graph, node: Node) -> onnx.defs.OpSchema | None:
    """The standard's schema of the operator if the node keeps to it."""
    if not onnx.defs.has(node.op):
        return None
    schema = onnx.defs.get_schema(node.op)
    if schema.deprecated or any(key not in schema.attributes for key in _meaningful(node)):
        return None
    if not schema.min_input <= len(node.inputs) <= schema.max_input or len(node.outputs) > schema.max_output:
        return None
    bound: dict[str, str] = {}
    operands = ((schema.inputs, node.inputs), (schema.outputs, node.outputs))
    fits = all(_fits(graph, formal, names, bound) for formal, names in operands)
    return schema if fits else None


def _meaningful(node: Node) -> list[str]:
    """Attributes that do not stand at the default of the declaration; idle ones of ours need not be written."""
    return [key for key, value in node.attrs.items() if value is not None and REGISTRY[node.op].attrs.get(key) != value]


def _fits(
    graph: Graph, formal: Sequence[onnx.defs.OpSchema.FormalParameter], names: tuple[str, ...], bound: dict[str, str]
) -> bool:
    for index, name in enumerate(names):
        parameter = formal[min(index, len(formal) - 1)]
        if not name:
            continue
        kind = _type_text(graph.type(name))
        if kind not in parameter.types:
            return False
        if parameter.is_homogeneous and bound.setdefault(parameter.type_str, kind) != kind:
            return False
    return True


def _type_text(kind: TensorType) -> str:
    return f"tensor({_TEXT.get(kind.dtype.name, kind.dtype.name)})"


_TEXT = {"float32": "float", "float64": "double"}
