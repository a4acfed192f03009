"""What a run amounts to: cycles and stalls of each hart, work of the devices, energy of the components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from msgspec import Struct

from tilewright.errors import TilewrightError
from tilewright.machine.parts import EnergyTerm
from tilewright.sim.simulator import Simulator

STALLS = {
    "result": "stall_use",
    "branch": "stall_branch",
    "bank": "stall_bank",
    "unit": "stall_unit",
    "memory": "stall_memory",
    "misaligned": "stall_misaligned",
    "fetch": "stall_fetch",
}
"""Why cycles are lost, and the counters of them: a result that the next instruction needs, a taken branch or jump,
another access to the same bank, another core's operation in a unit that they share, memories further away and devices,
the second half of a misaligned access, a miss of the instruction cache."""


class HartStatistics(Struct, frozen=True):
    """What one hart did, in cycles of its own clock."""

    name: str
    group: str
    cycles: int
    """Since it was started."""
    asleep: int
    instructions: int
    loads: int
    stores: int
    fetch_misses: int
    stalls: Mapping[str, int]

    @property
    def active(self) -> int:
        return self.cycles - self.asleep

    @property
    def instructions_per_cycle(self) -> float:
        """While it was awake."""
        return self.instructions / self.active if self.active else 0.0

    @property
    def long_instructions(self) -> int:
        """Cycles beyond the first of multiplications, divisions and the like: what no stall explains."""
        return max(self.active - self.instructions - sum(self.stalls.values()), 0)


class DeviceStatistics(Struct, frozen=True):
    """What one device did; `busy` are its parts that can work at the same time, with their cycles."""

    name: str
    busy: Mapping[str, int]
    counts: Mapping[str, int]

    def occupancy(self, part: str, cycles: int) -> float:
        return self.busy[part] / cycles if cycles else 0.0

    @property
    def worked(self) -> bool:
        return any(self.busy.values()) or any(self.counts.values())


class EnergyShare(Struct, frozen=True):
    """One summand: how often something happened, and the energy of that."""

    term: EnergyTerm
    count: int

    @property
    def joules(self) -> float:
        return self.count * self.term.picojoules * 1e-12


class Statistics(Struct, frozen=True):
    """A run in numbers."""

    cycles: int
    """Of the machine's clock."""
    hertz: float
    harts: tuple[HartStatistics, ...]
    """Those that were started."""
    devices: tuple[DeviceStatistics, ...]
    energy: tuple[EnergyShare, ...]

    @property
    def instructions(self) -> int:
        return sum(hart.instructions for hart in self.harts)

    @property
    def seconds(self) -> float:
        return self.cycles / self.hertz

    @property
    def joules(self) -> float:
        return sum(part.joules for part in self.energy)

    def joules_by_component(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for part in self.energy:
            found[part.term.component] = found.get(part.term.component, 0.0) + part.joules
        return found


def statistics_of(simulator: Simulator) -> Statistics:
    """The run so far."""
    harts = _harts(simulator)
    devices = tuple(_device(name, numbers) for name, numbers in simulator.native.statistics().items())
    activities = _activities(simulator, harts, devices)
    parts = tuple(EnergyShare(term, _count(simulator, term, activities)) for term in simulator.platform.energy)
    return Statistics(simulator.cycles, simulator.timing.hertz, harts, devices, parts)


def _harts(simulator: Simulator) -> tuple[HartStatistics, ...]:
    found: list[HartStatistics] = []
    groups = [group.name for group in simulator.timing.harts.values() for _ in range(group.count)]
    for index, (name, group) in enumerate(zip(simulator.timing.hart_names, groups, strict=True)):
        if simulator.native.state(index) != "off":
            found.append(_hart(simulator, index, name, group))
    return tuple(found)


def _hart(simulator: Simulator, index: int, name: str, group: str) -> HartStatistics:
    counters = simulator.native.counters(index)
    numbers = cast("Mapping[str, int]", counters)
    return HartStatistics(
        name,
        group,
        counters["cycles"],
        counters["asleep"],
        counters["instructions"],
        counters["loads"],
        counters["stores"],
        counters["fetch_misses"],
        {cause: numbers[counter] for cause, counter in STALLS.items()},
    )


def _device(name: str, numbers: Mapping[str, int]) -> DeviceStatistics:
    busy = {key: value for key, value in numbers.items() if key.startswith("busy")}
    return DeviceStatistics(name, busy, {key: value for key, value in numbers.items() if key not in busy})


def _activities(
    simulator: Simulator, harts: Sequence[HartStatistics], devices: Sequence[DeviceStatistics]
) -> dict[str, int]:
    """Everything that an energy model may count, by name."""
    found = {"machine.cycles": simulator.cycles}
    for group in simulator.timing.harts:
        mine = [hart for hart in harts if hart.group == group]
        found |= {
            f"{group}.active": sum(hart.active for hart in mine),
            f"{group}.asleep": sum(hart.asleep for hart in mine),
            f"{group}.instructions": sum(hart.instructions for hart in mine),
            f"{group}.accesses": sum(hart.loads + hart.stores for hart in mine),
            f"{group}.fetch_misses": sum(hart.fetch_misses for hart in mine),
        }
    found |= {f"{name}.far_accesses": count for name, count in simulator.native.far_accesses().items()}
    for device in devices:
        found |= {f"{device.name}.{key}": count for key, count in {**device.busy, **device.counts}.items()}
    return found


def _count(simulator: Simulator, term: EnergyTerm, activities: Mapping[str, int]) -> int:
    if term.activity not in activities:
        raise TilewrightError(
            "bad-platform",
            f"platform.yaml of '{simulator.platform.name}': energy.{term.component}: nothing counts '{term.activity}'",
            reasons=[f"counted: {', '.join(sorted(activities))}"],
        )
    return activities[term.activity]
