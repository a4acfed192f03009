"""What zeros save, where operands have some: they are not stored, not moved and not multiplied.

The model: zeros lie anywhere, with the same chance, and independently in each operand.
- Packed elements: an element takes one bit that says whether it is zero, and its own bits if it is not, so on average
  `density * bits + 1`, in whole bits; where that is no less than before, elements stay as they are. This holds in every
  memory and on every port, for inputs and for results that are done. Sums on their way are not packed.
- Idle units: an operation with a zero among its inputs takes its cycle, but no energy, so the energy of the units falls
  with the product of densities. Arrays that compute in memory use whole columns at a time and save nothing.

Averages are all that counts: a tile has room if its packed elements fit on average. Of cycles, only those of ports are
saved.
"""

from __future__ import annotations

from math import ceil, prod

from msgspec.structs import replace

from tilewright.core.workload import Layer

MASK = 1
"""Bits of an element that say whether it is zero."""


def packed(layer: Layer) -> Layer:
    """The layer as memories and ports see it: with the bits that packed elements take on average."""
    inputs = tuple(
        replace(o, bits=packed_bits(o.bits, o.density), final_bits=packed_bits(o.final_bits, o.density))
        for o in layer.inputs
    )
    done = packed_bits(layer.output.final_bits, layer.output.density)
    return replace(layer, output=replace(layer.output, final_bits=done), inputs=inputs)


def packed_bits(bits: int, density: float) -> int:
    """Bits of an element on average."""
    # Products such as 0.7 * 10 are a little above the number that is meant.
    return min(bits, ceil(round(density * bits, 9)) + MASK)


def working(layer: Layer) -> float:
    """The part of all operations that have no zero among their inputs."""
    return prod(operand.density for operand in layer.inputs)
