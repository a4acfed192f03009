"""Stream's accelerator files: cores by their own files, and what connects them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import cast

from msgspec.structs import replace

from tilewright.base.files import is_file
from tilewright.base.reader import Reader
from tilewright.base.schema import Source, mapping
from tilewright.errors import TilewrightError
from tilewright.frontend.zigzag_machine import load_yaml, read_machine
from tilewright.machine.array import ArrayEngine
from tilewright.machine.channels import channels_of
from tilewright.machine.machine import Machine
from tilewright.machine.parts import AccessEnergy, Memory, Net

CORE = "core"
"""Before the number of a core, to make a name of it."""
INDEXES: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("B", "OX", "OY"), frozenset({"I1", "O"})),
    "K": frozenset({"I2", "O"}),
    **dict.fromkeys(("C", "FX", "FY"), frozenset({"I1", "I2"})),
    "G": frozenset({"I1", "I2", "O"}),
}
"""The operands that dimensions index, by the names that Stream has for them."""


def is_stream_machine(data: object) -> bool:
    """Whether a file is an accelerator of Stream's."""
    return {"cores", "offchip_core_id"} <= set(mapping(data))


def read_stream_machine(path: Path) -> tuple[Machine, tuple[str, ...]]:
    """The machine of an accelerator file, with cores as engines `core0`, `core1`, ..., and warnings.

    Energy of links is counted by bits: what Stream takes for a cycle is divided by the bits of a cycle.
    """
    data, warnings = load_yaml(path)
    given = dict(mapping(data))
    files = _files(path, given.pop("cores", None))
    top = Reader(path, given)
    home = top.integer("offchip_core_id")
    if home not in files:
        raise top.wrong("offchip_core_id", f"there is no core {home}")
    said = list(warnings)
    engines: dict[str, ArrayEngine] = {}
    memories: dict[str, Memory] = {}
    for number, file in files.items():
        name = f"{CORE}{number}"
        if number == home:
            memories[name] = _memory(name, file)
            continue
        engine, more = read_machine(file)
        said += more
        engines[name] = _with_flows(name, file, engine)
    nets = {f"{CORE}s {index}": net for index, net in enumerate(_nets(top))}
    places = [*engines, *memories]
    channels = channels_of(nets, places, Source(path, "bad-platform", "core_connectivity"))
    return Machine(
        name=top.text("name"),
        provenance=f"Stream accelerator file {path.name}",
        memories=MappingProxyType(memories),
        channels=MappingProxyType(channels),
        engines=MappingProxyType(engines),
        home=f"{CORE}{home}",
    ), tuple(said)


def _files(path: Path, cores: object) -> dict[int, Path]:
    """By number: the files of cores, given as a list or by number."""
    if isinstance(cores, list):
        items = dict(enumerate(cast("list[object]", cores)))
    else:
        items = cast("dict[object, object]", cores) if isinstance(cores, dict) else {}
    found: dict[int, Path] = {}
    for number, file in items.items():
        if not isinstance(number, int) or not isinstance(file, str):
            items = {}
            break
        found[number] = path.parent / file
        if not is_file(found[number]) and is_file(path.parent / "cores" / file):
            found[number] = path.parent / "cores" / file
    if not items:
        raise TilewrightError(
            "bad-platform", f"{path.name}: cores: must be files by number", help=f"change it in '{path}'"
        )
    return found


def _memory(name: str, file: Path) -> Memory:
    """The core outside of the chip has one memory, and an array without units."""
    data, _ = load_yaml(file)
    parts = Reader(file, data).parts("memories")
    part = next(iter(parts.values()), None)
    if part is None or len(parts) > 1:
        raise TilewrightError(
            "bad-platform", f"{file.name}: memories: must be one, outside of the chip", help=f"change it in '{file}'"
        )
    widths = [port.integer("bandwidth_max", 1) for port in part.items("ports") if port.has("bandwidth_max")]
    word = max(widths) if widths else part.integer("r_bw", 1)
    energy = AccessEnergy(read=part.number("r_cost"), write=part.number("w_cost"))
    return Memory(name=name, bytes=part.integer("size", 1) // 8, word=word, energy=energy)


def _flows(file: Path, engine: ArrayEngine) -> Iterator[tuple[str, str, int]]:
    """A core's dataflows: dimensions of its array, of layers, and units."""
    data, _ = load_yaml(file)
    flows = mapping(data).get("dataflows")
    for flow in cast("list[object]", flows) if isinstance(flows, list) else [flows]:
        for array, texts in mapping(flow).items():
            for text in cast("list[object]", texts) if isinstance(texts, list) else [texts]:
                dim, _, units = (part.strip() for part in str(text).partition(","))
                if array in engine.dims:
                    most = int(units) if units.isascii() and units.isdigit() and int(units[:9]) else engine.dims[array]
                    yield array, dim.upper(), min(most, engine.dims[array])


def _with_flows(name: str, file: Path, engine: ArrayEngine) -> ArrayEngine:
    """With what a core's dataflows allow along each dimension of its array; anything where it says nothing."""
    wiring: dict[str, tuple[frozenset[str], ...]] = {}
    dataflow: dict[str, tuple[tuple[str, int], ...]] = {}
    for array, dim, units in _flows(file, engine):
        dataflow[array] = (*dataflow.get(array, ()), (dim, units))
        if dim in INDEXES:
            wiring[array] = tuple(dict.fromkeys((*wiring.get(array, ()), INDEXES[dim])))
    return replace(engine, name=name, wiring=MappingProxyType(wiring), dataflow=MappingProxyType(dataflow))


def _nets(top: Reader) -> list[Net]:
    usual = top.number("unit_energy_cost") if top.has("unit_energy_cost") else 0.0
    found: list[Net] = []
    for index, item in enumerate(top.items("core_connectivity")):
        kind = item.text("type")
        if kind not in ("link", "bus"):
            raise item.wrong("type", f"must be link or bus, found '{kind}'")
        bits = item.integer("bandwidth", 1)
        energy = item.number("unit_energy_cost") if item.has("unit_energy_cost") else usual
        ends = tuple(f"{CORE}{number}" for number in item.integers("cores"))
        found.append(Net(name=f"{CORE}s {index}", kind=kind, ends=ends, bits=bits, energy=energy / bits))
    return found
