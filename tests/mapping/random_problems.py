"""Random small layers and machines: enough memory sharing, tight sizes and odd factors to catch a search out."""

from __future__ import annotations

import random
from contextlib import suppress

from tilewright.core.mapping import SpatialMapping
from tilewright.core.workload import Layer, Operand, Sum
from tilewright.errors import TilewrightError
from tilewright.machine.array import FROM_HIGH, FROM_LOW, TO_HIGH, TO_LOW, ArrayEngine, MemoryLevel, Port
from tilewright.mapping.goals import Wanted
from tilewright.mapping.search import check_room
from tilewright.mapping.tables import Problem, problem

MOVES = {"I1": (TO_LOW, FROM_HIGH), "I2": (TO_LOW, FROM_HIGH), "O": (TO_LOW, FROM_LOW, TO_HIGH, FROM_HIGH)}


def random_layer(rng: random.Random, loops: int) -> Layer:
    """A product or a convolution with about so many prime factors."""
    convolution = rng.random() < 0.6
    names = ["K", "C", "OX", "FX"] if convolution else ["M", "N", "C"]
    dims = dict.fromkeys(names, 1)
    for _ in range(loops):
        dims[rng.choice(names)] *= rng.choice([2, 2, 2, 3, 3, 5])
    bits = [rng.choice([0, 8, 8, 8, 16]), rng.choice([4, 8, 8, 16])]
    partial, final = rng.choice([(16, 8), (24, 8), (8, 8), (32, 16)])
    if not convolution:
        output = Operand("O", "O", ("M", "N"), (), partial, final)
        return Layer(
            "product",
            "matmul",
            dims,
            output,
            (Operand("A", "I1", ("M", "C"), (), bits[0] or 8), Operand("B", "I2", ("C", "N"), (), bits[1])),
        )
    stride, dilation = rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 2])
    axis = Sum("IX", "OX", "FX", stride, dilation, 10**9)
    whole = axis.values(dims["OX"], dims["FX"])
    axis = Sum("IX", "OX", "FX", stride, dilation, max(1, whole - rng.choice([0, 0, 1, 2])))
    return Layer(
        "convolution",
        "conv",
        dims,
        Operand("O", "O", ("K", "OX"), (), partial, final),
        (Operand("W", "I2", ("K", "C", "FX"), (), bits[0]), Operand("I", "I1", ("C",), ("IX",), bits[1])),
        {"IX": axis},
    )


def random_machine(rng: random.Random) -> ArrayEngine:
    """One or two array dimensions, and up to three memories for each operand, some of them shared."""
    dims = {"D1": rng.choice([1, 2, 3, 4]), "D2": rng.choice([1, 2])}
    memories: list[MemoryLevel] = []
    for slot in rng.sample(["I1", "I2", "O"], rng.choice([1, 2, 2, 3])):
        serves = rng.choice([(), (), ("D1",), ("D2",)])
        memories.append(_memory(rng, f"registers_{slot}", (slot,), rng.choice([16, 32, 64, 128]), serves))
    if rng.random() < 0.7:
        slots = tuple(rng.sample(["I1", "I2", "O"], rng.choice([1, 2, 2, 3])))
        memories.append(_memory(rng, "buffer", slots, rng.choice([256, 512, 1024, 4096]), tuple(dims)))
    memories.append(_memory(rng, "outside", ("I1", "I2", "O"), 10**9, tuple(dims)))
    return ArrayEngine("random", dims, tuple(memories), unit_energy=0.5, cycles=rng.choice([1, 1, 1, 2]))


def _memory(rng: random.Random, name: str, slots: tuple[str, ...], bits: int, serves: tuple[str, ...]) -> MemoryLevel:
    moves = [(slot, direction) for slot in slots for direction in MOVES[slot]]
    groups = rng.choice([1, 2, len(moves)])
    ports: list[Port] = []
    for group in range(groups):
        mine = tuple(moves[group::groups])
        width = rng.choice([8, 16, 32, 64])
        if mine:
            setup, exclusive = rng.choice([0, 0, 0, 2]), rng.random() < 0.05
            ports.append(Port(f"port{group}", "read_write", width, rng.choice([8, width]), mine, setup, exclusive))
    return MemoryLevel(
        name,
        bits,
        slots,
        tuple(ports),
        serves,
        read_energy=round(rng.uniform(0.1, 9), 2),
        write_energy=round(rng.uniform(0.1, 9), 2),
        double_buffered=rng.random() < 0.2,
    )


def random_problem(seed: int, loops: int, *, corrected: bool = False) -> Problem:
    """A layer on a machine, unrolled somehow."""
    rng = random.Random(seed)
    engine = random_machine(rng)
    layer = random_layer(rng, loops)
    return problem(layer, engine, random_spatial(rng, layer, engine), corrected=corrected)


def possible_problems(count: int, loops: int) -> list[Problem]:
    """The first random problems that have a mapping."""
    found: list[Problem] = []
    seed = 0
    while len(found) < count:
        with suppress(TilewrightError):
            one = random_problem(seed, loops)
            check_room(one, Wanted())
            found.append(one)
        seed += 1
    return found


def random_spatial(rng: random.Random, layer: Layer, engine: ArrayEngine) -> SpatialMapping:
    """A layer dimension along each array dimension, with factors that need not divide."""
    loops: dict[str, tuple[tuple[str, int], ...]] = {}
    for array, size in engine.dims.items():
        name = rng.choice(list(layer.dims))
        others = [d for found in loops.values() for d, _ in found]
        steps = min(size, layer.dims[name])
        loops[array] = ((name, steps),) if steps > 1 and name not in others else ()
    return SpatialMapping(loops)
