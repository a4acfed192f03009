"""A machine as the simulator runs it: harts, memories, devices and energy; the `simulator` part of a platform.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tilewright.core.reader import Reader

Numbers = Mapping[str, int]

INSTRUCTION_CLASSES = (
    "alu",
    "load",
    "store",
    "branch",
    "jump",
    "jump_register",
    "multiply",
    "multiply_high",
    "divide",
    "event_load",
    "csr",
    "system",
    "atomic",
    "loop",
    "fp",
    "fp_load",
    "fp_store",
    "fp_move",
    "fp_divide",
    "fp_sqrt",
)
"""What a pipeline distinguishes; each has its cycles, and under NAME_use the stall of one that needs its result."""

PIPELINE_EXTRAS = (
    "taken_branch",
    "jump_register_written",
    "fp_load_again",
    "divide_signed_zero",
    "divide_unsigned_zero",
    "divide_negative",
)
FETCH = ("sets", "ways", "shared_banks", "shared_sets", "shared_ways", "refill_cycles", "memory_cycles")
ADDRESSES = 2**32
"""Addresses have 32 bits."""
MOST_HARTS, MOST_WAIT, MOST_LINES = 1024, 2**20, 2**16
"""Of harts of a group, cycles that something takes, and sets, ways and banks of caches and memories."""
MOST_CYCLES = 127
"""Of one instruction."""
ALL_DEVICES = "devices"
"""Among the cycles of accesses: those to every device that is not named."""


@dataclass(frozen=True)
class MemoryModel:
    """A memory: where it is, or, without a base, one that only devices reach."""

    name: str
    base: int | None
    size: int
    banks: int
    executable: bool
    fill: int
    """The byte that it is full of at the start."""
    image: int | None = None
    """Where a program has the bytes of a memory without a base: addresses that no hart can use."""


@dataclass(frozen=True)
class AliasModel:
    """A second range of addresses of a memory, for one group of harts or (no group) for all."""

    memory: str
    base: int
    size: int
    test_and_set: bool
    harts: str


@dataclass(frozen=True)
class UnitModel:
    """A unit for some kinds of instructions, of which harts may have fewer than one each."""

    name: str
    count: int
    """Hart i of a group uses number i modulo this."""
    instructions: tuple[str, ...]
    cycles: int
    """From one operation to the next."""


@dataclass(frozen=True)
class HartGroupModel:
    """Harts of one kind."""

    name: str
    count: int
    first_id: int
    """mhartid of the first."""
    extensions: tuple[str, ...]
    near: str
    """The memory next to them."""
    near_banks: bool
    """Whether accesses to one of its banks wait for each other."""
    early_counters: bool
    """Whether reading the cycle counter does not count the wait for that instruction itself."""
    clock: tuple[int, int]
    """Machine cycles over cycles of their own."""
    pipeline: Numbers
    fetch: Numbers
    cycles: Numbers
    """Of a load or store, by memory or device."""
    units: tuple[UnitModel, ...] = ()


@dataclass(frozen=True)
class DeviceModel:
    """A device of a kind that the simulator knows; settings are what that kind asks for."""

    name: str
    kind: str
    base: int
    size: int
    settings: Mapping[str, int | str]


@dataclass(frozen=True)
class WindowModel:
    """A second place of a device's registers, from `offset` on."""

    name: str
    device: str
    base: int
    size: int
    offset: int


@dataclass(frozen=True)
class EnergyTerm:
    """Energy of one activity: a component's picojoules each time, and what that number rests on."""

    component: str
    activity: str
    picojoules: float
    basis: str


@dataclass(frozen=True)
class SimulatedMachine:
    """A machine with one timing."""

    timing: str
    hertz: float
    """What a machine cycle means in time."""
    starts: str
    """The group whose first hart starts at the program's entry."""
    memories: Mapping[str, MemoryModel]
    aliases: tuple[AliasModel, ...]
    harts: Mapping[str, HartGroupModel]
    devices: Mapping[str, DeviceModel]
    windows: tuple[WindowModel, ...]
    energy: tuple[EnergyTerm, ...]

    @property
    def hart_names(self) -> tuple[str, ...]:
        """Of all harts in their order: the group's name where it is alone, else with its number."""
        return tuple(
            group.name if group.count == 1 else f"{group.name} {index}"
            for group in self.harts.values()
            for index in range(group.count)
        )

    def first_hart(self, group: str) -> int:
        names = list(self.harts)
        return sum(self.harts[name].count for name in names[: names.index(group)])


