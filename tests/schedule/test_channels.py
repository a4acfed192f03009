"""Nets of channels, and the ways through them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from schedule.small import chain, conv, engine, even_costs, machine, pair
from tilewright.core.split import OperationSplit
from tilewright.errors import TilewrightError
from tilewright.machine.library import load_machine
from tilewright.machine.machine import print_machine, read_machine_file
from tilewright.machine.parts import Net
from tilewright.schedule.checker import faults
from tilewright.schedule.fabric import Fabric, fabric_of
from tilewright.schedule.network import network_of_equations
from tilewright.schedule.nodes import split_network
from tilewright.schedule.scheduling import Scheduling

NAMES = ("a", "b", "c", "d")


def _hops(*nets: Net) -> dict[tuple[str, str], int]:
    fabric = fabric_of(machine([engine(name, 64, 64) for name in NAMES], nets))
    return {pair: len(way) for pair, way in fabric.routes.items()}


def test_a_ring_has_two_ways_round() -> None:
    hops = _hops(Net(name="ring", kind="ring", ends=NAMES))
    assert hops["a", "b"] == hops["a", "d"] == 1
    assert hops["a", "c"] == 2
    assert ("a", "home") not in hops


def test_a_mesh_has_rows_and_columns() -> None:
    hops = _hops(Net(name="mesh", kind="mesh", ends=NAMES, columns=2))
    assert hops["a", "b"] == hops["a", "c"] == 1
    assert hops["a", "d"] == hops["b", "c"] == 2


def test_links_join_each_with_each_and_a_bus_all() -> None:
    assert set(_hops(Net(name="all", ends=NAMES)).values()) == {1}
    fabric = fabric_of(machine([engine(name, 64, 64) for name in NAMES], [Net(name="bus", kind="bus", ends=NAMES)]))
    assert set(fabric.routes.values()) == {(0,)}


def test_nothing_passes_through_the_memory_at_home() -> None:
    out = Net(name="out", kind="bus", ends=("a", "home"))
    back = Net(name="back", kind="one_way", ends=("home",), to=("b",))
    hops = _hops(out, back)
    assert hops == {("a", "home"): 1, ("home", "a"): 1, ("home", "b"): 1}


@pytest.mark.parametrize(
    ("net", "why"),
    [
        (Net(name="n", ends=("a", "q")), "'q' is neither an engine nor the memory at home (a, b, c, d, home)"),
        (Net(name="n", ends=("a",)), "two or more different names"),
        (Net(name="n", kind="mesh", ends=("a", "b")), "from 1 to 2"),
        (Net(name="n", ends=("a", "b"), to=("c",)), "where kind is one_way"),
    ],
)
def test_nets_that_cannot_be(net: Net, why: str) -> None:
    with pytest.raises(TilewrightError) as caught:
        _hops(net)
    assert caught.value.code == "bad-machine"
    assert why in caught.value.what


def test_machines_are_printed_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "pair.yaml"
    path.write_text(print_machine(pair()), encoding="utf-8")
    again, first = fabric_of(read_machine_file(path)), fabric_of(pair())
    assert (again.places, again.stores, again.routes) == (first.places, first.stores, first.routes)
    assert [(c.bits, c.energy) for c in again.channels] == [(c.bits, c.energy) for c in first.channels]


def _three(multicast: bool) -> Fabric:
    engines = [engine(name, 1 << 20, 1 << 20) for name in ("a", "b", "c")]
    net = Net(name="bus", kind="bus", ends=("a", "b", "c", "home"), bits=8, energy=1.0, multicast=multicast)
    return fabric_of(machine(engines, [net]))


def test_what_several_read_crosses_a_multicast_bus_once() -> None:
    layers = [conv("one"), conv("two", "one"), conv("three", "one")]
    nodes = split_network(network_of_equations("fork", layers), {}, _three(True).slots)
    found = {
        cast: Scheduling(nodes, _three(cast), even_costs(nodes, _three(cast))).schedule(np.array([0, 1, 2]))
        for cast in (False, True)
    }
    bits = 8 * 2 * 6 * 6
    for cast, times in ((False, 2), (True, 1)):
        costs = even_costs(nodes, _three(cast))
        assert faults(found[cast], costs) == []
        assert found[cast].summary.energies["pass links"] == bits * times
    assert found[True].latency < found[False].latency
    alike = (found[cast].summary.energies["pass memories"] for cast in (False, True))
    assert next(alike) - next(alike) == bits / 64 * 2.0  # one read less


def test_engines_that_share_memories_hand_nothing_over() -> None:
    first = engine("a", 1 << 20, 1 << 20)
    nets = [Net(name="bus", kind="bus", ends=("a", "b", "home"), bits=8, energy=1.0)]
    fabric = fabric_of(machine([first, replace(first, name="b", shares="a")], nets))
    nodes = split_network(chain(2), {f"c{i}": OperationSplit(within=(("OY", "all"),)) for i in range(2)}, fabric.slots)
    costs = even_costs(nodes, fabric)
    found = Scheduling(nodes, fabric, costs).schedule(np.array([0, 1]))
    assert faults(found, costs) == []
    assert found.summary.energies["pass links"] == 0
    assert [store.name for store in fabric.stores] == ["a/weights", "a/data", "home"]
    assert found.start[6] < found.end[5]


@pytest.mark.parametrize(
    ("shares", "why"), [("deep", "is not another array"), ("wide", "is not another array"), ("vector", "has no memory")]
)
def test_engines_that_cannot_share(tmp_path: Path, shares: str, why: str) -> None:
    text = (Path(__file__).parent.parent.parent / "examples" / "many_core" / "trio.yaml").read_text(encoding="utf-8")
    wide = text.replace("  vector:\n    kind: array\n", "  vector:\n    kind: array\n    shares: deep\n", 1)
    wide = wide.replace("  wide:\n    kind: array\n", f"  wide:\n    kind: array\n    shares: {shares}\n", 1)
    if why.startswith("has"):
        wide = wide.replace("    shares: deep\n", "").replace("bits: 524288", "bits: 524280", 1)
    else:
        wide = wide.replace("  deep:\n    kind: array\n", "  deep:\n    kind: array\n    shares: vector\n", 1)
    path = tmp_path / "machine.yaml"
    path.write_text(wide, encoding="utf-8")
    with pytest.raises(TilewrightError) as caught:
        load_machine(path)
    assert caught.value.code == "bad-machine"
    assert why in caught.value.what
