"""Runs a graph by the numpy references of its operators: the oracle of the tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.core.graph import Array, Graph, Node, Result
from tilewright.core.op import call_node, call_steps, evaluate
from tilewright.errors import TilewrightError


def interpret(graph: Graph, inputs: Sequence[Array]) -> list[Array]:
    """The outputs of a graph for these inputs, which are converted to the declared types."""
    if len(inputs) < len(graph.inputs):
        raise TilewrightError(
            "missing-input", f"network '{graph.name}' has {len(graph.inputs)} inputs, {len(inputs)} given"
        )
    tensors: dict[str, Array] = dict(graph.constants)
    for name, array in zip(graph.inputs, inputs, strict=False):
        kind = graph.type(name)
        tensors[name] = np.asarray(array).astype(kind.dtype.numpy).reshape(kind.shape)
    for node in graph.nodes:
        tensors.update(_run(graph, node, tensors))
    return [tensors[name] for name in graph.outputs]


def interpret_steps(graph: Graph, inputs: Sequence[Array], steps: int) -> list[Array]:
    """The outputs of several runs, between which states are kept; arrays hold one run after the other."""
    states: list[Array] = [state.initial for state in graph.states]
    found: list[list[Array]] = []
    for step in range(steps):
        fed = [np.asarray(a).reshape(steps, -1)[step] for a in inputs[: len(graph.fed)]]
        results = interpret(graph, [*fed, *states])
        states = results[len(graph.given) :]
        found.append(results[: len(graph.given)])
    return [np.stack(arrays) for arrays in zip(*found, strict=True)]


def _run(graph: Graph, node: Node, tensors: dict[str, Array]) -> dict[str, Array]:
    call = call_node(graph, node)
    results = list(evaluate(call, [tensors[name] if name else None for name in node.inputs]))
    results[0] = _epilogue(graph, node, results[0], tensors)
    return {name: array for name, array in zip(node.outputs, results, strict=False) if name}


def _epilogue(graph: Graph, node: Node, result: Array, tensors: dict[str, Array]) -> Array:
    results = [result]
    for step, call in zip(node.epilogue, call_steps(graph, node, call_node(graph, node).outputs[0]), strict=True):
        given = (results[i.number] if isinstance(i, Result) else tensors[i] if i else None for i in step.inputs)
        results.append(evaluate(call, list(given))[0])
    return results[-1]
