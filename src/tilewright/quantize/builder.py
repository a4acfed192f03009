"""Builds the nodes of an integer graph, with types inferred by the operators' own rules."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.core.graph import Array, Attr, FreshNames, Graph, Node, TensorType, attrs, type_of_array
from tilewright.core.op import REGISTRY, call_of, evaluate
from tilewright.quantize.forms import Scheme

MULTIPLIER_BITS = 31
SHORT_BITS = 24
"""Bits of multipliers and accumulators that are multiplied exactly in floats, which is fast and precise enough."""
TOTAL_BITS = 61
SATURATING = 1 << 9
"""A factor that takes every integer but zero beyond the ends of 8 bits, whatever their zero point."""


class GraphBuilder:
    """Collects nodes, types and constants of a graph under construction."""

    def __init__(self, graph: Graph) -> None:
        self._names = FreshNames(graph)
        self.label = ""
        """The name that new nodes get: that of the node they stand for."""
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
        """A node as it is, with the types of its outputs inferred; moves of constants are done at once."""
        values = [self.constants.get(i) for i in node.inputs]
        types = [self.types[i] if i else None for i in node.inputs]
        call = call_of(REGISTRY[node.op], types, node.attrs, values=values, name=node.name, wanted=len(node.outputs))
        self.types.update({o: t for o, t in zip(node.outputs, call.outputs, strict=False) if o})
        if call.op.kind in ("move", "view") and all(
            v is not None for v, i in zip(values, node.inputs, strict=True) if i
        ):
            results = zip(node.outputs, evaluate(call, values), strict=False)
            self.constants.update({name: array for name, array in results if name})
        else:
            self.nodes.append(node)

    def emit(self, op: str, inputs: Sequence[str], output: str, **attributes: Attr) -> str:
        """A new node with one output; returns the output's name."""
        self.add(Node(op, tuple(inputs), (output,), attrs(**attributes), self.label or output))
        return output

    def requantise(
        self,
        accumulator: str,
        factors: Array,
        scheme: Scheme,
        axis: int,
        output: str,
        *,
        limit: int,
        centre: int = 0,
    ) -> str:
        """`quantise((accumulator - centre) * factor)` in integers, rounding as QuantizeLinear does.

        `factors` is one number, or one per index of `axis`. No |accumulator| may be larger than `limit`.
        """
        # Any larger factor saturates whatever is not zero just the same.
        factors = np.clip(factors.astype(np.float64), -SATURATING, SATURATING)
        bits = SHORT_BITS if limit < 1 << SHORT_BITS else MULTIPLIER_BITS
        largest = float(np.max(np.abs(factors)))
        shift = bits - 1 - int(np.floor(np.log2(largest))) if largest > 0 else 0
        # A result so small that this limit matters is zero anyway.
        shift = max(0, min(shift, TOTAL_BITS))
        scaled = np.rint(factors * 2.0**shift)
        if np.max(np.abs(scaled)) >= 1 << bits:
            shift -= 1
            scaled = np.rint(factors * 2.0**shift)
        if scaled.size > 1:
            # Trailing axes say which axis is meant even where another one is as long.
            rank = self.types[accumulator].rank
            scaled = scaled.reshape(-1, *(1,) * (rank - 1 - axis % rank))
        mul = self.constant(f"{output}_mul", scaled.astype(np.int32))
        offset = -centre * scaled.astype(np.int64)
        narrow = np.int32 if np.all(np.abs(offset) < 2**31) else np.int64
        add = self.constant(f"{output}_add", offset.astype(narrow))
        return self.requant_shift(accumulator, mul, add, shift, scheme, axis, output, limit=limit)

    def requant_shift(
        self, x: str, mul: str, add: str, shift: int, scheme: Scheme, axis: int, output: str, *, limit: int
    ) -> str:
        """The dialect's requantisation, rounding half to even and with the zero point of a scheme."""
        return self.emit(
            "RequantShift",
            (x, mul, add),
            output,
            div=1 << shift,
            n_levels=256,
            signed=int(scheme.dtype.kind == "int"),
            axis=axis,
            zero_point=scheme.zero,
            half_to_even=1,
            x_limit=limit,
        )

    def quantise(self, real: str, scheme: Scheme, output: str) -> str:
        """Real numbers as integers of a scheme, by the standard operator."""
        return self.emit("QuantizeLinear", (real, *self._parameters(scheme, output)), output)

    def dequantise(self, integers: str, scheme: Scheme, output: str) -> str:
        """Integers of a scheme as real numbers."""
        attributes: dict[str, Attr] = {} if scheme.axis is None else {"axis": scheme.axis}
        return self.emit("DequantizeLinear", (integers, *self._parameters(scheme, output)), output, **attributes)

    def _parameters(self, scheme: Scheme, output: str) -> tuple[str, str]:
        zeros = np.full(scheme.scale.shape, scheme.zero, scheme.dtype.numpy)
        return self.constant(f"{output}_scale", scheme.scale), self.constant(f"{output}_zero", zeros)
