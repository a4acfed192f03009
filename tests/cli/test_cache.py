"""`tilewright cache`, and `--measure`, which fills it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import relu
from tilewright.cli.app import run
from tilewright.core.cache import VARIABLE

ON = ("--platform", "siracusa")


def asked(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, object]:
    assert run([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_measured_numbers_are_called_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    model = relu(tmp_path)
    found = asked(capsys, "run", model, *ON, "--measure", "2", "--profile", "layers")
    assert found["measured_cycles"] == found["cycles"]
    assert "predicted_cycles" not in found
    assert "measured" in found["profile"]["groups"][0]  # type: ignore[index]
    assert asked(capsys, "cache")["entries"] == 3, "two programs, and which of them is the fastest"
    planned = asked(capsys, "plan", model, *ON, "--measure", "2", "--baseline")
    assert planned["totals"]["known"] == "measured"  # type: ignore[index]
    assert planned["totals"]["cycles"] == found["cycles"]  # type: ignore[index]
    assert planned["baseline"]["known"] == "predicted"  # type: ignore[index]
    assert run(["plan", str(model), *ON, "--measure", "2", "--baseline"]) == 0
    printed = capsys.readouterr().out
    assert "measured cycles" in printed
    assert " predicted" in printed
    assert run(["compile", str(model), *ON, "--measure", "2", "-o", str(tmp_path / "c")]) == 0
    assert "cycles measured" in capsys.readouterr().out
    page = (tmp_path / "c" / "report.html").read_text()
    assert "groups as measured" in page
    assert "Predicted timeline" not in page
    assert asked(capsys, "cache")["entries"] == 3, "the same programs"


def test_show_limit_and_clear(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    nothing = {"folder": str(tmp_path / "cache"), "entries": 0, "bytes": 0, "limit": 256 << 20}
    assert asked(capsys, "cache") == nothing
    assert asked(capsys, "cache", "clear") == nothing
    asked(capsys, "plan", relu(tmp_path), *ON, "--measure", "1")
    assert run(["cache", "--limit", "1M"]) == 0
    printed = capsys.readouterr().out
    assert str(tmp_path / "cache") in printed.replace("\n", "")
    assert "2 entries" in printed
    assert "of at most 1,048,576 bytes" in printed
    assert asked(capsys, "cache", "clear") == nothing | {"limit": 1 << 20}
    assert run(["cache", "empty"]) == 2
