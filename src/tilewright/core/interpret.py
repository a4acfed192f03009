"""Runs a graph by the numpy references of its operators: the oracle of the tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from msgspec.structs import replace

from tilewright.core.graph import Array, Graph, Node, Result
from tilewright.core.op import REGISTRY, call_node, call_steps, evaluate
from tilewright.core.sizes import extents, type_of
from tilewright.errors import TilewrightError


def interpret(graph: Graph, inputs: Sequence[Array]) -> list[Array]:
    """The outputs of a graph for these inputs, which are converted to the declared types."""
    tensors = interpret_all(graph, inputs)
    return [tensors[name] for name in graph.outputs]


def interpret_all(graph: Graph, inputs: Sequence[Array]) -> dict[str, Array]:
    """The same with all tensors, by name."""
    if len(inputs) < len(graph.inputs):
        raise TilewrightError(
            "missing-input", f"network '{graph.name}' has {len(graph.inputs)} inputs, {len(inputs)} given"
        )
    tensors: dict[str, Array] = dict(graph.constants)
    given = dict(zip(graph.inputs, inputs, strict=False))
    at = {b.variable: b.clamped(int(np.asarray(given[b.name]).reshape(-1)[0])) for b in graph.bounds}
    found = extents(graph)
    for name, array in given.items():
        kind = graph.type(name)
        # A state is held as large as it may be; of others there is as much as their sizes say, without gaps.
        shape = kind.shape if name in graph.updates else type_of(graph, found, name, at).shape
        tensors[name] = np.asarray(array).astype(kind.dtype.numpy).reshape(-1)[: prod(shape)].reshape(shape)
    for node in graph.nodes:
        tensors.update(_shorter(graph, node, tensors, at) if found else run_node(graph, node, tensors))
    return tensors


def _shorter(graph: Graph, node: Node, tensors: dict[str, Array], at: Mapping[str, int]) -> dict[str, Array]:
    """The same where tensors are shorter than their types say: each node sees as much as there is."""
    found, op = extents(graph), REGISTRY[node.op]
    if op.appends:
        return run_node(graph, node, tensors)
    if op.kind == "view" and not node.epilogue:
        source = tensors[node.inputs[0]]
        whole = source.shape == graph.types[node.inputs[0]].shape
        name = node.outputs[0]
        return {name: source.reshape((graph.type(name) if whole else type_of(graph, found, name, at)).shape)}
    cut = {
        name: tensors[name][tuple(slice(extent) for extent in type_of(graph, found, name, at).shape)]
        if name in found
        else tensors[name]
        for name in node.reads
    }
    types = {name: type_of(graph, found, name, at) for name in (*node.reads, *node.made)}
    return run_node(replace(graph, types={**graph.types, **types}), node, cut)


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


def run_node(graph: Graph, node: Node, tensors: Mapping[str, Array]) -> dict[str, Array]:
    """What a node makes, by name."""
    call = call_node(graph, node)
    results = list(evaluate(call, [tensors[name] if name else None for name in node.inputs]))
    results[0] = _epilogue(graph, node, results[0], tensors)
    return {name: array for name, array in zip(node.outputs, results, strict=False) if name}


def _epilogue(graph: Graph, node: Node, result: Array, tensors: Mapping[str, Array]) -> Array:
    results = [result]
    for step, call in zip(node.epilogue, call_steps(graph, node), strict=True):
        given = (results[i.number] if isinstance(i, Result) else tensors[i] if i else None for i in step.inputs)
        results.append(evaluate(call, list(given))[0])
    return results[-1]
