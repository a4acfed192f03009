"""Delta debugging: the smallest part of a list, and of a network, that still goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import onnx
from onnx import helper

from random_types import by_onnxruntime, number_of
from tilewright.core.graph import Array

Item = TypeVar("Item")
Network = tuple[onnx.ModelProto, dict[str, Array]]
"""A model with its inputs by name."""


def smallest(items: Sequence[Item], fails: Callable[[Sequence[Item]], bool]) -> list[Item]:
    """A part of a list that fails, and no longer does without any one of its items (Zeller's ddmin)."""
    kept, parts = list(items), 2
    while len(kept) >= 1:
        size = max(1, (len(kept) + parts - 1) // parts)
        for start in range(0, len(kept), size):
            rest = [*kept[:start], *kept[start + size :]]
            if fails(rest):
                kept, parts = rest, max(2, parts - 1)
                break
        else:
            if size == 1:
                break
            parts = min(len(kept), 2 * parts)
    return kept


def values_of(network: Network) -> dict[str, Array]:
    """All tensors of a network that onnxruntime takes; without what is in files of their own."""
    model, fed = network
    made = [name for node in model.graph.node for name in node.output if name]
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    del whole.graph.output[:]
    whole.graph.output.extend(onnx.ValueInfoProto(name=name) for name in made)
    return {**fed, **dict(zip(made, by_onnxruntime(whole, fed), strict=True))}


def part_of(network: Network, values: Mapping[str, Array], nodes: Sequence[int]) -> Network:
    """Some nodes of a network: what they read of others is an input, and what none of them reads an output."""
    model, _ = network
    kept = [model.graph.node[at] for at in nodes]
    made = [name for node in kept for name in node.output if name]
    read = dict.fromkeys(name for node in kept for name in node.input if name)
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    fed = {name: values[name] for name in read if name not in made and name not in constants}
    inputs = [helper.make_tensor_value_info(name, number_of(a), a.shape) for name, a in fed.items()]
    outputs = [
        helper.make_tensor_value_info(name, number_of(values[name]), values[name].shape)
        for name in made
        if name not in read
    ]
    weights = [tensor for name, tensor in constants.items() if name in read]
    graph = helper.make_graph(kept, "reduced", inputs, outputs, weights)
    opsets = list(model.opset_import)
    return helper.make_model(graph, opset_imports=opsets, ir_version=model.ir_version), fed


def smallest_network(network: Network, fails: Callable[[Network], bool]) -> Network:
    """The fewest nodes of a network that fail, with the values that they had in the whole of it."""
    values = values_of(network)
    everything = range(len(network[0].graph.node))

    def judged(nodes: Sequence[int]) -> bool:
        return bool(nodes) and fails(part_of(network, values, nodes))

    nodes = smallest(list(everything), judged)
    return part_of(network, values, nodes) if len(nodes) < len(everything) else network
