"""What an integer rule is given: a node whose inputs are quantised, and the scheme its result is wanted in."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct

from tilewright.core.graph import Array, Attr, Graph, Node
from tilewright.quantize.builder import GraphBuilder
from tilewright.quantize.forms import Form, Scheme, codes, dequantised, quantised


class ByteFunction(Struct, frozen=True):
    """Real results for every value of an 8-bit tensor."""

    form: Form
    results: Array


class QuantizedInput(Struct, frozen=True):
    """An input of an operator: its integers where they are known, its value where it is constant.

    Where the input waits to be computed itself, `integers` makes it in the scheme of the result, and `function` gives
    it as a function of one 8-bit tensor if it is one.
    """

    name: str
    form: Form | None
    constant: Array | None
    integers: Callable[[], str] | None = None
    function: Callable[[], ByteFunction | None] | None = None

    @property
    def narrow(self) -> Form | None:
        """The form where it is 8 bits wide with one scale."""
        if self.form and self.form.scheme.per_tensor and self.form.scheme.dtype.bits == 8:
            return self.form
        return None


class Site(Struct, frozen=True):
    """A node that waits, its inputs (None for absent ones), and the scheme and name of the result."""

    builder: GraphBuilder
    graph: Graph
    node: Node
    operands: Sequence[QuantizedInput | None]
    scheme: Scheme
    output: str

    def operand(self, index: int) -> QuantizedInput | None:
        return self.operands[index] if index < len(self.operands) else None

    def form(self, index: int) -> Form | None:
        """An input as 8-bit integers with one scale."""
        operand = self.operand(index)
        return operand.narrow if operand else None

    def pair(self) -> tuple[Form, Form] | None:
        """Both inputs of a binary operator as 8-bit integers."""
        a, b = self.form(0), self.form(1)
        return (a, b) if a and b else None

    def value(self, index: int) -> Array | None:
        """The real value of an input that is constant, quantised or not."""
        operand = self.operand(index)
        if operand is None or operand.constant is not None:
            return operand.constant if operand else None
        form = operand.form
        stored = self.builder.constants.get(form.tensor) if form else None
        if form is None or stored is None:
            return None
        axis = form.scheme.axis
        shape = [-1 if i == axis % stored.ndim else 1 for i in range(stored.ndim)] if axis is not None else []
        return (stored.astype(np.float32) - np.float32(form.scheme.zero)) * form.scheme.scale.reshape(shape)

    def number(self, attribute: str, default: float) -> float:
        value = self.node.attrs.get(attribute, default)
        return float(value) if isinstance(value, (int, float)) else default

    def constant(self, hint: str, array: Array) -> str:
        return self.builder.constant(f"{self.output}_{hint}", array)

    def emit(self, op: str, inputs: Sequence[str], hint: str, **attributes: Attr) -> str:
        """A node on the way to the result."""
        return self.builder.emit(op, inputs, self.builder.fresh(f"{self.output}_{hint}"), **attributes)

    def requantise(self, total: str, factors: Array, axis: int, *, limit: int, centre: int = 0) -> str:
        """The result from an accumulator in units of `factors`."""
        return self.builder.requantise(total, factors, self.scheme, axis, self.output, limit=limit, centre=centre)


def lookup(builder: GraphBuilder, tensor: str, table: Array, output: str) -> str:
    """Any function of an 8-bit integer."""
    return builder.emit("Lookup", (tensor, builder.constant(f"{output}_table", table)), output)


def in_scheme(builder: GraphBuilder, form: Form, scheme: Scheme, output: str) -> str:
    """8-bit integers of one scheme as those of another."""
    if form.scheme.same(scheme):
        return form.tensor
    return lookup(builder, form.tensor, quantised(dequantised(codes(form.scheme.dtype), form.scheme), scheme), output)
