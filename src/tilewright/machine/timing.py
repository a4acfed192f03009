"""How the simulator runs a machine: harts, devices and clocks; the `simulator` part of a description, by timing."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, cast

from msgspec import Meta, Struct, field, structs

from tilewright.base.schema import NAME, Flag, Part, Source, changed, read, unknown
from tilewright.machine.parts import Memory
from tilewright.machine.tiles import TilesPart, tile_numbers

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
FINER_CLASSES = ("fp_double", "fp_small", "fp_compare", "fp_convert", "fp_dot", "dma", "stream", "simd")
"""What it may distinguish besides: where it does not, they are as `fp`, the last three as `alu`."""
PIPELINE_FLAGS = ("scoreboard", "divide_by_difference")
"""Numbers of a pipeline that are 1 where instructions wait for registers, and long results come while others go on; and
where a division takes the leading zeros that the divisor has more than the dividend."""

PIPELINE_EXTRAS = (
    "taken_branch",
    "jump_register_written",
    "fp_load_again",
    "divide_signed_zero",
    "divide_unsigned_zero",
    "divide_negative",
)
ADDRESSES = 2**32
"""Addresses have 32 bits."""
MOST_HARTS, MOST_WAIT, MOST_LINES = 1024, 2**20, 2**16
"""Of harts of a group, cycles that something takes, and sets, ways and banks of caches and memories."""
MOST_CYCLES = 127
"""Of one instruction."""
ALL_DEVICES = "devices"
"""Among the cycles of accesses: those to every device that is not named."""


class AliasModel(Struct, frozen=True):
    """A second range of addresses of a memory, for one group of harts or (no group) for all."""

    memory: str
    base: int
    size: int
    test_and_set: bool
    harts: str


class UnitModel(Struct, frozen=True):
    """A unit for some kinds of instructions, of which harts may have fewer than one each."""

    name: str
    count: int
    """Hart i of a group uses number i modulo this."""
    instructions: tuple[str, ...]
    cycles: int
    """From one operation to the next."""
    round_robin: bool
    """Whether the hart that it served last lets others go first that ask in the same cycle."""


class HartGroupModel(Struct, frozen=True):
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
    outstanding_loads: int = 0
    """Loads of a hart with a scoreboard that may be under way; 0: any number."""
    units: tuple[UnitModel, ...] = ()
    tiles: Numbers | None = None
    """How the memory next to them lies in tiles, where it does."""


class DeviceModel(Struct, frozen=True):
    """A device of a kind that the simulator knows; settings are what that kind asks for."""

    name: str
    kind: str
    base: int
    size: int
    settings: Mapping[str, int | str]


class WindowModel(Struct, frozen=True):
    """A second place of a device's registers, from `offset` on."""

    name: str
    device: str
    base: int
    size: int
    offset: int


class Timing(Struct, frozen=True):
    """A machine as the simulator runs it, with one timing."""

    name: str
    hertz: float
    """What a machine cycle means in time."""
    starts: str
    """The group whose first hart starts at the program's entry."""
    all_start: bool
    """Whether all harts start there, with their numbers as first argument."""
    aliases: tuple[AliasModel, ...]
    harts: Mapping[str, HartGroupModel]
    devices: Mapping[str, DeviceModel]
    windows: tuple[WindowModel, ...]

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


ADDRESS = Annotated[int, Meta(ge=0, le=ADDRESSES - 1)]
SIZE = Annotated[int, Meta(ge=1, le=ADDRESSES - 1)]
WAIT = Annotated[int, Meta(ge=1, le=MOST_WAIT)]
HARTS = Annotated[int, Meta(ge=1, le=MOST_HARTS)]
LINES = Annotated[int, Meta(ge=0, le=MOST_LINES)]


class AliasPart(Part, frozen=True, kw_only=True):
    """A second range of addresses of a memory."""

    memory: str
    """The memory."""
    base: ADDRESS
    """Its first address there."""
    harts: str = ""
    """The group of harts that it is for; all where nothing is said."""
    test_and_set: Flag = False
    """Whether a load leaves all ones behind."""


