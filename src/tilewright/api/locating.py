"""Where a network goes wrong: the first layer that is not what it should be, given what it had to work with.

Each layer is judged by itself: its result is compared with what its operator's reference makes of the very operands
that it had. So what an earlier layer rounds otherwise is not held against a later one, and the first that is wrong is
named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct

from tilewright.api.differences import ErrorFigures, figures, of_rounding
from tilewright.api.observing import Observed, Shown
from tilewright.core.graph import Array, Graph, Node
from tilewright.core.interpret import interpret_all, run_node
from tilewright.core.op import is_view

Where = Literal["model", "passes", "program"]
"""Between which two runs a fault lies: the operators' declarations are not what runs the model as given; passes change
what the network computes; the program computes something else than the network behind the passes."""


class Fault(Struct, frozen=True, eq=False):
    """The first layer that is wrong."""

    where: Where
    node: Node
    tensor: str
    figures: ErrorFigures
    got: Array
    expected: Array
    operands: Mapping[str, Array]
    """What it had to work with."""
    stage: str = ""
    """The pass that changed it."""
    overwritten: str = ""
    """An operand that was not as it had been made when this layer read it."""
    lost: bool = False
    """Whether it was right when it was made, and wrong where it went."""

    @property
    def layer(self) -> str:
        return self.node.label


def locate_in_model(source: Graph, given: Mapping[str, Array]) -> tuple[Fault | None, tuple[Node, ...]]:
    """The first operator whose declaration is not what ran the model as given, and those that are not meant to be.

    A network of integers may be stated in floats. What it means then is what its operators declare for integers, and
    where these round, whoever runs it in floats gets something else.
    """
    tensors: dict[str, Array] = dict(source.constants)
    meant: list[Node] = []
    for name in source.inputs:
        tensors[name] = _typed(source, name, given[name])
    for node in source.nodes:
        expected = run_node(source, node, tensors)
        for name, array in expected.items():
            theirs = _typed(source, name, given[name]) if name in given else array
            found = _judged(source, node, tensors, expected, name, theirs)
            if found.wrong and source.types[name].dtype.is_integer and given[name].dtype.kind == "f":
                meant.append(node)
            elif found.wrong:
                return Fault("model", node, name, found, array, theirs, _operands(node, tensors)), tuple(meant)
            tensors[name] = theirs
    return None, tuple(meant)


def _typed(graph: Graph, name: str, array: Array) -> Array:
    kind = graph.types[name]
    with np.errstate(all="ignore"):
        return np.asarray(array).astype(kind.dtype.numpy).reshape(kind.shape)


def _operands(node: Node, tensors: Mapping[str, Array]) -> dict[str, Array]:
    return {name: tensors[name] for name in node.reads}


def _judged(
    graph: Graph, node: Node, operands: Mapping[str, Array], expected: Mapping[str, Array], name: str, got: Array
) -> ErrorFigures:
    """How a result differs, by more than rounding: what that does is only looked at where it matters."""
    found = figures(got, expected[name])
    if not found.wrong:
        return found
    allowed = of_rounding(graph, node, {**operands}, expected)
    return figures(got, expected[name], None, allowed[name])


# Passes


def locate_in_passes(
    stages: Sequence[tuple[str, Graph]],
    inputs: Sequence[Array],
    right: Mapping[str, Array],
    wrong: Callable[[Sequence[Array]], bool],
) -> Fault | None:
    """The first pass behind which results are wrong, and the first layer that it changed. `wrong` judges outputs."""
    before, tensors = stages[0][1], dict(right)
    for stage, graph in stages[1:]:
        if graph is before:
            continue
        found = interpret_all(graph, inputs)
        if wrong([found[name] for name in graph.outputs]):
            return _changed(stage, before, graph, tensors, found)
        before, tensors = graph, found
    return None


def _changed(
    stage: str, before: Graph, after: Graph, right: Mapping[str, Array], found: Mapping[str, Array]
) -> Fault | None:
    """The first layer of a graph with a result, or a constant, that is not what it was; else the last one."""
    suspects: list[tuple[Node, str]] = []
    for node in after.nodes:
        for name in node.reads:
            old, new = before.constants.get(name), after.constants.get(name)
            if old is not None and new is not None and old.shape == new.shape and figures(new, old).wrong:
                suspects.append((node, node.made[0]))
        for name in node.made:
            if (
                name in right
                and before.types.get(name) == after.types[name]
                and figures(found[name], right[name]).wrong
            ):
                suspects.append((node, name))
        if suspects:
            break
    if not suspects:
        known = {id(node) for node in before.nodes}
        changed = [node for node in after.nodes if id(node) not in known and node not in before.nodes]
        suspects = [(node, node.made[0]) for node in (changed or after.nodes)]
    node, name = suspects[0]
    gone = _gone(before, after, node, right, found)
    if gone is not None:
        old, operand = gone
        expected, got = right[old.made[0]], found[operand]
        return Fault("passes", old, old.made[0], figures(got, expected), got, expected, _operands(old, right), stage)
    expected = right.get(name)
    if expected is None or expected.shape != found[name].shape:
        # Nothing of that name was there before: its outputs tell how wrong it is.
        shown = next((o for o in after.outputs if o in right and figures(found[o], right[o]).wrong), after.outputs[0])
        expected, got = right.get(shown, found[shown]), found[shown]
    else:
        got = found[name]
    return Fault("passes", node, name, figures(got, expected), got, expected, _operands(node, found), stage)


def _gone(
    before: Graph, after: Graph, node: Node, right: Mapping[str, Array], found: Mapping[str, Array]
) -> tuple[Node, str] | None:
    """A layer that a node had an operand from, and that is left out, with what the node has instead of it."""
    producers = before.producer()
    for old in before.nodes:
        if (old.label, old.op, len(old.inputs)) != (node.label, node.op, len(node.inputs)):
            continue
        for was, now in zip(old.inputs, node.inputs, strict=True):
            if was != now and was in producers and was not in after.types and now in found:
                same = right[was].shape == found[now].shape
                if same and figures(found[now], right[was]).wrong:
                    return producers[was], now
    return None


# Programs


def locate_in_program(
    graph: Graph, inputs: Sequence[Array], observed: Observed, outputs: Sequence[Array]
) -> Fault | None:
    """The first layer that a program computes wrongly, reads wrongly, or that does not get where it should."""
    tensors: dict[str, Array] = {**graph.constants, **dict(zip(graph.inputs, inputs, strict=True))}
    made = {**_first_reads(observed), **observed.made}
    for index, node in enumerate(graph.nodes):
        expected = run_node(graph, node, tensors)
        for name, array in expected.items():
            shown = None if is_view(node) else made.get(name)
            if shown is None:
                tensors[name] = array
                continue
            got = np.where(shown.known, shown.array, array)
            found = _judged(graph, node, tensors, expected, name, got)
            if found.wrong:
                return _explained(
                    graph,
                    index,
                    name,
                    tensors,
                    observed,
                    Fault("program", node, name, found, got, array, _operands(node, tensors)),
                )
            tensors[name] = got
    producers = graph.producer()
    # A program that did not come to its end has no outputs.
    for name, output in zip(graph.given, outputs, strict=False):
        node = producers.get(name)
        found = figures(output, tensors[name])
        if found.wrong and node is not None:
            return Fault("program", node, name, found, output, tensors[name], _operands(node, tensors), lost=True)
    return None


def _first_reads(observed: Observed) -> dict[str, Shown]:
    """Of tensors that were not seen where they are made, what their first reader found."""
    found: dict[str, Shown] = {}
    for index, name in sorted(observed.read):
        found.setdefault(name, observed.read[index, name])
    return found


def _explained(
    graph: Graph, index: int, name: str, tensors: Mapping[str, Array], observed: Observed, fault: Fault
) -> Fault:
    """The fault, with an operand that was something else when the layer read it, if that is what makes it wrong."""
    node = graph.nodes[index]
    for operand in node.reads:
        shown = observed.read.get((index, operand))
        if shown is None:
            continue
        got = np.where(shown.known, shown.array, tensors[operand])
        found = figures(got, tensors[operand], shown.known, np.zeros(got.shape))
        if found.wrong:
            mine = (got, tensors[operand], fault.operands)
            return Fault("program", node, name, found, *mine, overwritten=operand)
    return fault
