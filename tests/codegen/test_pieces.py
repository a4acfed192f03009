"""Functions that a program has once."""

from __future__ import annotations

from plan.tiled_plans import by_layer
from tilewright.codegen.pieces import Pieces

WITHIN = "int %NAME%(int scaled) {\n    int clamped = tw_within(scaled, 0, 9);\n    return clamped;\n}\n"
CLAMPED = WITHIN.replace("tw_within", "tw_clamp")


def test_functions_that_differ_in_their_limits_are_one() -> None:
    pieces = Pieces(by_layer())
    assert [pieces.function("f", text) for text in (WITHIN, CLAMPED, WITHIN)] == ["f", "f", "f"]
    assert [function.text for function in pieces.functions] == [CLAMPED.replace("%NAME%", "f")]


def test_what_needs_no_limits_has_none() -> None:
    pieces = Pieces(by_layer())
    other = WITHIN.replace("return clamped", "return -clamped")
    assert [pieces.function("f", text) for text in (WITHIN, other)] == ["f", "f_2"]
    assert all("tw_within" in function.text for function in pieces.functions)
