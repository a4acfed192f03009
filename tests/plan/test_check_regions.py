"""The validator's own arithmetic: all steps of a group at once, as everybody else sees them one by one."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
from msgspec.structs import replace

from passes.build import Builder
from plan.tiled_plans import buffer, by_layer, group, mapping, memory, moving, scheduled, stacked
from support import lines_run
from tilewright.core.op import REGISTRY, arrays_of, call_example
from tilewright.core.plan import Choice, Group, NodeWork, Place, Plan
from tilewright.core.tiles import TileLoop, member, trace
from tilewright.plan import check
from tilewright.plan.validator.regions import Interval, Replay, touched


def test_regions_are_those_of_the_projection() -> None:
    """At each step of a group, the validator's own arithmetic gives what planner and code generator work with."""
    graph = by_layer().graph
    members = [member(graph, node, None) for node in graph.nodes[:3]]
    for keep in ({}, {"a": 1}):
        for sizes in ((1, 8), (2, 4), (3, 5), (8, 8)):
            loops = [TileLoop("D2", sizes[1], -(-8 // sizes[1])), TileLoop("D1", sizes[0], -(-8 // sizes[0]))]
            replay = Replay(members, loops, keep)
            for at in itertools.product(*(range(loop.count) for loop in loops)):
                expected = trace(members, loops, keep, at)
                for position, regions in enumerate(expected.regions):
                    for key, box in regions.items():
                        assert at_step(replay.regions[position][key], at) == [(e.start, e.stop) for e in box]
                for tensor, box in expected.held.items():
                    assert at_step(replay.held[tensor], at) == [(e.start, e.stop) for e in box]


def at_step(box: tuple[Interval, ...], at: tuple[int, ...]) -> list[tuple[int, int]]:
    def pick(value: Any) -> int:
        array = np.asarray(value)
        return int(
            array[tuple(min(i, n - 1) for i, n in zip((*at, 0), array.shape, strict=True))] if array.ndim else array
        )

    return [(pick(part.start), pick(part.stop)) for part in box]


def test_regions_are_the_footprints_of_tiles() -> None:
    """For all operators and random tiles."""
    rng = random.Random(3)
    for op in REGISTRY.values():
        for spec in op.examples:
            domain = call_example(op, spec, arrays_of(spec)).domain()
            if 0 in domain.dims.values():
                continue
            tile: dict[str, tuple[int, int]] = {}
            for name in domain.dims.keys() - domain.whole:
                start = rng.randrange(domain.dims[name])
                tile[name] = start, rng.randint(1, domain.dims[name] - start)
            ranges = {name: Interval(start, start + size) for name, (start, size) in tile.items()}
            for key in domain.access:
                for part, span in zip(touched(domain, key, ranges), domain.footprint(key, tile), strict=True):
                    assert part.size == span.size
                    assert not span.size or part.start == span.start


def convolutions(tile: int) -> Plan:
    """Fifty convolutions of 320 x 320 pixels, each in square tiles shared by all cores."""
    b = Builder()
    names, window = [b.input("x", "float32[1,320,320,16]")], {"pads": (1, 1, 1, 1), "channels_last": 1}
    for number in range(50):
        names.append(b.op("Conv", names[-1], b.weights(16, 16, 3, 3), name=f"t{number}", **window))
    graph, loops = b.graph(names[-1]), [("OH", tile, 320 // tile), ("OW", tile, 320 // tile)]
    groups: list[Group] = []
    for number, node in enumerate(graph.nodes):
        work = NodeWork(number, mapping(X=0, W=1, Y=2), split="OW", chunk=8)
        sizes = ((tile + 2) ** 2 * 64, 9216, tile**2 * 64)
        tensors = zip((*node.inputs, *node.outputs), sizes, strict=True)
        groups.append(group([work], loops, stacked(*(buffer(name, size) for name, size in tensors))))
    places = {name: Place("L2", graph.types["x"].bytes * (i % 2)) for i, name in enumerate(names)}
    places |= {name: Place("constant") for name in graph.constants} | {"x": Place("input"), names[-1]: Place("output")}
    made = memory(memory(by_layer(), "L1", 1 << 20), "L2", 1 << 26)
    made = scheduled(
        made, groups=tuple(groups), stages=(), direct=frozenset[str](), used={"L1": 1 << 20, "L2": 1 << 24}
    )
    return replace(made, graph=graph, choices=(Choice("cpu", None),) * 50, places=places)


def test_work_of_checking_does_not_grow_with_the_steps() -> None:
    """Fifty groups of a hundred steps, and of a hundred thousand."""
    few, many = moving(convolutions(32)), moving(convolutions(1))
    check(few)  # what is worked out once is not counted
    assert lines_run(lambda: check(many)) < 1.1 * lines_run(lambda: check(few))