BASES = ("published", "derived", "estimate")
"""What a number of the energy model rests on: said by its source, computed from what a source says, or a guess."""


def simulated_machines(reader: Reader, sizes: Mapping[str, int | None]) -> dict[str, SimulatedMachine]:
    """The machine with each of its timings; `sizes` are the platform's memories with their bytes."""
    if not reader.has("simulator"):
        return {}
    simulator = reader.part("simulator")
    timings = simulator.mapping("timings")
    if not timings:
        raise simulator.wrong("timings", "must name at least one timing")
    energy = _energy(reader) if reader.has("energy") else ()
    return {
        name: _machine(name, simulator.changed(changes or {}, f"timings.{name}"), sizes, energy)
        for name, changes in timings.items()
    }


def _machine(
    timing: str, part: Reader, sizes: Mapping[str, int | None], energy: tuple[EnergyTerm, ...]
) -> SimulatedMachine:
    part.mapping("timings")
    memories = {name: _memory(name, inner, sizes) for name, inner in part.parts("memories").items()}
    placed = [name for name, memory in memories.items() if memory.base is not None]
    pipelines = {name: _pipeline(inner) for name, inner in part.parts("pipelines").items()}
    windows = part.parts("windows") if part.has("windows") else {}
    places = {*placed, *part.mapping("devices"), *windows, ALL_DEVICES}
    harts = {name: _harts(name, inner, placed, pipelines, places) for name, inner in part.parts("harts").items()}
    starts = part.text("starts")
    if starts not in harts:
        raise part.wrong("starts", f"'{starts}' is not among harts ({', '.join(harts)})")
    machine = SimulatedMachine(
        timing,
        part.number("hertz", 1.0),
        starts,
        MappingProxyType(memories),
        tuple(_alias(inner, memories, harts) for inner in (part.items("aliases") if part.has("aliases") else [])),
        MappingProxyType(harts),
        MappingProxyType({name: _device(name, inner, harts) for name, inner in part.parts("devices").items()}),
        tuple(_window(name, inner, part.mapping("devices")) for name, inner in windows.items()),
        energy,
    )
    part.finish()
    return machine


def _memory(name: str, part: Reader, sizes: Mapping[str, int | None]) -> MemoryModel:
    size = sizes.get(name)
    if size is None:
        raise part.wrong("", "is not among the platform's memories, or has no size there")
    memory = MemoryModel(
        name,
        _address(part, "base", size) if part.has("base") else None,
        size,
        part.integer("banks", 1, MOST_LINES) if part.has("banks") else 1,
        bool(part.optional_int("executable")),
        part.integer("fill", 0, 255) if part.has("fill") else 0,
        _address(part, "image", size) if part.has("image") else None,
    )
    part.finish()
    return memory


def _address(part: Reader, key: str, size: int) -> int:
    """Where something begins, so that all of it has addresses."""
    if not 0 < size <= ADDRESSES:
        raise part.wrong("", f"must have 1 to {ADDRESSES} bytes, found {size}")
    return part.integer(key, 0, ADDRESSES - size)


def _alias(part: Reader, memories: Mapping[str, MemoryModel], harts: Mapping[str, HartGroupModel]) -> AliasModel:
    memory = _one_of(part, "memory", memories)
    group = _one_of(part, "harts", harts) if part.has("harts") else ""
    alias = AliasModel(
        memory,
        _address(part, "base", memories[memory].size),
        memories[memory].size,
        bool(part.optional_int("test_and_set")),
        group,
    )
    part.finish()
    return alias


def _pipeline(part: Reader) -> Numbers:
    uses = [f"{name}_use" for name in INSTRUCTION_CLASSES if part.has(f"{name}_use")]
    numbers = {name: part.integer(name, 1, MOST_CYCLES) for name in INSTRUCTION_CLASSES}
    # What is added to these may make them shorter.
    numbers |= {name: part.integer(name, -MOST_CYCLES, MOST_CYCLES) for name in PIPELINE_EXTRAS}
    numbers |= {name: part.integer(name, 0, MOST_CYCLES) for name in uses}
    part.finish()
    return MappingProxyType(numbers)


