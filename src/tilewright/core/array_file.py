"""Descriptions of array machines (`kind: array`): YAML read into an `ArrayEngine`, and written from one.

The machines that come with the package are files in `machines/`; a path to a file of one's own works the same way.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import yaml

from tilewright.core.accelerator import (
    DIRECTIONS,
    FROM_LOW,
    PORT_KINDS,
    READS,
    TO_LOW,
    ArrayEngine,
    InMemoryCompute,
    MemoryLevel,
    Port,
)
from tilewright.core.descriptions import read_yaml, stem_of
from tilewright.core.reader import Reader
from tilewright.errors import TilewrightError

MACHINES = Path(__file__).parent.parent / "machines"
KIND = "array"
MOST = 2**40
"""Bits of a memory, cycles or units of an array."""
MODELLED = "modelled"
"""In place of energies: the memory model works them out."""
OUTPUT = "O"
"""The slot of results."""
FINAL = "final"
"""Beside the slots in `bits`: of outputs that are summed up."""


def machine_names() -> tuple[str, ...]:
    """The machines that come with the package."""
    return tuple(sorted(path.stem for path in MACHINES.glob("*.yaml")))


def load_machine(name: str | Path) -> ArrayEngine:
    """The machine of a name or of a file."""
    path = MACHINES / f"{name}.yaml"
    if isinstance(name, Path) or not path.is_file():
        path = Path(name)
    if path.is_file():
        return read_machine_file(path)
    near = difflib.get_close_matches(str(name), machine_names(), 1)
    meant = f"did you mean '{near[0]}'? " if near else ""
    raise TilewrightError(
        "unknown-machine",
        f"there is no machine '{name}', and no file of that name",
        help=f"{meant}machines: {', '.join(machine_names())}; or the path of a YAML file with kind: {KIND}",
    )


def read_machine_file(path: Path) -> ArrayEngine:
    """The machine that a file describes."""
    top = Reader(path, read_yaml(path, "bad-machine"), code="bad-machine")
    if not top.has("kind") and top.has("operational_array"):
        raise TilewrightError(
            "bad-machine",
            f"{path.name} is a description for ZigZag",
            help=f"tilewright import zigzag {path.name} -o machine.yaml makes one of it that can be read here",
        )
    if top.text("kind") != KIND:
        raise top.wrong("kind", f"must be '{KIND}', found '{top.text('kind')}'")
    array = top.part("array")
    dims = _dims(array)
    memories = tuple(_memory(name, part, dims) for name, part in top.parts("memories").items())
    if not memories:
        raise top.wrong("memories", "must name at least one memory")
    slots = frozenset(slot for memory in memories for slot in memory.slots)
    imc = _in_memory(array.part("in_memory")) if array.has("in_memory") else None
    engine = ArrayEngine(
        name=top.text("name") if top.has("name") else stem_of(path),
        dims=MappingProxyType(dims),
        memories=memories,
        unit_energy=_number(array, "unit_energy"),
        unit_area=_number(array, "unit_area"),
        cycles=_cycles(array, imc),
        setup=array.integer("setup", 0, MOST) if array.has("setup") else 0,
        serial=_serial(array, dims),
        compute_in_memory=imc,
        wiring=MappingProxyType(_wiring(array, dims, slots)),
        precision=MappingProxyType(_precision(array, slots)),
        summary=top.text("summary") if top.has("summary") else "",
        provenance=top.text("provenance") if top.has("provenance") else "",
    )
    array.finish()
    top.finish()
    return engine


def _number(part: Reader, key: str) -> float:
    return part.number(key) if part.has(key) else 0.0


def _positive(part: Reader, key: str) -> int:
    return part.integer(key, 1, MOST)


def _dims(array: Reader) -> dict[str, int]:
    part = array.part("dims")
    dims = {name: _positive(part, name) for name in array.mapping("dims")}
    if not dims:
        raise array.wrong("dims", "must name at least one dimension")
    return dims


def _cycles(array: Reader, imc: InMemoryCompute | None) -> int:
    """Of one operation: said, or as many as the bits of an activation need to enter."""
    if array.has("cycles"):
        return _positive(array, "cycles")
    return imc.activation_bits // imc.serial_bits if imc else 1


def _serial(array: Reader, dims: Mapping[str, int]) -> tuple[str, ...]:
    found = tuple(array.names("serial")) if array.has("serial") else ()
    for name in found:
        if name not in dims:
            raise array.wrong("serial", f"'{name}' is not a dimension of the array ({', '.join(dims)})")
    return found


def _wiring(array: Reader, dims: Mapping[str, int], slots: frozenset[str]) -> dict[str, tuple[frozenset[str], ...]]:
    if not array.has("unroll"):
        return {}
    part = array.part("unroll")
    found: dict[str, tuple[frozenset[str], ...]] = {}
    for name in array.mapping("unroll"):
        if name not in dims:
            raise array.wrong(f"unroll.{name}", f"is not a dimension of the array ({', '.join(dims)})")
        sets = tuple(frozenset(text.split()) for text in part.strings(name))
        for slot in sorted(frozenset[str]().union(*sets) - slots):
            raise array.wrong(f"unroll.{name}", f"no memory holds '{slot}' (operands: {', '.join(sorted(slots))})")
        found[name] = sets
    return found


def _precision(array: Reader, slots: frozenset[str]) -> dict[str, int]:
    if not array.has("bits"):
        return {}
    part = array.part("bits")
    for name in array.mapping("bits"):
        if name not in slots and name != FINAL:
            raise array.wrong(f"bits.{name}", f"is neither '{FINAL}' nor an operand ({', '.join(sorted(slots))})")
    return {name: _positive(part, name) for name in array.mapping("bits")}


def _in_memory(part: Reader) -> InMemoryCompute:
    analog = part.flag("analog")
    found = InMemoryCompute(
        analog=analog,
        activation_bits=_positive(part, "activation_bits"),
        weight_bits=_positive(part, "weight_bits"),
        serial_bits=_positive(part, "serial_bits"),
        adc_bits=_positive(part, "adc_bits") if part.has("adc_bits") else 0,
    )
    if analog and not found.adc_bits:
        raise part.wrong("adc_bits", "is missing: an analog array needs converters")
    part.finish()
    return found


def _memory(name: str, part: Reader, dims: Mapping[str, int]) -> MemoryLevel:
    slots = tuple(part.names("holds"))
    serves = part.names("serves")
    for dim in serves:
        if dim not in dims:
            raise part.wrong("serves", f"'{dim}' is not a dimension of the array ({', '.join(dims)})")
    modelled = part.has("energy") and part.value("energy") == MODELLED
    energy = {} if modelled else {key: part.part("energy").number(key) for key in ("read", "write")}
    found = MemoryLevel(
        name=name,
        bits=_positive(part, "bits"),
        slots=slots,
        ports=tuple(_port(port, item, slots) for port, item in part.parts("ports").items()),
        serves=tuple(dim for dim in dims if dim in serves),
        read_energy=energy.get("read", 0.0),
        write_energy=energy.get("write", 0.0),
        area=_number(part, "area"),
        kind=part.text("kind") if part.has("kind") else "sram",
        double_buffered=part.has("double_buffered") and part.flag("double_buffered"),
        extracted=modelled,
    )
    for slot in slots:
        way = FROM_LOW if slot == OUTPUT else TO_LOW
        if found.port(slot, way) is None:
            raise part.wrong("ports", f"none moves '{slot} {way}', so what it holds of {slot} is of no use")
    part.finish()
    return found


def _port(name: str, item: Reader, slots: tuple[str, ...]) -> Port:
    if not item.has("bits"):
        raise item.wrong("bits", "is missing: a port needs a bandwidth in bits per cycle")
    bits = _positive(item, "bits")
    kind = item.text("kind")
    if kind not in PORT_KINDS:
        raise item.wrong("kind", f"must be one of {', '.join(PORT_KINDS)}, found '{kind}'")
    granularity = _positive(item, "granularity") if item.has("granularity") else bits
    if granularity > bits:
        raise item.wrong("granularity", f"is more than the {bits} bits of the port")
    moves = tuple(_move(item, text, kind, slots) for text in item.strings("moves"))
    setup = item.integer("setup", 0, MOST) if item.has("setup") else 0
    exclusive = item.has("exclusive") and item.flag("exclusive")
    item.finish()
    return Port(name, kind, bits, granularity, moves, setup=setup, exclusive=exclusive)


def _move(item: Reader, text: str, kind: str, slots: tuple[str, ...]) -> tuple[str, str]:
    slot, _, direction = text.partition(" ")
    if direction not in DIRECTIONS:
        raise item.wrong("moves", f"'{text}' is not an operand with one of: {', '.join(DIRECTIONS)}")
    if slot not in slots:
        raise item.wrong("moves", f"the memory does not hold '{slot}' (it holds {', '.join(slots)})")
    if kind != "read_write" and (kind == "read") != (direction in READS):
        raise item.wrong("moves", f"'{text}' cannot cross a {kind} port")
    return slot, direction


def print_machine(engine: ArrayEngine) -> str:
    """A machine as the text of a file."""
    return "\n".join(_lines(engine)) + "\n"


def _lines(engine: ArrayEngine) -> Iterator[str]:
    yield f"kind: {KIND}"
    yield f"name: {engine.name}"
    for key, text in (("summary", engine.summary), ("provenance", engine.provenance)):
        if text:
            yield f"{key}: {_quoted(text)}"
    yield "array:"
    yield f"  dims: {_flow(engine.dims)}"
    if engine.wiring:
        yield "  unroll: # dimensions of layers by the operands that they index"
        for name, sets in engine.wiring.items():
            yield f"    {name}: [{', '.join(' '.join(sorted(some)) for some in sets)}]"
    if engine.precision:
        yield f"  bits: {_flow(engine.precision)}"
    usual = engine.compute_in_memory
    if engine.cycles != (usual.activation_bits // usual.serial_bits if usual else 1):
        yield f"  cycles: {engine.cycles} # of an operation"
    if engine.setup:
        yield f"  setup: {engine.setup} # cycles before each operation"
    if engine.serial:
        yield f"  serial: [{', '.join(engine.serial)}] # units along these take turns"
    yield f"  unit_energy: {engine.unit_energy:g} # pJ of a multiply-accumulate"
    yield f"  unit_area: {engine.unit_area:g}"
    if engine.compute_in_memory is not None:
        yield f"  in_memory: {_flow(_in_memory_values(engine.compute_in_memory))}"
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


def _quoted(text: str) -> str:
    return yaml.safe_dump(text, width=10**6, allow_unicode=True, default_style='"').strip()


def _flow(values: Mapping[str, object]) -> str:
    shown = (f"{key}: {str(value).lower() if isinstance(value, bool) else value}" for key, value in values.items())
    return "{" + ", ".join(shown) + "}"
