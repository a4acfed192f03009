"""Functions of one 8-bit tensor become one table."""

from __future__ import annotations

import numpy as np
import pytest

from passes.build import Builder
from tilewright.core.graph import Graph
from tilewright.core.interpret import interpret
from tilewright.machine.target import load_platform
from tilewright.passes.dead_code import dead_code
from tilewright.passes.tables import tables


def table(seed: int = 0, kind: str = "int8") -> np.ndarray:
    limits = np.iinfo(kind)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, 256).astype(kind)


def requantised(b: Builder, x: str) -> str:
    return b.op("RequantShift", x, np.asarray([[9]], np.int32), np.asarray(-5000, np.int32), div=1 << 14)


def after(graph: Graph) -> Graph:
    """The graph behind the pass, which computes the same."""
    platform = load_platform("generic")
    changed = dead_code(tables(graph, platform), platform)
    rng = np.random.default_rng(1)
    kinds = [graph.types[name] for name in graph.inputs]
    fed = [rng.integers(kind.dtype.lo, kind.dtype.hi + 1, kind.shape).astype(kind.dtype.numpy) for kind in kinds]
    for found, wanted in zip(interpret(changed, fed), interpret(graph, fed), strict=True):
        np.testing.assert_array_equal(found, wanted)
    return changed


def ops(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]


def test_a_gate() -> None:
    """x * table(x), requantised, and a table behind it."""
    b = Builder()
    x = b.input("x", "int8[4,300]")
    wide = b.op("Mul", b.op("Cast", x, to=6), b.op("Lookup", x, table(kind="int32") >> 20))
    changed = after(b.graph(b.op("Lookup", requantised(b, wide), table(2, "uint8"))))
    assert ops(changed) == ["Lookup"]
    assert changed.nodes[0].inputs[0] == "x"


def test_what_others_read_stays() -> None:
    b = Builder()
    x = b.input("x", "uint8[7]")
    first = b.op("Lookup", x, table())
    changed = after(b.graph(first, b.op("Lookup", first, table(3))))
    assert ops(changed) == ["Lookup", "Lookup"]
    assert {node.inputs[0] for node in changed.nodes} == {"x"}


def test_a_tensor_called_as_the_table_keeps_its_value() -> None:
    b = Builder()
    x, other = b.input("x", "int8[64]"), b.input("y_results", "int8[256]")
    last = b.op("Lookup", b.op("Lookup", x, table(1)), table(2), name="y")
    changed = after(b.graph(last, b.op("Identity", other)))
    assert ops(changed) == ["Lookup", "Identity"]


def test_a_wide_result_keeps_its_last_steps() -> None:
    b = Builder()
    x = b.input("x", "int8[7]")
    narrow = b.op("Lookup", b.op("Lookup", x, table(1)), table(2))
    changed = after(b.graph(b.op("Add", b.op("Cast", narrow, to=6), np.asarray(7, np.int32))))
    assert ops(changed) == ["Lookup", "Cast", "Add"]


@pytest.mark.parametrize("kind", ["two sources", "channels", "no table", "one table", "floats"])
def test_what_is_no_such_function(kind: str) -> None:
    b = Builder()
    x = b.input("x", "int8[3,256]")
    looked = b.op("Lookup", x, table(1))
    if kind == "two sources":
        y = b.op("Add", looked, b.input("y", "int8[3,256]"))
    elif kind == "channels":
        y = b.op("Add", looked, table(4))
    elif kind == "no table":
        y = requantised(b, b.op("Cast", x, to=6))
    elif kind == "one table":
        y = looked
    else:
        y = b.op("Cast", b.op("Sigmoid", b.op("Cast", looked, to=1)), to=3)
    graph = b.graph(y)
    assert ops(after(graph)) == ops(dead_code(graph, load_platform("generic")))


def test_a_bound_takes_no_table() -> None:
    b = Builder()
    x = b.input("x", "int8[]")
    graph = b.graph(b.op("Clip", np.asarray(5, np.int8), b.op("Lookup", x, table(1)), np.asarray(9, np.int8)))
    assert ops(after(graph)) == ["Lookup", "Clip"]
