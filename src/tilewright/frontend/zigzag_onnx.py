"""ONNX networks as ZigZag reads them: convolutions and matrix products are layers, everything else costs nothing.

It takes kernel sizes, strides, dilations and pads of the height for the width and the other way round, which shows with
windows that are not square; `as_written` puts them right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import cast

import onnx
from google.protobuf.message import DecodeError

from tilewright.base.descriptions import stem_of
from tilewright.base.files import is_file
from tilewright.core.equation import LayerText, read_layer
from tilewright.core.workload import Workload
from tilewright.errors import TilewrightError
from tilewright.frontend.zigzag_workload import LINKS

Shapes = Mapping[str, tuple[int, ...]]
BITS = {"W": 8, "I": 8, "O": 16, "O_final": 8}
"""Whatever types the network has."""


def read_onnx_workload(path: Path, *, as_written: bool = False) -> Workload:
    """The layers of a network; `as_written` keeps height and width of windows apart."""
    if not is_file(path):
        raise TilewrightError("missing-file", f"{path} does not exist")
    model = onnx.ModelProto()
    try:
        model.ParseFromString(path.read_bytes())
    except DecodeError as error:
        raise TilewrightError("bad-model", f"{path.name} is not an ONNX file") from error
    return workload_of_model(model, stem_of(path), as_written=as_written)


def workload_of_model(model: onnx.ModelProto, name: str, *, as_written: bool = False) -> Workload:
    """The layers of a network that is in memory."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    shapes = _shapes(graph)
    made: dict[str, tuple[str, ...]] = {}
    """The layers that each tensor comes from, past nodes without a cost."""
    layers: list[LayerText] = []
    for index, node in enumerate(graph.node):
        layer = node.name or f"Layer{index}"
        text = _layer(layer, node, shapes, made, as_written)
        if text is None:
            sources = tuple(dict.fromkeys(source for tensor in node.input for source in made.get(tensor, ())))
        else:
            layers.append(text)
            sources = (layer,)
        made |= dict.fromkeys(node.output, sources)
    return Workload(name, tuple(read_layer(text) for text in layers))


def _shapes(graph: onnx.GraphProto) -> Shapes:
    values = [*graph.input, *graph.output, *graph.value_info]
    shapes = {v.name: tuple(int(d.dim_value) for d in v.type.tensor_type.shape.dim) for v in values}
    return shapes | {tensor.name: tuple(int(size) for size in tensor.dims) for tensor in graph.initializer}


def _attributes(node: onnx.NodeProto) -> dict[str, object]:
    return {a.name: cast("object", onnx.helper.get_attribute_value(a)) for a in node.attribute}


def _shape(node: onnx.NodeProto, tensor: str, shapes: Shapes) -> tuple[int, ...]:
    shape = shapes.get(tensor)
    if shape is None or 0 in shape:
        raise TilewrightError("dynamic-shape", f"node '{node.name}': the shape of '{tensor}' is not known")
    return shape


def _layer(
    name: str, node: onnx.NodeProto, shapes: Shapes, made: Mapping[str, tuple[str, ...]], as_written: bool
) -> LayerText | None:
    """The layer of a node; None where it costs nothing."""
    if node.op_type in ("Conv", "QLinearConv"):
        activation, weight = (node.input[0], node.input[1 if node.op_type == "Conv" else 3])
        text = _conv(name, node, activation, weight, shapes, as_written)
    elif node.op_type in ("Gemm", "MatMul"):
        activation, weight = node.input[0], node.input[1]
        text = _product(name, node, activation, shapes, made.get(weight, ()))
    else:
        return None
    sources = {"I": made.get(activation, ()), "W": made.get(weight, ())}
    return LayerText(
        name=name,
        kind=node.op_type,
        equation=text.equation,
        dims=text.dims,
        relations=text.relations,
        bits=BITS,
        sources={operand: layers for operand, layers in sources.items() if layers},
        constants=frozenset(operand for operand, layers in sources.items() if not layers),
        slots=LINKS,
        axis_sizes=text.axis_sizes,
        padding=text.padding,
    )


def _conv(name: str, node: onnx.NodeProto, activation: str, weight: str, shapes: Shapes, as_written: bool) -> LayerText:
    attributes = _attributes(node)
    read, kernel = _shape(node, activation, shapes), _shape(node, weight, shapes)
    written = _shape(node, node.output[0], shapes)
    if len(read) != 4:
        raise TilewrightError("unsupported-operator", f"node '{name}': only convolutions over two axes are read")
    x, y = (1, 0) if as_written else (0, 1)
    window = _pair(attributes, "kernel_shape", kernel[2:])
    strides, dilations = _pair(attributes, "strides", (1, 1)), _pair(attributes, "dilations", (1, 1))
    pads = _pair(attributes, "pads", (0, 0, 0, 0))
    group = cast("int", attributes.get("group", 1))
    return LayerText(
        name=name,
        kind="",
        equation="O[b][g][k][oy][ox]+=W[g][k][c][fy][fx]*I[b][g][c][iy][ix]",
        dims={
            "B": written[0],
            "K": ceil(written[1] / group),
            "G": group,
            "OX": written[3],
            "OY": written[2],
            "C": ceil(read[1] / group),
            "FX": window[x],
            "FY": window[y],
        },
        relations=(
            f"ix={strides[x]}*ox+{dilations[x]}*fx",
            f"iy={strides[y]}*oy+{dilations[y]}*fy",
        ),
        axis_sizes={"IX": read[3], "IY": read[2]},
        padding={"IX": (pads[x], pads[x + 2]), "IY": (pads[y], pads[y + 2])},
    )


def _pair(attributes: Mapping[str, object], key: str, default: Sequence[int]) -> list[int]:
    return list(cast("Sequence[int]", attributes.get(key) or default))


def _product(name: str, node: onnx.NodeProto, activation: str, shapes: Shapes, weight_made: Sequence[str]) -> LayerText:
    attributes = _attributes(node)
    read, written = _shape(node, activation, shapes), _shape(node, node.output[0], shapes)
    if len(read) == 2 and attributes.get("transA"):
        read = (read[1], read[0])
    batch = {2: "", 3: "[b]", 4: "[b][h]"}.get(len(written))
    if batch is None:
        raise TilewrightError("unsupported-operator", f"node '{name}': only products of 2 to 4 axes are read")
    dims = {"C": read[-1], "D": written[-2], "K": written[-1]}
    dims |= dict(zip(("B", "H"), written[:-2], strict=False))
    on_weight = batch if weight_made else ""
    return LayerText(name=name, kind="", equation=f"O{batch}[d][k]+=I{batch}[d][c]*W{on_weight}[c][k]", dims=dims)
