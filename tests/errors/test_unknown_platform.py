"""error[unknown-platform]: no platform of that name, and no folder either."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused, relu


def test_unknown_platform(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = refused("unknown-platform", capsys, "compile", relu(tmp_path), "--platform", "no-such-machine")
    assert "'no-such-machine'" in text
    assert "generic, mempool, mempool-1024, mempool-16, mempool-ita, scratchpad" in text


def test_several_machines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = refused("unknown-platform", capsys, "compile", relu(tmp_path), "--platform", "cortexm")
    assert "platform 'cortexm' is several machines" in text
    assert "it has the variants cortex-m4, cortex-m7" in text
