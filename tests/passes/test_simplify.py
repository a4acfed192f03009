"""Operators that do nothing, chains of views, repeated nodes."""

from __future__ import annotations

import numpy as np
import pytest

from passes.build import Builder, applied, ops, text
from support import Golden
from tilewright.passes.simplify import simplify


def test_simplify(golden: Golden) -> None:
    b = Builder()
    x = b.input("x", "float32[2,3,4]")
    same = b.op("Reshape", b.op("Identity", x), [2, 3, 4])
    same = b.op("Cast", b.op("Transpose", same, perm=(0, 1, 2)), to=1)
    same = b.op("Slice", b.op("Pad", same, [0] * 6), [0], [9], [1])
    same = b.op("Mul", b.op("Expand", same, [2, 1, 4]), 1.0)
    seen = b.op("Add", b.op("Exp", same), b.op("Exp", b.op("Sub", x, 0.0)))
    view = b.op("Unsqueeze", b.op("Flatten", seen), [0])
    golden("passes/simplify.txt", text(b.graph(b.op("Relu", view, name="y"), b.op("Identity", x, name="z")), simplify))


def test_an_output_keeps_its_name() -> None:
    b = Builder()
    x = b.input("x", "float32[4]")
    inner = b.op("Relu", x)
    graph = b.graph(b.op("Identity", inner, name="y"), b.op("Exp", inner, name="z"))
    result = applied(graph, simplify)
    assert result.outputs == ("y", "z")
    assert ops(result) == ["Relu", "Exp"]


def test_outputs_that_are_equal_are_both_made() -> None:
    b = Builder()
    inner = b.op("Relu", b.input("x", "float32[1]"))
    flat = b.op("Squeeze", inner, [0])
    graph = b.graph(
        b.op("Identity", inner, name="y"), b.op("Unsqueeze", flat, [0], name="z"), b.op("Exp", flat, name="w")
    )
    assert applied(graph, simplify).outputs == ("y", "z", "w")


@pytest.mark.parametrize(
    ("op", "operand"), [("Add", 0.0), ("Mul", -1.0), ("Div", 3.0), ("Pow", 2.0), ("Add", [[0.0]] * 5)]
)
def test_what_changes_something_stays(op: str, operand: float | list[list[float]]) -> None:
    b = Builder()
    x = b.input("x", "float32[4]")
    assert ops(applied(b.graph(b.op(op, x, np.array(operand, np.float32), name="y")), simplify)) == [op]


def test_a_reversed_slice_stays() -> None:
    b = Builder()
    x = b.input("x", "float32[4]")
    assert ops(applied(b.graph(b.op("Slice", x, [-1], [-9], [0], [-1], name="y")), simplify)) == ["Slice"]


def test_a_division_by_a_power_of_two_is_a_product() -> None:
    b = Builder()
    x = b.input("x", "float32[4]")
    assert ops(applied(b.graph(b.op("Div", x, 8.0, name="y")), simplify)) == ["Mul"]


def test_requantisations_by_one_go() -> None:
    b = Builder()
    x, half = b.input("x", "int8[4]"), np.asarray(0, np.int32)
    kept = b.op("RequantShift", x, np.asarray(64, np.int32), half, div=64, n_levels=16)
    same = b.op("RequantShift", kept, np.asarray(64, np.int32), half, div=64)
    graph = b.graph(b.op("RequantShift", same, np.asarray(32, np.int32), half, div=64, name="y"))
    assert [node.attrs["div"] for node in applied(graph, simplify).nodes] == [64, 64]


@pytest.mark.parametrize(("kind", "left"), [("int8", ["RequantShift"]), ("int32", ["TrueIntegerDiv", "RequantShift"])])
def test_a_requantised_division_by_a_constant_is_one_product(kind: str, left: list[str]) -> None:
    b = Builder()
    divided = b.op("TrueIntegerDiv", b.input("x", f"{kind}[300]"), Delta=16384, eps=1, eta=200000, y=2)
    scaled = b.op("RequantShift", divided, np.asarray(4, np.int32), np.asarray(9, np.int32), div=1 << 16, name="y")
    assert ops(applied(b.graph(scaled), simplify)) == left


def test_concatenations_are_without_what_is_empty() -> None:
    b = Builder()
    empty, x = b.input("empty", "int8[2,0,3]"), b.input("x", "int8[2,4,3]")
    alone = b.op("Relu", b.op("Concat", empty, x, axis=1), name="y")
    both = b.op("Concat", x, empty, x, axis=1, name="z")
    assert [len(node.inputs) for node in applied(b.graph(alone, both), simplify).nodes] == [1, 2]


@pytest.mark.parametrize("pads", [(1, -1), (-1, 1), (0, 0)])
def test_the_only_element_of_an_axis_may_be_padded_away(pads: tuple[int, int]) -> None:
    b = Builder()
    padded = b.op("Pad", b.input("x", "float32[1]"), pads, 7.0)
    result = applied(b.graph(b.op("Relu", padded, name="y")), simplify)
    assert ops(result) == (["Expand", "Relu"] if any(pads) else ["Relu"])


def test_a_padding_that_keeps_nothing_of_many_elements_is_its_fill() -> None:
    b = Builder()
    fill = b.input("fill", "int64[1]")
    graph = b.graph(b.op("Pad", b.input("x", "int64[2,3]"), [1, -3, 0, 5], fill, name="y"))
    assert ops(applied(graph, simplify)) == ["Reshape", "Expand"]
