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
