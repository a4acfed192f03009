"""The standard networks on every array machine: no operator is free, none fails."""

from __future__ import annotations

import pytest

import tilewright
from support import Case
from tilewright import MapOptions
from tilewright.api.costing import read_network
from tilewright.machine.library import machine_names
from tilewright.mapping.results import Effort
from tilewright.mapping.wired import Unrolling

QUICK = MapOptions(objective="energy", unrolling=Unrolling(most=1), effort=Effort(mappings=1))
"""Any mapping will do."""


@pytest.mark.slow
@pytest.mark.cases("standard_networks", "deeploy/Models/microLlama")
def test_every_operator_costs_something_on_every_machine(case: Case) -> None:
    network = read_network(case.network)
    for machine in machine_names():
        found = tilewright.cost(network, machine, QUICK)
        for node in found.nodes:
            assert bool(node.layers) == (node.energy > 0) == (node.cycles > 0) == (node.operations > 0)
