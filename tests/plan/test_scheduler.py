"""Plans for machines with scratchpads: never slower than layer by layer, correct, repeatable, exact about limits."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

import numpy as np
import pytest
from msgspec.structs import replace

from passes.build import Builder
from tilewright.base.dtype import DTYPES
from tilewright.core.graph import Array, Graph, Node, TensorType, attrs
from tilewright.core.plan import Plan
from tilewright.core.plan_text import print_plan
from tilewright.core.residencies import residencies
from tilewright.errors import TilewrightError
from tilewright.machine.target import Sizes, Target, load_platform, resize
from tilewright.passes import run_pipeline
from tilewright.plan import PlanOptions, check, plan, scheduler
from tilewright.plan.draft import finished
from tilewright.plan.levels import first_sources, levels_of
from tilewright.plan.menu import Menu
from tilewright.plan.network import Network, NodeRange, networks_of
from tilewright.plan.scheduler import STEPS, tiled

ROWS = PlanOptions(joint=False)


@cache
def machine(l1: int, home: str = "L2", l2: int = 2 << 20, l3: int = 64 << 20, weights: int = 0) -> Target:
    sizes = Sizes({"L1": l1, "L2": l2, "L3": l3, "W": weights}, home)
    return resize(load_platform("scratchpad"), sizes)


def convolutions(depth: int = 4, size: int = 24, channels: int = 16, *, residual: bool = False) -> Graph:
    """A chain of 3x3 convolutions with ReLU, each second one added to what came before it."""
    image = TensorType(DTYPES["float32"], (1, channels, size, size))
    weights = TensorType(DTYPES["float32"], (channels, channels, 3, 3))
    types, before = {"x": image}, "x"
    constants: dict[str, Array] = {}
    nodes: list[Node] = []
    for index in range(depth):
        types[f"w{index}"] = weights
        constants[f"w{index}"] = np.full(weights.shape, index + 1, np.float32)
        nodes.append(Node("Conv", (before, f"w{index}"), (f"c{index}",), attrs(pads=(1, 1, 1, 1))))
        nodes.append(Node("Relu", (f"c{index}",), (f"r{index}",)))
        types[f"c{index}"] = types[f"r{index}"] = image
        made = f"r{index}"
        if residual and index % 2:
            nodes.append(Node("Add", (made, before), (f"a{index}",)))
            types[f"a{index}"] = image
            made = f"a{index}"
        before = made
    return Graph("chain", ("x",), (before,), tuple(nodes), types, constants)


@cache
def lowered(depth: int = 4, size: int = 24, channels: int = 16, *, residual: bool = False) -> Graph:
    return run_pipeline(convolutions(depth, size, channels, residual=residual), machine(65536))


def cycles(made: Plan) -> float:
    assert made.schedule is not None
    return sum(group.cycles for group in made.schedule.groups)


def planned(graph: Graph, platform: Target, options: PlanOptions | None = None) -> Plan:
    made = plan(graph, platform, options or PlanOptions())
    check(made)
    return made


@pytest.mark.sample(every=3, by=("home", "residual"))
@pytest.mark.parametrize("home", ["L2", "L3"])
@pytest.mark.parametrize("l1", [16_384, 65_536, 262_144])
@pytest.mark.parametrize("residual", [False, True])
def test_joint_plans_are_not_slower(l1: int, home: str, residual: bool) -> None:
    graph, platform = lowered(residual=residual), machine(l1, home)
    joint, rows = planned(graph, platform), planned(graph, platform, ROWS)
    assert joint.schedule is not None
    assert joint.schedule.bound <= cycles(joint) <= cycles(rows)


def test_tensors_stay_in_a_large_memory() -> None:
    made = planned(lowered(), machine(262_144))
    assert {buffer.place.space for buffer in made.buffers} == {"L1"}


def test_outputs_that_are_read_again_stay() -> None:
    one = TensorType(DTYPES["float32"], (1, 1))
    nodes = (Node("MatMul", ("x", "x"), ("y",)), Node("MatMul", ("x", "y"), ("z",)))
    graph = Graph("again", ("x",), ("y", "z"), nodes, dict.fromkeys("xyz", one), {})
    made = planned(run_pipeline(graph, machine(65_536)), machine(65_536))
    assert made.schedule is not None
    loaded = {(move.group, move.buffer) for move in made.schedule.moves if move.kind == "load"}
    assert [made.schedule.groups[group].buffers[buffer].tensor for group, buffer in sorted(loaded)] == ["x"]
    known = residencies(made)
    assert next((known.all[n].tensor, known.all[n].until) for n in sorted({*known.tiles.values()})) == ("x", 1)


def test_what_stays_is_not_moved_with_what_is_loaded() -> None:
    b = Builder()
    x = b.input("x", "float32[3,2]")
    sums = b.op("CumSum", x, np.array(0), name="sums")
    square = b.op("MatMul", x, b.op("Transpose", x, name="turned", perm=(1, 0)), name="square")
    platform = resize(load_platform("siracusa"), Sizes({"L1": 16_384}, "L3", 8))
    made = planned(run_pipeline(b.graph(sums, square), platform), platform)
    assert made.schedule is not None
    buffers = [n for n, one in enumerate(made.schedule.groups[1].buffers) if one.tensor == "x"]
    loads = {m.buffer: m.issue.group for m in made.schedule.moves if (m.kind, m.group) == ("load", 1)}
    assert [loads.get(buffer) for buffer in buffers] == [None, 0]


def test_what_a_kernel_wants_side_by_side_is_not_loaded_whole() -> None:
    """The last column of the image is never read, and columns of a kernel without strides lie side by side."""
    b = Builder()
    first = b.op("Conv", b.input("x", "float32[1,10,60,7]"), b.weights(7, 1, 6, 6), channels_last=1, group=7)
    image, weights = b.input("image", "float32[1,5,34,14]"), b.weights(14, 1, 5, 5)
    second = b.op("Conv", image, weights, channels_last=1, group=14, strides=(2, 2))
    platform = resize(load_platform("siracusa"), Sizes({"L1": 65_536}, cores=1, without=("neureka",)))
    platform = replace(platform, kernels=tuple(k for k in platform.kernels if k.path.stem == "depthwise_f32"))
    made = planned(run_pipeline(b.graph(first, second), platform), platform)
    assert made.schedule is not None
    for group in made.schedule.groups:
        assert {n for work in group.works for n in work.buffers.values()} == {*range(len(group.buffers))}


@pytest.mark.parametrize("home", ["L2", "L3"])
def test_every_step_leaves_a_plan_that_is_right(home: str) -> None:
    """Of plans with copies in a nearer memory, groups in one step, operands inside results, and prefetches."""
    b = Builder()
    old, new = b.input("old", "float32[4,6,8]"), b.input("new", "float32[4,2,8]")
    cache = b.op("Concat", old, b.op("Exp", new, name="row"), name="cache", axis=1)
    graph = b.graph(b.op("MatMul", cache, b.weights(4, 8, 8), name="scores"), cache)
    better = 0
    for source, platform in ((graph, machine(65_536, home)), (convolutions(), machine(16_384, home))):
        options = PlanOptions()
        (network, *_) = networks_of(run_pipeline(source, platform), platform, options)
        draft = tiled(network, options)
        assert draft is not None
        before = finished(draft)
        check(before)
        for step in STEPS:
            draft = step(draft)
            check(finished(draft))
        better += print_plan(finished(draft)) != print_plan(before)
    assert better


def test_candidates_of_other_machines_are_not_taken() -> None:
    """Candidates are kept for the whole process; prices of another machine, also of one with the same name, differ."""
    b = Builder()
    graph = b.graph(b.op("Mod", b.input("x", "int32[64,64]"), b.input("y", "int32[64,64]")))
    platform = resize(load_platform("siracusa"), Sizes({"L1": 16_384}))
    slower = replace(platform, operations={name: cycles * 2 for name, cycles in platform.operations.items()})

    def cheapest(machine: Target) -> float:
        (network,) = networks_of(run_pipeline(graph, machine), machine, PlanOptions())
        menu = Menu(network, PlanOptions(), 16_384)
        return min(
            one.cycles for one in menu.front(NodeRange(0, 0), frozenset(), first_sources(network, levels_of(network)))
        )

    assert cheapest(slower) > 1.5 * cheapest(platform)


def test_layers_are_fused_where_tensors_do_not_fit() -> None:
    graph, platform = lowered(2, 48, 8), machine(32_768)
    made = planned(graph, platform)
    assert made.schedule is not None
    assert any(len(group.works) > 1 for group in made.schedule.groups)
    apart = planned(graph, platform, PlanOptions(fuse="off"))
    assert apart.schedule is not None
    assert all(len(group.works) == 1 for group in apart.schedule.groups)
    assert cycles(made) <= cycles(apart)


def test_fusion_fits_where_nothing_else_does() -> None:
    """Behind the engine's memory there is room for the input and the output only."""
    graph = lowered(2, 48, 8)
    image = 48 * 48 * 8 * 4
    made = planned(graph, machine(48_000, "L3", l2=0, l3=2 * image, weights=65_536))
    assert made.schedule is not None
    assert made.schedule.used["L3"] <= 2 * image
    assert not made.buffers or {buffer.place.space for buffer in made.buffers} == {"L1"}


