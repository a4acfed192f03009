"""Every word of the glossary is in the code where it says, and a name of a class means one thing."""

from __future__ import annotations

import ast
import re
from collections import Counter
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "glossary.md"
ROWS = re.findall(r"^\| ([^|]+) \| [^|]+ \| `([\w.]+)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize(("word", "name"), ROWS, ids=[word for word, _ in ROWS])
def test_the_code_has_it(word: str, name: str) -> None:
    holder, _, last = f"tilewright.{name}".rpartition(".")
    found = resolve_name(holder)
    # Fields without a default are annotations only.
    assert hasattr(found, last) or last in getattr(found, "__annotations__", {}) or import_module(f"{holder}.{last}"), (
        word
    )


def test_words_are_in_order() -> None:
    for table in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        words = re.findall(r"^\| (?!Word|---)([^|]+) \|", table, re.MULTILINE)
        assert words == sorted(words)


def test_a_name_of_a_class_means_one_thing() -> None:
    sources = (PAGE.parents[1] / "src").rglob("*.py")
    trees = (ast.walk(ast.parse(path.read_text(encoding="utf-8"))) for path in sources)
    counts = Counter(node.name for tree in trees for node in tree if isinstance(node, ast.ClassDef))
    assert [name for name, count in counts.items() if count > 1] == []
