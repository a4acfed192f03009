"""Copies that the cores make together inside of their memory, of few long runs and of many short ones."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from tilewright.api.timed_programs import BYTES, copies, copy, layers
from tilewright.codegen import build, project_files, project_in
from tilewright.core.program import AwaitTransfers, Copy, Driven, Mark, Meet
from tilewright.machine.target import load_platform
from tilewright.sim.chip import Chip

HALF = BYTES // 2
SHAPES = ((1000, 1, 1), (77, 3, 1), (5, 40, 1), (64, 16, 1), (30, 4, 5), (9, 7, 6), (1, 1, 1))
"""Bytes of a run, runs and planes."""


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["siracusa", "snitch", "mempool-16"])
def test_bytes_come_to_their_places(name: str, shape: tuple[int, int, int]) -> None:
    platform = load_platform(name)
    program = layers(platform, 1, BYTES)
    load, store = copies(program.routines[0].body)
    size, rows, planes = shape
    link = platform.links["local"]
    if planes > 1 and link.rank < 3:
        pytest.skip("its DMA takes planes one by one")
    row, plane = size + 3, rows * (size + 3) + 5
    to, source = replace(load.to, offset=HALF), replace(load.to, offset=0)
    inside = Copy(0, to, source, size, (planes, rows), (plane, row), (plane, row), link.rank)
    out = replace(copy(store, 1, 0, HALF, 1, link), source=to)
    body = (
        Mark(0, "begin"),
        Driven((copy(load, 0, 0, BYTES, 1, link), AwaitTransfers(0))),
        Meet(),
        inside,
        AwaitTransfers(0),
        Meet(),
        Driven((out, AwaitTransfers(1))),
        Meet(),
    )
    rooms = tuple((memory, max(room, BYTES) if memory == "L1" else room) for memory, room in program.memories)
    routines = (replace(program.routines[0], body=body),)
    given = np.random.default_rng(1).integers(-128, 128, BYTES).astype(np.int8)
    changed = replace(program, routines=routines, memories=rooms, functions=())
    with project_in(None, project_files([changed], platform), program.name) as project:
        built = build(project, platform, program.name, flags=("-g0",))
        chip = Chip(built.executable, 1, [program.outputs[0].type], platform, steps=1)
        (found,) = chip.run([given])
    expected = given[HALF:].copy()
    for p in range(planes):
        for r in range(rows):
            at = p * plane + r * row
            expected[at : at + size] = given[at : at + size]
    np.testing.assert_array_equal(found.reshape(-1)[:HALF], expected)
