"""error[unknown-memory]: a size for a memory that the platform does not have."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused, relu


@pytest.mark.parametrize(
    ("platform", "option", "said"),
    [
        ("generic", ["--l1", "64K"], "'generic' has no memory 'L1'"),
        ("generic", ["--weight-memory", "1M"], "no memory that weights are read from"),
        ("scratchpad", ["--home", "L4"], "'scratchpad' has no memory 'L4'"),
    ],
)
def test_unknown_memory(
    platform: str, option: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = refused("unknown-memory", capsys, "compile", relu(tmp_path), "--platform", platform, *option)
    assert said in text
    assert "it has " in text
    assert "help: leave " in text
