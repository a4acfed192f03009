"""A machine of many engines as the scheduler sees it: places with memories, and the channels between them.

A place is an engine, or the memory at home, which is the last one. Of an engine's memories only the outermost one of
each operand counts here; what is inside is the business of its mapping.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from msgspec import Struct

from tilewright.errors import TilewrightError
from tilewright.machine.array import ArrayEngine, MemoryLevel
from tilewright.machine.channels import routes
from tilewright.machine.machine import Machine
from tilewright.machine.parts import Channel, Memory

UNLIMITED = 2**62
"""Bits of a memory as large as needed."""


class Store(Struct, frozen=True):
    """A memory that tensors are kept in between nodes."""

    name: str
    place: str
    bits: int
    read_word: int
    """Bits of a read."""
    write_word: int
    read_energy: float
    """Picojoules of a word."""
    write_energy: float


class Fabric(Struct, frozen=True, dict=True):
    """Places, what they store, and how tensors get from one to another."""

    name: str
    places: tuple[str, ...]
    """Engines, and the memory at home as the last one."""
    slots: tuple[str, ...]
    """The kinds of operands: `I1`, `I2`, `O`."""
    stores: tuple[Store, ...]
    holds: Mapping[tuple[str, str], int]
    """By place and slot: the number of the store."""
    channels: tuple[Channel, ...]
    routes: Mapping[tuple[str, str], tuple[int, ...]]
    """By source and target: numbers of channels."""

    @property
    def home(self) -> str:
        return self.places[-1]

    @property
    def engines(self) -> tuple[str, ...]:
        return self.places[:-1]

    @cached_property
    def sites(self) -> tuple[int, ...]:
        """By place: the number of the first one with the same stores. What is at one is at the other."""
        stores = [tuple(self.holds.get((place, slot), -1) for slot in self.slots) for place in self.places]
        return tuple(next(at for at, other in enumerate(stores) if set(other) & set(mine) - {-1}) for mine in stores)

    @cached_property
    def arrays(self) -> dict[str, object]:
        """For the native scheduler."""
        pairs = [(source, target) for source in self.places for target in self.places]
        ways = [self.routes.get(pair, ()) for pair in pairs]
        return {
            "places": len(self.places),
            "slots": len(self.slots),
            "memory_of": _whole([self.holds.get((place, slot), -1) for place in self.places for slot in self.slots]),
            "site": _whole(list(self.sites)),
            "multicast": np.array([channel.multicast for channel in self.channels], np.uint8),
            "capacity": np.array([store.bits for store in self.stores], np.int64),
            "read_word": np.array([store.read_word for store in self.stores], np.int64),
            "write_word": np.array([store.write_word for store in self.stores], np.int64),
            "read_energy": np.array([store.read_energy for store in self.stores], np.float64),
            "write_energy": np.array([store.write_energy for store in self.stores], np.float64),
            "bandwidth": np.array([channel.bits or np.inf for channel in self.channels], np.float64),
            "link_energy": np.array([channel.energy for channel in self.channels], np.float64),
            "routes_starts": np.cumsum([0, *map(len, ways)], dtype=np.int64),
            "routes": _whole([number for way in ways for number in way]),
        }


def _whole(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(values, np.int32)


def fabric_of(machine: Machine) -> Fabric:
    """What the scheduler needs to know of a machine."""
    arrays: dict[str, ArrayEngine] = {}
    for name, engine in machine.engines.items():
        if not isinstance(engine, ArrayEngine):
            raise _not_many(machine, f"engine '{name}' is not an array")
        arrays[name] = engine
    if machine.home not in machine.memories:
        raise _not_many(machine, "it names no memory as its home")
    slots = tuple(dict.fromkeys(slot for engine in arrays.values() for slot in engine.slots))
    stores: list[Store] = []
    holds: dict[tuple[str, str], int] = {}
    for name, engine in arrays.items():
        numbers: dict[str, int] = {}
        for slot in engine.slots if not engine.shares else ():
            level = engine.levels(slot)[-1]
            if level.name not in numbers:
                numbers[level.name] = len(stores)
                stores.append(_store(name, level))
            holds[name, slot] = numbers[level.name]
    for name, engine in arrays.items():
        if engine.shares:
            holds |= {(name, slot): holds[engine.shares, slot] for slot in engine.slots}
    holds |= {(machine.home, slot): len(stores) for slot in slots}
    stores.append(_home(machine.memories[machine.home]))
    places = (*arrays, machine.home)
    channels = tuple(machine.channels.values())
    return Fabric(machine.name, places, slots, tuple(stores), holds, channels, routes(channels, places, machine.home))


def _store(place: str, level: MemoryLevel) -> Store:
    reads = [port.bits for port in level.ports if port.kind != "write"]
    writes = [port.bits for port in level.ports if port.kind != "read"]
    word = max(port.bits for port in level.ports)
    return Store(
        name=f"{place}/{level.name}",
        place=place,
        bits=level.bits,
        read_word=max(reads, default=word),
        write_word=max(writes, default=word),
        read_energy=level.read_energy,
        write_energy=level.write_energy,
    )


def _home(memory: Memory) -> Store:
    bits = memory.bytes * 8 if memory.bytes is not None else UNLIMITED
    energy = memory.energy
    return Store(memory.name, memory.name, bits, memory.word, memory.word, energy.read, energy.write)


def _not_many(machine: Machine, why: str) -> TilewrightError:
    return TilewrightError(
        "not-many-core",
        f"networks cannot be scheduled over the engines of '{machine.name}'",
        reasons=[why],
        help="it needs engines of kind: array, channels between them, and a memory as `home` (docs/schedule.md)",
    )
