"""A machine: memories, links, engines and energy. Planner, mapping search and simulator read the same one.

It is described by a YAML file (docs/machines.md). Platforms are machines that networks can be compiled for; their
descriptions say more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml
from msgspec import Struct, field, structs

from tilewright.base.descriptions import read_yaml, stem_of
from tilewright.base.schema import Part, Source, mapping, merged, read
from tilewright.errors import TilewrightError
from tilewright.machine.array import ArrayEngine
from tilewright.machine.array_file import ENGINE, ArrayPart, array_engine, engine_lines
from tilewright.machine.channels import channels_of
from tilewright.machine.parts import Channel, Cores, Device, EnergyPart, EnergyTerm, Engine, Link, Memory, Net
from tilewright.machine.timing import SimulatorPart, Timing, read_timings

CYCLES = "cycles"
"""The unit of time of most machines."""


class Machine(Struct, frozen=True):
    """What a network may run on."""

    name: str
    summary: str = ""
    provenance: str = ""
    """Where its numbers are from."""
    memories: Mapping[str, Memory] = field(default_factory=lambda: MappingProxyType({}))
    links: Mapping[str, Link] = field(default_factory=lambda: MappingProxyType({}))
    channels: Mapping[str, Channel] = field(default_factory=lambda: MappingProxyType({}))
    """Ways for tensors between engines, where there are many with memories of their own."""
    engines: Mapping[str, Engine | ArrayEngine] = field(default_factory=lambda: MappingProxyType({}))
    home: str = ""
    """The memory of inputs, outputs and weights, on machines whose engine works in another one."""
    unit: str = CYCLES
    """What times are counted in."""
    timings: Mapping[str, Timing] = field(default_factory=lambda: MappingProxyType({}))
    """How the simulator runs it, the default first; none where there is no simulator for it."""
    energy: tuple[EnergyTerm, ...] = ()

    def link(self, source: str, target: str) -> Link | None:
        """What copies between two memories."""
        return next((d for d in self.links.values() if {*d.between} == {source, target}), None)


class MachineFile(Part, frozen=True, kw_only=True):
    """What a description says about a machine."""

    name: str = ""
    """Its name; that of the file where nothing is said."""
    summary: str = ""
    """What it is, in a line."""
    provenance: str = ""
    """Where its numbers are from."""
    unit: str = CYCLES
    """What times are counted in."""
    memories: Mapping[str, Memory] = {}
    """Its memories."""
    links: Mapping[str, Link] = {}
    """What copies between memories."""
    channels: Mapping[str, Net] = {}
    """Ways for tensors between engines with memories of their own, and to the memory at home."""
    engines: Mapping[str, Cores | Device | ArrayPart]
    """What computes; the first one runs programs, on machines that do."""
    home: str = ""
    """The memory of inputs, outputs and weights, where the first engine works in another one."""
    energy: Mapping[str, tuple[EnergyPart, ...]] = {}
    """By component: what costs energy, as the simulator counts it."""
    simulator: SimulatorPart | None = None
    """How the simulator runs it, where it does."""


def machine_values(data: Mapping[str, Any], file: MachineFile, name: str, source: Source) -> dict[str, Any]:
    """The fields of a `Machine` as a description has them."""
    memories = {key: _memory(memory, source.inside(f"memories.{key}")) for key, memory in file.memories.items()}
    if not file.engines:
        raise source.wrong("engines", "must name at least one engine")
    for key, link in file.links.items():
        _check_link(link, memories, source.inside(f"links.{key}"))
        if not link.by_cores and "bytes_per_cycle" not in data["links"][key]:
            # Of cores it is measured; nothing shows what a DMA takes but its description.
            raise source.wrong(f"links.{key}.bytes_per_cycle", "is missing")
    alone = len(file.engines) == 1
    engines = {
        key: _engine(name if alone else f"{name}/{key}", engine, memories, source.inside(f"engines.{key}"))
        for key, engine in file.engines.items()
    }
    near = next(iter(engines.values()))
    memory = near.memory if isinstance(near, Engine) else file.home
    if file.home not in ("", memory) and not any({file.home, memory} == {*d.between} for d in file.links.values()):
        raise source.wrong("home", f"'{file.home}' is not a memory with a DMA between it and {memory}")
    timings = (
        read_timings(data["simulator"], memories, source.inside("simulator")) if file.simulator is not None else {}
    )
    for key, engine in engines.items():
        if isinstance(engine, ArrayEngine) and engine.shares:
            _check_shared(engine, engines.get(engine.shares), source.inside(f"engines.{key}"))
    engines = {key: _driven(engine, timings, source.inside(f"engines.{key}")) for key, engine in engines.items()}
    known = {name for timing in timings.values() for name in timing.devices}
    for key, engine in engines.items():
        if isinstance(engine, Device) and engine.device and engine.device not in known:
            raise source.wrong(f"engines.{key}.device", f"the simulator has no device '{engine.device}'")
    return {
        "name": name,
        "summary": file.summary,
        "provenance": file.provenance,
        "memories": MappingProxyType(memories),
        "links": MappingProxyType(dict(file.links)),
        "channels": MappingProxyType(
            channels_of(file.channels, [*engines, *([file.home] * bool(file.home))], source.inside("channels"))
        ),
        "engines": MappingProxyType(engines),
        "home": file.home,
        "unit": file.unit,
        "timings": MappingProxyType(timings),
        "energy": tuple(
            EnergyTerm(component, term.activity, term.pj, term.basis)
            for component, terms in file.energy.items()
            for term in terms
        ),
    }


def _memory(memory: Memory, source: Source) -> Memory:
    """With the bytes that are for networks."""
    if memory.bytes is None:
        return memory
    if memory.reserved > memory.bytes:
        raise source.wrong("reserved", f"must not be more than its {memory.bytes} bytes, found {memory.reserved}")
    return structs.replace(memory, bytes=memory.bytes - memory.reserved, length=memory.bytes)


def _check_link(link: Link, memories: Mapping[str, Memory], source: Source) -> None:
    if any(name not in memories for name in link.between):
        raise source.wrong("between", f"must be two of {', '.join(memories)}, found {', '.join(link.between)}")
    if link.through and link.through not in memories:
        raise source.wrong("through", f"'{link.through}' is not among memories ({', '.join(memories)})")


def _engine(
    name: str, engine: Engine | ArrayPart, memories: Mapping[str, Memory], source: Source
) -> Engine | ArrayEngine:
    if isinstance(engine, ArrayPart):
        return array_engine(name, engine, source)
    for memory in (engine.memory, *engine.reads):
        if memory not in memories:
            raise source.wrong("memory", f"'{memory}' is not among memories ({', '.join(memories)})")
    return engine


def _check_shared(engine: ArrayEngine, other: Engine | ArrayEngine | None, source: Source) -> None:
    if not isinstance(other, ArrayEngine) or other is engine or other.shares:
        raise source.wrong("shares", f"'{engine.shares}' is not another array with memories of its own")
    mine, others = ({slot: each.levels(slot)[-1] for slot in each.slots} for each in (engine, other))
    for slot, level in mine.items():
        if slot not in others or (others[slot].name, others[slot].bits) != (level.name, level.bits):
            wanted = f"'{level.name}' of {level.bits} bits for {slot}"
            raise source.wrong("shares", f"'{engine.shares}' has no memory {wanted}")


def _driven(engine: Engine | ArrayEngine, timings: Mapping[str, Timing], source: Source) -> Engine | ArrayEngine:
    """Cores with the one that drives, which stays the same when fewer of them compute."""
    if not isinstance(engine, Cores):
        return engine
    harts = min((t.harts[engine.name].count for t in timings.values() if engine.name in t.harts), default=engine.count)
    drives = (engine.count if harts > engine.count else 0) if engine.drives is None else engine.drives
    if drives >= harts:
        raise source.wrong("drives", f"must be less than {harts}, the number of harts, found {drives}")
    return structs.replace(engine, drives=drives)


def read_machine_file(path: Path) -> Machine:
    """The machine that a file describes."""
    source = Source(path, "bad-machine")
    data = read_yaml(path, source.code)
    if "operational_array" in mapping(data) and "engines" not in mapping(data):
        raise TilewrightError(
            "bad-machine",
            f"{path.name} is a description for ZigZag",
            help=f"tilewright import zigzag {path.name} -o machine.yaml makes one of it that can be read here",
        )
    given = renewed(data)
    file = read(MachineFile, given, source)
    return Machine(**machine_values(mapping(given), file, file.name or stem_of(path), source))


def renewed(data: object) -> object:
    """A description in the form of today. Before, an array stood beside its memories, devices were arrays as well,
    links were DMAs, and what the simulator asks of memories stood in its own part."""
    given = dict(mapping(data))
    if given.get("kind") == ENGINE:
        more = {"memories": given.pop("memories")} if "memories" in given else {}
        engine = {**mapping(given.pop("array", None)), **more, "kind": given.pop("kind")}
        return {**given, "engines": {ENGINE: engine}}
    if "dmas" in given:
        given["links"] = given.pop("dmas")
    if "memories" in mapping(given.get("simulator")):
        given["simulator"] = dict(given["simulator"])
        given["memories"] = merged(mapping(given.get("memories")), mapping(given["simulator"].pop("memories")))
    if isinstance(given.get("engines"), dict):
        given["engines"] = {key: _device(engine) for key, engine in mapping(given["engines"]).items()}
    return given or data


def _device(engine: object) -> object:
    part = mapping(engine)
    is_device = part.get("kind") == ENGINE and "memory" in part and "dims" not in part
    return {**part, "kind": "device"} if is_device else engine


def print_machine(machine: Machine) -> str:
    """A machine of arrays as the text of a file."""
    lines = [f"name: {machine.name}"]
    lines += [f"{key}: {_quoted(text)}" for key in ("summary", "provenance") if (text := getattr(machine, key))]
    lines += [*_home_lines(machine), "engines:"]
    for key, engine in machine.engines.items():
        if isinstance(engine, ArrayEngine):
            lines += [f"  {key}:", *(f"    {line}" for line in engine_lines(engine))]
    return "\n".join(lines) + "\n"


def _home_lines(machine: Machine) -> Iterator[str]:
    """Of a machine with many engines: its memory, and the channels."""
    if not machine.channels:
        return
    yield f"home: {machine.home}"
    yield "memories: # words in bits, energies in pJ of a word"
    for name, memory in machine.memories.items():
        size = f"bytes: {memory.bytes}, " if memory.bytes is not None else ""
        energy = f"{{read: {memory.energy.read:g}, write: {memory.energy.write:g}}}"
        yield f"  {name}: {{{size}word: {memory.word}, energy: {energy}}}"
    yield "channels: # bits of a cycle, energies in pJ of a bit"
    for name, channel in machine.channels.items():
        ends, to = (f"[{', '.join(names)}]" for names in (channel.sources, channel.targets))
        bits = f"bits: {channel.bits}, " if channel.bits is not None else ""
        cast = ", multicast: true" if channel.multicast else ""
        yield f"  {name}: {{kind: one_way, ends: {ends}, to: {to}, {bits}energy: {channel.energy:g}{cast}}}"


def _quoted(text: str) -> str:
    return yaml.safe_dump(text, width=10**6, allow_unicode=True, default_style='"').strip()
