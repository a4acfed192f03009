"""error[unknown-engine]: an engine to do without that the platform does not have beside its cores."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused, relu


@pytest.mark.parametrize(
    ("platform", "engine", "others"),
    [("siracusa", "ita", "neureka"), ("siracusa", "cluster", "neureka"), ("scratchpad", "npu", "none")],
)
def test_unknown_engine(
    platform: str, engine: str, others: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused("unknown-engine", capsys, "compile", relu(tmp_path), "--platform", platform, "--without", engine)
    assert f"'{platform}' has no engine '{engine}'" in said
    assert f"besides its cores it has {others}" in said
    assert "help: leave " in said
