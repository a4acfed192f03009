"""error[bad-case]: the arrays of a test case cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import relu
from tilewright.cli.app import run


def test_one_bad_case_does_not_stop_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    relu(tmp_path)
    (tmp_path / "relu.npz").write_text("no arrays")
    assert run(["test", str(tmp_path), "--json"]) == 1
    (case,) = json.loads(capsys.readouterr().out)["cases"]
    assert case["name"] == "relu"
    assert case["status"] == "error"
    assert case["detail"].startswith("error[bad-case]: ")
