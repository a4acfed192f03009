"""What nodes cost on engines: each kind of node on each engine with its best mapping, equal ones searched once.

Operands that do not fit together into the outermost memories of an engine are streamed, the largest first: the memory
at home is then the outermost one for them, and the channel to it is as wide as its narrowest part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tilewright.core.workload import Layer
from tilewright.errors import TilewrightError
from tilewright.machine.array import FROM_LOW, TO_LOW, ArrayEngine, MemoryLevel, Port
from tilewright.machine.machine import Machine
from tilewright.mapping.best import MappingJob, best_mappings
from tilewright.mapping.goals import Objective
from tilewright.mapping.results import Effort
from tilewright.mapping.wired import unrollings
from tilewright.price.array import ArrayCost, evaluate
from tilewright.price.layers import narrow, tile_layers
from tilewright.price.memories import with_costs
from tilewright.schedule.fabric import UNLIMITED, Fabric
from tilewright.schedule.network import Operation, OperationGraph
from tilewright.schedule.nodes import Nodes, Numbers
from tilewright.schedule.scheduling import NodeCosts

FEW = Effort(mappings=2000, steps=4000)
"""Some seconds for nodes that resist a proof."""
WEIGHTS = "I2"
"""The slot of weights; what comes from outside may be in another one."""


class _Price(Struct, frozen=True):
    """What a kind of node costs on an engine."""

    cycles: int
    energy: float
    far_energy: float


class GivenCost(Struct, frozen=True):
    """What each node of an operation costs on an engine, by somebody else's measure."""

    operation: str
    engine: str
    cycles: int
    energy: float = 0.0
    """Picojoules of computing and of the engine's memories."""
    home_energy: float = 0.0
    """Of the memory at home, for operands that are streamed."""
    streamed: tuple[str, ...] = ()
    """Slots of operands that are too large for the engine."""


def given_costs(nodes: Nodes, fabric: Fabric, given: Sequence[GivenCost]) -> NodeCosts:
    """Costs as they are given; where nothing is said, nodes cannot run."""
    shape = (len(nodes.kinds), len(fabric.places))
    found = NodeCosts(np.full(shape, -1), np.zeros(shape), np.zeros(shape), np.zeros(shape, np.uint32))
    numbers = {operation.name: number for number, operation in enumerate(nodes.network.operations)}
    for each in given:
        if (
            each.operation not in numbers
            or each.engine not in fabric.engines
            or not {*each.streamed} <= {*fabric.slots}
        ):
            raise TilewrightError(
                "bad-value",
                f"a cost is of '{each.operation}' on '{each.engine}', with {', '.join(each.streamed) or 'nothing'} "
                "streamed",
                reasons=[f"engines are {', '.join(fabric.engines)}, operands {', '.join(fabric.slots)}"],
                help="name operations of the network, and what the machine has",
            )
        for kind, (number, _) in enumerate(nodes.kinds):
            if number == numbers[each.operation]:
                at = kind, fabric.places.index(each.engine)
                found.cycles[at], found.energy[at], found.far_energy[at] = each.cycles, each.energy, each.home_energy
                found.streamed[at] = sum(1 << fabric.slots.index(slot) for slot in each.streamed)
    return found


