"""Every error code that the package raises has its own test file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent.parent
PACKAGE = TESTS.parent / "src" / "tilewright"


@cache
def all_raised() -> dict[Path, set[str]]:
    """The codes of each file of the package."""
    return {path: {*raised(path)} for path in PACKAGE.rglob("*.py")}


def raised(path: Path) -> Iterator[str]:
    """The codes given to `TilewrightError(...)` and `....error(...)` in one file."""
    for found in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(found, ast.Call) and found.args and isinstance(found.args[0], ast.Constant):
            function = found.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if name in ("TilewrightError", "error") and isinstance(found.args[0].value, str):
                yield found.args[0].value


def test_every_code_has_a_test_file() -> None:
    codes = set[str]().union(*all_raised().values())
    assert len(codes) > 30
    tested = {path.stem.removeprefix("test_").replace("_", "-") for path in TESTS.rglob("test_*.py")}
    assert sorted(codes - tested) == []


def test_codes_are_kebab_case() -> None:
    for path, codes in all_raised().items():
        for code in codes:
            assert code == code.lower().replace("_", "-").replace(" ", "-"), f"{path.name}: {code}"
