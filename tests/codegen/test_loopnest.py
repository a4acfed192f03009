"""Printed loop nests."""

from __future__ import annotations

import re

import numpy as np
import pytest
from msgspec.structs import replace

from passes.build import Builder, platform
from support import Golden
from tilewright.codegen import lower
from tilewright.core.graph import Graph
from tilewright.machine.target import load_platform
from tilewright.passes.fuse import fuse
from tilewright.passes.outputs import outputs
from tilewright.plan import plan


def functions(graph: Graph) -> str:
    """The functions of a network whose nodes are all loop nests, also those that the platform has kernels for."""
    bare = replace(platform(), kernels=())
    made = plan(outputs(graph, bare), bare)
    assert all(choice.kernel is None for choice in made.choices)
    return "\n".join(function.text for function in lower(made).functions)


def test_nests(golden: Golden) -> None:
    """Merged loops, broadcasting, a reduction with guards, data-dependent indices, and a type that is only stored."""
    b = Builder()
    x = b.input("x", "float32[2,3,4,5]")
    added = b.op("Add", x, b.input("bias", "float32[3,1,1]"))
    total = b.op("ReduceSum", added, [1, 3], keepdims=0)
    picked = b.op("Gather", x, b.input("at", "int64[2]"), axis=2)
    half = b.op("Exp", b.input("h", "float16[6]"))
    pooled = b.op("MaxPool", b.input("p", "int16[1,2,5,5]"), kernel_shape=(3, 3), pads=(1, 1, 1, 1))
    golden("codegen/nests.c", functions(b.graph(total, picked, half, pooled)))


def test_fused_steps(golden: Golden) -> None:
    """Steps behind a loop nest: an operand per channel, one of the full shape, and an earlier value read again."""
    b = Builder()
    x, y = b.input("x", "int32[2,3,4]"), b.input("y", "int32[2,3,4]")
    shifted = b.op("Add", b.op("Sub", x, b.input("c", "int32[3,1]")), y)
    graph = fuse(b.graph(b.op("Mul", shifted, b.op("Neg", shifted))), platform())
    assert len(graph.nodes) <= 2
    golden("codegen/fused.c", functions(graph))


def test_dimensions_that_all_operands_walk_as_one_are_one_loop() -> None:
    b = Builder()
    text = functions(b.graph(b.op("Tanh", b.input("x", "float32[2,3,4,5]"))))
    assert text.count("for (") == 1
    assert "< 120;" in text


def test_equal_nests_are_printed_once() -> None:
    b = Builder()
    x = b.input("x", "float32[8]")
    graph = b.graph(b.op("Tanh", x), b.op("Tanh", b.input("y", "float32[8]")))
    assert len(lower(plan(graph, platform())).functions) == 1


def test_a_machine_without_kernels_has_code_for_every_operator_with_a_body() -> None:
    b = Builder()
    graph = b.graph(b.op("MatMul", b.input("x", "float32[2,3]"), b.weights(3, 4)))
    bare = replace(platform(), kernels=())
    text = lower(plan(graph, bare)).functions[0].text
    assert [line.strip() for line in text.splitlines() if "for (" in line] == [
        "for (int M = 0; M < 2; M++) {",
        "for (int N = 0; N < 4; N++) {",
        "for (int K = 0; K < 3; K++) {",
    ]


@pytest.mark.parametrize(("size", "even"), [(6144, True), (10, False)])
def test_loops_over_equal_tiles_begin_at_zero(size: int, even: bool) -> None:
    """Where a tile lies is added to the turns of its innermost loop, whose number compilers then see."""
    b = Builder()
    bare = replace(load_platform("siracusa"), kernels=())
    graph = b.graph(b.op("Add", b.input("x", f"int32[{size}]"), b.input("y", f"int32[{size}]")))
    text = "\n".join(function.text for function in lower(plan(outputs(graph, bare), bare)).functions)
    loops = [line.strip() for line in text.splitlines() if "for (" in line]
    begun = re.fullmatch(r"for \(int (\w+)_turn = 0; \1_turn < \1_to - \1_from; \1_turn\+\+\) \{", loops[-1])
    assert (begun is not None) == even
    if begun:
        assert f"const int {begun[1]} = {begun[1]}_from + {begun[1]}_turn;" in text


def test_nests_are_cut_at_their_seams(golden: Golden) -> None:
    """Parts behind each other, a border, several outputs, a sum with gaps, and one that goes on outside its operand."""
    b = Builder()
    joined = b.op("Concat", b.input("a", "float32[2,3,4]"), b.input("b", "float32[2,5,4]"), axis=1)
    padded = b.op("Pad", b.input("p", "int8[3,4,5]"), [0, 1, 0, 0, 2, 3], np.array(7, np.int8))
    first, second = b.ops("Split", b.input("s", "float32[5,2]"), [3, 2], names=("first", "second"), axis=0)
    spread = b.op("ConvTranspose", b.input("t", "float32[1,2,4]"), b.weights(2, 1, 3), strides=(2,), pads=(1, 0))
    summed = b.op("Conv", b.input("c", "uint8[1,1,5]"), b.weights(1, 1, 3, dtype="int8"), pads=(1, 1), x_zero_point=3)
    golden("codegen/seams.c", functions(b.graph(joined, padded, first, second, spread, summed)))
