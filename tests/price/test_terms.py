"""Terms of headers: what their texts stand for, and how they add up."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tilewright.errors import TilewrightError
from tilewright.machine.arithmetic import parse, worked_out
from tilewright.machine.arithmetic import written as text_of
from tilewright.machine.kernel import formula, parse_kernels
from tilewright.machine.terms import FUNCTIONS, expanded, weighted

KERNEL = """/* ---
op: Relu
types: {{X: float32, Y: float32}}
cycles:
{terms}
--- */
static void relu(const float *X, float *Y, int SIZE) {{}}
"""


def written(folder: Path, **terms: str) -> Path:
    path = folder / "relu.c"
    path.write_text(KERNEL.format(terms="\n".join(f"  {name}: {text}" for name, text in terms.items())))
    return path


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("fours(A)", {0: 0, 1: 1, 4: 1, 5: 2}),
        ("whole_fours(A)", {3: 0, 4: 1, 9: 2}),
        ("left_of_sixteens(A)", {15: 15, 16: 0, 35: 3}),
        ("ragged_twos(A)", {4: 0, 5: 1}),
        ("some(A)", {0: 0, 7: 1}),
        ("unless(A)", {0: 1, 7: 0}),
        ("steps(A, 3)", {6: 2, 7: 3}),
        ("crowd(A, 3 * A)", {4: 0, 8: 0, 16: 1, 48: 1, 96: 3, 128: 7}),
        ("one(A) + several(A)", {0: 0, 1: 1, 2: 1}),
        ("words(A + 1) * left_of_fours(A)", {6: 4}),
        ("fours(fours(A))", {16: 1, 17: 2}),
    ],
)
def test_functions_are_formulas(text: str, values: dict[int, int]) -> None:
    assert {a: formula(expanded(text), {"A": a}) for a in values} == values


def test_every_function_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "calibrating.md").read_text()
    assert not [name for name in FUNCTIONS if f"`{name}(" not in page]


def test_cycles_are_the_sum(tmp_path: Path) -> None:
    (kernel,) = parse_kernels(written(tmp_path, blocks="(BLOCKS := fours(SIZE))", left="SIZE - BLOCKS*4", call="1"))
    text = weighted(kernel.terms, {"blocks": 0, "left": 2.5, "call": 100})
    assert formula(text, {"SIZE": 7}) == pytest.approx(2.5 * (7 - 8) + 100)
    # Without coefficients, each term counts once.
    assert formula(kernel.cycles, {"SIZE": 8}) == 3


def test_wrong_terms_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TilewrightError, match="cycles: 9 terms"):
        parse_kernels(written(tmp_path, **{f"term{n}": "SIZE" for n in range(9)}))
    with pytest.raises(TilewrightError, match="cycles: blocks: fours takes one argument"):
        parse_kernels(written(tmp_path, blocks="fours(SIZE, 4)"))
    with pytest.raises(TilewrightError, match=r"cycles: blocks: 'SIZE \+' is not an arithmetic formula"):
        parse_kernels(written(tmp_path, blocks="SIZE +"))


@pytest.mark.parametrize(
    "text",
    [
        *FUNCTIONS.values(),
        "a - (b - c) - (d + e)",
        "a * (b // c) % (d / (e * -f)) - -(g + h)",
        "(N := a + 1) * max(b == 1 < (c > 2), (M := d), 2.50)",
        "(a and b or c) * (d <= e) + (a >= b and c != d)",
        "a ** b",
    ],
)
def test_trees_are_written_as_python_does(text: str) -> None:
    assert text_of(parse(text)) == ast.unparse(parse(text))


def test_what_follows_from_numbers_is_worked_out() -> None:
    text = "A * max(c > 5, 2 * (HALF := c // 2)) + HALF"
    known = [worked_out(text, (("c", number),)) for number in (2, 3, 7)]
    assert known[0] == known[1]
    assert known[0] != known[2]
    assert eval(known[1], {"A": 10}) == 10 * 2 + 1
    # What cannot be worked out stays as it is.
    assert worked_out("A / c", (("c", 0),)) == worked_out("A / 0", ())
    assert worked_out("1 / c", (("c", 0),)) == worked_out("1 / 0", ())
