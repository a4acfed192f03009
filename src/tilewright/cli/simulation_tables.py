"""Tables about a simulated run, printed to stderr: stdout is the program's."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from tilewright.cli.console import results
from tilewright.sim.profile import FunctionCycles
from tilewright.sim.statistics import STALLS, DeviceStatistics, HartStatistics, Statistics

SHOWN_FUNCTIONS = 20
WIDTH = 160


def print_statistics(statistics: Statistics, timing: str) -> None:
    console = results(WIDTH, stderr=True)
    console.print(
        f"{statistics.cycles:,} cycles ({_time(statistics.seconds)} at {statistics.hertz / 1e6:g} MHz), "
        f"{statistics.instructions:,} instructions, timing {timing}"
    )
    console.print(_hart_table(statistics.harts))
    console.print("per cycle: while awake; bank: conflicts; long: multiplications, divisions and the like")
    worked = [device for device in statistics.devices if device.worked]
    if worked:
        console.print(_device_table(worked, statistics.cycles))
    if statistics.energy:
        _print_energy(console, statistics)


def print_profile(functions: Sequence[FunctionCycles]) -> None:
    console = results(WIDTH, stderr=True)
    for group in dict.fromkeys(function.group for function in functions):
        mine = [function for function in functions if function.group == group]
        table = _table(f"{group}: cycles by function", "function", "cycles", "share", "from")
        table.columns[3].justify = "left"
        for function in mine[:SHOWN_FUNCTIONS]:
            table.add_row(function.function, f"{function.cycles:,}", f"{function.share:.1%}", function.line)
        console.print(table)
        if len(mine) > SHOWN_FUNCTIONS:
            rest = mine[SHOWN_FUNCTIONS:]
            console.print(f"{len(rest)} more functions with {sum(f.share for f in rest):.1%}")


def _table(title: str, first: str, *columns: str) -> Table:
    table = Table(first, title=title, title_justify="left")
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _hart_table(harts: Sequence[HartStatistics]) -> Table:
    table = _table(
        "harts, in cycles of their own clocks; stalls by cause",
        "hart",
        *("cycles", "asleep", "instructions", "per cycle"),
        *STALLS,
        "long",
    )
    for hart in harts:
        table.add_row(
            hart.name,
            f"{hart.cycles:,}",
            f"{hart.asleep:,}",
            f"{hart.instructions:,}",
            f"{hart.instructions_per_cycle:.2f}",
            *(f"{cycles:,}" for cycles in hart.stalls.values()),
            f"{hart.long_instructions:,}",
        )
    return table


def _device_table(devices: Sequence[DeviceStatistics], cycles: int) -> Table:
    table = _table("devices", "device", "occupied", "did")
    table.columns[2].justify = "left"
    for device in devices:
        parts = ", ".join(
            f"{_part(name)}{device.occupancy(name, cycles):.1%}" for name, busy in device.busy.items() if busy
        )
        did = ", ".join(f"{_words(name)} {count:,}" for name, count in device.counts.items() if count)
        if device.counts.get("multiplications") and device.busy.get("busy"):
            did += f"; {device.counts['multiplications'] / device.busy['busy']:.0f} multiplications a busy cycle"
        table.add_row(device.name, parts, did)
    return table


def _part(name: str) -> str:
    """`in ` of `busy_in`; nothing of `busy`, which is all of a device."""
    part = name.removeprefix("busy").removeprefix("_")
    return f"{part} " if part else ""


def _words(name: str) -> str:
    return name.replace("_", " ")


def _print_energy(console: Console, statistics: Statistics) -> None:
    table = _table("energy, by a linear model", "component", "energy", "share")
    total = statistics.joules or 1.0
    for component, joules in statistics.joules_by_component().items():
        if joules:
            table.add_row(component, _energy(joules), f"{joules / total:.1%}")
    table.add_row("all", _energy(statistics.joules), "")
    guessed = sum(part.joules for part in statistics.energy if part.term.basis == "estimate") / total
    power = statistics.joules / statistics.seconds * 1e3 if statistics.seconds else 0.0
    console.print(table)
    console.print(f"{power:.1f} mW on average; {guessed:.0%} of it are estimates, whose grounds are in platform.yaml")


def _scaled(value: float, units: Sequence[tuple[float, str]]) -> str:
    for scale, unit in units:
        if value >= scale:
            return f"{value / scale:,.2f} {unit}"
    scale, unit = units[-1]
    return f"{value / scale:,.2f} {unit}"


def _time(seconds: float) -> str:
    return _scaled(seconds, ((1, "s"), (1e-3, "ms"), (1e-6, "us")))


def _energy(joules: float) -> str:
    return _scaled(joules, ((1, "J"), (1e-3, "mJ"), (1e-6, "uJ"), (1e-9, "nJ")))
