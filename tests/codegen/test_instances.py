"""Kernels with types filled in and an epilogue bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from passes.build import Builder, platform
from tilewright.codegen import lower
from tilewright.codegen.instances import row_axes
from tilewright.core.graph import Graph
from tilewright.core.op import call_node
from tilewright.machine.target import load_platform
from tilewright.passes.fuse import fuse
from tilewright.plan import plan


def functions(graph: Graph) -> str:
    made = plan(fuse(graph, platform()), platform())
    assert made.choices[0].kernel is not None
    return "\n".join(function.text for function in lower(made).functions)


def test_type_variables_become_c_types() -> None:
    b = Builder()
    text = functions(b.graph(b.op("CumSum", b.input("x", "int16[4]"), 0)))
    assert "const int16_t *x" in text
    assert " T " not in text


SEVERAL = """/* ---
op: {Add: "+", Mul: "*"}
types: {A: int32, B: int32, Y: int32}
when: {A_sROWS: "== COLUMNS", B_sROWS: "== COLUMNS"}
--- */
static void combined(const int32_t *A, const int32_t *B, int32_t *Y, int SIZE) {
    for (int i = 0; i < SIZE; i++)
        Y[i] = A[i] OP B[i];
}
"""


def test_one_file_for_several_operators(tmp_path: Path) -> None:
    (tmp_path / "combined.c").write_text(SEVERAL)
    b = Builder()
    x, y = b.input("x", "int32[4,5]"), b.input("y", "int32[4,5]")
    machine = load_platform("generic", (tmp_path,))
    made = plan(b.graph(b.op("Add", x, y), b.op("Mul", x, y), b.op("Sub", x, y)), machine)
    assert [choice.kernel and choice.kernel.op for choice in made.choices] == ["Add", "Mul", None]
    texts = {function.name: function.text for function in lower(made).functions}
    assert "A[i] + B[i]" in texts["combined"]
    assert "A[i] * B[i]" in texts["combined_2"]


def test_without_an_epilogue_the_result_is_stored_as_it_is() -> None:
    b = Builder()
    text = functions(b.graph(b.op("Softmax", b.input("x", "float32[4,8]"))))
    assert "return v0;" in text
    assert "char unused;" in text


def test_operands_of_an_epilogue_are_fields_and_known_numbers_are_in_the_code() -> None:
    b = Builder()
    h = b.op("MatMul", b.input("x", "float32[4,8]"), b.weights(8, 20))
    text = functions(b.graph(b.op("Clip", b.op("Add", h, b.weights(20)), 0.0, 6.0)))
    assert "const float *s0_B;" in text
    assert "s0_B[channel]" in text


@pytest.mark.parametrize(
    ("shape", "axis", "operand", "index"),
    [
        ((4, 8), -1, (8,), "channel"),
        ((4, 8), -1, (4, 8), "at"),
        ((4, 8), -1, (4, 1), "row"),
        ((2, 4, 8), -1, (2, 1, 8), "(row / 4) * 8 + channel"),
        ((2, 4, 8), -1, (4, 1), "(row % 4)"),
        ((2, 4, 8), 1, (8,), "(channel % 8)"),
        ((2, 4, 8), 1, (4, 1), "(channel / 8)"),
        ((2, 4, 8), 1, (2, 1, 1), "row"),
        ((2, 4, 8), -1, (1,), "0"),
    ],
)
def test_operands_are_indexed_by_the_rows_that_are_normalised(
    shape: tuple[int, ...], axis: int, operand: tuple[int, ...], index: str
) -> None:
    b = Builder()
    x = b.input("x", f"float32[{','.join(map(str, shape))}]")
    y = b.op("RMSNormalization", x, b.weights(*shape[axis:]), axis=axis)
    added = b.input("added", f"float32[{','.join(map(str, operand))}]")
    assert f"s0_B[{index}]" in functions(b.graph(b.op("Add", y, added)))


def test_a_matrix_times_a_vector_has_rows_of_one_result() -> None:
    b = Builder()
    matrix, vector = b.input("x", "float32[2,3,4]"), b.input("v", "float32[4]")
    graph = b.graph(b.op("MatMul", matrix, vector), b.op("MatMul", vector, b.weights(4, 5)), b.op("Softmax", vector))
    assert [row_axes(call_node(graph, node).domain()) for node in graph.nodes] == [0, 1, 1]


WITH_ATTRIBUTES = """/* ---
op: Neg
types: {X: int32, Y: int32}
--- */
static __attribute__((noinline)) int32_t turned(int32_t x) { return -x; }

static void unused_here(const int32_t *X, int32_t *Y, int SIZE) {
    for (int i = 0; i < SIZE; i++)
        Y[i] = X[i];
}

static __attribute__((cold, aligned(16))) void negated(const int32_t *X, int32_t *Y, int SIZE) {
    if (SIZE < 0)
        unused_here(X, Y, SIZE);
    for (int i = 0; i < SIZE; i++)
        Y[i] = turned(X[i]);
}
"""


def test_functions_of_kernels_may_have_attributes(tmp_path: Path) -> None:
    (tmp_path / "negated.c").write_text(WITH_ATTRIBUTES)
    found = load_platform("generic", (tmp_path,))
    b = Builder()
    made = plan(b.graph(b.op("Neg", b.input("x", "int32[4]"))), found)
    kernel = made.choices[0].kernel
    assert kernel is not None
    assert kernel.function == "negated"
    text = "\n".join(function.text for function in lower(made).functions)
    assert "int32_t turned(" not in text  # each instance has functions of its own


def test_long_functions_are_written_down_once() -> None:
    fours = "i + 4 <= count"
    for op, usual in (("Relu", True), ("Erf", False)):
        b = Builder()
        product = b.op("MatMul", b.input("x", "float32[16,16]"), b.weights(16, 16))
        assert (fours in functions(b.graph(b.op(op, product)))) is usual
