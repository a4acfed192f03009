"""Simulated instructions per second, timing on, against `qemu-riscv32` (no timing) on the same loop in one run.

A scalar dot product of bytes runs on eight cores and on one core of the simulated cluster, and in QEMU; networks of one
product run on Snitch, with streams and loops of the FPU, and on MemPool's 256 cores. CPU time counts, the best of some
attempts. Instructions that Snitch's sequencer repeats count each time. The exit status is 1 when eight cores or MemPool
run slower than their limits, or eight cores cost over 1.3 times as much per instruction as one core.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from benchmarks.mempool import product as pool_product
from benchmarks.siracusa import product
from tilewright.api import Options, run_model
from tilewright.core.graph import Array, Graph
from tilewright.machine.target import load_platform
from tilewright.sim.chip import Chip
from tilewright.sim.simulator import Simulator

HERE = Path(__file__).parent
COMPILER, EMULATOR = "riscv64-unknown-elf-gcc", "qemu-riscv32"
LIMIT = 75e6
"""Simulated instructions per second of eight cores together."""
POOL_LIMIT = 20e6
"""Of MemPool's 256 cores together."""
DEARER = 1.3
POOL = "mempool, int8 product 256x256x256"
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


class Network(Struct, frozen=True):
    """A network of one product on a platform, and how often it runs."""

    platform: str
    graph: Graph
    fed: Array
    runs: int

    def built(self, folder: Path) -> Path:
        """Its program."""
        run_model(self.graph, Options(self.platform), inputs=[self.fed], folder=folder)
        return folder / "network"

    def rate(self, program: Path) -> float:
        """Instructions per second of CPU time, behind the start of the machine."""
        kinds = [self.graph.types[name] for name in self.graph.given]
        chip = Chip(program, 1, kinds, load_platform(self.platform), steps=self.runs)
        simulator = chip.simulator
        simulator.write(chip.inputs[0], np.ascontiguousarray(self.fed).tobytes())
        before, begin = executed(simulator), time.process_time()
        stop = simulator.run()
        seconds = time.process_time() - begin
        if stop != "exited" or simulator.exit_code:
            raise RuntimeError(f"{self.platform}: {stop}, status {simulator.exit_code}")
        return (executed(simulator) - before) / seconds


def executed(simulator: Simulator) -> int:
    """Instructions of all harts, and those that their sequencers repeated."""
    return simulator.instructions + sum(counts.get("repeated", 0) for counts in simulator.native.statistics().values())


def networks() -> dict[str, Network]:
    """By what the table calls them."""
    found: dict[str, Network] = {}
    for dtype in ("float64", "float32", "float16", "int8"):
        chain = product(64, 64, 64, dtype)
        found[f"snitch, {dtype} product 64x64x64"] = Network("snitch", chain.graph(), chain.x, 8)
    pool = pool_product()
    values = np.random.default_rng(1).integers(-128, 128, pool.types["x"].shape).astype(np.int8)
    return found | {POOL: Network("mempool", pool, values, 2)}


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
        products = networks()
        programs = {label: network.built(folder / str(i)) for i, (label, network) in enumerate(products.items())}
        for _ in range(chosen.attempts):
            for label, program in (("siracusa, eight cores", eight), ("siracusa, one core", one)):
                seconds, instructions, of_one_core = simulated(program)
                rates[label] = max(rates.get(label, 0.0), instructions / seconds)
            # The emulator does not count; it runs what one core ran, ten times.
            rates[EMULATOR] = max(rates.get(EMULATOR, 0.0), 10 * of_one_core / emulated(linux))
            for label, network in products.items():
                rates[label] = max(rates.get(label, 0.0), network.rate(programs[label]))
    table = Table("what", "M instructions/s", f"of {EMULATOR}", title="speed of simulation, timing rtl")
    for label, rate in rates.items():
        table.add_row(label, f"{rate / 1e6:.1f}", f"{rate / rates[EMULATOR]:.3f}")
    Console().print(table)
    cluster = rates["siracusa, eight cores"]
    ratio = rates["siracusa, one core"] / cluster
    print(f"an instruction of eight cores costs {ratio:.2f} times one of a single core (at most {DEARER})")
    return 0 if cluster >= LIMIT and rates[POOL] >= POOL_LIMIT and ratio <= DEARER else 1


if __name__ == "__main__":
    raise SystemExit(main())
