"""error[out-of-memory]: what is asked for needs more memory than there is."""

from __future__ import annotations

import numpy as np
import pytest

from command_line import refused
from tilewright.cli import app as command_line


def test_out_of_memory(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def allocate(**_: object) -> None:
        np.empty(1 << 56)

    monkeypatch.setattr(command_line, "app", allocate)
    assert "Unable to allocate" in refused("out-of-memory", capsys, "ops")
