"""Numbers that all calls of a kernel tell alike."""

from __future__ import annotations

import pytest

from tilewright.codegen.baked import baked
from tilewright.core.plan import Place
from tilewright.core.program import (
    CFunction,
    If,
    Invoke,
    Literal,
    Number,
    OnCores,
    ParameterBlock,
    Pointer,
    Program,
    Routine,
    StartEngine,
    Statement,
)

TEXT = """struct f_epilogue {
    const int8_t *s0_B;
    int32_t s1_mul;
    int s1_shift;
    int32_t *sums;
    int part, parts;
};
int f_value(const struct f_epilogue *e) { return e->s0_B[0] * e->s1_mul >> e->s1_shift; }
#define STORE_SHIFT(e) (e)->s1_shift
"""
POINTER = Pointer(Place("L1", 0), "int8_t", True)


def call(mul: str, shift: str) -> Invoke:
    numbers = (POINTER, Literal(mul), Literal(shift), POINTER, Number(0), Literal("2"))
    return Invoke("f", (Literal("8"), ParameterBlock("struct f_epilogue", numbers)), "")


def program(*statements: Statement, text: str = TEXT) -> Program:
    routines = (Routine("r", "", statements),)
    return Program("n", (), (), (CFunction("f", text),), (), (), 0, 0, (), routines)


def fields(invoke: Statement) -> int:
    assert isinstance(invoke, Invoke)
    struct = invoke.arguments[1]
    assert isinstance(struct, ParameterBlock)
    return len(struct.fields)


def test_what_is_the_same_is_said_once() -> None:
    found = baked(program(call("77", "5"), call("78", "5")))
    text = found.functions[0].text
    assert "int s1_shift" not in text
    assert "e->s1_mul >> (5)" in text
    assert "#define STORE_SHIFT(e) (5)" in text
    assert [fields(s) for s in found.routines[0].body] == [5, 5]


def test_calls_are_found_wherever_they_are() -> None:
    apart = If((), (OnCores("core", 8, (call("9", "5"),)),)), StartEngine("npu", (), (call("9", "6"),))
    found = baked(program(*apart)).functions[0].text
    assert "s1_mul" not in found.replace("(9)", "")
    assert "e->s1_shift" in found


@pytest.mark.parametrize(("number", "short"), [("2047", True), ("-2048", True), ("32768", True), ("32764", False)])
def test_long_numbers_stay_in_registers(number: str, short: bool) -> None:
    assert ("s1_mul" not in baked(program(call(number, "5"))).functions[0].text) == short


def test_factors_of_products_of_64_bits_stay_in_registers() -> None:
    text = TEXT.replace("e->s0_B[0] * e->s1_mul", "(int64_t)e->s0_B[0] * (int64_t)mul").replace(
        "{ return", "{ const int32_t mul = e->s1_mul; return"
    )
    found = baked(program(call("77", "5"), text=text)).functions[0].text
    assert "mul = e->s1_mul" in found
    assert "s1_shift" not in found


def test_what_is_not_whole_stays() -> None:
    assert "s1_mul" in baked(program(call("0.5f", "5"))).functions[0].text


def test_an_empty_block_has_a_field() -> None:
    text = "struct f_epilogue {\n    int s0_shift;\n};\nint f(struct f_epilogue *e) { return e->s0_shift; }\n"
    invoke = Invoke("f", (Literal("8"), ParameterBlock("struct f_epilogue", (Literal("3"),))), "")
    found = baked(program(invoke, text=text))
    assert "{\n    char unused;\n};" in found.functions[0].text
    assert found.routines[0].body == (
        Invoke("f", (Literal("8"), ParameterBlock("struct f_epilogue", (Literal("0"),))), ""),
    )
