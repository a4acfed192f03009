"""What any mapping in time costs at least with one spatial mapping, from a few multiplications: no tables are made.

Every element of an operand has to cross each of its memories once, and the array has to work for all steps. This is
enough to leave out most spatial mappings of a layer once a good mapping is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import ceil, prod

from tilewright.core.mapping import SpatialMapping
from tilewright.core.workload import Layer, Operand
from tilewright.machine.array import FROM_HIGH, FROM_LOW, READS, TO_HIGH, TO_LOW, ArrayEngine, MemoryLevel, Port
from tilewright.price.array import operation_cycles, unit_energies


class Floors:
    """Of one layer on one machine."""

    def __init__(self, layer: Layer, engine: ArrayEngine, *, corrected: bool) -> None:
        self._layer, self._engine, self._corrected = layer, engine, corrected
        self._crossing = cache(self._crossing_energy)
        self._hidden = cache(self._hidden_twice)

    def least(self, spatial: SpatialMapping) -> tuple[float, float]:
        """Energy and latency of any mapping, at least."""
        layer, engine = self._layer, self._engine
        in_time = spatial.steps(layer)
        units: dict[str, float] = {}
        for loops in spatial.fractional(layer).values():
            for dim, count in loops:
                units[dim] = units.get(dim, 1.0) * count
        energy = sum(unit_energies(layer, engine, spatial).values())
        # Where units are in use on average, the model rounds what they hold, up or down.
        if all(count == int(count) and count * in_time.get(dim, 1) >= layer.dims[dim] for dim, count in units.items()):
            energy += self._crossing(frozenset(dim for dim, count in units.items() if count > 1))
        steps = prod(in_time.values())
        computing = steps * operation_cycles(layer, engine, spatial)
        if self._corrected:
            return energy, computing
        run = tuple(in_time.get(dim, 1) * ceil(units.get(dim, 1.0)) for dim in layer.dims)
        return energy, max(0.0, computing - self._hidden(run, steps == 1))

    def _ways(self) -> Iterator[tuple[Operand, int, MemoryLevel, Port, str]]:
        """Moves that every element makes, with their level."""
        for operand in self._layer.operands:
            memories = self._engine.levels(operand.slot)
            low, high = (FROM_LOW, TO_HIGH) if operand is self._layer.output else (TO_LOW, FROM_HIGH)
            for level, memory in enumerate(memories):
                for direction in (low, high) if level < len(memories) - 1 else (low,):
                    port = memory.port(operand.slot, direction)
                    if port is not None:
                        yield operand, level, memory, port, direction

    def _crossing_energy(self, unrolled: frozenset[str]) -> float:
        """Of all elements, once over each port on their way."""
        layer, total = self._layer, 0.0
        for operand, _, memory, port, direction in self._ways():
            if unrolled & layer.summed(operand):
                continue  # units that hold overlapping data are reckoned without where their data lie
            bits = min(operand.bits, operand.final_bits) if operand is layer.output else operand.bits
            words = layer.elements(operand) * bits / port.bits - 1
            total += max(0.0, words) * (memory.read_energy if direction in READS else memory.write_energy)
        return total

    def _hidden_twice(self, run: tuple[int, ...], one_step: bool) -> float:
        """Cycles by which loads can come out below nothing in the original model (`tilewright.mapping.hiding`).

        A step that shortens a load is taken off all longer ones as well, at each port; a link is as long as its longer
        end, so the ports at the outer ends are enough.
        """
        layer = self._layer
        extents = dict(zip(layer.dims, run, strict=True))
        loads: dict[tuple[str, str], list[int]] = {}
        outer: set[tuple[str, str]] = set()
        for operand, level, memory, port, direction in self._ways():
            output = operand is layer.output
            if output and not level and direction == FROM_LOW and not one_step:
                continue  # results leave the units in every step
            bits = max(operand.bits, operand.final_bits) if output else operand.bits
            cycles = port.setup + ceil(layer.elements(operand, extents) * bits / port.bits)
            loads.setdefault((memory.name, port.name), []).append(cycles)
            if level and direction in (TO_LOW, FROM_LOW):
                outer.add((memory.name, port.name))
        return float(sum(i * cycles for key in outer for i, cycles in enumerate(sorted(loads[key], reverse=True))))
