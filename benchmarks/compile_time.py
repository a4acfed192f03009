"""CPU time (user and system) of `tilewright compile` from a cold start: `--cases DIR`.

DIR holds the networks named below. The exit status is 1 when one takes longer than its limit.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

LIMITS = {"Models/MLPerf/KeywordSpotting": 2.0, "Models/microLlama/INT8/microLlama64_parallel": 8.0}
"""Seconds that each network may take."""


def cpu_seconds(case: Path) -> float:
    """CPU time of one command in a new process, with everything that it starts."""
    with tempfile.TemporaryDirectory(prefix="tilewright-bench-") as folder:
        command = [sys.executable, "-m", "tilewright", "compile", str(case / "network.onnx"), "-o", folder]
        before = os.times()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        after = os.times()
    if done.returncode:
        raise RuntimeError(f"{case}: {done.stderr[-2000:]}")
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> int:
    """Measures every network that has a limit; the fastest of some attempts counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, required=True, help="folder of cases, each with network.onnx")
    parser.add_argument("--attempts", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print JSON")
    chosen = parser.parse_args()
    found = {name: min(cpu_seconds(chosen.cases / name) for _ in range(chosen.attempts)) for name in LIMITS}
    if chosen.json:
        print(json.dumps(found))
    else:
        table = Table("network", "CPU s", "limit s", title="tilewright compile, cold")
        for name, seconds in found.items():
            table.add_row(name, f"{seconds:.2f}", f"{LIMITS[name]:.0f}")
        Console().print(table)
    return 0 if all(found[name] <= limit for name, limit in LIMITS.items()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