class UnitPart(Part, frozen=True, kw_only=True):
    """A unit that harts of a group share."""

    count: HARTS
    """How many there are: hart i uses number i modulo this."""
    instructions: tuple[str, ...]
    """Kinds of instructions that it is for."""
    cycles: WAIT
    """From one operation to the next."""
    round_robin: Flag = False
    """Whether the hart that it served last lets others go first that ask in the same cycle."""


class FetchPart(Part, frozen=True, kw_only=True):
    """Caches of instructions: each hart's, and one behind them that all of a group share."""

    sets: Annotated[int, Meta(ge=1, le=MOST_LINES)]
    """Of a hart's cache."""
    ways: Annotated[int, Meta(ge=1, le=MOST_LINES)]
    """Lines of each set."""
    line_bytes: Annotated[int, Meta(ge=16, le=256)] = 16
    """Of a line of all of them, a power of two."""
    shared_banks: LINES
    """Of the shared cache; 0 where there is none."""
    shared_sets: LINES
    """Of each bank."""
    shared_ways: LINES
    """Lines of each of its sets."""
    shared_by: LINES = 0
    """Harts that share one such cache; 0 where all of a group do."""
    refill_cycles: LINES
    """Of each cache that misses."""
    memory_cycles: LINES
    """To fetch a line from memory."""
    prefetch: Flag = False
    """Whether the line behind comes along with each one that a hart enters."""
    outer_by: LINES = 0
    """Harts that share a cache more before memory; 0 where there is none."""
    outer_sets: LINES = 0
    """Of that cache."""
    outer_ways: LINES = 0
    """Lines of each of its sets."""
    outer_cycles: LINES = 0
    """To it."""
    lookup_cycles: LINES = 0
    """Of the shared cache before it asks the memory; none while it waits for another line."""


class HartsPart(Part, frozen=True, kw_only=True):
    """Harts of one kind."""

    count: HARTS
    """How many there are."""
    first_id: Annotated[int, Meta(ge=0, le=ADDRESSES - MOST_HARTS)]
    """`mhartid` of the first."""
    extensions: tuple[str, ...]
    """Tables of instructions that they know."""
    pipeline: str
    """Their cycles, one of `pipelines`."""
    near: str
    """The memory next to them."""
    near_banks: Flag
    """Whether accesses to one of its banks wait for each other."""
    outstanding_loads: Annotated[int, Meta(ge=0, le=16)] = 0
    """With a scoreboard: loads of a hart that may be under way; 0: any number."""
    early_counters: Flag
    """Whether reading the cycle counter does not count the wait for that instruction itself."""
    clock_numerator: WAIT
    """Machine cycles in `clock_denominator` cycles of their own."""
    clock_denominator: WAIT
    """See `clock_numerator`."""
    fetch: FetchPart
    """Their caches of instructions."""
    cycles: Mapping[str, WAIT]
    """Of a load or store, by memory, device or window; `devices` for all devices that are not named."""
    tiles: TilesPart | None = None
    """How the memory next to them lies in tiles, for harts with a scoreboard; else it is the same to all of them."""
    units: Mapping[str, UnitPart] = {}
    """Units that they share: FPUs, dividers, multipliers."""


class WindowPart(Part, frozen=True, kw_only=True):
    """A second place of a device's registers."""

    name: str = field(name=NAME)
    device: str
    """The device."""
    base: ADDRESS
    """Where the window begins."""
    size: SIZE
    """Bytes of it."""
    offset: ADDRESS = 0
    """The first register that is seen there."""


class SimulatorPart(Part, frozen=True, kw_only=True):
    """What only the simulator asks about a machine."""

    hertz: Annotated[float, Meta(ge=1, le=1e18)]
    """Cycles of the machine in a second."""
    starts: str
    """The group whose first hart starts at the program's entry."""
    all_start: Flag = False
    """Whether all harts start there, with their numbers (`mhartid`) as first argument."""
    pipelines: Mapping[str, Mapping[str, Annotated[int, Meta(ge=-MOST_CYCLES, le=MOST_CYCLES)]]]
    """Cycles by kind of instruction; under NAME_use, those that an instruction waits which needs the result at once."""
    harts: Mapping[str, HartsPart]
    """Groups of harts. One with the name of an engine of cores is these cores, and maybe more beside them."""
    devices: Mapping[str, Mapping[str, ADDRESS | str]]
    """Devices: `kind`, `base`, `size`, `harts` where it belongs to a group, and what that kind asks for."""
    aliases: tuple[AliasPart, ...] = ()
    """Second addresses of memories."""
    windows: Mapping[str, WindowPart] = {}
    """Second places of the registers of devices."""
    timings: Mapping[str, Mapping[str, Any] | None]
    """What each timing changes of all of this; the first one is the default."""


