"""Operations counted in the expressions of bodies."""

from __future__ import annotations

import re

import pytest

from tilewright.core.op import arrays_of, call_example
from tilewright.machine.target import load_platform
from tilewright.ops import operators
from tilewright.price.operations import cycles, expression, functions

INSTRUCTIONS = {"fabsf", "fmaxf", "fminf"}


@pytest.mark.parametrize(
    ("text", "wide", "real", "counts"),
    [
        ("A + B", False, True, {"real plain": 1}),
        ("(uint32_t)A * (uint32_t)B", False, False, {"multiply": 1}),
        ("A / B", False, True, {"real divide": 1}),
        ("A / B", False, False, {"divide": 1}),
        ("A % 7", False, False, {"multiply": 1}),
        ("acc / (float)1024", False, True, {"real multiply": 1}),
        ("X * (float)(1.0 / 6.0)", False, True, {"real multiply": 1}),
        ("X < 0 ? 0 : X", False, True, {"real plain": 1, "real choose": 1}),
        ("(total + half) >> shift", True, False, {"wide plain": 1, "wide shift": 1}),
        ("X * tw_sigmoidf(1.0f * X)", False, True, {"real multiply": 2, "tw_sigmoidf": 1}),
        ("s * X_at(D0 + 1, D1)", False, True, {"real multiply": 1, "plain": 1, "lookup": 1}),
        ("fabsf(X)", False, True, {"real plain": 1}),
        ("data", False, False, {}),
    ],
)
def test_expressions(text: str, wide: bool, real: bool, counts: dict[str, int]) -> None:
    assert dict(expression(text, wide=wide, real=real)) == counts


def test_what_is_written_twice_is_computed_once() -> None:
    text = "(2 * X + 1) < 0 ? 0 : (2 * X + 1)"
    assert expression(text, wide=False, real=False, once=True) == {"multiply": 1, "plain": 2, "choose": 1}


def test_what_is_not_named_costs_nothing() -> None:
    assert cycles({"plain": 3, "tw_expf": 1}, {"plain": 0.5}) == 1.5


def test_siracusa_says_what_every_function_takes() -> None:
    """Functions of floats take up to hundreds of cycles: one that takes nothing spoils whatever it is in."""
    calls = (call_example(op, spec, arrays_of(spec)) for op in operators().values() for spec in op.examples)
    called = {name for call in calls for name in functions(call)}
    real = {name for name in called if re.fullmatch(r"\w+f", name) and name != "tw_erf"} - INSTRUCTIONS
    platform = load_platform("siracusa")
    assert len(real) > 20
    assert real <= platform.operations.keys()
    assert real - INSTRUCTIONS <= platform.fused.keys()
