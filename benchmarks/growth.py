"""CPU time (user and system) of `tilewright compile` as networks grow, and where it goes.

Each network is made in several sizes and compiled from a cold start. The exponent says how time grows from the size
before: 1 is linear, 2 quadratic. The exit status is 1 when a network takes longer than its limit.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from math import log
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.growing import NETWORKS
from tilewright.cli.app import run

SIZES = {"total": (100, 300, 1000), "concat": (100, 300, 1000)}
USUAL_SIZES = (100, 300, 1000, 3000, 10_000)
LIMIT = 60.0
"""CPU seconds that a network of any of these sizes may take on the platform without tiles."""

STAGES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "import": (("tilewright.api.compiling", "load"),),
    "passes": (("tilewright.api.compiling", "to_integers"), ("tilewright.api.compiling", "run_pipeline")),
    "plan": (("tilewright.api.compiling", "plan"),),
    "check": (("tilewright.api.compiling", "check"),),
    "generate": (("tilewright.api.compiling", "lower"),),
    "print": (("tilewright.api.compiling", "project_files"),),
    "report": (("tilewright.report", "render_report"),),
}
"""The functions, by the modules that they are called from, in which each stage of the command spends its time."""


def measured(options: list[str]) -> int:
    """Runs the command line in this process; the last line printed is the CPU time of each stage."""
    spent = dict.fromkeys(STAGES, 0.0)
    for stage, places in STAGES.items():
        for module, name in places:
            owner = importlib.import_module(module)
            setattr(owner, name, _timed(getattr(owner, name), stage, spent))
    status = run(["compile", *options])
    print(json.dumps(spent))
    return status


def _timed(function: Callable[..., Any], stage: str, spent: dict[str, float]) -> Callable[..., Any]:
    def timed(*args: Any, **named: Any) -> Any:
        before = time.process_time()
        try:
            return function(*args, **named)
        finally:
            spent[stage] += time.process_time() - before

    return timed


def cpu_seconds(command: list[str], timeout: float) -> tuple[float, str]:
    """CPU time of a command in a new process, and the last line it prints."""
    before = os.times()
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout)
    after = os.times()
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[-2000:]}")
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return spent, done.stdout.rstrip().rpartition("\n")[2]


def compile_seconds(network: str, size: int, platform: str, timeout: float) -> dict[str, float]:
    """CPU time of compiling one network: of each stage, and of all."""
    with tempfile.TemporaryDirectory(prefix="tilewright-bench-") as folder:
        model = Path(folder) / "network.onnx"
        NETWORKS[network](size).save(model)
        options = [str(model), "-o", f"{folder}/out", "--platform", platform]
        spent, stages = cpu_seconds([sys.executable, "-m", "benchmarks.growth", "--measured", *options], timeout)
    return {**json.loads(stages), "all": spent}


def start_seconds() -> dict[str, float]:
    """CPU time of commands that do nothing."""
    commands = ("--version", "--help", "compile --help")
    return {
        text: min(cpu_seconds([sys.executable, "-m", "tilewright", *text.split()], LIMIT)[0] for _ in range(3))
        for text in commands
    }


def main() -> int:
    """Measures the networks that were asked for."""
    if sys.argv[1:2] == ["--measured"]:
        return measured(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", action="append", choices=list(NETWORKS), help="only these networks")
    parser.add_argument("--sizes", type=int, nargs="+", help="numbers of nodes, from small to large")
    parser.add_argument("--platform", default="generic")
    parser.add_argument("--timeout", type=float, default=600, metavar="SECONDS", help="wall-clock time of one network")
    chosen = parser.parse_args()
    table = Table(
        "network", "size", *STAGES, "all", "exponent", title=f"CPU s of tilewright compile, {chosen.platform}"
    )
    slow = False
    for network in chosen.network or NETWORKS:
        before: tuple[int, float] | None = None
        for size in chosen.sizes or SIZES.get(network, USUAL_SIZES):
            try:
                spent = compile_seconds(network, size, chosen.platform, chosen.timeout)
            except subprocess.TimeoutExpired:
                table.add_row(network, str(size), *("" for _ in STAGES), f"> {chosen.timeout:.0f}", "")
                slow = True
                break
            exponent = f"{log(spent['all'] / before[1]) / log(size / before[0]):.2f}" if before else ""
            table.add_row(network, str(size), *(f"{spent[stage]:.2f}" for stage in (*STAGES, "all")), exponent)
            before = size, spent["all"]
            slow |= chosen.platform == "generic" and spent["all"] > LIMIT
    Console(width=120).print(table)
    starts = start_seconds()
    print(", ".join(f"tilewright {text}: {seconds:.2f} s" for text, seconds in starts.items()))
    return int(slow)


if __name__ == "__main__":
    raise SystemExit(main())
