"""GELU in the forms that exporters write."""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt

import pytest

from passes.build import Builder, applied, ops, text
from support import Golden
from tilewright.passes.gelu import gelu

Form = Callable[[Builder, str], str]


def _one_plus_erf(b: Builder, x: str, *, divide: bool) -> str:
    argument = b.op("Div", x, sqrt(2)) if divide else b.op("Mul", x, 1 / sqrt(2))
    return b.op("Add", b.op("Erf", argument), 1.0)


def _one_plus_tanh(b: Builder, x: str, *, power: bool) -> str:
    cube = b.op("Pow", x, 3.0) if power else b.op("Mul", x, b.op("Mul", x, x))
    total = b.op("Add", x, b.op("Mul", cube, 0.044715))
    return b.op("Add", 1.0, b.op("Tanh", b.op("Mul", total, sqrt(2 / pi))))


def _one_plus_factored_tanh(b: Builder, x: str) -> str:
    inner = b.op("Add", b.op("Mul", b.op("Mul", 0.044715, x), x), 1.0)
    return b.op("Add", b.op("Tanh", b.op("Mul", b.op("Mul", x, sqrt(2 / pi)), inner)), 1.0)


FORMS: dict[str, Form] = {
    "half last": lambda b, x: b.op("Mul", b.op("Mul", x, _one_plus_erf(b, x, divide=True)), 0.5, name="y"),
    "half first": lambda b, x: b.op("Mul", b.op("Mul", 0.5, x), _one_plus_erf(b, x, divide=True), name="y"),
    "half inside": lambda b, x: b.op("Mul", x, b.op("Mul", 0.5, _one_plus_erf(b, x, divide=False)), name="y"),
    "over two": lambda b, x: b.op("Div", b.op("Mul", x, _one_plus_erf(b, x, divide=False)), 2.0, name="y"),
    "tanh": lambda b, x: b.op("Mul", b.op("Mul", 0.5, x), _one_plus_tanh(b, x, power=True), name="y"),
    "tanh products": lambda b, x: b.op("Mul", b.op("Mul", x, _one_plus_tanh(b, x, power=False)), 0.5, name="y"),
    "tanh factored": lambda b, x: b.op("Mul", b.op("Mul", 0.5, x), _one_plus_factored_tanh(b, x), name="y"),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_one_operator(form: str) -> None:
    b = Builder()
    # The argument is a product itself, which must not be taken apart.
    x = b.op("Mul", b.input("a", "float32[2,9]"), b.input("b", "float32[2,9]"))
    result = applied(b.graph(FORMS[form](b, x)), gelu)
    assert ops(result) == ["Mul", "Gelu"]
    assert result.nodes[1].attrs["approximate"] == ("tanh" if "tanh" in form else "none")


def test_gelu(golden: Golden) -> None:
    b = Builder()
    golden("passes/gelu.txt", text(b.graph(FORMS["half last"](b, b.input("x", "float32[2,9]"))), gelu))


def test_another_constant_is_another_function() -> None:
    b = Builder()
    x = b.input("x", "float32[5]")
    y = b.op("Mul", b.op("Mul", x, _one_plus_erf(b, x, divide=True)), 0.51, name="y")
    assert "Gelu" not in ops(applied(b.graph(y), gelu))