def read_timings(data: object, memories: Mapping[str, Memory], source: Source) -> dict[str, Timing]:
    """The machine with each of its timings."""
    timings = read(SimulatorPart, data, source).timings
    if not timings:
        raise source.wrong("timings", "must name at least one timing")
    for memory in memories.values():
        _check_memory(memory, source)
    given = cast("dict[str, Any]", data)
    found: dict[str, Timing] = {}
    for name, changes in timings.items():
        inner = changed(given, changes or {}, source.inside(f"timings.{name}"))
        found[name] = _timing(name, read(SimulatorPart, inner, source), memories, source)
    return found


def _check_memory(memory: Memory, source: Source) -> None:
    if not memory.length:
        raise source.wrong("", f"memory {memory.name} has no size, so that it cannot be simulated")
    for address in (memory.base, memory.image):
        if address is not None and address + memory.length > ADDRESSES:
            raise source.wrong("", f"memory {memory.name} ends beyond the last of {ADDRESSES} addresses")


def _timing(name: str, part: SimulatorPart, memories: Mapping[str, Memory], source: Source) -> Timing:
    placed = {name: memory for name, memory in memories.items() if memory.base is not None}
    pipelines = {key: _pipeline(given, source.inside(f"pipelines.{key}")) for key, given in part.pipelines.items()}
    places = {**placed, **part.devices, **part.windows, ALL_DEVICES: None}
    harts = {
        key: _harts(key, given, placed, pipelines, places, source.inside(f"harts.{key}"))
        for key, given in part.harts.items()
    }
    if part.starts not in harts:
        raise source.wrong("starts", f"'{part.starts}' is not among harts ({', '.join(harts)})")
    return Timing(
        name,
        part.hertz,
        part.starts,
        bool(part.all_start),
        tuple(_alias(a, memories, harts, source.inside(f"aliases[{i}]")) for i, a in enumerate(part.aliases)),
        MappingProxyType(harts),
        MappingProxyType(
            {key: _device(key, given, harts, source.inside(f"devices.{key}")) for key, given in part.devices.items()}
        ),
        tuple(
            _window(window, part.devices, source.inside(f"windows.{window.name}")) for window in part.windows.values()
        ),
    )


def _placed(base: int, size: int, source: Source) -> int:
    """Where something begins, so that all of it has addresses."""
    if base + size > ADDRESSES:
        raise source.wrong("base", f"must be at most {ADDRESSES - size}, found {base}")
    return base


def _alias(
    part: AliasPart, memories: Mapping[str, Memory], harts: Mapping[str, HartGroupModel], source: Source
) -> AliasModel:
    size = memories[source.one_of("memory", part.memory, memories)].length
    group = source.one_of("harts", part.harts, harts) if part.harts else ""
    return AliasModel(part.memory, _placed(part.base, size, source), size, bool(part.test_and_set), group)


def _pipeline(given: Numbers, source: Source) -> Numbers:
    least = {
        **dict.fromkeys(INSTRUCTION_CLASSES, 1),
        **dict.fromkeys(PIPELINE_EXTRAS, -MOST_CYCLES),  # what is added may make an instruction shorter
        **dict.fromkeys(FINER_CLASSES, 1),
        **dict.fromkeys((f"{name}_use" for name in (*INSTRUCTION_CLASSES, *FINER_CLASSES)), 0),
        **dict.fromkeys(PIPELINE_FLAGS, 0),
    }
    for name, cycles in given.items():
        if name not in least:
            raise source.wrong(name, unknown(name, least))
        if cycles < least[name]:
            raise source.wrong(name, f"must be at least {least[name]}, found {cycles}")
    for name in (*INSTRUCTION_CLASSES, *PIPELINE_EXTRAS):
        if name not in given:
            raise source.wrong(name, "is missing")
    return MappingProxyType(dict(given))


