"""Builds the nodes of an integer graph, with types inferred by the operators' own rules."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.core.dtype import DType
from tilewright.core.graph import Array, Attr, Graph, Names, Node, TensorType, attrs, type_of_array
from tilewright.core.op import REGISTRY, call_of

MULTIPLIER_BITS = 31
TOTAL_BITS = 62


class Builder:
    """Collects nodes, types and constants of a graph under construction."""

    def __init__(self, graph: Graph) -> None:
        self._names = Names(graph)
        self.nodes: list[Node] = []
        self.types: dict[str, TensorType] = dict(graph.types)
        self.constants: dict[str, Array] = dict(graph.constants)

    def fresh(self, hint: str) -> str:
        return self._names.fresh(hint)

    def constant(self, hint: str, array: Array) -> str:
        name = self.fresh(hint)
        self.constants[name] = array
        self.types[name] = type_of_array(array)
        return name

    def add(self, node: Node) -> None:
        """A node as it is; types of outputs that are not known yet are inferred."""
        self.nodes.append(node)
        if not all(o in self.types for o in node.outputs if o):
            call = call_of(
                REGISTRY[node.op],
                [self.types[i] if i else None for i in node.inputs],
                node.attrs,
                values=[self.constants.get(i) for i in node.inputs],
                name=node.name,
                wanted=len(node.outputs),
            )
            self.types.update({o: t for o, t in zip(node.outputs, call.outputs, strict=False) if o})

    def emit(self, op: str, inputs: Sequence[str], output: str, **attributes: Attr) -> str:
        """A new node with one output; returns the output's name."""
        self.types.pop(output, None)
        self.add(Node(op, tuple(inputs), (output,), attrs(**attributes), output))
        return output

    def requantise(self, accumulator: str, factors: Array, offset: float, dtype: DType, axis: int, output: str) -> str:
        """`clip(round(accumulator * factor + offset))` in integers; `factors` is one number or one per index of `axis`."""
        largest = float(np.max(np.abs(factors)))
        shift = MULTIPLIER_BITS - 1 - int(np.floor(np.log2(largest))) if largest > 0 else 0
        # The sum of product and offset stays inside 64 bits; a result this small is zero anyway.
        shift = max(0, min(shift, TOTAL_BITS - 9))
        scaled = np.rint(factors.astype(np.float64) * 2.0**shift)
        if np.max(np.abs(scaled)) >= 2**MULTIPLIER_BITS:
            shift -= 1
            scaled = np.rint(factors.astype(np.float64) * 2.0**shift)
        mul = self.constant(f"{output}_mul", scaled.astype(np.int32))
        add = self.constant(f"{output}_add", np.asarray(round(offset * 2.0**shift), np.int64))
        return self.emit(
            "RequantShift",
            (accumulator, mul, add),
            output,
            div=1 << shift,
            n_levels=256,
            signed=int(dtype.kind == "int"),
            axis=axis,
        )
