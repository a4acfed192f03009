"""Addresses as C text."""

from __future__ import annotations

import pytest

from tilewright.codegen.affine import address, expression, linear, row_major
from tilewright.core.domain import WHOLE, Affine, at, dim, dims, domain


def test_row_major_strides() -> None:
    assert row_major((2, 3, 4)) == (12, 4, 1)
    assert row_major(()) == ()
    assert row_major((5, 0, 2)) == (0, 2, 1)


@pytest.mark.parametrize(
    ("axis", "text"),
    [
        (at(0), "0"),
        (at(-2), "-2"),
        (dim("H"), "H"),
        (dim("H") * 2 + dim("KH") * 3 - 1, "H * 2 + KH * 3 - 1"),
        ((dim("H") + 1).over(2), "(H + 1) / 2"),
        (dim("H") * -1 + 4, "4 - H"),
    ],
)
def test_expressions(axis: Affine, text: str) -> None:
    assert expression(axis) == text


def test_an_address_is_linear_in_the_dimensions() -> None:
    m, k = dims("M K")
    product = domain({"M": 4, "K": 5}, {"A": [m, k], "Y": [m]}, {"A": (4, 5), "Y": (4,)}, "Y")
    assert address(product, "A").text() == "M * 5 + K"
    assert address(product, "Y").text() == "M"
    assert not address(product, "A").guards


def test_an_axis_that_leaves_its_tensor_is_guarded_on_the_sides_where_it_does() -> None:
    h, k = dims("H K")
    sizes = {"H": 4, "K": 3}
    inside = linear([h + k], (6,), sizes)
    both = linear([h + k - 1], (4,), sizes)
    below = linear([h + k - 1], (5,), sizes)
    assert [g.expression for g in inside.guards] == []
    assert [g.expression for g in both.guards] == ["H + K - 1 >= 0", "4 - H - K >= 0"]
    assert [g.expression for g in below.guards] == ["H + K - 1 >= 0"]
    assert both.text() == "H + K - 1"


def test_a_divided_axis_is_a_term_of_its_own() -> None:
    exact = linear([dim("C"), (dim("H") - dim("K") + 2).over(2, exact=True)], (3, 4), {"C": 3, "H": 7, "K": 3})
    assert exact.text() == "C * 4 + (H + 2 - K) / 2"
    assert [g.expression for g in exact.guards] == ["K + 5 - H >= 0", "(H + 2 - K) % 2 == 0"]


def test_whole_axes_and_empty_dimensions_contribute_nothing() -> None:
    assert linear([WHOLE, dim("C")], (7, 3), {"C": 3}).text() == "C"
    assert linear([dim("E") - 9], (3,), {"E": 0}).guards == ()
