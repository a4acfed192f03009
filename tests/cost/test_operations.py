"""Operations counted in the expressions of bodies."""

from __future__ import annotations

import pytest

from tilewright.cost.operations import cycles, expression


@pytest.mark.parametrize(
    ("text", "wide", "real", "counts"),
    [
        ("A + B", False, True, {"plain": 1}),
        ("(uint32_t)A * (uint32_t)B", False, False, {"multiply": 1}),
        ("A / B", False, True, {"real divide": 1}),
        ("A / B", False, False, {"divide": 1}),
        ("acc / (float)1024", False, True, {"multiply": 1}),
        ("X * (float)(1.0 / 6.0)", False, True, {"multiply": 1}),
        ("X < 0 ? 0 : X", False, True, {"plain": 1, "choose": 1}),
        ("(total + half) >> shift", True, False, {"wide plain": 1, "wide shift": 1}),
        ("X * tw_sigmoidf(1.0f * X)", False, True, {"multiply": 2, "tw_sigmoidf": 1}),
        ("data", False, False, {}),
    ],
)
def test_expressions(text: str, wide: bool, real: bool, counts: dict[str, int]) -> None:
    assert dict(expression(text, wide=wide, real=real)) == counts


def test_what_is_written_twice_is_computed_once() -> None:
    text = "(2 * X + 1) < 0 ? 0 : (2 * X + 1)"
    assert expression(text, wide=False, real=True, once=True) == {"multiply": 1, "plain": 2, "choose": 1}


def test_what_is_not_named_costs_nothing() -> None:
    assert cycles({"plain": 3, "tw_expf": 1}, {"plain": 0.5}) == 1.5
