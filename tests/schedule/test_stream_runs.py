"""Recorded runs of Stream: the same nodes and edges, the same times, the same energy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from schedule.stream_runs import load, network_of
from tilewright.core.split import OperationSplit
from tilewright.schedule.nodes import split_network
from tilewright.schedule.scheduling import Scheduling

NAMES = (
    "l4_fixed",
    "l4_fixed_nodep",
    "l4_fixed_oy2",
    "l4_fixed_oyall",
    "l4_exh_lbl",
    "l4_exh_oy2",
    "l4_ga_oyall",
    "r18_lbl_auth",
)
ENERGY = 1e-6
"""Stream counts energy of links by whole cycles, we by bits."""


@pytest.mark.cases
@pytest.mark.parametrize("name", NAMES)
def test_the_same_nodes_edges_times_and_energy(cases: Path, name: str) -> None:
    run = load(cases / "stream", name)
    nodes = run.nodes
    behind = np.repeat(np.arange(nodes.count), np.diff(nodes.before_starts))
    edges = sorted(
        (run.number(int(one)), run.number(int(other))) for one, other in zip(nodes.before, behind, strict=True)
    )
    assert edges == sorted((tuple(one), tuple(other)) for one, other, *_ in run.data["edges"])
    scheduling = Scheduling(nodes, run.fabric, run.costs, rules="stream")
    found = scheduling.schedule(run.places(run.data["allocation"]))
    times = {run.number(node): (found.start[node], found.end[node]) for node in range(nodes.count)}
    assert times == {tuple(node["id"]): (node["start"], node["end"]) for node in run.data["nodes"]}
    assert found.latency == run.data["latency"]
    assert found.energy == pytest.approx(run.data["energy"], rel=ENERGY)


@pytest.mark.cases
@pytest.mark.parametrize("name", ["l4_exh_lbl", "l4_exh_oy2", "l4_ga_oyall"])
def test_all_allocations_that_were_tried(cases: Path, name: str) -> None:
    run = load(cases / "stream", name)
    scheduling = Scheduling(run.nodes, run.fabric, run.costs, rules="stream")
    for cores, energy, latency in run.data["evaluated_allocations"]:
        found = scheduling.evaluate(run.changed(cores))
        assert found.latency == latency
        assert found.energy == pytest.approx(energy, rel=ENERGY)


@pytest.mark.cases
def test_resnet18_by_rows_has_as_many_nodes_and_edges(cases: Path) -> None:
    network = network_of(cases / "stream" / "inputs" / "workload_resnet18.yaml")
    rows = OperationSplit(within=(("OY", "all"),))
    splits = {each.name: rows for each in network.operations if "OY" in each.domain.parallel}
    nodes = split_network(network, splits)
    assert (nodes.count, nodes.edges) == (849, 2693)
