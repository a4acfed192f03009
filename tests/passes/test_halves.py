"""Operators without code for halves."""

from __future__ import annotations

import pytest

from passes.build import Builder, applied, ops, text
from support import Golden
from tilewright.passes.halves import halves


def test_halves(golden: Golden) -> None:
    b = Builder()
    x = b.input("x", "float16[2,4]")
    values, indices = b.ops("TopK", b.op("LogSoftmax", x, name="logs"), [2], names=("values", "indices"))
    golden("passes/halves.txt", text(b.graph(values, indices), halves))


@pytest.mark.parametrize(("op", "kind"), [("Relu", "float16"), ("MatMul", "bfloat16"), ("LogSoftmax", "float32")])
def test_operators_with_code_stay(op: str, kind: str) -> None:
    b = Builder()
    x = b.input("x", f"{kind}[4,4]")
    assert ops(applied(b.graph(b.op(op, *([x, x] if op == "MatMul" else [x]))), halves)) == [op]
