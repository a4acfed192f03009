"""error[bad-schedule]: a file that is to be compared with is no trace of a schedule."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.api.schedule_report import read_schedule_trace
from tilewright.errors import TilewrightError


@pytest.mark.parametrize("text", ["{}", "[1]", "x", '{"traceEvents": [], "otherData": {}}'])
def test_bad_schedule(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trace.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TilewrightError) as caught:
        read_schedule_trace(path)
    assert caught.value.code == "bad-schedule"
    assert "--trace" in caught.value.help
