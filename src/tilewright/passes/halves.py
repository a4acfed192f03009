"""An operator that the machine has no code for in float16 or bfloat16 is computed in float32, between casts."""

from __future__ import annotations

from functools import partial

from tilewright.base.dtype import BFLOAT16, FLOAT16, FLOAT32, DType
from tilewright.core.graph import Graph, Node
from tilewright.core.matching import binding_names, why_not
from tilewright.core.op import REGISTRY
from tilewright.machine.target import Target
from tilewright.ops.rules import ELEMENT_TYPES
from tilewright.passes.edit import Edit, rewrite

HALVES = (FLOAT16, BFLOAT16)


def halves(graph: Graph, platform: Target) -> Graph:
    """The graph with such operators widened. Loop nests compute halves in float32 by themselves."""
    if not any(kind.dtype in HALVES for kind in graph.types.values()):
        return graph
    codeless = {node.op for node in graph.nodes if REGISTRY[node.op].body is None}
    return rewrite(graph, dict.fromkeys(codeless, partial(_widen, platform)))


def _widen(platform: Target, edit: Edit, node: Node) -> bool:
    kinds = [edit.types[name].dtype for name in (*node.inputs, *node.outputs) if name]
    if not any(kind in HALVES for kind in kinds) or _has_kernel(platform, edit, node):
        return False
    inputs = [_cast(edit, name, FLOAT32) if name and edit.types[name].dtype in HALVES else name for name in node.inputs]
    halved = [bool(name) and edit.types[name].dtype in HALVES for name in node.outputs]
    wanted = [None if half else name for name, half in zip(node.outputs, halved, strict=True)]
    made = edit.emit_all(node.op, inputs, wanted, node.attrs)
    for name, wide, half in zip(node.outputs, made, halved, strict=True):
        if half:
            edit.emit("Cast", (wide,), name, to=_number(edit.types[name].dtype))
    return True


def _has_kernel(platform: Target, edit: Edit, node: Node) -> bool:
    call = edit.call(node)
    names = binding_names(call)
    fitting = (k for k in platform.kernels_of(node.op) if not why_not(k, call, node, edit.graph, names, {}))
    return next(fitting, None) is not None


def _cast(edit: Edit, name: str, kind: DType) -> str:
    known = edit.constants.get(name)
    if known is not None:
        return edit.constant(known.astype(kind.numpy), f"{name}_{kind}")
    return edit.emit("Cast", (name,), to=_number(kind))


def _number(kind: DType) -> int:
    """The number by which Cast names an element type."""
    return next(number for number, listed in ELEMENT_TYPES.items() if listed == kind)
