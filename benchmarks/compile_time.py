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

KEYWORDS, LLAMA = "Models/MLPerf/KeywordSpotting", "Models/microLlama/INT8/microLlama64_parallel"
TILED = ("--platform", "scratchpad", "--l1", "64000")
LIMITS: dict[tuple[str, tuple[str, ...]], float] = {
    (KEYWORDS, ()): 2.0,
    (LLAMA, ()): 8.0,
    (KEYWORDS, TILED): 2.0,
    (LLAMA, TILED): 20.0,
}
"""Seconds that each network may take, by its options."""


def cpu_seconds(case: Path, options: tuple[str, ...]) -> float:
    """CPU time of one command in a new process, with everything that it starts."""
    with tempfile.TemporaryDirectory(prefix="tilewright-bench-") as folder:
        command = [sys.executable, "-m", "tilewright", "compile", str(case / "network.onnx"), "-o", folder, *options]
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
    found = {key: min(cpu_seconds(chosen.cases / key[0], key[1]) for _ in range(chosen.attempts)) for key in LIMITS}
    if chosen.json:
        print(json.dumps({" ".join((name, *options)): seconds for (name, options), seconds in found.items()}))
    else:
        table = Table("network", "options", "CPU s", "limit s", title="tilewright compile, cold")
        for (name, options), seconds in found.items():
            table.add_row(name, " ".join(options), f"{seconds:.2f}", f"{LIMITS[name, options]:.0f}")
        Console().print(table)
    return 0 if all(found[key] <= limit for key, limit in LIMITS.items()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
