"""Array engines in descriptions (`kind: array`): read into an `ArrayEngine`, and written from one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field
from msgspec.structs import fields

from tilewright.base.schema import NAME, Flag, Number, Part, Source
from tilewright.machine.array import (
    DIRECTIONS,
    FROM_LOW,
    READS,
    TO_LOW,
    ArrayEngine,
    InMemoryCompute,
    MemoryLevel,
    Port,
)
from tilewright.machine.parts import AccessEnergy

MOST = 2**40
"""Bits of a memory, cycles or units of an array."""
MODELLED = "modelled"
"""In place of energies: the memory model works them out."""
OUTPUT = "O"
"""The slot of results."""
FINAL = "final"
"""Beside the slots in `bits`: of outputs that are summed up."""
ENGINE = "array"
"""What the engine of a machine is called that has just one."""

SOME = Annotated[int, Meta(ge=1, le=MOST)]
CYCLES = Annotated[int, Meta(ge=0, le=MOST)]


def _default(kind: type[Struct], name: str) -> Any:
    """What a value takes for a field that is not given: files leave away the same."""
    return next(each.default for each in fields(kind) if each.name == name)


class PortPart(Part, frozen=True, kw_only=True):
    """A port of a memory."""

    name: str = field(name=NAME)
    kind: Literal["read", "write", "read_write"]
    """What crosses it."""
    bits: SOME
    """Bits that cross it in a cycle."""
    granularity: SOME | None = None
    """Bits of the smallest access, of which an access costs its share; all of them where nothing is said."""
    moves: tuple[str, ...]
    """Operands with directions: `I1 to low`, `O from low`, `O to high`, `I2 from high`."""
    setup: CYCLES = _default(Port, "setup")
    """Cycles of each transfer before its first bit."""
    exclusive: Flag = _default(Port, "exclusive")
    """Whether the array waits while something crosses it."""


class LevelPart(Part, frozen=True, kw_only=True):
    """A memory of an array; there is one copy of it for each unit along the dimensions that it does not serve."""

    name: str = field(name=NAME)
    bits: SOME
    """Its size."""
    holds: tuple[str, ...]
    """The operands that it holds: `I1`, `I2`, `O` or other names, to which layers assign theirs."""
    serves: tuple[str, ...]
    """Dimensions of the array along which one copy serves all units."""
    ports: Mapping[str, PortPart]
    """Its ports."""
    energy: AccessEnergy | Literal["modelled"]
    """Picojoules of a full word of a port, or `modelled`: the memory model works them out."""
    area: Number = _default(MemoryLevel, "area")
    """Its area."""
    kind: str = _default(MemoryLevel, "kind")
    """`sram`, `rf` or `dram`."""
    double_buffered: Flag = _default(MemoryLevel, "double_buffered")
    """Whether it keeps two halves, so that a tile may use half of it."""


class InMemoryPart(Part, frozen=True, kw_only=True):
    """What an array is that computes inside of its memory cells."""

    analog: Flag
    """Whether it multiplies in the analog domain."""
    activation_bits: SOME
    """Of an activation."""
    weight_bits: SOME
    """Of a weight."""
    serial_bits: SOME
    """Bits of an activation that enter at a time."""
    adc_bits: CYCLES = _default(InMemoryCompute, "adc_bits")
    """Of the converters of an analog array."""


class ArrayPart(Part, frozen=True, kw_only=True, tag_field="kind", tag=ENGINE):
    """An array of units that multiply and add, with its memories."""

    name: str = field(name=NAME)
    dims: Mapping[str, SOME]
    """Its dimensions with their sizes."""
    memories: Mapping[str, LevelPart]
    """From the array outwards: of two that hold the same operand, the inner one comes first."""
    unroll: Mapping[str, tuple[str, ...]] = {}
    """By dimension: which dimensions of a layer may be unrolled along it, by the operands that they index (`I1 O`); any
    where nothing is said."""
    bits: Mapping[str, SOME] = {}
    """By operand: bits that the units take at most; `final` of outputs that are summed up."""
    cycles: SOME | None = None
    """Of one operation; 1 where nothing is said, or as many as the bits of an activation need to enter."""
    setup: CYCLES = _default(ArrayEngine, "setup")
    """Cycles before each operation in which it does nothing else."""
    serial: tuple[str, ...] = _default(ArrayEngine, "serial")
    """Dimensions whose units take turns: an operation takes its cycles for each of those in use."""
    unit_energy: Number = _default(ArrayEngine, "unit_energy")
    """Picojoules of one multiply-accumulate."""
    unit_area: Number = _default(ArrayEngine, "unit_area")
    """Area of one unit."""
    dataflow: Mapping[str, Mapping[str, SOME]] = {}
    """By dimension: dimensions of a layer that are unrolled along it, by name, with the units that they take at most.
    It is for layers that have some of them; others are unrolled as `unroll` says."""
    shares: str = _default(ArrayEngine, "shares")
    """Another engine with the same outermost memories: there is one of each for both."""
    in_memory: InMemoryPart | None = None
    """What it is where it computes inside of its memory cells."""


def array_engine(name: str, part: ArrayPart, source: Source) -> ArrayEngine:
    """The engine that a part describes."""
    dims = dict(part.dims)
    if not dims:
        raise source.wrong("dims", "must name at least one dimension")
    if not part.memories:
        raise source.wrong("memories", "must name at least one memory")
    memories = tuple(_level(level, dims, source.inside(f"memories.{key}")) for key, level in part.memories.items())
    slots = frozenset(slot for memory in memories for slot in memory.slots)
    imc = _in_memory(part.in_memory, source.inside("in_memory")) if part.in_memory else None
    _among(part.serial, dims, "serial", source)
    _among(tuple(part.dataflow), dims, "dataflow", source)
    return ArrayEngine(
        name=name,
        dims=MappingProxyType(dims),
        memories=memories,
        unit_energy=part.unit_energy,
        unit_area=part.unit_area,
        cycles=part.cycles or _usual_cycles(imc),
        setup=part.setup,
        serial=part.serial,
        dataflow=MappingProxyType({array: tuple(loops.items()) for array, loops in part.dataflow.items()}),
        shares=part.shares,
        compute_in_memory=imc,
        wiring=MappingProxyType(_wiring(part, dims, slots, source)),
        precision=MappingProxyType(_precision(part, slots, source)),
    )


def _usual_cycles(imc: InMemoryCompute | None) -> int:
    """Of one operation: as many as the bits of an activation need to enter."""
    return imc.activation_bits // imc.serial_bits if imc else _default(ArrayEngine, "cycles")


def _among(names: tuple[str, ...], dims: Mapping[str, int], key: str, source: Source) -> None:
    for name in names:
        if name not in dims:
            raise source.wrong(key, f"'{name}' is not a dimension of the array ({', '.join(dims)})")
    _different(names, key, source)


def _different(names: tuple[str, ...], key: str, source: Source) -> None:
    if len(set(names)) < len(names):
        raise source.wrong(key, f"must be a list of different names, found {', '.join(names)}")


def _wiring(
    part: ArrayPart, dims: Mapping[str, int], slots: frozenset[str], source: Source
) -> dict[str, tuple[frozenset[str], ...]]:
    found: dict[str, tuple[frozenset[str], ...]] = {}
    for name, texts in part.unroll.items():
        if name not in dims:
            raise source.wrong(f"unroll.{name}", f"is not a dimension of the array ({', '.join(dims)})")
        found[name] = tuple(frozenset(text.split()) for text in texts)
        for slot in sorted(frozenset[str]().union(*found[name]) - slots):
            raise source.wrong(f"unroll.{name}", f"no memory holds '{slot}' (operands: {', '.join(sorted(slots))})")
    return found


def _precision(part: ArrayPart, slots: frozenset[str], source: Source) -> dict[str, int]:
    for name in part.bits:
        if name not in slots and name != FINAL:
            raise source.wrong(f"bits.{name}", f"is neither '{FINAL}' nor an operand ({', '.join(sorted(slots))})")
    return dict(part.bits)


def _in_memory(part: InMemoryPart, source: Source) -> InMemoryCompute:
    if part.analog and not part.adc_bits:
        raise source.wrong("adc_bits", "is missing: an analog array needs converters")
    return InMemoryCompute(bool(part.analog), part.activation_bits, part.weight_bits, part.serial_bits, part.adc_bits)


def _level(part: LevelPart, dims: Mapping[str, int], source: Source) -> MemoryLevel:
    _among(part.serves, dims, "serves", source)
    _different(part.holds, "holds", source)
    energy = part.energy if isinstance(part.energy, AccessEnergy) else None
    found = MemoryLevel(
        name=part.name,
        bits=part.bits,
        slots=part.holds,
        ports=tuple(_port(port, part.holds, source.inside(f"ports.{key}")) for key, port in part.ports.items()),
        serves=tuple(dim for dim in dims if dim in part.serves),
        read_energy=energy.read if energy else _default(MemoryLevel, "read_energy"),
        write_energy=energy.write if energy else _default(MemoryLevel, "write_energy"),
        area=part.area,
        kind=part.kind,
        double_buffered=bool(part.double_buffered),
        extracted=energy is None,
    )
    for slot in found.slots:
        way = FROM_LOW if slot == OUTPUT else TO_LOW
        if found.port(slot, way) is None:
            raise source.wrong("ports", f"none moves '{slot} {way}', so what it holds of {slot} is of no use")
    return found


def _port(part: PortPart, slots: tuple[str, ...], source: Source) -> Port:
    granularity = part.granularity or part.bits
    if granularity > part.bits:
        raise source.wrong("granularity", f"is more than the {part.bits} bits of the port")
    moves = tuple(_move(text, part.kind, slots, source) for text in part.moves)
    return Port(part.name, part.kind, part.bits, granularity, moves, setup=part.setup, exclusive=bool(part.exclusive))


def _move(text: str, kind: str, slots: tuple[str, ...], source: Source) -> tuple[str, str]:
    slot, _, direction = text.partition(" ")
    if direction not in DIRECTIONS:
        raise source.wrong("moves", f"'{text}' is not an operand with one of: {', '.join(DIRECTIONS)}")
    if slot not in slots:
        raise source.wrong("moves", f"the memory does not hold '{slot}' (it holds {', '.join(slots)})")
    if kind != "read_write" and (kind == "read") != (direction in READS):
        raise source.wrong("moves", f"'{text}' cannot cross a {kind} port")
    return slot, direction


def _pairs(loops: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{dim}: {units}" for dim, units in loops)


def engine_lines(engine: ArrayEngine) -> Iterator[str]:
    """What a file says about an engine."""
    yield f"kind: {ENGINE}"
    yield f"dims: {_flow(engine.dims)}"
    if engine.wiring:
        yield "unroll: # dimensions of layers by the operands that they index"
        for name, sets in engine.wiring.items():
            yield f"  {name}: [{', '.join(' '.join(sorted(some)) for some in sets)}]"
    if engine.precision:
        yield f"bits: {_flow(engine.precision)}"
    if engine.cycles != _usual_cycles(engine.compute_in_memory):
        yield f"cycles: {engine.cycles} # of an operation"
    if engine.setup:
        yield f"setup: {engine.setup} # cycles before each operation"
    if engine.dataflow:
        flows = (f"{array}: {{{_pairs(loops)}}}" for array, loops in engine.dataflow.items())
        yield f"dataflow: {{{', '.join(flows)}}} # dimensions of layers by name"
    if engine.shares:
        yield f"shares: {engine.shares} # its outermost memories"
    if engine.serial:
        yield f"serial: [{', '.join(engine.serial)}] # units along these take turns"
    yield f"unit_energy: {engine.unit_energy:g} # pJ of a multiply-accumulate"
    yield f"unit_area: {engine.unit_area:g}"
    if engine.compute_in_memory is not None:
        yield f"in_memory: {_flow(_in_memory_values(engine.compute_in_memory))}"
    yield "memories: # from the array outwards; sizes in bits, energies in pJ of a word as wide as its port"
    for memory in engine.memories:
        yield from _memory_lines(memory)


def _in_memory_values(imc: InMemoryCompute) -> dict[str, object]:
    values: dict[str, object] = {
        "analog": imc.analog,
        "activation_bits": imc.activation_bits,
        "weight_bits": imc.weight_bits,
        "serial_bits": imc.serial_bits,
    }
    if imc.adc_bits:
        values["adc_bits"] = imc.adc_bits
    return values


def _memory_lines(memory: MemoryLevel) -> Iterator[str]:
    yield f"  {memory.name}:"
    yield f"    bits: {memory.bits}"
    yield f"    kind: {memory.kind}"
    yield f"    holds: [{', '.join(memory.slots)}]"
    yield f"    serves: [{', '.join(memory.serves)}]"
    if memory.extracted:
        yield f"    energy: {MODELLED}"
    else:
        yield f"    energy: {{read: {memory.read_energy:g}, write: {memory.write_energy:g}}}"
    if memory.area:
        yield f"    area: {memory.area:g}"
    if memory.double_buffered:
        yield "    double_buffered: true"
    yield "    ports:"
    for port in memory.ports:
        moves = ", ".join(f"{slot} {direction}" for slot, direction in port.moves)
        more = f"granularity: {port.granularity}, " if port.granularity != port.bits else ""
        more += f"setup: {port.setup}, " if port.setup else ""
        more += "exclusive: true, " if port.exclusive else ""
        yield f"      {port.name}: {{kind: {port.kind}, bits: {port.bits}, {more}moves: [{moves}]}}"


def _flow(values: Mapping[str, object]) -> str:
    shown = (f"{key}: {str(value).lower() if isinstance(value, bool) else value}" for key, value in values.items())
    return "{" + ", ".join(shown) + "}"
