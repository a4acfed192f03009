"""error[run-failed]: the built program ends badly or never."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.faults import built
from tilewright.errors import TilewrightError
from tilewright.machine.target import load_platform
from tilewright.sim import run_on_host
from tilewright.sim.chip import run_on_chip


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_bad_end(tmp_path: Path) -> None:
    with pytest.raises(TilewrightError, match="status 3") as caught:
        run_on_host(script(tmp_path / "network", "echo out of memory >&2; exit 3"), [], [])
    assert caught.value.code == "run-failed"
    assert caught.value.reasons == ("out of memory",)


def test_a_program_that_the_checks_tell_on(tmp_path: Path) -> None:
    with pytest.raises(TilewrightError, match=r"the checks found a mistake in what 'read_unwaited\.") as caught:
        run_on_chip(built("read_unwaited", True, tmp_path), [], [], load_platform("siracusa"), checks=True)
    assert caught.value.code == "run-failed"
    assert caught.value.reasons[0].startswith("race: ")
    assert "status" not in caught.value.help
