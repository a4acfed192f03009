"""Dead code."""

from __future__ import annotations

from passes.build import Builder, text
from support import Golden
from tilewright.passes.dead_code import dead_code


def test_dead_code(golden: Golden) -> None:
    b = Builder()
    x = b.input("x", "float32[2,3]")
    b.op("Exp", b.op("Relu", x, name="unused"), name="also_unused")
    first, _ = b.ops("Split", x, names=("first", "second"), axis=0, num_outputs=2)
    golden("passes/dead_code.txt", text(b.graph(b.op("Neg", first, name="y")), dead_code))