def _harts(
    name: str,
    part: HartsPart,
    memories: Mapping[str, Memory],
    pipelines: Mapping[str, Numbers],
    places: Mapping[str, object],
    source: Source,
) -> HartGroupModel:
    for place in part.cycles:
        if place not in places:
            raise source.wrong(f"cycles.{place}", "is neither a memory with a base nor a device or window")
    for place in (*memories, ALL_DEVICES):
        if place not in part.cycles:
            raise source.wrong(f"cycles.{place}", "is missing")
    fetch = part.fetch
    if fetch.shared_banks and not (fetch.shared_sets and fetch.shared_ways):
        raise source.wrong("fetch", "shared_sets and shared_ways must be at least 1 where there are shared_banks")
    if fetch.line_bytes & (fetch.line_bytes - 1):
        raise source.wrong("fetch.line_bytes", f"must be a power of two, found {fetch.line_bytes}")
    if fetch.outer_by and not (fetch.outer_sets and fetch.outer_ways):
        raise source.wrong("fetch", "outer_sets and outer_ways must be at least 1 where there is outer_by")
    pipeline = pipelines[source.one_of("pipeline", part.pipeline, pipelines)]
    near = memories[source.one_of("near", part.near, memories)]
    if part.tiles is not None and not pipeline.get("scoreboard"):
        raise source.wrong("tiles", "needs harts with a scoreboard")
    return HartGroupModel(
        name,
        part.count,
        part.first_id,
        part.extensions,
        near.name,
        bool(part.near_banks),
        bool(part.early_counters),
        (part.clock_numerator, part.clock_denominator),
        pipeline,
        MappingProxyType({key: int(number) for key, number in cast("dict[str, int]", structs.asdict(fetch)).items()}),
        MappingProxyType(dict(part.cycles)),
        part.outstanding_loads,
        tuple(_unit(key, unit, pipeline, source.inside(f"units.{key}")) for key, unit in part.units.items()),
        tile_numbers(part.tiles, part.count, near.banks, source.inside("tiles")),
    )


def _unit(name: str, part: UnitPart, pipeline: Numbers, source: Source) -> UnitModel:
    for kind in part.instructions:
        source.one_of("instructions", kind, dict.fromkeys(INSTRUCTION_CLASSES))
        # So a hart that has a unit for itself never waits for it.
        if part.cycles > pipeline[kind]:
            raise source.wrong("cycles", f"must be 1 to {pipeline[kind]}, the cycles of {kind}, found {part.cycles}")
    if len(set(part.instructions)) < len(part.instructions):
        raise source.wrong("instructions", "must be a list of different names")
    return UnitModel(name, part.count, part.instructions, part.cycles, bool(part.round_robin))


def _device(
    name: str, given: Mapping[str, str | int], harts: Mapping[str, HartGroupModel], source: Source
) -> DeviceModel:
    left = dict(given)
    part = read(DevicePart, {key: left.pop(key) for key in ("kind", "base", "size", "harts") if key in left}, source)
    settings: dict[str, int | str] = {}
    if part.harts:
        # A device that belongs to harts is told which: their first, how many, and the number of their group.
        order = list(harts)
        index = order.index(source.one_of("harts", part.harts, harts))
        settings["first_hart"] = sum(harts[other].count for other in order[:index])
        settings["harts"] = harts[part.harts].count
        settings["group"] = index
    base = _placed(part.base, part.size, source)
    return DeviceModel(name, part.kind, base, part.size, MappingProxyType(settings | left))


class DevicePart(Part, frozen=True, kw_only=True):
    """What every device has."""

    kind: str
    """What the simulator calls its kind."""
    base: ADDRESS = 0
    """Where its registers begin."""
    size: Annotated[int, Meta(ge=0, le=ADDRESSES - 1)] = 0
    """Bytes of them; 0 where it has none."""
    harts: str = ""
    """The group that it belongs to, where it belongs to one."""


def _window(part: WindowPart, devices: Mapping[str, object], source: Source) -> WindowModel:
    device = source.one_of("device", part.device, devices)
    return WindowModel(part.name, device, _placed(part.base, part.size, source), part.size, part.offset)