class NodePrices:
    """Prices nodes of a machine's engines, and remembers them: equal nodes of any network are searched once."""

    def __init__(
        self, machine: Machine, fabric: Fabric, objective: Objective = "latency", effort: Effort = FEW
    ) -> None:
        self._machine, self._fabric = machine, fabric
        self._objective: Objective = objective
        self._effort = effort
        self._engines = {
            name: with_costs(engine) for name, engine in machine.engines.items() if isinstance(engine, ArrayEngine)
        }
        self._layers: dict[tuple[object, ...], ArrayCost | TilewrightError] = {}
        self._nodes: dict[tuple[object, ...], _Price | TilewrightError] = {}

    def costs(
        self,
        nodes: Nodes,
        allowed: Mapping[str, tuple[str, ...]],
        *,
        progress: Callable[[str], None] = lambda _stage: None,
    ) -> NodeCosts:
        """By operation: the engines that are allowed; elsewhere nodes cannot run."""
        fabric = self._fabric
        shape = (len(nodes.kinds), len(fabric.places))
        found = NodeCosts(np.full(shape, -1), np.zeros(shape), np.zeros(shape), np.zeros(shape, np.uint32))
        needed = _needed(nodes, len(fabric.slots))
        for kind, (number, tile) in enumerate(nodes.kinds):
            operation, sizes = nodes.network.operations[number], nodes.tiles[number].shapes[tile]
            progress(f"{kind + 1}/{len(nodes.kinds)} {operation.name}")
            slots = {slot: int(bits) for slot, bits in zip(fabric.slots, needed[kind], strict=True)}
            refused: _Price | TilewrightError | None = None
            for name in allowed.get(operation.name, fabric.engines):
                price: _Price | TilewrightError | None = None
                for streamed in _streamed(fabric, name, slots):
                    price = self._price(nodes.network, operation, sizes, name, streamed)
                    if isinstance(price, _Price):
                        at = kind, fabric.places.index(name)
                        found.cycles[at], found.energy[at] = price.cycles, price.energy
                        found.far_energy[at] = price.far_energy
                        found.streamed[at] = sum(1 << fabric.slots.index(slot) for slot in streamed)
                        break
                else:
                    refused = refused or price
            if (found.cycles[kind] < 0).all():
                engines = ", ".join(allowed.get(operation.name, ())) or "any engine"
                raise TilewrightError(
                    "no-engine",
                    f"'{operation.name}' cannot run on {engines}",
                    reasons=[refused.what] if isinstance(refused, TilewrightError) else [],
                    help="allow an engine that can compute it, or split it into smaller nodes",
                )
        return found

    def _price(
        self,
        network: OperationGraph,
        operation: Operation,
        sizes: Mapping[str, int],
        name: str,
        streamed: tuple[str, ...],
    ) -> _Price | TilewrightError:
        key = (network.name, operation.name, tuple(sizes.items()), name, streamed)
        if key not in self._nodes:
            engine = _with_home(self._machine, self._fabric, name, self._engines[name], streamed)
            try:
                costs = [self._layer(layer, engine) for layer in _layers(network, operation, sizes, engine)]
                outside = sum(m.energy for cost in costs for m in cost.moves if m.memory.name == self._fabric.home)
                energy = sum(cost.energy for cost in costs) - outside
                self._nodes[key] = _Price(ceil(sum(cost.cycles for cost in costs)), energy, outside)
            except TilewrightError as error:
                self._nodes[key] = error
        return self._nodes[key]

    def _layer(self, layer: Layer, engine: ArrayEngine) -> ArrayCost:
        mine = narrow(layer, engine.precision)
        for operand in mine.operands:
            if not engine.levels(operand.slot):
                raise TilewrightError(
                    "no-mapping",
                    f"no memory of '{engine.name}' holds {operand.name}",
                    help=f"its memories hold {', '.join(engine.slots)}",
                )
        key = _key(mine, engine)
        if key not in self._layers:
            job = MappingJob(mine, engine, unrollings(mine, engine), self._objective, effort=self._effort)
            try:
                best = best_mappings([job])[0].best[0]
                self._layers[key] = evaluate(mine, engine, best.spatial, best.temporal)
            except TilewrightError as error:
                self._layers[key] = error
        known = self._layers[key]
        if isinstance(known, TilewrightError):
            raise known
        return known


def _key(layer: Layer, engine: ArrayEngine) -> tuple[object, ...]:
    """Layers with equal keys cost the same."""
    operands = tuple((o.slot, o.dims, o.sums, o.bits, o.final_bits, o.name) for o in layer.operands)
    sums = tuple(layer.sums.items())
    maps = (layer.dims, engine.dims, engine.wiring, engine.dataflow)
    units = (engine.unit_energy, engine.cycles, engine.setup, engine.serial, engine.compute_in_memory)
    return operands, sums, engine.memories, units, *(tuple(each.items()) for each in maps)


