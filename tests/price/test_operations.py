"""Operations counted in the expressions of bodies."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest

from tilewright.core.op import arrays_of, call_example
from tilewright.errors import TilewrightError
from tilewright.machine.target import load_platform
from tilewright.ops import operators
from tilewright.price.operations import cycles, expression, result_counts, update_counts

INSTRUCTIONS = {"fabsf", "fmaxf", "fminf"}


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


def test_siracusa_says_what_every_function_takes() -> None:
    """Functions of floats take up to hundreds of cycles: one that takes nothing spoils whatever it is in."""
    called: set[str] = set()
    for op in operators().values():
        for spec in op.examples:
            call = call_example(op, spec, arrays_of(spec))
            if op.body is None:
                continue
            with suppress(TilewrightError):  # some have a body for some of their attributes
                body = op.body(call)
                called |= {*result_counts(body, call), *update_counts(body, call)}
    functions = {name for name in called if re.fullmatch(r"\w+f", name) and name not in ("if", "tw_erf")} - INSTRUCTIONS
    platform = load_platform("siracusa")
    assert len(functions) > 20
    assert functions <= platform.operations.keys()
    assert functions <= platform.fused.keys()
