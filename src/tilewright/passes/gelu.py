"""Recognises GELU: `x * (1 + erf(x / sqrt 2)) / 2`, or the form with tanh, in any order of the factors."""

from __future__ import annotations

from math import pi, sqrt

from tilewright.core.graph import Graph, Node
from tilewright.machine.target import Target
from tilewright.passes.edit import Edit, rewrite
from tilewright.passes.match import (
    close,
    factors,
    factors_of,
    operands,
    plus_number,
    product,
    product_of,
    scaled,
    subterms,
)

CUBIC = 0.044715


def gelu(graph: Graph, platform: Target) -> Graph:
    """The graph with each GELU as one operator."""
    del platform
    if not any(node.op in ("Erf", "Tanh") for node in graph.nodes):
        return graph
    return rewrite(graph, {"Mul": _rule, "Div": _rule})


def _rule(edit: Edit, node: Node) -> bool:
    output = node.outputs[0]
    for one_plus in factors_of(edit, node):
        found = plus_number(edit, one_plus)
        curve = edit.producer(found[0], "Erf", "Tanh") if found and found[1] == 1 else None
        if curve is None:
            continue
        x = _erf_argument(edit, curve) if curve.op == "Erf" else _tanh_argument(edit, curve)
        if x is None or edit.types[x] != edit.types[output]:
            continue
        found = product_of(edit, node, frozenset({x, one_plus}))
        if found and close(found[0], 0.5) and found[1] == tuple(sorted((x, one_plus))):
            edit.emit("Gelu", (x,), output, approximate="none" if curve.op == "Erf" else "tanh")
            return True
    return False


def _erf_argument(edit: Edit, curve: Node) -> str | None:
    """x in `erf(x / sqrt 2)`."""
    x, factor = scaled(edit, curve.inputs[0])
    return x if close(factor, 1 / sqrt(2)) else None


def _tanh_argument(edit: Edit, curve: Node) -> str | None:
    """x in `tanh(sqrt(2 / pi) * (x + 0.044715 x^3))`, or with x taken out of the sum."""
    argument = curve.inputs[0]
    for total in factors(edit, argument):
        node = edit.producer(total, "Add")
        for first, rest in operands(node) if node else ():
            taken_out = edit.uniform(first) == 1
            for x in dict.fromkeys(subterms(edit, argument)) if taken_out else [first]:
                cubic = product(edit, rest, frozenset({x}))
                around = product(edit, argument, frozenset({x, total}))
                wanted = (x, x) if taken_out else (x, x, x)
                outside = tuple(sorted((x, total))) if taken_out else (total,)
                if (
                    close(cubic[0], CUBIC)
                    and close(around[0], sqrt(2 / pi))
                    and (wanted, outside) == (cubic[1], around[1])
                ):
                    return x
    return None