def _layers(
    network: OperationGraph, operation: Operation, sizes: Mapping[str, int], engine: ArrayEngine
) -> tuple[Layer, ...]:
    """The layers that a node of some sizes is, with loops that the engine knows by name left as they are."""
    apart = {dim for loops in engine.dataflow.values() for dim, _ in loops}
    tensors = network.tensors
    reads = {a.operand: (tensors[a.tensor].bits, a.slot == WEIGHTS) for a in operation.reads}
    writes = dict.fromkeys(operation.domain.outputs, 8)
    writes |= {a.operand: tensors[a.tensor].bits for a in operation.writes}
    return tile_layers(
        operation.name,
        operation.kind,
        operation.domain,
        sizes,
        reads,
        writes,
        copies=operation.copies,
        apart=apart,
    )


def _needed(nodes: Nodes, slots: int) -> Numbers:
    """By kind and slot: bits of operands that a node has at most."""
    readers = np.repeat(np.arange(nodes.count), np.diff(nodes.reads_starts))
    writers = np.repeat(np.arange(nodes.count), np.diff(nodes.writes_starts))
    cells = np.concatenate([readers * slots + nodes.read_slot, writers * slots + nodes.write_slot])
    bits = nodes.bits[np.concatenate([nodes.read_tensor, nodes.write_tensor])]
    by_node = np.bincount(cells, bits, nodes.count * slots).reshape(nodes.count, slots)
    found = np.zeros((len(nodes.kinds), slots))
    np.maximum.at(found, nodes.kind, by_node)
    return found.astype(np.int64)


def _too_large(fabric: Fabric, place: str, needed: Mapping[str, int]) -> tuple[str, ...]:
    """The slots whose operands an engine has no room for: of those that share a memory, the smallest stay."""
    found: list[str] = []
    left = {number: fabric.stores[number].bits for (name, _), number in fabric.holds.items() if name == place}
    for slot in sorted((slot for slot in needed if (place, slot) in fabric.holds), key=lambda slot: needed[slot]):
        number = fabric.holds[place, slot]
        if needed[slot] <= left[number]:
            left[number] -= needed[slot]
        else:
            found.append(slot)
    return tuple(found)


def _streamed(fabric: Fabric, place: str, needed: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
    """What is streamed: no more than what has no room, then more and more, as sums take more room than results."""
    streamed = _too_large(fabric, place, needed)
    yield streamed
    rest = [slot for slot in needed if needed[slot] and slot not in streamed and (place, slot) in fabric.holds]
    for slot in sorted(rest, key=lambda slot: -needed[slot]):
        streamed = (*streamed, slot)
        yield streamed


def _with_home(
    machine: Machine, fabric: Fabric, place: str, engine: ArrayEngine, slots: tuple[str, ...]
) -> ArrayEngine:
    """The engine with the memory at home around it, for operands that are streamed."""
    if not slots:
        return engine
    memory = machine.memories[fabric.home]
    widths = [
        fabric.channels[number].bits or memory.word
        for pair in ((fabric.home, place), (place, fabric.home))
        for number in fabric.routes.get(pair, ())
    ]
    bits = min(memory.word, *widths) if widths else memory.word
    moves = tuple((slot, way) for slot in slots for way in ((TO_LOW, FROM_LOW) if slot == "O" else (TO_LOW,)))
    port = Port("home", "read_write", bits, bits, moves)
    scale = bits / memory.word
    level = MemoryLevel(
        fabric.home,
        UNLIMITED,
        slots,
        (port,),
        tuple(engine.dims),
        memory.energy.read * scale,
        memory.energy.write * scale,
        kind="dram",
    )
    return replace(engine, memories=(*engine.memories, level))
