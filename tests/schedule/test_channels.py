"""Nets of channels, and the ways through them."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedule.small import engine, machine, pair
from tilewright.errors import TilewrightError
from tilewright.machine.machine import print_machine, read_machine_file
from tilewright.machine.parts import Net
from tilewright.schedule.fabric import fabric_of

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
