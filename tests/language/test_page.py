"""The page about a model on a simulated chip: speed against position, what a token takes, engines compared."""

from __future__ import annotations

from pathlib import Path

import pytest

import command_line
from language_models import written
from tilewright.cli.app import run
from tilewright.language.kinds import KINDS
from tilewright.report.language_page import MeasuredTokens, render_language


def test_what_it_says() -> None:
    kinds, joules = {"attention": 300.0, "others": 100.0}, {"cores": 1e-6, "memory": 2e-6}
    first = MeasuredTokens("as asked for", 1e6, ((0, 100), (7, 300)), 3, kinds, joules)
    other = MeasuredTokens("without <one>", 1e6, ((0, 1000), (7, 1000)), 3, {"others": 500.0}, joules)
    found = render_language("story", [first, other], KINDS)
    assert "as asked for: 5,000 tokens/s, without &lt;one&gt;: 1,000 tokens/s" in found
    assert "position 7: 300 cycles" in found
    assert "attention: 300 (75.0%)" in found
    assert "memory: 2,000 (66.7%)" in found
    assert "3.0 uJ" in found


def test_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, page = written(tmp_path), tmp_path / "page.html"
    given = ("generate", model, "--prompt", "the", "--tokens", "1", "--report", page)
    assert "about simulated chips" in command_line.refused("bad-argument", capsys, *given)
    assert run([*map(str, given), "--platform", "siracusa"]) == 0
    text = page.read_text()
    assert text.count("tokens/s") == 3
    assert "products with weights: " in text
    assert "position 23: " in text
