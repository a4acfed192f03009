"""`tilewright diff` names the layer in which a fault was planted; `python -m benchmarks planted_faults` plants all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FAULTS = range(1, 31)
PLATFORMS = ("generic", "siracusa", "cortex-m4")


@pytest.mark.sample(every=len(FAULTS), by=("platform",))
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_layer_is_named(platform: str, fault: int) -> None:
    command = [sys.executable, "-m", "benchmarks", "planted_faults", "--platform", platform, "--only", str(fault)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{platform}: 1 of 1 faults at the right layer" in done.stdout
