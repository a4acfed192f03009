"""The reference of machines has every key, and examples that are read as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.schema_tables import PAGE, classes, shown, written
from tilewright.machine.library import load_machine
from tilewright.machine.target import load_platform

TEXT = PAGE.read_text(encoding="utf-8")
NOT_SHOWN = {"Engine", "Variants"}
"""What others begin with, and what is read first of a larger part."""


def test_every_key_is_there() -> None:
    assert written(TEXT) == TEXT, "run python tests/docs/schema_tables.py"
    assert set(shown(TEXT)) == set(classes()) - NOT_SHOWN


@pytest.mark.parametrize("text", re.findall(r"^```yaml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL))
def test_examples(text: str, tmp_path: Path) -> None:
    name = "platform.yaml" if "kernels:" in text else "machine.yaml"
    (tmp_path / name).write_text(text, encoding="utf-8")
    machine = load_platform(tmp_path) if name == "platform.yaml" else load_machine(tmp_path / name)
    assert machine.engines
