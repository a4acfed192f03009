"""Recorded runs of Stream: the same nodes and edges, the same times, the same energy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from schedule.stream_runs import load, network_of
from tilewright.api.scheduling import schedule_network
from tilewright.core.split import OperationSplit
from tilewright.frontend.stream_mapping import StreamEntry, StreamMapping
from tilewright.schedule.checker import faults
from tilewright.schedule.nodes import split_network
from tilewright.schedule.scheduling import Scheduling
from tilewright.schedule.search import Objective

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
WITHIN = 0.001
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
@pytest.mark.parametrize("name", NAMES)
def test_as_a_user_has_it_scheduled_again(cases: Path, name: str) -> None:
    """With the ways that we take through the mesh, where several are as short."""
    run = load(cases / "stream", name)
    found = schedule_network(run.network, run.machine, run.mapping, run.options)
    assert (found.schedule.nodes.count, found.schedule.nodes.edges) == (run.data["n_nodes"], run.data["n_edges"])
    assert found.schedule.latency == pytest.approx(run.data["latency"], rel=WITHIN)
    assert found.schedule.energy == pytest.approx(run.data["energy"], rel=WITHIN)
    assert faults(found.schedule, found.costs) == []


@pytest.mark.cases
@pytest.mark.parametrize("name", ["l4_exh_lbl", "l4_exh_oy2", "l4_ga_oyall", "r18_lbl_auth"])
def test_the_search_is_as_good_at_no_more_energy(cases: Path, name: str) -> None:
    run = load(cases / "stream", name)
    cores = [f"core{number}" for number in range(4)]
    anywhere = {f"layer {layer}": StreamEntry(tuple(cores)) for layer in run.data["flexible_layers"]}
    limits: dict[Objective, float] = {"energy": run.data["energy"] * (1 + ENERGY)}
    options = replace(run.options, evaluations=5000, limits=limits)
    mapping = StreamMapping({**run.mapping.entries, **anywhere})
    found = schedule_network(run.network, run.machine, mapping, options)
    assert found.schedule.latency <= run.data["latency"]


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
