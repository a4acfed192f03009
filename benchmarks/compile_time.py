"""CPU time (user and system) of commands from a cold start: the start of the command line, and with `--cases DIR` what
it takes to compile networks.

Cold is a new process, which finds nothing of an earlier one but bytecode of Python modules, as installing writes it.
DIR holds the networks named below. The exit status is 1 when a command takes longer than its limit.
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

STARTS: dict[tuple[str, ...], float] = {
    ("--version",): 0.35,
    ("--help",): 0.35,
    ("compile", "--help"): 0.35,
    ("platforms",): 0.35,
    ("machines",): 0.35,
}
"""Seconds that commands may take that say what there is."""
KEYWORDS, LLAMA = "Models/MLPerf/KeywordSpotting", "Models/microLlama/INT8/microLlama64_parallel"
TILED = ("--platform", "scratchpad", "--l1", "64000")
CHIP = ("--platform", "siracusa", "--l1", "64000")
LIMITS: dict[tuple[str, tuple[str, ...]], float] = {
    (KEYWORDS, ()): 2.0,
    (LLAMA, ()): 8.0,
    (KEYWORDS, TILED): 2.0,
    (LLAMA, TILED): 20.0,
    (KEYWORDS, CHIP): 1.5,
    (LLAMA, CHIP): 6.0,
}
"""Seconds that each network may take, by its options."""


# So that the first attempt leaves bytecode to the others where setting up did not.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def cpu_seconds(*arguments: str) -> float:
    """CPU time of one command in a new process, with everything that it starts."""
    before = os.times()
    command = [sys.executable, "-m", "tilewright", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT)
    after = os.times()
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr[-2000:]}")
    return after.children_user + after.children_system - before.children_user - before.children_system


def compile_seconds(case: Path, options: tuple[str, ...]) -> float:
    """CPU time to compile a network."""
    with tempfile.TemporaryDirectory(prefix="tilewright-bench-") as folder:
        return cpu_seconds("compile", str(case / "network.onnx"), "-o", folder, *options)


def main() -> int:
    """Measures every command that has a limit; the fastest of some attempts counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, help="folder of cases, each with network.onnx")
    parser.add_argument("--attempts", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print JSON")
    chosen = parser.parse_args()
    attempts = range(chosen.attempts)
    rows = [(" ".join(command), min(cpu_seconds(*command) for _ in attempts), most) for command, most in STARTS.items()]
    for (name, options), most in LIMITS.items() if chosen.cases else ():
        seconds = min(compile_seconds(chosen.cases / name, options) for _ in attempts)
        rows.append((" ".join(("compile", name, *options)), seconds, most))
    if chosen.json:
        print(json.dumps({command: seconds for command, seconds, _ in rows}))
    else:
        table = Table("command", "CPU s", "limit s", title="tilewright, cold")
        for command, seconds, most in rows:
            table.add_row(command, f"{seconds:.2f}", f"{most:g}")
        Console().print(table)
    return 0 if all(seconds <= most for _, seconds, most in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
