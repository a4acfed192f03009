"""Constant folding."""

from __future__ import annotations

import numpy as np

from passes.build import Builder, applied, ops, text
from support import Golden
from tilewright.passes.fold_constants import fold_constants


def test_fold_constants(golden: Golden) -> None:
    b = Builder()
    x = b.input("x", "float32[2,2]")
    doubled = b.op("Mul", b.op("Add", np.ones((2, 2), np.float32), 1.0), 2.0, name="doubled")
    graph = b.graph(b.op("Mul", x, doubled, name="y"), b.op("Neg", 3.0, name="constant_output"))
    golden("passes/fold_constants.txt", text(graph, fold_constants))


def test_a_result_much_larger_than_its_source_is_computed_at_run_time() -> None:
    b = Builder()
    x = b.input("x", "float32[512,512]")
    graph = b.graph(b.op("Add", x, b.op("Expand", 1.0, [512, 512]), name="y"))
    assert ops(applied(graph, fold_constants)) == ["Expand", "Add"]


def test_what_has_no_elements_is_not_computed() -> None:
    b = Builder()
    x = b.input("x", "float32[2,5]")
    best, where = b.ops("TopK", x, [0], names=("best", "where"))
    graph = b.graph(b.op("Concat", x, best, name="y", axis=1), where)
    done = applied(graph, fold_constants)
    assert ops(done) == ["Concat"]
    assert {name: done.constants[name].shape for name in ("best", "where")} == {"best": (2, 0), "where": (2, 0)}
