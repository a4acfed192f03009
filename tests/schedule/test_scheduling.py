"""Schedules that can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from schedule.small import add, chain, conv, engine, even_costs, machine, pair
from tilewright.core.domain import domain, elementwise
from tilewright.core.split import OperationSplit
from tilewright.errors import TilewrightError
from tilewright.machine.parts import Net
from tilewright.schedule.checker import faults
from tilewright.schedule.fabric import fabric_of
from tilewright.schedule.network import Access, Operation, OperationGraph, Tensor, network_of_equations
from tilewright.schedule.nodes import split_network
from tilewright.schedule.scheduling import EngineSchedule, Scheduling

IMAGE, WEIGHTS = 2 * 6 * 6 * 8, 2 * 2 * 9 * 8
"""Bits of what goes between layers, and of the weights of one."""


def _chain(places: list[int], bits: int = 1 << 20) -> EngineSchedule:
    fabric = fabric_of(pair(bits))
    nodes = split_network(chain(len(places)), {}, fabric.slots)
    return Scheduling(nodes, fabric, even_costs(nodes, fabric)).schedule(np.array(places))


def test_two_layers_on_two_engines() -> None:
    found = _chain([0, 1])
    # The bus of 8 bits brings weights (288 bits, 36 cycles), the image (576 bits, 72 cycles), then weights for b.
    assert found.start.tolist() == [108, 208 + 36]
    # The link of 16 bits passes the image on in 36 cycles, and the bus brings it home in 72.
    assert found.latency == 244 + 100 + 72
    assert [(t, int(s)) for t, s in zip(found.transfers["cause"].tolist(), found.transfers["start"], strict=True)] == [
        (0, 0),
        (0, 36),
        (0, 108),
        (1, 208),
        (3, 344),
    ]
    energies = found.summary.energies
    assert energies["compute"] == 2
    assert energies["pass links"] == pytest.approx(0.1 * IMAGE)
    assert energies["pass memories"] == IMAGE / 64 * (2 + 3)
    assert energies["fetch links"] == 2 * WEIGHTS + IMAGE
    assert energies["fetch memories"] == (2 * WEIGHTS + IMAGE) / 32 * 20 + (IMAGE / 64 + 2 * 5) * 3
    assert energies["result memories"] == IMAGE / 64 * 2 + IMAGE / 32 * 30
    assert found.utilisation() == {"a": 100 / 416, "b": 100 / 416}


def test_layers_on_one_engine_pass_nothing() -> None:
    found = _chain([0, 0, 0])
    assert (found.transfers["cause"] == 1).sum() == 0
    assert found.summary.peaks["a/data"] == 2 * IMAGE
    assert found.summary.peaks["b/data"] == 0


def test_memory_first_goes_down_the_network() -> None:
    fabric = fabric_of(pair())
    rows = {f"c{i}": OperationSplit(within=(("OY", "all"),)) for i in range(3)}
    nodes = split_network(chain(3), rows, fabric.slots)
    costs = even_costs(nodes, fabric)
    places = np.zeros(3, np.int64)
    wide, deep = (Scheduling(nodes, fabric, costs, first).schedule(places) for first in ("latency", "memory"))
    assert deep.summary.peaks["a/data"] < wide.summary.peaks["a/data"]
    in_turn = Scheduling(nodes, fabric, costs, list(range(nodes.count))).schedule(places)
    assert np.argsort(in_turn.start, kind="stable").tolist() == list(range(nodes.count))


def test_what_has_no_room_goes_home_and_comes_back() -> None:
    fabric = fabric_of(
        machine([engine("a", 4 * WEIGHTS, 2 * IMAGE)], [Net(name="bus", kind="bus", ends=("a", "home"), bits=8)])
    )
    layers = [conv("c0"), conv("c1", "c0"), conv("c2", "c1"), add("sum", "c2", "c0")]
    nodes = split_network(network_of_equations("residual", layers), {}, fabric.slots)
    costs = even_costs(nodes, fabric)
    costs.cycles[-1] = 10
    scheduling = Scheduling(nodes, fabric, costs)
    found = scheduling.schedule(np.zeros(4, np.int64))
    assert faults(found, costs) == []
    assert (found.transfers["cause"] == 2).sum() == 1
    assert found.summary.energies["evict memories"] == IMAGE / 64 * 2 + IMAGE / 32 * 30


def test_streamed_results_keep_the_channel() -> None:
    fabric = fabric_of(pair())
    nodes = split_network(chain(2), {}, fabric.slots)
    costs = even_costs(nodes, fabric)
    costs.streamed[0, 0] = 1 << fabric.slots.index("O")
    found = Scheduling(nodes, fabric, costs).schedule(np.array([0, 1]))
    assert faults(found, costs) == []
    # Nothing else crosses the bus while the first layer writes home over it.
    assert found.start[0] == 108
    assert all(found.transfers["start"][2:] >= 208)


def test_nodes_wait_rather_than_push_weights_out() -> None:
    """Rows of two layers on one engine, with room for the weights of one: they would take turns loading them."""
    bus = Net(name="bus", kind="bus", ends=("a", "home"), bits=8)
    fabric = fabric_of(machine([engine("a", WEIGHTS + 8, 8 * IMAGE)], [bus]))
    rows = {f"c{i}": OperationSplit(within=(("OY", "all"),)) for i in range(2)}
    nodes = split_network(chain(2), rows, fabric.slots)
    costs = even_costs(nodes, fabric)
    places = np.zeros(2, np.int64)
    found = Scheduling(nodes, fabric, costs).schedule(places)
    assert faults(found, costs) == []
    names = [nodes.tensor_names[int(nodes.tensor_of[tensor])] for tensor in found.transfers["tensor"]]
    assert names.count("c0.W") == names.count("c1.W") == 1
    hasty = Scheduling(nodes, fabric, costs, rules="stream").evaluate(places)
    assert found.latency < hasty.latency


def test_streamed_both_ways_over_one_bus() -> None:
    fabric = fabric_of(pair())
    nodes = split_network(chain(2), {}, fabric.slots)
    costs = even_costs(nodes, fabric)
    costs.streamed[:, 0] = 1 << fabric.slots.index("O") | 1 << fabric.slots.index("I1")
    found = Scheduling(nodes, fabric, costs).schedule(np.zeros(2, np.int64))
    assert faults(found, costs) == []
    assert (found.busy["transfer"] < 0).sum() == 2


def test_two_results_need_room_together() -> None:
    space = elementwise((9, 8), {"X": (9, 8)})
    both = domain(space.dims, {**space.access, "Z": space.access["Y"]}, {**space.shapes, "Z": (9, 8)}, "Y Z")
    tensors = {
        "x": Tensor("x", (9, 8), 8),
        "y": Tensor("y", (9, 8), 8, "both", result=True),
        "z": Tensor("z", (9, 8), 8, "both", result=True),
    }
    reads, writes = (Access("X", "x", "I1"),), (Access("Y", "y", "O"), Access("Z", "z", "O"))
    network = OperationGraph("two", (Operation("both", "Both", both, reads, writes),), tensors)
    bus = Net(name="bus", kind="bus", ends=("a", "home"), bits=8)
    for room, fits in ((3, True), (2, False)):
        fabric = fabric_of(machine([engine("a", 64, room * 9 * 8 * 8)], [bus]))
        nodes = split_network(network, {}, fabric.slots)
        costs = even_costs(nodes, fabric)
        scheduling = Scheduling(nodes, fabric, costs)
        if fits:
            assert faults(scheduling.schedule(np.zeros(1, np.int64)), costs) == []
        else:
            with pytest.raises(TilewrightError) as caught:
                scheduling.evaluate(np.zeros(1, np.int64))
            assert caught.value.code == "no-room"
