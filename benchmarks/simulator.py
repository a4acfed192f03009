"""Simulated instructions per second, timing on, against `qemu-riscv32` (no timing) on the same loop in one run.

A scalar dot product of bytes runs on eight cores and on one core of the simulated cluster, and in QEMU. CPU time
counts, the best of some attempts. The exit status is 1 when eight cores run slower than the limit, or cost over 1.3
times as much per instruction as one core.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tilewright.machine.target import load_platform
from tilewright.sim.simulator import Simulator

HERE = Path(__file__).parent
COMPILER, EMULATOR = "riscv64-unknown-elf-gcc", "qemu-riscv32"
LIMIT = 75e6
"""Simulated instructions per second of eight cores together."""
DEARER = 1.3
OPTIONS = ("-mabi=ilp32", "-O2", "-ffreestanding", "-nostdlib", "-nostartfiles", "-Wl,--no-warn-rwx-segments")


def build(folder: Path, name: str, options: list[str]) -> Path:
    """The benchmark's program with these options."""
    made = folder / name
    subprocess.run(
        [COMPILER, "-march=rv32im_zicsr", *OPTIONS, str(HERE / "dot_product.c"), *options, "-o", str(made)], check=True
    )
    return made


def on_cluster(folder: Path, cores: int, repeats: int) -> Path:
    """The program for some cores of the platform's cluster."""
    platform = load_platform("siracusa").folder
    runtime = platform / "runtime"
    files = ["-I", str(platform / "kernels"), str(runtime / "start.S"), "-T", str(runtime / "link.ld")]
    return build(folder, f"cores{cores}", [f"-DCORES={cores}", f"-DREPEATS={repeats}", *files])


def simulated(program: Path) -> tuple[float, int, int]:
    """CPU seconds and instructions of one run, and those of the cluster's first core."""
    simulator = Simulator("siracusa")
    simulator.load(program)
    begin = time.process_time()
    stop = simulator.run()
    seconds = time.process_time() - begin
    if stop != "exited" or simulator.exit_code:
        raise RuntimeError(f"{program.name}: {stop}, status {simulator.exit_code}")
    first = simulator.native.counters(simulator.timing.first_hart("cluster"))["instructions"]
    return seconds, simulator.instructions, first


def emulated(program: Path) -> float:
    """CPU seconds of one run in the emulator."""
    before = os.times()
    subprocess.run([EMULATOR, str(program)], check=False)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> int:
    """Measures all three in turn, several times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=2000, help="dot products of 1024 bytes per core")
    parser.add_argument("--attempts", type=int, default=3)
    chosen = parser.parse_args()
    for tool in (COMPILER, EMULATOR):
        if shutil.which(tool) is None:
            print(f"{tool} is not installed; `make setup` does it")
            return 2
    with tempfile.TemporaryDirectory(prefix="tilewright-bench-") as name:
        folder = Path(name)
        eight, one = on_cluster(folder, 8, chosen.repeats), on_cluster(folder, 1, 4 * chosen.repeats)
        linux = build(folder, "linux", ["-DLINUX", f"-DREPEATS={40 * chosen.repeats}"])
        rates: dict[str, float] = {}
        of_one_core = 0
        for _ in range(chosen.attempts):
            for label, program in (("eight cores", eight), ("one core", one)):
                seconds, instructions, of_one_core = simulated(program)
                rates[label] = max(rates.get(label, 0.0), instructions / seconds)
            # The emulator does not count; it runs what one core ran, ten times.
            rates[EMULATOR] = max(rates.get(EMULATOR, 0.0), 10 * of_one_core / emulated(linux))
    table = Table("what", "M instructions/s", f"of {EMULATOR}", title="scalar dot product, timing rtl")
    for label, rate in rates.items():
        table.add_row(label, f"{rate / 1e6:.1f}", f"{rate / rates[EMULATOR]:.3f}")
    Console().print(table)
    ratio = rates["one core"] / rates["eight cores"]
    print(f"an instruction of eight cores costs {ratio:.2f} times one of a single core (at most {DEARER})")
    return 0 if rates["eight cores"] >= LIMIT and ratio <= DEARER else 1


if __name__ == "__main__":
    raise SystemExit(main())
