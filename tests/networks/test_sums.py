"""Reductions cut into parts that kernels add up, on scratchpads that are almost too small."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from networks.test_scratchpad_networks import FLAGS, Way, least, options
from onnx_models import model, node, value, write
from tilewright.api import compile_model, run_model
from tilewright.core.graph import Array
from tilewright.core.interpret import interpret
from tilewright.plan import PlanOptions
from tilewright.sim import EmulatedMachine
from tilewright.timeline.clock import CORES
from tilewright.timeline.replay import plan_timeline

KINDS = {"float32": TensorProto.FLOAT, "int8": TensorProto.INT8, "uint8": TensorProto.UINT8}
Case = tuple[onnx.ModelProto, list[Array]]


def case(nodes: Sequence[onnx.NodeProto], fed: dict[str, Array], **constants: Array) -> Case:
    inputs = [value(name, array.shape, KINDS[array.dtype.name]) for name, array in fed.items()]
    return model(nodes, inputs, ["y"], constants=constants), list(fed.values())


def normal(*shape: int) -> Array:
    return np.random.default_rng(shape).normal(size=shape).astype(np.float32)


def integers(kind: str, *shape: int) -> Array:
    limits = np.iinfo(kind)
    return np.random.default_rng(shape).integers(limits.min, limits.max + 1, shape).astype(kind)


def matmul() -> Case:
    """A constant matrix, a bias, a sum with a tensor of the result's shape."""
    nodes = [
        node("MatMul", "x w", "product"),
        node("Add", "product b", "biased"),
        node("Add", "biased z", "sum"),
        node("Relu", "sum", "y"),
    ]
    return case(nodes, {"x": normal(5, 300), "z": normal(5, 20)}, w=normal(300, 20), b=normal(20))


def gemm() -> Case:
    """The bias is an operand of the product itself."""
    nodes = [node("Gemm", "x w b", "product"), node("Relu", "product", "y")]
    return case(nodes, {"x": normal(6, 300)}, w=normal(300, 33), b=normal(33))


def products() -> Case:
    """Two tensors."""
    nodes = [node("MatMul", "a b", "product"), node("Sigmoid", "product", "y")]
    return case(nodes, {"a": normal(2, 5, 300), "b": normal(2, 300, 7)})


def packed_integers() -> Case:
    """The last part of 300 is no whole block of 16."""
    nodes = [node("MatMulInteger", "x w", "product"), node("Add", "product b", "y")]
    bias = np.arange(20, dtype=np.int32) * 1000
    return case(nodes, {"x": integers("int8", 5, 300)}, w=integers("int8", 300, 20), b=bias)


def zero_points() -> Case:
    nodes = [node("QLinearMatMul", "a s p b s q r p", "y")]
    scales = {"s": np.asarray(0.02, np.float32), "r": np.asarray(0.5, np.float32)}
    points = {"p": np.asarray(7, np.uint8), "q": np.asarray(-5, np.int8)}
    return case(nodes, {"a": integers("uint8", 2, 5, 300), "b": integers("int8", 2, 300, 7)}, **scales, **points)


def convolution() -> Case:
    nodes = [
        node("Conv", "x w b", "convolved", pads=[1, 1, 1, 1], strides=[2, 1]),
        node("Add", "convolved z", "sum"),
        node("Relu", "sum", "y"),
    ]
    fed = {"x": normal(1, 40, 7, 6), "z": normal(1, 20, 4, 6)}
    return case(nodes, fed, w=normal(20, 40, 3, 3), b=normal(20))


CASES = (matmul, gemm, products, packed_integers, zero_points, convolution)
MACHINES = (EmulatedMachine("start"), EmulatedMachine("wait"), EmulatedMachine("random", 7))
WAYS = [Way(1.0, "L2", cores, PlanOptions(), machine) for cores, machine in product((1, 8), MACHINES)]
WAYS.append(Way(1.0, "L3", 8, PlanOptions(buffers=2), EmulatedMachine("random", 8)))


@pytest.mark.sample(every=7, by=("made",))
@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way.cores}-{way.machine.dma}-{way.planning.buffers}")
@pytest.mark.parametrize("made", CASES)
def test_parts_are_added_up(made: Callable[[], Case], way: Way, tmp_path: Path) -> None:
    content, inputs = made()
    network = write(tmp_path / "network.onnx", content)
    l1 = least(network, way)
    ran = run_model(network, options(way, l1), inputs=inputs, flags=FLAGS, machine=way.machine)
    schedule = ran.compiled.plan.schedule
    assert schedule is not None
    assert any(work.sums for group in schedule.groups for work in group.works)
    for found, expected in zip(ran.outputs, interpret(ran.compiled.plan.graph, inputs), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
        assert found.dtype.kind == "f" or np.array_equal(found, expected)


@pytest.mark.parametrize("slots", [1, 2])
def test_the_timeline_stores_what_is_complete(slots: int, tmp_path: Path) -> None:
    way = Way(1.0, "L2", 8, PlanOptions(buffers=slots), EmulatedMachine("wait"))
    network = write(tmp_path / "network.onnx", matmul()[0])
    plan = compile_model(network, options(way, least(network, way))).plan
    assert plan.schedule is not None
    timeline = plan_timeline(plan, plan.schedule)
    (timed,) = timeline.groups
    bars = timeline.bars(0, 1 << 20)
    loops = timed.group.loops
    parts = loops[-1].count
    assert (loops[-1].dim, parts > 1) == ("K", True)
    stores = [bar.step for bar in bars if bar.kind == "store"]
    assert stores == [tile * parts + parts - 1 for tile in range(prod(loop.count for loop in loops[:-1]))]
    assert max(bar.stop for bar in bars) == timed.cycles == plan.schedule.groups[0].cycles
    assert sum(b.stop - b.start for b in bars if b.lane == CORES) == pytest.approx(timed.cost.compute, rel=1e-3)
    assert sum(b.stop - b.start for b in bars if b.lane != CORES) == pytest.approx(timed.cost.transfers, rel=1e-3)
