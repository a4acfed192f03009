"""Where a network's time goes: what cores and DMAs did in each group of nodes and each tile.

Programs name places in a section that is not loaded (`TW_MARK`). The simulator notes when cores come to them; programs
are the same with and without a profile, and take the same cycles.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from io import BytesIO
from types import MappingProxyType
from typing import Any, cast

from elftools.elf.elffile import ELFFile
from msgspec import Struct, field

from tilewright.errors import TilewrightError
from tilewright.machine.target import Target
from tilewright.sim.program import DAMAGE, ElfProgram
from tilewright.sim.simulator import Simulator

SECTION = ".tilewright.marks"


class MarkPlace(Struct, frozen=True):
    """One mark: see `core.program.Mark`."""

    group: int
    name: str
    number: int


class TileProfile(Struct):
    """One step of a group, in cycles."""

    step: int
    loading: int = 0
    """Of the DMA, for what this step reads; it may happen during earlier steps."""
    loaded: int = 0
    """Bytes."""
    waiting: int = 0
    """Of the cores, until that is there."""
    kernels: dict[int, int] = field(default_factory=dict[int, int])
    """Of the cores, by the node's position in the group."""
    storing: int = 0
    """Of the DMA, for what this step makes; it may happen during later steps."""
    stored: int = 0
    """Bytes."""

    def add(self, position: int, cycles: int) -> None:
        self.kernels[position] = self.kernels.get(position, 0) + cycles

    @property
    def kernel(self) -> int:
        return sum(self.kernels.values())


class GroupProfile(Struct):
    """A group of nodes: from the time core 0 enters it until it enters the next one."""

    index: int
    start: int
    stop: int = 0
    tiles: list[TileProfile] = field(default_factory=list[TileProfile])
    phases: dict[str, int] = field(default_factory=dict[str, int])
    """Cycles of core 0 by place: starting transfers ahead, waiting for the step's own, computing, ..."""
    counters: list[Mapping[str, int]] = field(default_factory=list[Mapping[str, int]])
    """Of each core, by the simulator's names."""
    driven: list[int] = field(default_factory=list[int])
    """Cycles of what drives, at each step, to start work of other engines and wait for it."""

    @property
    def cycles(self) -> int:
        return self.stop - self.start

    def begin_later(self, cycles: int) -> None:
        """Leaves out its first cycles, in which it waited for its start."""
        self.start += cycles
        for name, spent in self.phases.items():
            left = min(spent, cycles)
            self.phases[name] -= left
            cycles -= left
            for tile in self.tiles[:1]:
                if name == "now":
                    tile.waiting -= min(left, tile.waiting)
                elif name == "work":
                    position = next(iter(tile.kernels))
                    tile.kernels[position] -= left

    def end_at(self, time: int) -> None:
        self.phases["end"] = self.phases.get("end", 0) + time - self.stop
        self.stop = time

    def tile(self, step: int) -> TileProfile:
        while len(self.tiles) <= step:
            self.tiles.append(TileProfile(len(self.tiles)))
        return self.tiles[step]


def marks_of(program: ElfProgram) -> dict[int, list[MarkPlace]]:
    """Places by address, in the order in which one address stands for several."""
    try:
        return _marks(program.image)
    except DAMAGE as reason:
        raise TilewrightError(
            "bad-elf",
            f"'{program.path.name}' cannot be profiled",
            reasons=[f"its section {SECTION} is damaged: {reason or type(reason).__name__}"],
            help="link it again",
        ) from reason


def _marks(image: bytes) -> dict[int, list[MarkPlace]]:
    section = cast("Any", ELFFile(BytesIO(image)).get_section_by_name(SECTION))
    found: dict[int, list[MarkPlace]] = {}
    data = bytes(section.data()) if section is not None else b""
    at = 0
    while at < len(data):
        end = data.index(b"\0", at + 4)
        group, name, number = data[at + 4 : end].decode().split()
        found.setdefault(int.from_bytes(data[at : at + 4], "little"), []).append(
            MarkPlace(int(group), name, int(number))
        )
        at = end + 1
    return found


NEVER: Mapping[tuple[int, int, int], int] = MappingProxyType({})


