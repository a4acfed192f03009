"""Tiled plans built by hand: a network of two convolutions, a sum and a product on a machine with four memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any

from msgspec import structs
from msgspec.structs import replace

from passes.build import Builder, platform
from tilewright.core.graph import Graph
from tilewright.core.plan import Choice, Group, NodeWork, Place, Plan, Schedule, Stage, TileBuffer
from tilewright.core.tiles import TileLoop, member
from tilewright.machine.kernel import Kernel
from tilewright.machine.parts import Cores, Link, Memory
from tilewright.machine.target import Target
from tilewright.plan import check
from tilewright.plan.points import Crossing, Crossings, points
from tilewright.timeline.parts import Facts

GENERIC = platform()
CONV = next(k for k in GENERIC.kernels if k.path.name == "conv2d_f32.c")
PACK = CONV.pack["W"]
CORES = 4
SOME = 1 << 30
"""More buffers than there are."""


def machine() -> Target:
    """L1 of an engine, L2 as home, L3 behind it, and W, which the engine reads in place."""
    sizes = {"L1": 32768, "L2": 65536, "L3": 1 << 20, "W": 16384}
    dmas = {"near": Link("near", ("L2", "L1"), 3, 8, 20), "far": Link("far", ("L3", "L2"), 2, 1, 100)}
    return replace(
        GENERIC,
        memories=MappingProxyType({name: Memory(name, size) for name, size in sizes.items()}),
        engines=MappingProxyType({"cpu": Cores(name="cpu", count=CORES, memory="L1", reads=("W",), fork=60)}),
        links=MappingProxyType(dmas),
        home="L2",
    )


def network() -> Graph:
    """x -> a -> b -> c = a + b -> v (a view of c) -> y; rows of a, b and c have 512 bytes, those of x 128."""
    b = Builder()
    x = b.input("x", "float32[1,8,8,4]")
    pads = {"pads": (1, 1, 1, 1), "channels_last": 1}
    first = b.op("Conv", x, b.weights(16, 4, 3, 3), name="a", **pads)
    second = b.op("Conv", first, b.weights(16, 16, 3, 3), name="b", **pads)
    total = b.op("Add", second, first, name="c")
    return b.graph(b.op("MatMul", b.op("Reshape", total, [64, 16], name="v"), b.weights(16, 8), name="y"))


def mapping(**values: int) -> Mapping[str, int]:
    return MappingProxyType(values)


def stacked(*buffers: TileBuffer) -> tuple[TileBuffer, ...]:
    """Buffers one behind the other from the beginning of L1."""
    found: list[TileBuffer] = []
    for buffer in buffers:
        found.append(replace(buffer, offset=found[-1].end if found else 0))
    return tuple(found)


def buffer(tensor: str, size: int, slots: int = 2, pack: str = "") -> TileBuffer:
    return TileBuffer(tensor, 0, size, slots, pack)


def group(
    works: Sequence[NodeWork],
    loops: Sequence[tuple[str, int, int]],
    buffers: tuple[TileBuffer, ...],
    keep: Mapping[str, int] | None = None,
) -> Group:
    return Group(tuple(works), tuple(TileLoop(*loop) for loop in loops), buffers, MappingProxyType(dict(keep or {})))


def conv_a() -> Group:
    """A kernel with a packed constant: rows in tiles of 3, 3 and 2, shared by cores."""
    buffers = stacked(buffer("x", 640), buffer("c0", 2304, 1, PACK), buffer("a", 1536))
    return group([NodeWork(0, mapping(X=0, W=1, Y=2), split="OH", chunk=1)], [("OH", 3, 3)], buffers)


def conv_b() -> Group:
    """A loop nest cut in both directions; its weights are read where they are staged."""
    buffers = stacked(buffer("a", 2048), buffer("b", 512))
    return group([NodeWork(1, mapping(X=0, Y=1))], [("OH", 2, 4), ("OW", 4, 2)], buffers)


def add() -> Group:
    """A sum that replaces its operand in place."""
    b, a, c = stacked(buffer("b", 1024), buffer("a", 1024), buffer("c", 1024))
    return group(
        [NodeWork(2, mapping(A=0, B=1, Y=2), split="D2", chunk=2)], [("D1", 2, 4)], (b, a, replace(c, offset=0))
    )


def matmul() -> Group:
    """A product whose weights are read in place."""
    return group([NodeWork(4, mapping(A=0, Y=1))], [("M", 16, 4)], stacked(buffer("v", 1024), buffer("y", 512)))


def assembled(groups: Sequence[Group], kernels: Mapping[int, Kernel], stages: tuple[Stage, ...]) -> Plan:
    graph = network()
    places = {
        "x": Place("input"),
        "y": Place("output"),
        "a": Place("L2", 0),
        "b": Place("L2", 4096),
        "c": Place("L2", 8192),
        "v": Place("L2", 8192),
        **{name: Place("constant") for name in graph.constants},
    }
    inner = {work.step for g in groups for work in g.works[:-1]}
    places = {name: place for name, place in places.items() if name not in {"ab"[step] for step in inner}}
    choices = tuple(Choice("" if step == 3 else "cpu", kernels.get(step)) for step in range(len(graph.nodes)))
    used = {"L1": 32768, "L2": 16384, "L3": 0, "W": 0}
    direct = frozenset(name for name in graph.nodes[-1].inputs if name in graph.constants)
    schedule = Schedule("cpu", "L2", tuple(groups), stages, direct, MappingProxyType(used), CORES)
    return Plan(graph, machine(), choices, MappingProxyType(places), (), MappingProxyType({}), 0, 0, False, schedule)


def by_layer() -> Plan:
    """Each node on its own."""
    stage = Stage("c1", "", Place("L1", 16384), 9216, 0, 1, 1)
    return assembled([conv_a(), conv_b(), add(), matmul()], {0: CONV}, (stage,))


def fused(*, keep: bool = True) -> Plan:
    """Both convolutions and the sum depth-first, two rows at a step; lines of `a` are kept or computed again."""
    works = [
        NodeWork(0, mapping(X=0, W=1, Y=2), split="OW", chunk=2),
        NodeWork(1, mapping(X=2, Y=3)),
        NodeWork(2, mapping(A=3, B=2, Y=4)),
    ]
    x, w, a, b, c = stacked(
        buffer("x", 512 if keep else 768),
        buffer("c0", 2304, 1),
        buffer("a", 2048, 1),
        buffer("b", 1024, 1),
        buffer("c", 1024, 1),
    )
    stage = Stage("c1", "", Place("L1", 16384), 9216, 0, 0, 0)
    first = group(works, [("D1", 2, 4)], (x, w, a, b, replace(c, offset=b.offset)), {"a": 1} if keep else {})
    return assembled([first, matmul()], {}, (stage,))


def moving(made: Plan, crossings: Crossings = MappingProxyType({})) -> Plan:
    """A plan with its moves and runs, which follow from its groups where it has none; all nodes run at every step."""
    schedule = schedule_of(made)
    if schedule.runs:
        return made
    facts = [_facts(made, each) for each in schedule.groups]
    moves, runs = points(schedule.groups, facts, schedule.stages, crossings)
    return scheduled(made, moves=moves, runs=runs)


def checked(made: Plan) -> None:
    """Checks a plan with its moves and runs."""
    check(moving(made))


def crossing(made: Plan, number: int, index: int, **how: int) -> Plan:
    """A plan with its moves and runs, of which those of one buffer go beyond its group."""
    return moving(made, {(number, index): Crossing(**how)})


def _facts(made: Plan, mine: Group) -> Facts:
    members = [member(made.graph, made.graph.nodes[w.step], made.choices[w.step].kernel) for w in mine.works]
    inner = {each.output.tensor for each in members}
    last = mine.works[-1].buffers
    reads: dict[int, int] = {}
    for position, (work, each) in enumerate(zip(mine.works, members, strict=True)):
        for use in each.uses:
            if not use.writes and use.tensor not in inner and work.buffers.get(use.key, SOME) < len(mine.buffers):
                reads.setdefault(work.buffers[use.key], position)
    steps = prod(loop.count for loop in mine.loops)
    stores = {last[use.key]: steps for use in members[-1].uses if use.writes and use.key in last}
    engines = [made.choices[work.step].engine for work in mine.works]
    carriers = range(int(mine.ahead and not mine.queued), len(members))
    return Facts(steps, reads, stores, carriers, frozenset(), ["" if e == "cpu" else e for e in engines])


# Changes


def scheduled(made: Plan, **changes: Any) -> Plan:
    assert made.schedule is not None
    return replace(made, schedule=replace(made.schedule, **changes))


def schedule_of(made: Plan) -> Schedule:
    assert made.schedule is not None
    return made.schedule


def memory(made: Plan, name: str, size: int) -> Plan:
    memories = {**made.platform.memories, name: structs.replace(made.platform.memories[name], bytes=size)}
    return replace(made, platform=replace(made.platform, memories=MappingProxyType(memories)))
