"""Small machines and networks for tests of schedules, given and at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

import numpy as np
from msgspec.structs import replace

from tilewright.base.schema import Source
from tilewright.core.equation import LayerText
from tilewright.core.split import Loops, OperationSplit
from tilewright.machine.array import FROM_HIGH, FROM_LOW, TO_HIGH, TO_LOW, ArrayEngine, MemoryLevel, Port
from tilewright.machine.channels import channels_of
from tilewright.machine.machine import Machine
from tilewright.machine.parts import AccessEnergy, Memory, Net
from tilewright.schedule.fabric import Fabric, fabric_of
from tilewright.schedule.network import OperationGraph, network_of_equations
from tilewright.schedule.nodes import Nodes, split_network
from tilewright.schedule.scheduling import EngineSchedule, NodeCosts, Priority, Scheduling

CONV = "O[k][oy][ox] += W[k][c][fy][fx] * I[c][iy][ix]"
POOL = "O[k][oy][ox] += I[k][iy][ix]"
ADD = "O[k][oy][ox] += A[k][oy][ox] * B[k][oy][ox]"
SLOTS = {"O": "O", "W": "I2", "I": "I1", "A": "I1", "B": "I2"}


def engine(name: str, weights: int, rest: int, word: int = 64) -> ArrayEngine:
    """Two memories: of weights, and of all else."""
    ways = {"I1": (TO_LOW, FROM_HIGH), "I2": (TO_LOW, FROM_HIGH), "O": (TO_LOW, FROM_HIGH, FROM_LOW, TO_HIGH)}

    def level(title: str, bits: int, slots: tuple[str, ...]) -> MemoryLevel:
        port = Port("rw", "read_write", word, word, tuple((slot, way) for slot in slots for way in ways[slot]))
        return MemoryLevel(title, bits, slots, (port,), ("D1",), read_energy=2.0, write_energy=3.0)

    return ArrayEngine(name, {"D1": 4}, (level("weights", weights, ("I2",)), level("data", rest, ("I1", "O"))), 0.5)


def machine(engines: Sequence[ArrayEngine], nets: Sequence[Net]) -> Machine:
    """With a memory at home."""
    home = Memory(name="home", word=32, energy=AccessEnergy(read=20.0, write=30.0))
    source = Source(Path("machine.yaml"), "bad-machine")
    places = [*(each.name for each in engines), home.name]
    channels = channels_of({net.name: net for net in nets}, places, source)
    return Machine(
        "small",
        memories={home.name: home},
        channels=channels,
        engines={each.name: each for each in engines},
        home=home.name,
    )


def pair(bits: int = 1 << 20) -> Machine:
    """Two engines on a link of 16 bits, and a bus of 8 bits to the memory at home."""
    nets = (
        Net(name="link", ends=("a", "b"), bits=16, energy=0.1),
        Net(name="bus", kind="bus", ends=("a", "b", "home"), bits=8, energy=1.0),
    )
    return machine([engine("a", bits, bits), engine("b", bits, bits)], nets)


def conv(name: str, source: str = "", channels: int = 2, rows: int = 6, taps: int = 3) -> LayerText:
    """A convolution that keeps its size."""
    return LayerText(
        name=name,
        kind="conv",
        equation=CONV,
        dims={"K": channels, "OY": rows, "OX": rows, "C": channels, "FY": taps, "FX": taps},
        relations=("iy = 1*oy + 1*fy", "ix = 1*ox + 1*fx"),
        sources={"I": (source,)} if source else {},
        slots=SLOTS,
        padding={"IY": (taps // 2, taps // 2), "IX": (taps // 2, taps // 2)},
    )


def add(name: str, one: str, other: str, channels: int = 2, rows: int = 6) -> LayerText:
    dims = {"K": channels, "OY": rows, "OX": rows}
    return LayerText(name, "add", ADD, dims, sources={"A": (one,), "B": (other,)}, slots=SLOTS)


def chain(count: int = 3) -> OperationGraph:
    """Convolutions one behind the other."""
    return network_of_equations("chain", [conv(f"c{i}", f"c{i - 1}" if i else "") for i in range(count)])


def even_costs(nodes: Nodes, fabric: Fabric, cycles: int = 100) -> NodeCosts:
    """Every node takes as long on every engine."""
    shape = (len(nodes.kinds), len(fabric.places))
    return NodeCosts(np.full(shape, cycles), np.ones(shape), np.zeros(shape), np.zeros(shape, np.uint32))


@dataclass(frozen=True)
class Task:
    """Something to schedule."""

    scheduling: Scheduling
    costs: NodeCosts
    places: np.ndarray[tuple[int], np.dtype[np.int64]]

    def run(self) -> EngineSchedule:
        return self.scheduling.schedule(self.places)


def random_task(seed: int) -> Task:
    """A network with branches on a machine with some topology; memories hold a few tensors only."""
    random = Random(seed)
    rows, channels = random.randint(2, 7), random.randint(1, 4)
    layers: list[LayerText] = []
    for number in range(random.randint(1, 7)):
        known = [layer.name for layer in layers]
        if len(known) > 1 and random.random() < 0.35:
            one, other = random.sample(known, 2)
            layers.append(add(f"l{number}", one, other, channels, rows))
        else:
            source = random.choice(known) if known and random.random() < 0.9 else ""
            layers.append(conv(f"l{number}", source, channels, rows, random.choice([1, 3])))
    network = network_of_equations(f"random {seed}", layers)
    names = [f"e{number}" for number in range(random.randint(1, 5))]
    whole = 8 * channels * rows * rows
    engines = [
        engine(name, max(whole, 72 * channels**2) * random.randint(2, 4), whole * random.randint(5, 12), 32)
        for name in names
    ]
    cast = random.random() < 0.5
    if len(names) > 2 and random.random() < 0.3:
        engines[1] = replace(engines[0], name=names[1], shares=names[0])
    out = (*names, "home")
    nets = [Net(name="out", kind="bus", ends=out, bits=random.choice([8, 32]), energy=1.0, multicast=cast)]
    if len(names) > 1:
        kinds: list[Literal["link", "ring", "mesh", "bus"]] = ["link", "ring", "mesh", "bus"]
        kind = random.choice(kinds)
        bits: int | None = random.choice([None, 16])
        columns = 2 * (kind == "mesh")
        chip = Net(name="chip", kind=kind, ends=tuple(names), columns=columns, bits=bits, multicast=cast)
        nets.insert(0, chip)
    fabric = fabric_of(machine(engines, nets))
    splits = {layer.name: _split(random, rows) for layer in layers}
    nodes = split_network(network, splits, fabric.slots)
    shape = (len(nodes.kinds), len(fabric.places))
    numbers = np.random.default_rng(seed)
    slots = sum(1 << fabric.slots.index(slot) for slot in random.choice([("I1",), ("O",), ("I1", "O")]))
    streamed = np.where(numbers.random(shape) < 0.1, slots, 0)
    cycles = numbers.integers(1, 400, shape)
    costs = NodeCosts(cycles, numbers.random(shape), numbers.random(shape), streamed.astype(np.uint32))
    priority: Priority = random.choice(["latency", "memory"])
    places = np.array([random.randrange(len(names)) for _ in nodes.groups], np.int64)
    return Task(Scheduling(nodes, fabric, costs, priority), costs, places)


def _split(random: Random, rows: int) -> OperationSplit:
    across = (("K", 2),) if random.random() < 0.3 else ()
    choices: list[Loops] = [(), (("OY", "all"),), (("OY", min(2, rows)),), (("OX", 2), ("OY", min(3, rows)))]
    return OperationSplit(across, random.choice(choices))
