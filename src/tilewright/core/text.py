"""The textual form of a graph: one line per tensor or node, for golden tests and for reading."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.core.graph import Array, Attr, Attrs, Graph, Node, Result, Step

SHOWN_VALUES = 8
"""Constants with at most so many elements are printed with their values."""


def print_graph(graph: Graph) -> str:
    """The graph as text: `%y = Op(%x, %w) {attr=1} : float32[1,2]`, fused steps behind a semicolon."""
    lines = [f"graph {graph.name}({', '.join(f'{_name(n)}: {graph.types[n]}' for n in graph.fed)})"]
    lines += [f"  state {_name(name)}: {graph.types[name]}" for name in graph.updates]
    lines += [
        f"  {_name(name)} = constant{_values(array)} : {graph.types[name]}"
        for name, array in sorted(graph.constants.items())
    ]
    lines += [f"  {print_node(graph, node)}" for node in graph.nodes]
    lines.append(f"  return {_names(graph.given)}")
    lines += [f"  {_name(old)} <- {_name(new)}" for old, new in graph.updates.items()]
    return "\n".join(lines) + "\n"


def print_node(graph: Graph, node: Node) -> str:
    """One node as text."""
    types = ", ".join(str(graph.types[name]) for name in node.outputs if name)
    text = f"{_names(node.outputs)} = {_applied(node.op, node.inputs, node.attrs)} : {types}"
    return "; ".join([text, *(_step(step) for step in node.epilogue)])


def _step(step: Step) -> str:
    return f"{_applied(step.op, step.inputs, step.attrs)} : {step.type}"


def _applied(op: str, inputs: Iterable[str | Result], attrs: Attrs) -> str:
    listed = ", ".join(f"{key}={_attribute(value)}" for key, value in sorted(attrs.items()))
    return f"{op}({_names(inputs)})" + (f" {{{listed}}}" if listed else "")


def _names(names: Iterable[str | Result]) -> str:
    return ", ".join(map(_name, names))


def _name(name: str | Result) -> str:
    """A tensor as `%name`, an absent one as `-`, the result of an earlier fused step as `@1`."""
    return str(name) if isinstance(name, Result) else f"%{name}" if name else "-"


def _attribute(value: Attr) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple) else str(value)


def _values(array: Array) -> str:
    if array.size > SHOWN_VALUES:
        return ""
    return " " + "[" + ", ".join(f"{value:.6g}" for value in array.reshape(-1).tolist()) + "]"
