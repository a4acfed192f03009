"""error[wrong-outputs]: fewer arrays are expected than the network has outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from command_line import refused, relu


def test_wrong_outputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "none.npz")
    text = refused("wrong-outputs", capsys, "run", relu(tmp_path), "--expected", tmp_path / "none.npz")
    assert "1 outputs, 0 are expected" in text
