"""error[unknown-layer]: the network has no layer of that name."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused, relu


def test_unknown_layer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = refused("unknown-layer", capsys, "map", relu(tmp_path), "--layer", "onlt", "--machine", "tpu-like")
    assert "the network has no layer 'onlt'" in text
    assert "help: it has only" in text
