"""error[unallocated-layer]: no engine is named for a layer."""

from __future__ import annotations

import pytest

from schedule.small import chain, even_costs, pair
from tilewright.errors import TilewrightError
from tilewright.schedule.fabric import fabric_of
from tilewright.schedule.nodes import split_network
from tilewright.schedule.scheduling import Scheduling


def test_unallocated_layer() -> None:
    fabric = fabric_of(pair())
    nodes = split_network(chain(), {}, fabric.slots)
    scheduling = Scheduling(nodes, fabric, even_costs(nodes, fabric))
    with pytest.raises(TilewrightError) as caught:
        scheduling.places({"c0": ("a",), "c2": ("b",)})
    assert caught.value.code == "unallocated-layer"
    assert caught.value.what == "nothing says which engine computes 'c1'"
    assert "name one of a, b" in caught.value.help
