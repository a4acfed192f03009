"""Networks that keep states between runs give, step by step, what onnxruntime gives with states fed by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from onnx_models import model, node, value, write
from stateful import PLATFORMS, noise, ran, running_sum, stepped, streaming_conv, with_metadata, zeros
from tilewright.machine.target import Sizes


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("platform", [*PLATFORMS, "cortex-m7"])
def test_a_running_sum(platform: str, tmp_path: Path) -> None:
    path, states = running_sum(tmp_path), {"s_in": "s_out"}
    inputs = {"x": noise(1, 5, 40)}
    made = ran(path, platform, states, inputs, stepped(path, states, inputs, {"s_in": zeros(40)}))
    plan = made.compiled.plan
    assert plan.state_bytes == 160
    assert plan.places["s_in"] == plan.places["s_out"]
    assert [node.op for node in plan.graph.nodes].count("Copy") == 0


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_streaming_convolution(platform: str, tmp_path: Path) -> None:
    path, states = streaming_conv(tmp_path), {"past": "present"}
    inputs = {"x": noise(2, 4, 1, 4, 2)}
    ran(path, platform, states, inputs, stepped(path, states, inputs, {"past": zeros(1, 4, 2)}))


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_states_that_swap_and_are_read_behind_their_update(platform: str, tmp_path: Path) -> None:
    """a and b change places, and the old value of c is needed when the new one is there."""
    nodes = [
        node("Add", "b_in x", "a_out"),
        node("Identity", "a_in", "b_out"),
        node("Mul", "c_in a_in", "c_out"),
        node("Sub", "c_out c_in", "d"),
        node("Add", "d b_in", "y"),
    ]
    names = [value(name, (3, 5)) for name in ("x", "a_in", "b_in", "c_in")]
    path = write(tmp_path / "swap.onnx", model(nodes, names, ["y", "a_out", "b_out", "c_out"]))
    states = {"a_in": "a_out", "b_in": "b_out", "c_in": "c_out"}
    inputs = {"x": noise(3, 6, 3, 5)}
    ran(path, platform, states, inputs, stepped(path, states, inputs, dict.fromkeys(states, zeros(3, 5))))


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_initial_values_come_from_the_file(platform: str, tmp_path: Path) -> None:
    start = noise(4, 3, 4)
    nodes = [
        node("MatMul", "s_in w", "m"),
        node("Tanh", "m", "t"),
        node("Add", "t x", "s_out"),
        node("Abs", "s_out", "y"),
    ]
    constants = {"s_in": start, "w": noise(5, 4, 4)}
    built = model(nodes, [value("x", (3, 4)), value("s_in", (3, 4))], ["y", "s_out"], constants=constants)
    path = with_metadata(write(tmp_path / "cell.onnx", built), '{"s_in": "s_out"}')
    inputs = {"x": noise(6, 4, 3, 4)}
    ran(path, platform, {}, inputs, stepped(path, {"s_in": "s_out"}, inputs, {"s_in": start}))


def test_a_state_may_be_read_through_a_view_and_updated_by_a_part_of_itself(tmp_path: Path) -> None:
    """A shift register: the state moves by one and takes the input in."""
    nodes = [
        node("Slice", "r one six zero", "tail"),
        node("Concat", "tail x", "r_new", axis=0),
        node("Reshape", "r rows", "table"),
        node("ReduceSum", "table", "y", keepdims=0),
    ]
    constants = {
        "one": np.asarray([1]),
        "six": np.asarray([6]),
        "zero": np.asarray([0]),
        "rows": np.asarray([2, 3]),
    }
    path = write(
        tmp_path / "shift.onnx", model(nodes, [value("x", (1,)), value("r", (6,))], ["y", "r_new"], constants=constants)
    )
    inputs = {"x": noise(7, 9, 1)}
    expected = stepped(path, {"r": "r_new"}, inputs, {"r": zeros(6)})
    for platform in PLATFORMS:
        ran(path, platform, {"r": "r_new"}, inputs, expected)


def test_states_are_in_l2_where_the_home_is_l3(tmp_path: Path) -> None:
    path, states = running_sum(tmp_path), {"s_in": "s_out"}
    inputs = {"x": noise(1, 3, 40)}
    expected = stepped(path, states, inputs, {"s_in": zeros(40)})
    made = ran(path, "siracusa", states, inputs, expected, sizes=Sizes(home="L3"))
    assert made.compiled.plan.schedule is not None
    assert made.compiled.plan.schedule.states == "L2"
