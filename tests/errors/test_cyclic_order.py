"""error[cyclic-order]: layers or nodes in an order in which one waits for a later one."""

from __future__ import annotations

import pytest

from schedule.small import chain, conv, even_costs, pair
from tilewright.errors import TilewrightError
from tilewright.schedule.fabric import fabric_of
from tilewright.schedule.network import network_of_equations
from tilewright.schedule.nodes import split_network
from tilewright.schedule.scheduling import Scheduling


def test_layers_in_a_circle() -> None:
    with pytest.raises(TilewrightError) as caught:
        network_of_equations("circle", [conv("c0", "c1"), conv("c1", "c0")])
    assert caught.value.code == "cyclic-order"
    assert "layer 'c0' reads what 'c1' makes" in caught.value.what


def test_an_order_of_nodes_that_cannot_be() -> None:
    fabric = fabric_of(pair())
    nodes = split_network(chain(), {}, fabric.slots)
    with pytest.raises(TilewrightError) as caught:
        Scheduling(nodes, fabric, even_costs(nodes, fabric), [0, 2, 1])
    assert caught.value.code == "cyclic-order"
    assert "the order has 'c2' before 'c1'" in caught.value.what
