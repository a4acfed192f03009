"""error[run-failed]: the built program ends badly or never."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.errors import TilewrightError
from tilewright.sim import run_on_host


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_bad_end(tmp_path: Path) -> None:
    with pytest.raises(TilewrightError, match="status 3") as caught:
        run_on_host(script(tmp_path / "network", "echo out of memory >&2; exit 3"), [], [])
    assert caught.value.code == "run-failed"
    assert caught.value.reasons == ("out of memory",)