def test_weights_are_read_in_place_where_the_machine_can() -> None:
    graph = lowered()
    made = planned(graph, machine(65_536, weights=1 << 20))
    assert made.schedule is not None
    assert made.schedule.direct == frozenset(graph.constants)
    assert made.schedule.used["W"] > 0
    some = planned(graph, machine(65_536, weights=10_000))
    assert some.schedule is not None
    assert 0 < len(some.schedule.direct) < len(graph.constants)


def test_weights_are_copied_ahead() -> None:
    made = planned(lowered(), machine(65_536, "L3"))
    assert made.schedule is not None
    assert made.schedule.stages
    assert all(stage.place.space == "L2" for stage in made.schedule.stages)
    assert any(stage.start < stage.first for stage in made.schedule.stages)
    tight = planned(lowered(), machine(65_536, "L3", l2=1024))
    assert tight.schedule is not None
    assert all(stage.place.offset + stage.bytes <= 1024 for stage in tight.schedule.stages)


@pytest.mark.parametrize("order", ["memory", "time", "given"])
def test_orders(order: Literal["memory", "time", "given"]) -> None:
    made = planned(lowered(residual=True), machine(65_536), PlanOptions(order=order))
    assert len(made.graph.nodes) == len(lowered(residual=True).nodes)


def test_plans_repeat() -> None:
    graph = lowered(residual=True)
    first, second = (planned(graph, machine(32_768)) for _ in range(2))
    assert first.schedule == second.schedule
    assert first.places == second.places


