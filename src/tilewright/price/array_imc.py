"""Arrays that compute inside of their memory cells: energy, clock period and area of what lies around the cells.

Constants are those of a 28 nm process as ZigZag 3.8.5 has them. The first dimension of the array (by name) runs along
the word lines and has the outputs, the second along the bit lines and has the inputs; further ones count macros.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, log2, prod
from types import MappingProxyType

from tilewright.core.mapping import SpatialMapping
from tilewright.core.workload import Layer
from tilewright.machine.array import ArrayEngine, InMemoryCompute

SUPPLY = 0.9
"""Volts."""
GATE_CAPACITANCE, XOR_CAPACITANCE, REGISTER_CAPACITANCE, BITLINE_CAPACITANCE = 0.7e-3, 1.05e-3, 2.1e-3, 0.35e-3
"""Picofarads of a NAND gate, an XOR gate, a register of one bit, and of a bit line for each cell on it."""
GATE_AREA, XOR_AREA, REGISTER_AREA = 0.614e-6, 2.4 * 0.614e-6, 6 * 0.614e-6
"""Square millimetres."""
GATE_DELAY, XOR_DELAY = 0.0478, 2.4 * 0.0478
"""Nanoseconds."""
INPUT_TO_SUM, INPUT_TO_CARRY, CARRY_TO_CARRY = 2 * XOR_DELAY, XOR_DELAY + 2 * GATE_DELAY, 2 * GATE_DELAY
"""Of a full adder."""
ADDER_AREA = 3 * GATE_AREA + 2 * XOR_AREA
ADDER_ENERGY = (3 * GATE_CAPACITANCE + 2 * XOR_CAPACITANCE) * SUPPLY**2
HALF_ADDER_ENERGY = 2 * XOR_CAPACITANCE * SUPPLY**2
"""Of a full adder with only one of its inputs in use."""
MULTIPLIER_ENERGY = 0.5 * GATE_CAPACITANCE * SUPPLY**2
"""Of one bit by one bit: half of all products are zero."""
REGISTER_ENERGY = REGISTER_CAPACITANCE * SUPPLY**2

Parts = Mapping[str, float]


def energies(engine: ArrayEngine, imc: InMemoryCompute, layer: Layer, spatial: SpatialMapping) -> Parts:
    """Picojoules of a layer, by part; memories are not among them."""
    outputs, inputs = _lines(engine)
    used = {array: prod(steps for _, steps in loops) for array, loops in spatial.loops.items()}
    columns, rows = used.get(_names(engine)[0], 1), _rows(engine, layer, spatial)
    macros = prod(used.get(name, 1) for name in _names(engine)[2:])
    serial = imc.activation_bits // imc.serial_bits
    times = layer.operations / prod(used.values()) * serial * macros
    """Uses of the array, as if each of them filled all that is unrolled."""
    parts = {
        "converters to analog": _to_analog(imc) * rows,
        "converters to digital": _to_digital(imc) * imc.weight_bits * columns if imc.analog else 0.0,
        "multipliers": MULTIPLIER_ENERGY
        * imc.weight_bits
        * (outputs * rows if imc.analog else outputs * inputs * imc.serial_bits),
        "bit lines": BITLINE_CAPACITANCE * SUPPLY**2 * imc.weight_bits * inputs * columns if imc.analog else 0.0,
        "adder trees": 0.0 if imc.analog else columns * imc.serial_bits * _tree_energy(imc.weight_bits, rows, inputs),
        "place-value adders": columns * _place_adders(imc, inputs) * ADDER_ENERGY,
        "accumulators": columns * _accumulator_bits(imc, inputs) * (ADDER_ENERGY + REGISTER_ENERGY),
    }
    return MappingProxyType({name: energy * times for name, energy in parts.items()})


def delays(engine: ArrayEngine, imc: InMemoryCompute) -> Parts:
    """Nanoseconds of one clock period, by part."""
    _, inputs = _lines(engine)
    levels = _depth(inputs)
    terms = _terms(imc)
    tree = (levels - 1) * INPUT_TO_SUM + INPUT_TO_CARRY + (imc.weight_bits + levels - 2) * CARRY_TO_CARRY
    placed = (_depth(terms) - 1) * INPUT_TO_SUM + INPUT_TO_CARRY + (terms - 1) * CARRY_TO_CARRY
    carried = _accumulator_bits(imc, inputs) - _sum_bits(imc, inputs) - (terms if terms > 1 else 0) - 1
    return MappingProxyType(
        {
            "converters to digital": imc.adc_bits * (0.00653 * inputs + 0.640) if imc.analog else 0.0,
            "multipliers": GATE_DELAY,
            "adder trees": tree if not imc.analog and levels else 0.0,
            "place-value adders": placed if terms > 1 else 0.0,
            "accumulators": INPUT_TO_CARRY + carried * CARRY_TO_CARRY if _accumulator_bits(imc, inputs) else 0.0,
        }
    )


def areas(engine: ArrayEngine, imc: InMemoryCompute) -> Parts:
    """Square millimetres by part; memories are not among them."""
    outputs, inputs = _lines(engine)
    macros = engine.units // (outputs * inputs)
    converter = 10 ** (-0.0369 * imc.adc_bits + 1.206) * 2**imc.adc_bits * 1e-6 if imc.adc_bits > 1 else 0.0
    bits = imc.weight_bits * (1 if imc.analog else imc.serial_bits)
    parts = {
        "converters to digital": converter * imc.weight_bits * outputs if imc.analog else 0.0,
        "multipliers": GATE_AREA * bits * outputs * inputs,
        "adder trees": 0.0
        if imc.analog
        else ADDER_AREA * outputs * imc.serial_bits * sum(full for full, _ in _tree(imc.weight_bits, inputs, inputs)),
        "place-value adders": ADDER_AREA * outputs * _place_adders(imc, inputs),
        "accumulators": (ADDER_AREA + REGISTER_AREA) * outputs * _accumulator_bits(imc, inputs),
    }
    return MappingProxyType({name: area * macros for name, area in parts.items()})


def _names(engine: ArrayEngine) -> list[str]:
    return sorted(engine.dims)


def _lines(engine: ArrayEngine) -> tuple[int, int]:
    """Outputs and inputs of a macro."""
    outputs, inputs, *_ = (engine.dims[name] for name in _names(engine))
    return outputs, inputs


def _rows(engine: ArrayEngine, layer: Layer, spatial: SpatialMapping) -> int:
    """Rows of a macro that get an input.

    Neighbouring outputs along the word lines read inputs that overlap, so their weights lie along a diagonal: 4 columns
    of OX over 3 rows of FX take 6 rows.
    """
    along, across = (spatial.loops.get(name, ()) for name in _names(engine)[:2])
    if prod(steps for _, steps in across) == 1:
        return 1
    indexing_weights = {dim for operand in layer.inputs if not operand.sums for dim in operand.dims}
    neighbours = {dim: steps for dim, steps in along if dim not in indexing_weights}
    further = {
        dim: neighbours.get(other, 1) - 1
        for axis in layer.sums.values()
        for dim, other in ((axis.first, axis.second), (axis.second, axis.first))
    }
    return prod(steps + further.get(dim, 0) for dim, steps in across)


def _depth(inputs: int) -> int:
    """Levels of a tree of adders."""
    return ceil(log2(inputs)) if inputs > 1 else 0


def _to_analog(imc: InMemoryCompute) -> float:
    return 0.05 * imc.serial_bits * SUPPLY**2 if imc.analog and imc.serial_bits > 1 else 0.0


def _to_digital(imc: InMemoryCompute) -> float:
    return (100 * imc.adc_bits + 0.001 * 4**imc.adc_bits) * SUPPLY**2 / 1000 if imc.adc_bits else 0.0


def _terms(imc: InMemoryCompute) -> int:
    """Numbers of different place value that are added up: analog columns of weight bits, digital bits of inputs."""
    return imc.weight_bits if imc.analog else imc.serial_bits


def _sum_bits(imc: InMemoryCompute, inputs: int) -> int:
    """Bits of the sum of one column."""
    return imc.adc_bits if imc.analog else imc.weight_bits + _depth(inputs)


def _place_adders(imc: InMemoryCompute, inputs: int) -> float:
    """Full adders of one output that add up numbers of different place value."""
    terms = _terms(imc)
    return _sum_bits(imc, inputs) * (terms - 1) + terms * (log2(terms) - 0.5) if terms > 1 else 0.0


def _accumulator_bits(imc: InMemoryCompute, inputs: int) -> int:
    """Bits of the register that adds up serial inputs; 0 where they come at once."""
    if imc.serial_bits == imc.activation_bits:
        return 0
    weight = imc.weight_bits if imc.analog else 0
    return _sum_bits(imc, inputs) + weight + imc.activation_bits


def _tree(bits: int, used: int, inputs: int) -> list[tuple[float, float]]:
    """By level of a tree of adders: full adders with both inputs in use, and with one."""
    levels: list[tuple[float, float]] = []
    for level in range(_depth(inputs)):
        width = bits + level
        levels.append((used // 2 * width, used % 2 * width))
        used = ceil(used / 2)
    return levels


def _tree_energy(bits: int, used: int, inputs: int) -> float:
    return sum(full * ADDER_ENERGY + half * HALF_ADDER_ENERGY for full, half in _tree(bits, used, inputs))
