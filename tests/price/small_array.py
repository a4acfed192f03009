"""A machine and a layer that are small enough to work out by hand."""

from __future__ import annotations

from tilewright.core.equation import LayerText, read_layer
from tilewright.core.mapping import SpatialMapping, TemporalMapping
from tilewright.core.workload import Layer
from tilewright.machine.array import FROM_HIGH, FROM_LOW, TO_HIGH, TO_LOW, ArrayEngine, MemoryLevel, Port

REGISTER = MemoryLevel(
    name="register",
    bits=32,
    slots=("O",),
    ports=(
        Port("read", "read", 16, 16, (("O", TO_LOW),)),
        Port("write", "write", 16, 16, (("O", FROM_LOW),)),
        Port("drain", "read", 16, 16, (("O", TO_HIGH),)),
        Port("fill", "write", 16, 16, (("O", FROM_HIGH),)),
    ),
    serves=(),
    read_energy=0.1,
    write_energy=0.1,
)
BUFFER = MemoryLevel(
    name="buffer",
    bits=4096,
    slots=("I1", "I2", "O"),
    ports=(
        Port("read", "read", 16, 8, (("I1", TO_LOW), ("I2", TO_LOW), ("O", TO_LOW))),
        Port("write", "write", 16, 8, (("O", FROM_LOW),)),
    ),
    serves=("D1",),
    read_energy=1.0,
    write_energy=2.0,
)
MACHINE = ArrayEngine("small", {"D1": 2}, (REGISTER, BUFFER), unit_energy=0.5, unit_area=1.0)


def product(*, rows: int = 2, columns: int = 4, depth: int = 4) -> Layer:
    """A matrix product of bytes with sums of 16 bits."""
    return read_layer(
        LayerText(
            name="product",
            kind="product",
            equation="O[d][k] += I[d][c] * W[c][k]",
            dims={"D": rows, "K": columns, "C": depth},
            bits={"I": 8, "W": 8, "O": 16, "O_final": 8},
            constants=frozenset({"W"}),
        )
    )


SPATIAL = SpatialMapping({"D1": (("K", 2),)})
TEMPORAL = TemporalMapping((("C", 4), ("K", 2), ("D", 2)), {"O": (1, 3), "I": (3,), "W": (3,)})
