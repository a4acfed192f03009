"""ZigZag's accelerator files: both forms of ports, and what its own parser drops without a word."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import cast

from tilewright.base import descriptions
from tilewright.base.files import is_file
from tilewright.base.reader import Reader
from tilewright.errors import TilewrightError
from tilewright.machine.array import (
    FROM_HIGH,
    FROM_LOW,
    TO_HIGH,
    TO_LOW,
    ArrayEngine,
    InMemoryCompute,
    MemoryLevel,
    Port,
)

DIRECTION = {"tl": TO_LOW, "fl": FROM_LOW, "th": TO_HIGH, "fh": FROM_HIGH}


def load_yaml(path: Path) -> tuple[object, tuple[str, ...]]:
    """A YAML file in which the last of equal keys wins, and a warning for each that another one replaces."""
    if not is_file(path):
        raise TilewrightError("missing-file", f"{path} does not exist", help="name a YAML file of ZigZag's")
    data, repeated = descriptions.load_yaml(path, "bad-platform")
    return data, tuple(f"{path.name}:{said}" for said in repeated)


def listed(data: object, path: Path) -> list[object]:
    """The items of a file that is a list; an empty file has none."""
    if data is not None and not isinstance(data, list):
        raise TilewrightError("bad-platform", f"{path.name}: must be a list", help=f"change it in '{path}'")
    return cast("list[object]", data or [])


def read_machine(path: Path) -> tuple[ArrayEngine, tuple[str, ...]]:
    """The machine of an accelerator file, and warnings."""
    data, warnings = load_yaml(path)
    top = Reader(path, data)
    array = top.part("operational_array")
    sizes = array.integers("sizes", 1)
    names = array.names("dimensions")
    if len(sizes) != len(names):
        raise array.wrong("sizes", f"has {len(sizes)} entries for {len(names)} dimensions")
    memories = tuple(_memory(name, part, tuple(names)) for name, part in top.parts("memories").items())
    imc = _imc(array)
    return ArrayEngine(
        name=top.text("name"),
        dims=MappingProxyType(dict(zip(names, sizes, strict=True))),
        memories=memories,
        unit_energy=array.number("unit_energy") if array.has("unit_energy") else 0.0,
        unit_area=array.number("unit_area") if array.has("unit_area") else 0.0,
        cycles=imc.activation_bits // imc.serial_bits if imc else 1,
        compute_in_memory=imc,
    ), warnings


def _imc(array: Reader) -> InMemoryCompute | None:
    if not array.has("is_imc") or not array.flag("is_imc"):
        return None
    bits = array.integers("input_precision", 1)
    if len(bits) != 2:
        raise array.wrong("input_precision", f"must be bits of activations and of weights, found {len(bits)} numbers")
    activation, weight = bits
    return InMemoryCompute(
        analog=array.text("imc_type") == "analog",
        activation_bits=activation,
        weight_bits=weight,
        serial_bits=array.integer("bit_serial_precision", 1),
        adc_bits=array.integer("adc_resolution") if array.has("adc_resolution") else 0,
    )


def _memory(name: str, part: Reader, dims: tuple[str, ...]) -> MemoryLevel:
    slots = tuple(part.names("operands"))
    serves = tuple(part.names("served_dimensions"))
    for dim in serves:
        if dim not in dims:
            raise part.wrong("served_dimensions", f"'{dim}' is not a dimension of the array ({', '.join(dims)})")
    extracted = part.has("auto_cost_extraction") and part.flag("auto_cost_extraction")
    return MemoryLevel(
        name=name,
        bits=part.integer("size", 1),
        slots=slots,
        ports=_ports(part, slots),
        serves=tuple(dim for dim in dims if dim in serves),
        read_energy=_cost(part, "r_cost", extracted),
        write_energy=_cost(part, "w_cost", extracted),
        area=_cost(part, "area", extracted),
        kind=part.text("mem_type") if part.has("mem_type") else "sram",
        double_buffered=part.has("force_double_buffering") and bool(part.flag("force_double_buffering")),
        extracted=extracted,
    )


def _cost(part: Reader, key: str, extracted: bool) -> float:
    if extracted and (not part.has(key) or part.empty(key)):
        return 0.0
    return part.number(key)


def _ports(part: Reader, slots: tuple[str, ...]) -> tuple[Port, ...]:
    items = part.items("ports")
    if items and not items[0].has("name"):
        return _old_ports(part, items, slots)
    found: list[Port] = []
    for item in items:
        most = _bandwidth(item, "bandwidth_max")
        least = _bandwidth(item, "bandwidth_min") if item.has("bandwidth_min") else most
        moves = tuple(_move(item, text) for text in item.strings("allocation"))
        used = tuple((slot, direction) for slot, direction in moves if slot in slots)
        if used:
            found.append(Port(item.text("name"), item.text("type"), most, least, used))
    return tuple(found)


def _bandwidth(item: Reader, key: str) -> int:
    if not item.has(key):
        raise item.wrong(key, "is missing: a port needs a bandwidth in bits per cycle")
    return item.integer(key, 1)


def _move(item: Reader, text: str) -> tuple[str, str]:
    slot, _, direction = (part.strip() for part in text.partition(","))
    if direction not in DIRECTION:
        raise item.wrong("allocation", f"'{text}' is not an operand with one of {', '.join(DIRECTION)}")
    return slot, DIRECTION[direction]


def _old_ports(part: Reader, items: list[Reader], slots: tuple[str, ...]) -> tuple[Port, ...]:
    """Ports of the older form: for each operand the port of each direction, with bandwidths of the whole memory."""
    moves: dict[str, list[tuple[str, str]]] = {}
    if len(items) != len(slots):
        raise part.wrong("ports", f"has {len(items)} entries for {len(slots)} operands")
    for slot, item in zip(slots, items, strict=True):
        for short, direction in DIRECTION.items():
            if item.has(short):
                moves.setdefault(item.text(short), []).append((slot, direction))
    found: list[Port] = []
    for name in sorted(moves):
        kind = "read_write" if name.startswith("rw") else "read" if name.startswith("r") else "write"
        side = "w" if kind == "write" else "r"
        most = _bandwidth(part, f"{side}_bw")
        least = part.integer(f"min_{side}_granularity", 1) if part.has(f"min_{side}_granularity") else most
        found.append(Port(name, kind, most, least, tuple(moves[name])))
    return tuple(found)
