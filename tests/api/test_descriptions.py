"""YAML is checked and read in one go, and means what it means to its library."""

from __future__ import annotations

import pytest
import yaml

from tilewright.base.descriptions import parse_yaml

TEXTS = (
    "",
    "---\n",
    "x",
    "'1'",
    "[1, '2', 3.5, 1e3, 0x1F, 012, yes, ~, null, .inf, 1_000, 1:30, 2020-01-01]",
    "a: {b: [c, {d: e}]}\nf: |\n  text\n  more\ng: >\n  folded\n",
    "{1: a, true: b, null: c, 1.5: d}",
    "- &x [1, 2]\n- *x\n- 3\n",
    "a: &q 5\nb: *q\nc: d\n",
    "base: &b {x: 1}\nmore: {<<: *b, y: 2}\n",
    "a: !!str 3\nb: 4\n",
    "? a\n",
    "!!set {a, b}",
    "a: 1\na: 2\nb: {c: 3, c: 4}\n",
)

LAUGHS = "a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 8))
"""A few lines that stand for millions of values."""


@pytest.mark.parametrize("text", TEXTS)
def test_values(text: str) -> None:
    assert parse_yaml(text)[0] == yaml.safe_load(text)


def test_keys_that_are_there_twice() -> None:
    _, repeated = parse_yaml("a: 1\nb: {c: 3, c: 4}\na: 2\n")
    assert [line.partition(";")[0] for line in repeated] == ["2: 'c' is there twice", "3: 'a' is there twice"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: 1\n---\nb: 2\n", "expected a single document"),
        ("? [1, 2]\n: 3\n", "unhashable"),
        ("&a [*a]", "part of itself"),
        ("[" * 70, "lists and mappings deep"),
        ("a: [", "expected node content"),
        ("- *unknown", "undefined alias"),
        ("a: 2020-13-45", "month must be"),
        (LAUGHS, "stands for more than"),
    ],
)
def test_what_is_no_description(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_yaml(text)
