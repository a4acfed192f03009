"""Which kernel is chosen where predictions do not tell."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest
from msgspec.structs import replace

from passes.build import Builder
from tilewright.core.graph import Graph
from tilewright.machine.calibration import NESTS
from tilewright.machine.target import Sizes, load_platform, resize
from tilewright.plan import plan
from tilewright.plan.select import select


@pytest.mark.parametrize("platform", ["generic", "scratchpad", "cortex-m4", "siracusa"])
def test_of_kernels_that_take_the_same_the_special_one(platform: str) -> None:
    b = Builder()
    graph = b.graph(b.op("LayerNormalization", b.input("x", "float32[3,7]"), b.weights(7)))
    kernel = select(graph, graph.nodes[0], load_platform(platform)).kernel
    assert kernel is not None
    assert kernel.path.name == "layernorm_f32.c"


@pytest.mark.parametrize(("platform", "wanted"), [("generic", "maxpool.c"), ("cortex-m4", "maxpool_s8.c")])
def test_what_was_not_measured_is_not_compared(platform: str, wanted: str) -> None:
    b = Builder()
    pool = b.op("MaxPool", b.input("x", "int8[1,8,8,16]"), kernel_shape=(3, 3), channels_last=1)
    graph = b.graph(pool)
    kernel = select(graph, graph.nodes[0], load_platform(platform)).kernel
    assert kernel is not None
    assert kernel.path.name == wanted


@pytest.mark.parametrize(("platform", "joined"), [("generic", 1), ("siracusa", 4)])
def test_turns_of_loops_that_copy_are_joined_where_that_pays(platform: str, joined: int) -> None:
    b = Builder()
    parts = [b.input(f"x{n}", "float32[1,4,8,8]") for n in range(3)]
    graph = b.graph(b.op("Mod", b.op("Concat", *parts, axis=1), b.input("y", "float32[1,12,8,8]"), fmod=1))
    choices = [select(graph, node, load_platform(platform)) for node in graph.nodes]
    assert [(choice.kernel, choice.unroll) for choice in choices] == [(None, joined), (None, 1)]


def _product(size: int) -> Graph:
    b = Builder()
    return b.graph(b.op("MatMul", b.input("x", f"float32[{size},{size}]"), b.weights(size, size)))


def test_a_loop_nest_is_taken_where_it_is_faster_than_all_kernels() -> None:
    small, large = _product(3), _product(64)
    siracusa, generic = load_platform("siracusa"), load_platform("generic")
    nest = select(small, small.nodes[0], siracusa)
    assert nest.kernel is None
    assert "loop nest" in nest.rejected[-1].reason
    assert select(large, large.nodes[0], siracusa).kernel is not None
    # Nothing was measured here.
    assert select(small, small.nodes[0], generic).kernel is not None


def test_a_loop_nest_has_to_win_by_more_than_predictions_are_off() -> None:
    small, siracusa = _product(3), load_platform("siracusa")
    nests = siracusa.calibrations[NESTS]
    unsure = replace(nests, held_out=MappingProxyType({**nests.held_out, "p90": 1000.0}))
    machine = replace(siracusa, calibrations=MappingProxyType({**siracusa.calibrations, NESTS: unsure}))
    assert select(small, small.nodes[0], machine).kernel is not None


@pytest.mark.parametrize(("shape", "pads", "joined"), [("int8[1,2,32]", 1, 1), ("int8[3,32,32]", 1, 4)])
def test_turns_of_loops_that_cores_share_between_borders_are_not_joined(shape: str, pads: int, joined: int) -> None:
    b = Builder()
    graph = b.graph(b.op("Pad", b.input("x", shape), np.array([0, 0, pads, 0, 0, pads])))
    assert select(graph, graph.nodes[0], load_platform("siracusa")).unroll == joined


def test_scratch_of_cores_begins_in_different_banks() -> None:
    b = Builder()
    # Rows of 123 bytes are copied: four take 496, a multiple of which would begin in every fourth bank.
    product = b.op("MatMul", b.input("x", "int8[32,123]"), b.weights(123, 16, dtype="int8"))
    machine = resize(load_platform("siracusa"), Sizes(without=("neureka",)))
    made = plan(b.graph(product), machine)
    assert made.schedule is not None
    (work,) = made.schedule.groups[-1].works
    banks = {core * work.scratch_bytes // 4 % 16 for core in range(8)}
    assert work.scratch_bytes >= 496
    assert len(banks) == 8
