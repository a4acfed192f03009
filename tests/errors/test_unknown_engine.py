"""error[unknown-engine]: an engine that the machine does not have, or that cannot do what is asked of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused, relu
from tilewright.errors import TilewrightError
from tilewright.machine.library import load_array


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


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        ("siracusa/ita", "machine 'siracusa' has no engine 'ita'\n  help: it has cluster, neureka"),
        ("siracusa/cluster", "'siracusa/cluster' has no engine that layers could be mapped onto"),
        ("generic", "'generic' has no engine that layers could be mapped onto"),
    ],
)
def test_engine_for_layers(machine: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said in refused("unknown-engine", capsys, "cost", relu(tmp_path), "--machine", machine)


def test_one_of_several_arrays() -> None:
    with pytest.raises(TilewrightError, match="'siracusa' has several arrays") as caught:
        load_array("siracusa")
    assert caught.value.help == "name one of neureka-1x1, neureka-3x3, neureka-depthwise"
