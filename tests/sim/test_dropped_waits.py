"""Waits that are dropped from a generated program are told on, and the program itself is left alone."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
DROPPED = 12
"""Spread over all of the program."""


def test_no_dropped_synchronisation_is_missed() -> None:
    command = [sys.executable, "-m", "benchmarks", "dropped_waits", "--only", "tiny_cnn_int8", "--l1", "65536"]
    done = subprocess.run(
        [*command, "--most", str(DROPPED)], cwd=ROOT, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found, ordered, missed = map(int, re.findall(r"\d+", done.stdout.splitlines()[-1]))
    assert (found + ordered, missed) == (DROPPED, 0)
    assert found >= DROPPED - 2
