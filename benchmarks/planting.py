"""Ways to plant a fault in what compiles a network: in the code of one layer, in a pass, in a plan, in flags.

Nothing of the package is changed on disk; a fault is there as long as its block lasts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tilewright.api import compiling
from tilewright.codegen import lowering
from tilewright.codegen.pieces import Pieces
from tilewright.codegen.works import TileTask, invoke
from tilewright.core.expr import plain
from tilewright.core.graph import Array, Graph, Node
from tilewright.core.plan import Plan
from tilewright.core.program import Argument, Invoke, Literal, Number, Pointer
from tilewright.passes import PIPELINE, run_pipeline
from tilewright.quantize import to_integers

Change = Callable[[str], str]
"""Of C text."""
Turn = Callable[[Sequence[Argument], Sequence[str]], list[Argument]]
"""Of the arguments of a call, with the names of the parameters."""
LOWER = import_module("tilewright.codegen.lower")
"""The module: its package has a function of the same name."""
BYTES = 16
"""By which a pointer is wrong: no kernel minds its alignment."""


class Planted(Struct):
    """Whether a fault was planted, and how often."""

    times: int = 0


@contextmanager
def in_code(layer: str, change: Change | None = None, turn: Turn | None = None) -> Generator[Planted]:
    """A fault in the code of one layer: in its text, as one of a kernel, or in what it is called with."""
    count = Planted()

    def faulty(task: TileTask, pieces: Pieces) -> Invoke:
        if task.member.node.label != layer:
            return invoke(task, pieces)
        with ExitStack() as held:
            if change is not None:
                held.enter_context(patch.object(pieces, "function", _changed(pieces.function, change, count)))
            found = invoke(task, pieces)
        if turn is not None:
            kernel = task.choice.kernel
            arguments = turn(found.arguments, [p.name for p in kernel.parameters] if kernel else [])
            count.times += tuple(arguments) != found.arguments
            found = replace(found, arguments=tuple(arguments))
        return found

    with patch.object(LOWER, "invoke", faulty), patch.object(lowering, "invoke", faulty):
        yield count


def _changed(function: Callable[[str, str], str], change: Change, count: Planted) -> Callable[[str, str], str]:
    def faulty(hint: str, text: str) -> str:
        found = change(text)
        count.times += found != text
        return function(hint, found)

    return faulty


# Changes of text


def texts(*pairs: tuple[str, str]) -> Change:
    """Replaces patterns, all that are there."""

    def change(text: str) -> str:
        for pattern, new in pairs:
            text = re.sub(pattern, new, text)
        return text

    return change


SLOWLY = ((r"#define STORE_(SCALES|SHIFTS|LISTS|HAS_LANES) 1", r"#define STORE_\1 0"),)
"""Kernels that know an epilogue by heart use its text instead."""


def results(integers: str, floats: str) -> Change:
    """Changes every result, `v`, as it leaves its layer."""

    def change(text: str) -> str:
        for pattern, new in SLOWLY:
            text = re.sub(pattern, new, text)
        kinds = {name: kind for kind, name in re.findall(r"\b(float|u?int\d+_t) (v\d+)[; =]", text)}

        def changed(match: re.Match[str]) -> str:
            name = match[2]
            kind = kinds.get(name, "float")
            formula = floats if kind == "float" else integers
            return f"{match[1]}({kind})({formula.replace('v', name)});"

        return re.sub(r"((?:return|p_\w+\[[^\n]*\] =) )(v\d+);", changed, text)

    return change


# Changes of arguments


def pointer(*, written: bool, by: int = BYTES) -> Turn:
    """Gives the first pointer to what is read, or written, some bytes further on."""

    def turn(arguments: Sequence[Argument], _names: Sequence[str]) -> list[Argument]:
        found = list(arguments)
        for index, argument in enumerate(found):
            if isinstance(argument, Pointer) and argument.const != written and argument.place.space != "constant":
                found[index] = replace(argument, offset=plain(argument.offset + by))
                break
        return found

    return turn


def number(names: Sequence[str], by: int) -> Turn:
    """Changes the first of some numbers that the kernel takes."""

    def turn(arguments: Sequence[Argument], parameters: Sequence[str]) -> list[Argument]:
        found = list(arguments)
        for name in names:
            if name in parameters:
                index = parameters.index(name)
                found[index] = _more(found[index], by)
                break
        return found

    return turn


def scaled(names: Sequence[str], by: float) -> Turn:
    """The same for floats."""

    def turn(arguments: Sequence[Argument], parameters: Sequence[str]) -> list[Argument]:
        found = list(arguments)
        for name in names:
            if name in parameters:
                text = found[parameters.index(name)]
                assert isinstance(text, Literal)
                found[parameters.index(name)] = Literal(f"({text.text} * {by}f)")
                break
        return found

    return turn


def _more(argument: Argument, by: int) -> Argument:
    if isinstance(argument, Number):
        return Number(plain(argument.value + by))
    assert isinstance(argument, Literal)
    return Literal(f"({argument.text} + {by})")


# Passes


@contextmanager
def in_pass(name: str, change: Callable[[Graph], Graph]) -> Generator[Planted]:
    """A fault of a pass, which changes the network once more."""
    count = Planted()

    def pipeline(graph: Graph, platform: Any, observe: Any = None) -> Graph:
        passes = [_faulty(step, change, count) if step.__name__ == name else step for step in PIPELINE]
        return run_pipeline(graph, platform, observe, passes)

    def integers(graph: Graph, platform: Any) -> Graph:
        return (
            _faulty(to_integers, change, count)(graph, platform) if name == "integers" else to_integers(graph, platform)
        )

    with patch.object(compiling, "run_pipeline", pipeline), patch.object(compiling, "to_integers", integers):
        yield count


def _faulty(step: Callable[[Graph, Any], Graph], change: Callable[[Graph], Graph], count: Planted) -> Any:
    def faulty(graph: Graph, platform: Any) -> Graph:
        found = step(graph, platform)
        changed = change(found)
        count.times += changed is not found
        return changed

    faulty.__name__ = step.__name__
    return faulty


def constant(layer: str, op: str, operand: int, change: Callable[[Array], Array]) -> Callable[[Graph], Graph]:
    """Changes a constant that a layer reads."""

    def changed(graph: Graph) -> Graph:
        for node in _of(graph, layer, op):
            names = [name for name in node.reads if name in graph.constants]
            if operand < len(names):
                array = graph.constants[names[operand]]
                return graph.with_nodes(graph.nodes, constants={names[operand]: change(array).astype(array.dtype)})
        return graph

    return changed


def without(layer: str, op: str) -> Callable[[Graph], Graph]:
    """Leaves a layer out."""

    def changed(graph: Graph) -> Graph:
        for node in _of(graph, layer, op):
            kept = [other for other in graph.nodes if other is not node]
            names = {node.outputs[0]: node.inputs[0]}
            return graph.with_nodes([other.rename(names) for other in kept])
        return graph

    return changed


def _of(graph: Graph, layer: str, op: str) -> Iterator[Node]:
    return (node for node in graph.nodes if node.label == layer and node.op == op)


# Plans


@contextmanager
def in_plan(change: Callable[[Plan], Plan]) -> Generator[Planted]:
    """A fault of the planner, which its validator does not see."""
    count, plan = Planted(), compiling.plan

    def faulty(*arguments: Any) -> Plan:
        found = plan(*arguments)
        changed = change(found)
        count.times += changed is not found
        return changed

    with patch.object(compiling, "plan", faulty), patch.object(compiling, "check"):
        yield count


def shared(one: str, other: str, by: int = 0) -> Callable[[Plan], Plan]:
    """Puts a tensor where another one lies, or some bytes further on."""

    def changed(plan: Plan) -> Plan:
        if one not in plan.places or other not in plan.places:
            return plan
        place = replace(plan.places[other], offset=plan.places[other].offset + by)
        found = replace(plan, places={**plan.places, one: place})
        if plan.schedule is None:
            return found
        groups = tuple(
            replace(
                group,
                buffers=tuple(replace(b, offset=place.offset) if b.tensor == one else b for b in group.buffers),
            )
            for group in plan.schedule.groups
        )
        return replace(found, schedule=replace(plan.schedule, groups=groups))

    return changed


def noisy(array: Array) -> Array:
    """Other numbers of about the same size."""
    rng = np.random.default_rng(0)
    size = float(np.abs(array).max()) / 8 + 1e-6
    return rng.normal(array, size)
