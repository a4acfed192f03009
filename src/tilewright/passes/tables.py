"""What is computed from one 8-bit tensor, element by element and with a table, becomes one table.

Quantised activations such as `x * sigmoid(x)` come as tables between products and requantisations, but 256 results say
it all.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from tilewright.base.dtype import INT8, UINT8
from tilewright.core.graph import Array, FreshNames, Graph, Node, attrs, type_of_array
from tilewright.core.op import REGISTRY, call_of, evaluate
from tilewright.errors import TilewrightError
from tilewright.machine.target import Target

NARROW = (INT8, UINT8)


class _Function(Struct, frozen=True):
    """A tensor by the values of another one, of its shape."""

    source: str
    results: Array
    """For each of the 256 values, in their order."""
    steps: int = 0
    looked_up: bool = False
    """Whether there is a table among its steps."""

    @property
    def worth_it(self) -> bool:
        return self.looked_up and self.steps > 1 and self.results.dtype.itemsize == 1


def tables(graph: Graph, platform: Target) -> Graph:
    """The graph with such functions as one lookup each."""
    del platform
    known: dict[str, _Function] = {}
    for node in graph.nodes:
        found = _function(graph, node, known)
        if found is not None:
            known[node.outputs[0]] = found
    if not any(function.worth_it for function in known.values()):
        return graph
    needed = set(graph.outputs)
    constants: dict[str, Array] = {}
    nodes: list[Node] = []
    names = FreshNames(graph)
    for node in reversed(graph.nodes):
        function = known.get(node.outputs[0])
        if function is None or not function.worth_it:
            nodes.append(node)
            needed |= {*node.reads} if function is None or node.outputs[0] in needed else set()
        elif node.outputs[0] in needed:
            table = names.fresh(f"{node.outputs[0]}_results")
            constants[table] = function.results
            nodes.append(Node("Lookup", (function.source, table), node.outputs, attrs(), node.name))
            needed.add(function.source)
        else:
            nodes.append(node)
    return graph.with_nodes(nodes[::-1], constants=constants)


def _function(graph: Graph, node: Node, known: Mapping[str, _Function]) -> _Function | None:
    """A node's result as a function of one tensor, where it is one."""
    if REGISTRY[node.op].kind != "elementwise" or node.epilogue or len(node.outputs) != 1:
        return None
    operands = [_operand(graph, node, index, known) for index in range(len(node.inputs))]
    functions = [operand for operand in operands if isinstance(operand, _Function)]
    sources = {function.source for function in functions}
    missing = any(name and operand is None for name, operand in zip(node.inputs, operands, strict=True))
    if missing or len(sources) != 1:
        return None
    source = sources.pop()
    if graph.types[source].shape != graph.types[node.outputs[0]].shape:
        return None
    arrays = [operand.results if isinstance(operand, _Function) else operand for operand in operands]
    values = [None if isinstance(operand, _Function) else operand for operand in operands]
    kinds = [None if array is None else type_of_array(array) for array in arrays]
    try:
        call = call_of(REGISTRY[node.op], kinds, node.attrs, values=values, name=node.label)
    except TilewrightError:
        # An operand that has to be one number, as a bound has, takes no table.
        return None
    results = evaluate(call, arrays)[0]
    if results.shape != (256,) or results.dtype.kind not in "iu":
        return None
    steps = 1 + sum(function.steps for function in functions)
    return _Function(source, results, steps, node.op == "Lookup" or any(f.looked_up for f in functions))


def _operand(graph: Graph, node: Node, index: int, known: Mapping[str, _Function]) -> _Function | Array | None:
    """A function, a number, or the table of a lookup; None for everything else."""
    name = node.inputs[index]
    constant = graph.constants.get(name)
    if constant is not None and constant.size == 1:
        return constant.reshape(())
    if constant is not None:
        return constant if node.op == "Lookup" else None
    if name in known:
        return known[name]
    kind = graph.types[name].dtype if name else None
    if kind is None or kind not in NARROW:
        return None
    return _Function(name, np.arange(kind.lo, kind.hi + 1).astype(kind.numpy))