def needs(error: TilewrightError, memory: str) -> int:
    assert error.code == "does-not-fit"
    found = re.search(rf"needs at least (\d+) bytes of {memory}", str(error))
    assert found is not None, str(error)
    return int(found[1])


@pytest.mark.parametrize("options", [PlanOptions(), ROWS])
def test_the_smallest_engine_memory_is_exact(options: PlanOptions) -> None:
    graph = lowered()
    with pytest.raises(TilewrightError) as raised:
        plan(graph, machine(64), options)
    least = needs(raised.value, "L1")
    assert "Conv" in str(raised.value)
    assert any("smallest tile" in reason for reason in raised.value.reasons)
    assert "--l1" in raised.value.help
    planned(graph, machine(least), options)
    with pytest.raises(TilewrightError):
        plan(graph, machine(least - 1), options)


@pytest.mark.parametrize(("home", "memory"), [("L2", "L2"), ("L3", "L3")])
def test_the_smallest_home_is_exact(home: str, memory: str) -> None:
    graph = lowered(2)

    def other(size: int) -> Target:
        sizes = {"L2": 0, "L3": 0, memory: size}
        return machine(65_536, home, l2=sizes["L2"], l3=sizes["L3"])

    with pytest.raises(TilewrightError) as raised:
        plan(graph, other(1000))
    least = needs(raised.value, memory)
    assert any("constants take" in reason for reason in raised.value.reasons)
    planned(graph, other(least))
    with pytest.raises(TilewrightError):
        plan(graph, other(least - 1))


def test_other_engines_are_tried_where_the_first_choice_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, room = lowered(2), machine(16_384)
    (fitting,) = networks_of(graph, room, PlanOptions())
    wide = replace(fitting, platform=machine(64), saved=1.0)
    networks = [wide, fitting]

    def chosen(_graph: Graph, _platform: Target, _options: PlanOptions) -> tuple[Network, ...]:
        return tuple(networks)

    monkeypatch.setattr(scheduler, "networks_of", chosen)
    assert cycles(planned(graph, room)) > 0
    del networks[1]
    with pytest.raises(TilewrightError) as raised:
        plan(graph, room)
    assert "64 given" in raised.value.what
