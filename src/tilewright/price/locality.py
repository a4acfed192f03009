"""Results that stay on chip until the next layer reads them: which memories each layer of a workload needs.

As in ZigZag, a result stays where it fits together with what its layer reads, unless layers branch off or join there.
Memories above it are then not there for that operand, so no traffic to them is counted.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from tilewright.core.workload import Layer, Operand, Workload
from tilewright.machine.array import ArrayEngine, MemoryLevel


def local_engines(workload: Workload, engine: ArrayEngine) -> dict[str, ArrayEngine]:
    """The machine that each layer sees."""
    outputs: dict[str, MemoryLevel] = {}
    inputs: dict[str, MemoryLevel] = {}
    weights: MemoryLevel = engine.memories[-1]
    for layer in workload.layers:
        found = _home(workload, engine, layer)
        producers = workload.producers(layer)
        inputs[layer.name] = outputs[producers[0]] if producers else found or engine.memories[-1]
        outputs[layer.name] = found or engine.memories[-1]
        if found and _holds_weights(layer, found) and set(found.serves) == set(engine.dims):
            weights = min(weights, found, key=engine.memories.index)
    engines: dict[str, ArrayEngine] = {}
    for layer in workload.layers:
        tops = {layer.output.slot: outputs[layer.name], _activation(layer).slot: inputs[layer.name]}
        tops |= {o.slot: weights for o in layer.inputs if o.constant and o.slot not in tops}
        engines[layer.name] = _without(engine, tops)
    return engines


def _home(workload: Workload, engine: ArrayEngine, layer: Layer) -> MemoryLevel | None:
    """The innermost memory that has room for what a layer reads and makes, and from which the next one can read."""
    consumers = workload.consumers(layer.name)
    if len(consumers) > 1 or any(len(workload.producers(consumer)) > 1 for consumer in consumers):
        return None
    reader = _activation(consumers[0]) if consumers else _activation(layer)
    activation = _activation(layer)
    bits = _bits(layer, activation) + _bits(layer, layer.output)
    for memory in engine.memories:
        if layer.output.slot not in memory.slots or reader.slot not in memory.slots:
            continue
        needed = bits + (_weight_bits(workload) if _holds_weights(layer, memory) else 0)
        if memory.bits * engine.copies(memory) >= needed:
            return memory
    return None


def _activation(layer: Layer) -> Operand:
    """The operand that comes from the layer before."""
    made = [operand for operand in layer.inputs if operand.sources]
    return made[-1] if made else next((o for o in layer.inputs if not o.constant), layer.inputs[-1])


def _holds_weights(layer: Layer, memory: MemoryLevel) -> bool:
    activation = _activation(layer)
    return any(o.constant and o is not activation and o.slot in memory.slots for o in layer.inputs)


def _weight_bits(workload: Workload) -> float:
    return sum(
        _bits(layer, operand)
        for layer in workload.layers
        for operand in layer.inputs
        if operand.constant and operand is not _activation(layer)
    )


def _bits(layer: Layer, operand: Operand) -> float:
    """Of the whole operand; an output takes as much as its sums do."""
    return layer.elements(operand) * operand.bits


def _without(engine: ArrayEngine, tops: Mapping[str, MemoryLevel]) -> ArrayEngine:
    """The machine without memories above the given ones, for each operand by itself."""
    memories: list[MemoryLevel] = []
    for index, memory in enumerate(engine.memories):
        slots = tuple(slot for slot in memory.slots if slot not in tops or index <= engine.memories.index(tops[slot]))
        ports = tuple(
            replace(port, moves=moves)
            for port in memory.ports
            if (moves := tuple(move for move in port.moves if move[0] in slots))
        )
        if slots:
            memories.append(replace(memory, slots=slots, ports=ports))
    return replace(engine, memories=tuple(memories))
