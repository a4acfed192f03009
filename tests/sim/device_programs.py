"""Programs for single devices of the platform's cluster: how they are built, run and what they leave behind."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from sim.faults import FLAGS, PROGRAMS, START, compiler
from tilewright.machine.target import Target, load_platform
from tilewright.sim.simulator import Look, Simulator

DEVICES = PROGRAMS.parent / "devices"
MOST_CYCLES = 2_000_000


@dataclass(frozen=True)
class Ended:
    """A simulator whose program has ended well, and the words that the program left as results."""

    simulator: Simulator
    results: tuple[int, ...]


def ran(
    name: str,
    folder: Path,
    *,
    cores: int = 2,
    timing: str = "gvsoc",
    checks: bool = True,
    machine: Target | None = None,
) -> Ended:
    """Builds and runs a program; on the cores of the cluster, unless it has a `main` of its own."""
    simulator = loaded(name, folder, cores, machine or platform(), timing, checks=checks)
    return ended(simulator)


def loaded(name: str, folder: Path, cores: int, machine: Target, timing: str, *, checks: bool = True) -> Simulator:
    """A simulator with the program, before it starts."""
    source = DEVICES / f"{name}.c"
    common = [START, DEVICES / "results.c"]
    own_main = "int main(" in source.read_text()
    sources = [str(path) for path in (*common, *([] if own_main else [PROGRAMS / "main.c"]), source)]
    program = folder / f"{name}.elf"
    options = [f"-DCORES={cores}", f"-I{PROGRAMS}", f"-I{DEVICES}", "-T", str(PROGRAMS / "link.ld")]
    subprocess.run([compiler(), *FLAGS, *options, *sources, "-o", str(program)], check=True)
    simulator = Simulator(machine, timing, look=Look(checks=checks))
    simulator.load(program)
    return simulator


def ended(simulator: Simulator) -> Ended:
    """The simulator after a run without findings."""
    assert simulator.run(MOST_CYCLES) == "exited", "\n".join(
        [*map(str, simulator.findings()), *simulator.whereabouts()]
    )
    assert [str(finding) for finding in simulator.findings() if not finding.warning] == []
    return Ended(simulator, simulator.read_words("results", 256))


def with_bank_conflicts(platform: Target, timing: str) -> Target:
    """The platform, but with conflicts in the banks of the cluster's memory in that timing."""
    machine = platform.timings[timing]
    harts = {**machine.harts, "cluster": replace(machine.harts["cluster"], near_banks=True)}
    changed = replace(platform, timings={**platform.timings, timing: replace(machine, harts=harts)})
    return with_setting(changed, timing, "mchan", "bank_conflicts", 1)


def with_private_units(platform: Target, timing: str) -> Target:
    """The platform, but with units for each core in that timing."""
    machine = platform.timings[timing]
    cluster = machine.harts["cluster"]
    units = tuple(replace(unit, count=cluster.count) for unit in cluster.units)
    harts = {**machine.harts, "cluster": replace(cluster, units=units)}
    return replace(platform, timings={**platform.timings, timing: replace(machine, harts=harts)})


def with_setting(platform: Target, timing: str, device: str, setting: str, value: int) -> Target:
    """The platform, but with another value for a setting of a device in that timing."""
    machine = platform.timings[timing]
    found = machine.devices[device]
    devices = {**machine.devices, device: replace(found, settings={**found.settings, setting: value})}
    return replace(platform, timings={**platform.timings, timing: replace(machine, devices=devices)})


def platform() -> Target:
    return load_platform("siracusa")
