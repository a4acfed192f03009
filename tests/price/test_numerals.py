"""How many numbers are typed into cycles of kernels: none should be one that somebody fitted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from tilewright.machine.target import PLATFORMS

MOST = 106
"""Numerals in `cycles:` of headers and platform files. Lower it with every kernel whose header gets terms."""
_NUMERAL = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")


def numerals(text: str) -> int:
    return len(_NUMERAL.findall(text))


def texts(path: Path) -> list[str]:
    """The formulas of cycles in a kernel or a platform file."""
    content = path.read_text()
    if path.suffix == ".c":
        header = re.match(r"\A\s*/\*\s*---\n(.*?)\n\s*---\s*\*/", content, re.DOTALL)
        content = header.group(1) if header else ""
    data: Any = yaml.safe_load(content) or {}
    cycles: Any = data.get("cycles", "")
    found: list[Any] = [*cycles.values()] if isinstance(cycles, dict) else [cycles]
    return [str(text) for text in found]


def test_numerals_become_fewer() -> None:
    files = [*PLATFORMS.rglob("kernels/*.c"), *PLATFORMS.glob("cortexm/*/*.c"), *PLATFORMS.glob("*/platform.yaml")]
    found = {path: sum(map(numerals, texts(path))) for path in {*files}}
    worst = sorted(found.items(), key=lambda one: -one[1])
    lines = [f"{count:5} {path.relative_to(PLATFORMS)}" for path, count in worst if count]
    total = sum(found.values())
    assert total <= MOST, f"{total} numerals in cycles, at most {MOST}:\n" + "\n".join(lines)


def test_numerals_are_counted() -> None:
    assert numerals("ROWS*(X_s1 + 4)*0.75 + fours(N) + A_n2") == 2
