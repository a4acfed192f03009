"""error[unknown-machine]: no machine of that name, and no file either."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused, relu


def test_unknown_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = refused("unknown-machine", capsys, "cost", relu(tmp_path), "--machine", "tpu-lik")
    assert "there is no machine 'tpu-lik', and no file of that name" in text
    assert "did you mean 'tpu-like'? machines: analog-imc, ascend-like" in text
    assert "kind: array" in text


def test_no_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no machine is named" in refused("bad-argument", capsys, "cost", relu(tmp_path))
