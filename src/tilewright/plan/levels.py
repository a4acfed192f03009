"""Memories behind the engine's own: where tensors between groups live, and which constants are read in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from types import MappingProxyType

from msgspec import Struct

from tilewright.core.op import REGISTRY
from tilewright.core.plan import Place
from tilewright.core.tiles import Member, Use
from tilewright.errors import TilewrightError
from tilewright.machine.parts import Cores
from tilewright.machine.target import Target
from tilewright.plan.addresses import allocate as allocation
from tilewright.plan.addresses.packing import round_up
from tilewright.plan.network import Network

UNLIMITED = 1 << 40


class Levels(Struct, frozen=True):
    """The memories of a machine, seen from its engine."""

    near: str
    """The engine's own memory."""
    capacity: int
    """Its bytes, in whole units of alignment."""
    far: tuple[str, ...]
    """Memories that tensors between groups may live in, the fastest first."""
    room: Mapping[str, int]
    """Bytes there for such tensors."""
    direct: frozenset[str]
    """Constants that the engine reads in place."""
    occupied: Mapping[str, int]
    """Bytes of inputs, outputs, states and constants in each memory, and of what others pass on their way."""
    states: str
    """The memory of states."""

    @property
    def total(self) -> int:
        return sum(self.room.values())


def levels_of(network: Network) -> Levels:
    """Puts constants where the engine reads them in place as long as they fit, and counts what is left."""
    platform, engine = network.platform, network.engine
    align = platform.alignment
    sizes = {name: _bytes(memory.bytes, align) for name, memory in platform.memories.items()}
    direct, occupied = _direct(network, sizes.get(platform.in_place, 0))
    graph = network.graph
    ports = sum(round_up(graph.types[name].bytes, align) for name in (*graph.fed, *graph.given))
    rest = sum(size for (tensor, _), size in network.constants.items() if tensor not in direct)
    occupied[platform.home] = occupied.get(platform.home, 0) + ports + rest
    ways = {name: dma for name in sizes if (dma := platform.link(name, engine.memory)) is not None}
    # What bytes pass on their way costs room, so such a memory is only used where it is asked for.
    reachable = [
        name
        for name, dma in ways.items()
        if name not in (engine.memory, platform.in_place)
        and sizes[name]
        and not platform.memories[name].ports
        and (not dma.through or name == platform.home)
    ]
    far = tuple(sorted(reachable, key=lambda name: -ways[name].bytes_per_cycle))
    kept = far[0] if far else platform.home
    states = sum(round_up(graph.types[name].bytes, align) for name in graph.updates)
    occupied[kept] = occupied.get(kept, 0) + states
    for passed in {ways[name].through for name in far} - {""}:
        occupied[passed] = occupied.get(passed, 0) + sizes[engine.memory]
    room = {name: sizes[name] - occupied.get(name, 0) for name in far}
    return Levels(
        engine.memory,
        sizes[engine.memory],
        far,
        MappingProxyType(room),
        direct,
        MappingProxyType(occupied),
        kept,
    )


def _bytes(size: int | None, align: int) -> int:
    return UNLIMITED if size is None else size // align * align


def _direct(network: Network, room: int) -> tuple[frozenset[str], dict[str, int]]:
    """Constants that every node that reads them finds in place: the most read first, then the largest."""
    platform = network.platform
    uses: dict[str, int] = {}
    elsewhere: set[str] = set()
    for position, mine in enumerate(network.members):
        kernel = network.choices[network.steps[position]].kernel
        engine = platform.beside(kernel) or platform.cores
        for use in mine.uses:
            uses[use.tensor] = uses.get(use.tensor, 0) + 1
            near = kernel is not None and use.key in kernel.near
            if near or (platform.in_place not in engine.reads and not _picked(network, mine, use)):
                elsewhere.add(use.tensor)
    total: dict[str, int] = {}
    for (tensor, _), size in network.constants.items():
        total[tensor] = total.get(tensor, 0) + size
    chosen: set[str] = set()
    taken = 0
    for tensor in sorted({*total} - elsewhere, key=lambda name: (-uses[name], -total[name], name)):
        if taken + total[tensor] <= room:
            taken += total[tensor]
            chosen.add(tensor)
    return frozenset(chosen), {platform.in_place: taken} if chosen else {}


def _picked(network: Network, mine: Member, use: Use) -> bool:
    """Whether the cores, each its share, read a few elements of an operand in place sooner than a DMA brings all."""
    platform, cores = network.platform, network.engine
    way = platform.link(platform.home, cores.memory)
    if not isinstance(cores, Cores) or platform.in_place not in cores.reaches or way is None:
        return False
    taken = -(-prod(mine.domain.dims.values()) // cores.count) * _reading(platform, platform.in_place)
    return use.key in REGISTRY[mine.node.op].picks and taken < use.type.bytes / way.bytes_per_cycle


def _reading(platform: Target, memory: str) -> int:
    """Cycles in which a core reads an element of a memory in place, as the simulator has them."""
    timing = next(iter(platform.timings.values()), None)
    return timing.harts[platform.cores.name].cycles.get(memory, 0) if timing is not None else 0


def first_sources(network: Network, levels: Levels) -> dict[str, str]:
    """A guess at the memory of every tensor before groups are known: the fastest one where it would fit."""
    home = network.platform.home
    found = {network.root(name): home for name in (*network.graph.inputs, *network.graph.outputs)}
    found |= dict.fromkeys(network.graph.updates, levels.states)
    found |= dict.fromkeys(network.graph.constants, home)
    used = {name: [0] * len(network.steps) for name in levels.far}
    for tensor in sorted(network.lives, key=lambda name: (network.lives[name].bytes, name)):
        life = network.lives[tensor]
        span = range(life.first, life.last + 1)
        fits = (name for name in levels.far if max(used[name][at] for at in span) + life.bytes <= levels.room[name])
        found[tensor] = memory = next(fits, levels.far[-1] if levels.far else home)
        for at in span if memory in used else ():
            used[memory][at] += life.bytes
    if levels.far and network.platform.link(home, levels.far[0]) is not None:
        # Copied ahead, as far as room is found later.
        found |= dict.fromkeys(network.graph.constants, levels.far[0])
    return found


def unloading(network: Network, levels: Levels) -> float:
    """Cycles in which all DMAs of the home memory bring what leaves it at least once."""
    home = network.platform.home
    speed = sum(dma.bytes_per_cycle for dma in network.platform.links.values() if home in dma.between)
    constants = sum(size for (tensor, _), size in network.constants.items() if tensor not in levels.direct)
    return constants / speed if speed else 0.0


class GroupSpan(Struct, frozen=True):
    """Bytes that a tensor needs from the start of one group to the end of another."""

    tensor: str
    bytes: int
    first: int
    last: int


def place(
    spans: Sequence[GroupSpan], levels: Levels, align: int, *, seconds: float, seed: int
) -> dict[str, Place] | None:
    """Addresses in the memories behind the engine's own; None where they are too small."""
    buffers = [
        allocation.BufferRequest(span.tensor, span.bytes, span.first, span.last + 1, align, bank=levels.far)
        for span in spans
        if span.bytes
    ]
    found = {span.tensor: Place(levels.far[0] if levels.far else levels.near) for span in spans if not span.bytes}
    if buffers and not levels.far:
        return None
    if buffers:
        try:
            result = allocation.allocate(buffers, capacity=dict(levels.room), seconds=seconds, seed=seed)
        except TilewrightError:
            return None
        found |= {name: Place(placement.bank, placement.offset) for name, placement in result.offsets.items()}
    return found