class Profiler:
    """Watches a network in a simulator: made before it runs, asked afterwards."""

    def __init__(self, simulator: Simulator, platform: Target) -> None:
        assert simulator.program is not None
        self._simulator = simulator
        self._places = marks_of(simulator.program)
        if not self._places:
            raise TilewrightError(
                "no-marks",
                f"'{simulator.program.path.name}' cannot be profiled: it has no section {SECTION}",
                help="build it with the platform's own headers and linker script, which define TW_MARK",
            )
        cores = simulator.timing.harts[platform.cores.name]
        self._first = simulator.timing.first_hart(cores.name)
        self._driver = self._first + platform.driver
        self._working = platform.engines[cores.name].count
        begins = [address for address, places in self._places.items() if any(p.name == "begin" for p in places)]
        for hart in {*range(self._first, self._first + self._working), self._driver}:
            simulator.native.mark(hart, list(self._places) if hart in (self._first, self._driver) else begins)
        simulator.native.record_transfers(True)

    def groups(self) -> tuple[GroupProfile, ...]:
        """What every group took."""
        times, harts, addresses, counts = self._simulator.native.take_passages()
        driver = self._walk(self._driver, times, harts, addresses, Walk())
        first = self._walk(
            self._first, times, harts, addresses, Walk(driver.works if self._driver != self._first else NEVER)
        )
        first.assign(self._simulator, driver)
        groups = first.groups[:-1]
        for group, mine in zip(groups, driver.groups, strict=False):
            group.driven = [tile.kernel for tile in mine.tiles]
        for group, after, driven in zip(groups, groups[1:], driver.groups[1:], strict=False):
            # While it waits for other engines, cores come to the next group, and wait there.
            late = max(driven.start - after.start, 0)
            group.end_at(after.start + late)
            after.begin_later(late)
        if groups and driver.groups:
            # It is the one that waits for the last results.
            groups[-1].end_at(max(groups[-1].stop, driver.groups[-1].start))
        columns = {name: values.tolist() for name, values in counts.items()}
        for hart in sorted(h for h in set(harts.tolist()) if h < self._first + self._working):
            self._count(groups, [n for n, h in enumerate(harts.tolist()) if h == hart], addresses.tolist(), columns)
        return tuple(groups)

    def driven(self) -> tuple[tuple[int, MarkPlace], ...]:
        """When the core that drives came to each mark, in order."""
        times, harts, addresses, _ = self._simulator.native.take_passages()
        own = harts == self._driver
        passed = zip(times[own].tolist(), addresses[own].tolist(), strict=True)
        return tuple((time, place) for time, address in passed for place in self._places[address])

    def _walk(self, hart: int, times: Any, harts: Any, addresses: Any, walk: Walk) -> Walk:
        own = harts == hart
        for time, address in zip(times[own].tolist(), addresses[own].tolist(), strict=True):
            for place in self._places[address]:
                walk.come(time, place)
        return walk

    def _count(
        self, groups: Sequence[GroupProfile], mine: Sequence[int], addresses: Sequence[int], columns: Mapping[str, Any]
    ) -> None:
        """Adds what one core counted from the start of each group to that of the next."""
        begins: list[int] = []
        begun = -1
        for passage in mine:
            for place in self._places[addresses[passage]]:
                if place.name == "begin" and place.group != begun:
                    begun = place.group
                    begins.append(passage)
        for group, first, last in zip(groups, begins, begins[1:], strict=False):
            group.counters.append({name: values[last] - values[first] for name, values in columns.items()})


class Walk:
    """Follows a core from mark to mark. It begins to work when the one that drives comes there, too (`released`)."""

    def __init__(self, released: Mapping[tuple[int, int, int], int] = NEVER) -> None:
        self.works: dict[tuple[int, int, int], int] = {}
        """When it comes to work, by group, step and node: not every core passes all of these."""
        self._released = released
        self._now = 0
        self.groups: list[GroupProfile] = []
        self.times: list[int] = []
        self.asked: list[tuple[int, int]] = []
        """Group and step for which transfers are asked for from that time on."""
        self._ahead: dict[int, int] = {}
        self._step = -1
        self._last: tuple[int, MarkPlace] | None = None

    def come(self, time: int, place: MarkPlace) -> None:
        if self._passed_by(place):
            return
        if place.name == "work":
            key = (place.group, self._working, place.number)
            self.works[key] = time
            time = max(time, self._released.get(key, time))
        time = self._now = max(time, self._now)
        self._leave(time)
        step = self._step
        if place.name == "begin":
            self.groups.append(GroupProfile(place.group, time, time))
            self._ahead, self._step = {}, -1
        elif place.name == "ahead":
            step = self._ahead[place.number] = self._ahead.get(place.number, -1) + 1
        elif place.name == "now":
            step = self._step = self._step + 1
        elif place.name == "store":
            step -= place.number
        group = len(self.groups) - 1
        if place.name == "store" and place.group != self.groups[group].index:
            # The last results of the group before.
            group, step = group - 1, len(self.groups[group - 1].tiles) - 1
        self.times.append(time)
        self.asked.append((group, step))
        self._last = (time, place)

    @property
    def _working(self) -> int:
        """The step that a core works on: work of the first may be started before its transfers are waited for."""
        return max(self._step, 0)

    def _passed_by(self, place: MarkPlace) -> bool:
        """Whether a core comes only to instructions behind a place that it has left, or that is another group's.

        A place has none of its own, so that each turn of a loop, and what else jumps to those behind it, passes there.
        """
        if place.name == "begin":
            return bool(self.groups) and place.group <= self.groups[-1].index
        around = self.groups[-2:] if place.name == "store" else self.groups[-1:]
        return all(place.group != group.index for group in around)

    def _leave(self, time: int) -> None:
        if self._last is None:
            return
        since, place = self._last
        group, spent = self.groups[-1], time - since
        group.stop = time
        group.phases[place.name] = group.phases.get(place.name, 0) + spent
        if place.name == "now":
            group.tile(self._step).waiting += spent
        elif place.name == "work":
            group.tile(self._working).add(place.number, spent)
        elif place.name in ("start", "await"):
            # For the step behind the one that cores work on.
            group.tile(self._step + 1).add(place.number, spent)

    def assign(self, simulator: Simulator, driver: Walk) -> None:
        """Gives every transfer to the tile for which it was asked."""
        free: dict[str, int] = {}
        for transfer in simulator.native.transfers():
            lane, asked = transfer["lane"], transfer["started"]
            finished = transfer["finished"] if transfer["finished"] >= 0 else simulator.cycles
            busy = max(finished - max(asked, free.get(lane, 0)), 0)
            free[lane] = max(finished, free.get(lane, 0))
            number = bisect_right(driver.times, asked) - 1
            if number < 0 or driver.asked[number][1] < 0:
                continue
            group, step = driver.asked[number]
            tile = self.groups[group].tile(step)
            if lane.endswith(" in"):
                tile.loading += busy
                tile.loaded += transfer["bytes"]
            else:
                tile.storing += busy
                tile.stored += transfer["bytes"]