def _harts(
    name: str, part: Reader, memories: list[str], pipelines: Mapping[str, Numbers], places: set[str]
) -> HartGroupModel:
    to = part.part("cycles")
    cycles = {place: to.integer(place, 1, MOST_WAIT) for place in part.mapping("cycles")}
    pipeline = _one_of(part, "pipeline", pipelines)
    for place in cycles:
        if place not in places:
            raise part.wrong(f"cycles.{place}", "is neither a memory with a base nor a device or window")
    for place in (*memories, ALL_DEVICES):
        if place not in cycles:
            raise part.wrong(f"cycles.{place}", "is missing")
    group = HartGroupModel(
        name,
        part.integer("count", 1, MOST_HARTS),
        part.integer("first_id", 0, ADDRESSES - MOST_HARTS),
        tuple(part.strings("extensions")),
        _one_of(part, "near", dict.fromkeys(memories)),
        bool(part.integer("near_banks")),
        bool(part.integer("early_counters")),
        (part.integer("clock_numerator", 1, MOST_WAIT), part.integer("clock_denominator", 1, MOST_WAIT)),
        pipelines[pipeline],
        MappingProxyType(_fetch(part.part("fetch"))),
        MappingProxyType(cycles),
        tuple(
            _unit(name, inner, pipelines[pipeline])
            for name, inner in (part.parts("units") if part.has("units") else {}).items()
        ),
    )
    part.finish()
    return group


def _unit(name: str, part: Reader, pipeline: Numbers) -> UnitModel:
    count, kinds = part.integer("count", 1, MOST_HARTS), tuple(part.names("instructions"))
    unit = UnitModel(name, count, kinds, part.integer("cycles"))
    for kind in unit.instructions:
        if kind not in INSTRUCTION_CLASSES:
            raise part.wrong("instructions", f"'{kind}' is not known (known: {', '.join(INSTRUCTION_CLASSES)})")
        # So a hart that has a unit for itself never waits for it.
        if not 1 <= unit.cycles <= pipeline[kind]:
            raise part.wrong("cycles", f"must be 1 to {pipeline[kind]}, the cycles of {kind}, found {unit.cycles}")
    part.finish()
    return unit


def _fetch(part: Reader) -> dict[str, int]:
    """Caches of instructions; without banks there is no shared one."""
    shared = part.integer("shared_banks", 0, MOST_LINES) > 0
    least = {"sets": 1, "ways": 1, "shared_sets": int(shared), "shared_ways": int(shared)}
    found = {key: part.integer(key, least.get(key, 0), MOST_LINES) for key in FETCH}
    part.finish()
    return found


def _device(name: str, part: Reader, harts: Mapping[str, HartGroupModel]) -> DeviceModel:
    kind, size = part.text("kind"), part.integer("size", 1, ADDRESSES - 1)
    base = _address(part, "base", size)
    settings: dict[str, int | str] = {}
    if part.has("harts"):
        # A device that belongs to harts is told which: their first, how many, and the number of their group.
        group = _one_of(part, "harts", harts)
        order = list(harts)
        settings["first_hart"] = sum(harts[other].count for other in order[: order.index(group)])
        settings["harts"] = harts[group].count
        settings["group"] = order.index(group)
    for key, value in part.left().items():
        settings[key] = value if isinstance(value, str) else part.integer(key, 0, ADDRESSES - 1)
    return DeviceModel(name, kind, base, size, MappingProxyType(settings))


def _window(name: str, part: Reader, devices: Mapping[str, object]) -> WindowModel:
    size = part.integer("size", 1, ADDRESSES - 1)
    window = WindowModel(
        name,
        _one_of(part, "device", devices),
        _address(part, "base", size),
        size,
        part.integer("offset", 0, ADDRESSES - 1) if part.has("offset") else 0,
    )
    part.finish()
    return window


def _energy(reader: Reader) -> tuple[EnergyTerm, ...]:
    terms: list[EnergyTerm] = []
    part = reader.part("energy")
    for component in list(part.left()):
        for item in part.items(component):
            basis = item.text("basis")
            if basis not in BASES:
                raise item.wrong("basis", f"must be one of {', '.join(BASES)}, found '{basis}'")
            terms.append(EnergyTerm(component, item.text("activity"), item.number("pj"), basis))
            item.finish()
    return tuple(terms)


def _one_of(part: Reader, key: str, known: Mapping[str, object]) -> str:
    value = part.text(key)
    if value not in known:
        raise part.wrong(key, f"'{value}' is not known (known: {', '.join(known)})")
    return value
