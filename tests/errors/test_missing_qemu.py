"""error[missing-qemu]: a network for an emulated board, and no emulator."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused, relu


def test_not_on_path(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    text = refused("missing-qemu", capsys, "run", relu(tmp_path), "--platform", "cortex-m4")
    assert "there is no 'qemu-system-arm' on PATH" in text
    assert "apt install qemu-system-arm" in text
