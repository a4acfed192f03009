"""Unrolls Loop and Scan whose number of steps is known: a static network has no other kind of repetition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tilewright.core.graph import Array, TensorType
from tilewright.errors import TilewrightError
from tilewright.frontend.raw import RawAttr, RawNode, Subgraph


class Scope(Protocol):
    """Where a loop stands. Tensor names are those of the graph being built."""

    def type(self, name: str) -> TensorType: ...
    def value(self, name: str) -> Array | None: ...
    def constant(self, hint: str, array: Array) -> str: ...
    def fresh(self, hint: str) -> str: ...
    def needed(self, name: str, what: str) -> Array:
        """The value of a tensor that must be known at compile time."""
        ...

    def room_for(self, nodes: int) -> None:
        """An error where that many more nodes are too many."""
        ...

    def place(self, node: RawNode) -> None:
        """Builds a node."""
        ...

    def step(self, body: Subgraph, inputs: Sequence[str]) -> tuple[str, ...]:
        """Builds the body once and gives the names of its outputs."""
        ...


def unroll(node: RawNode, scope: Scope) -> None:
    """Builds every step of a Loop or Scan."""
    body = node.attrs.get("body")
    if not isinstance(body, Subgraph):
        raise TilewrightError("bad-model", f"{node.op} '{node.label}' lacks its body")
    (_loop if node.op == "Loop" else _scan)(node, body, scope)


def _loop(node: RawNode, body: Subgraph, scope: Scope) -> None:
    limit, condition, *carried = (*node.inputs, "", "")[: max(2, len(node.inputs))]
    trips = int(scope.needed(limit, "the number of steps").reshape(-1)[0]) if limit else None
    going = bool(scope.needed(condition, "the first condition").any()) if condition else True
    collected: list[tuple[str, ...]] = []
    while going and (trips is None or len(collected) < trips):
        number = scope.constant(f"{node.label}_step", np.array(len(collected), np.int64))
        go_on = scope.constant(f"{node.label}_going", np.array(True))
        results = scope.step(body, (number, go_on, *carried))
        carried = list(results[1 : 1 + len(carried)])
        collected.append(results[1 + len(carried) :])
        again = scope.value(results[0])
        if again is None:
            raise TilewrightError("unsupported-operator", "its condition is known at run time only")
        going = bool(again.any())
    _finish(node, carried, collected, [0] * len(body.outputs), [0] * len(body.outputs), scope)


def _scan(node: RawNode, body: Subgraph, scope: Scope) -> None:
    if node.version < 9:
        raise TilewrightError("unsupported-operator", "the form of opset 8, which has batches, is not supported")
    count = _ints(node, "num_scan_inputs", 1)[0]
    states, sequences = list(node.inputs[:-count]), node.inputs[-count:]
    if not 0 < count <= len(node.inputs):
        raise TilewrightError("bad-attribute", f"Scan '{node.label}' of {len(node.inputs)} inputs scans {count}")
    ranks = [scope.type(name).rank for name in sequences]
    axes = [_axis(node, a, rank) for a, rank in zip(_ints(node, "scan_input_axes", count), ranks, strict=True)]
    backward = _ints(node, "scan_input_directions", count)
    lengths = {scope.type(name).shape[axis] for name, axis in zip(sequences, axes, strict=True)}
    if len(lengths) != 1:
        raise TilewrightError("shape-mismatch", f"Scan '{node.label}' is given sequences of different lengths")
    length = lengths.pop()
    scope.room_for(length * max(len(body.nodes), 1))
    collected: list[tuple[str, ...]] = []
    for step in range(length):
        inputs = [
            _element(name, length - 1 - step if reverse else step, axis, scope)
            for name, axis, reverse in zip(sequences, axes, backward, strict=True)
        ]
        results = scope.step(body, (*states, *inputs))
        states = list(results[: len(states)])
        collected.append(results[len(states) :])
    outputs = len(body.outputs) - len(states)
    _finish(
        node,
        states,
        collected,
        _ints(node, "scan_output_axes", outputs),
        _ints(node, "scan_output_directions", outputs),
        scope,
    )


def _finish(
    node: RawNode,
    states: Sequence[str],
    collected: Sequence[Sequence[str]],
    axes: Sequence[int],
    backward: Sequence[int],
    scope: Scope,
) -> None:
    """Gives the last states and the stacked results of all steps the names that the outside knows them by."""
    for state, output in zip(states, node.outputs, strict=False):
        if output:
            scope.place(RawNode("Identity", (state,), (output,)))
    for index, output in enumerate(node.outputs[len(states) :]):
        if not output:
            continue
        if not collected:
            raise TilewrightError("unsupported-operator", "it makes no step, so the shape of its results is unknown")
        parts = [results[index] for results in collected]
        axis = _axis(node, axes[index], scope.type(parts[0]).rank + 1)
        place = scope.constant(f"{output}_axis", np.array([axis]))
        stacked = [scope.fresh(f"{output}_part") for _ in parts]
        for part, name in zip(parts, stacked, strict=True):
            scope.place(RawNode("Unsqueeze", (part, place), (name,)))
        order = stacked[::-1] if backward[index] else stacked
        scope.place(RawNode("Concat", tuple(order), (output,), {"axis": axis}))


def _axis(node: RawNode, axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        where = f"in {node.op} '{node.label}'"
        raise TilewrightError("bad-axis", f"axis {axis} is outside a tensor of rank {rank}, {where}")
    return axis % rank


def _element(name: str, index: int, axis: int, scope: Scope) -> str:
    result = scope.fresh(f"{name}_at_{index}")
    place = scope.constant(f"{result}_index", np.array(index, np.int64))
    scope.place(RawNode("Gather", (name, place), (result,), {"axis": axis}))
    return result


def _ints(node: RawNode, name: str, count: int) -> tuple[int, ...]:
    value: RawAttr = node.attrs.get(name)
    return (0,) * count if value is None else tuple(int(v) for v in np.asarray(value).reshape(-1))
