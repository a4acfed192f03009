"""Where operations may run and how they are cut, as mapping files and older options say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedule.small import add, chain, conv, pair
from tilewright.core.split import OperationSplit
from tilewright.errors import TilewrightError
from tilewright.frontend.stream_mapping import read_stream_mapping
from tilewright.schedule.fabric import fabric_of
from tilewright.schedule.network import network_of_equations
from tilewright.schedule.placement import Hints, loop_named, placed


def test_loops_go_by_their_own_names_or_by_axes_of_the_result() -> None:
    network = network_of_equations("two", [conv("c"), add("s", "c", "c")])
    assert loop_named(network.operation("c"), "OY") == "OY"
    assert loop_named(network.operation("c"), "Q") is None
    assert loop_named(network.operation("c"), "D") == "OY"


def test_a_mapping_file(tmp_path: Path) -> None:
    path = tmp_path / "mapping.yaml"
    path.write_text(
        "- {name: c1, core_allocation: [a], intra_core_tiling: ['OY, 3']}\n"
        "- {name: conv, core_allocation: [a, b], inter_core_tiling: ['K, *'], intra_core_tiling: ['OX, all', 'Z, 2']}",
        encoding="utf-8",
    )
    found = placed(chain(2), fabric_of(pair()), read_stream_mapping(path)[0])
    assert found.engines == {"c0": ("a", "b"), "c1": ("a",)}
    assert found.splits == {"c0": OperationSplit((("K", 2),), (("OX", "all"),)), "c1": OperationSplit((), (("OY", 3),))}


def test_layers_that_a_mapping_file_does_not_name(tmp_path: Path) -> None:
    path = tmp_path / "mapping.yaml"
    path.write_text("- {name: pool, core_allocation: [0]}\n", encoding="utf-8")
    with pytest.raises(TilewrightError) as caught:
        placed(chain(1), fabric_of(pair()), read_stream_mapping(path)[0])
    assert caught.value.code == "unallocated-layer"


def test_hints_of_2023() -> None:
    network, fabric = chain(3), fabric_of(pair())

    def splits(hints: Hints) -> list[OperationSplit]:
        return list(placed(network, fabric, None, hints).splits.values())

    assert splits(Hints(((("OY", "all"),),))) == [OperationSplit(within=(("OY", "all"),))] * 3
    inside = splits(Hints(((("OX", "all"), ("K", 2), ("OY", 2)),), 2))
    assert inside[0] == OperationSplit(within=(("OY", 3),))
    halves = OperationSplit(within=(("OY", 2),))
    assert splits(Hints(((), (("OY", 2),)), 3, (1,))) == [OperationSplit(), halves, halves]
    for wrong in ((((),), 4, ()), (((), ()), 1, ()), (((),), 3, (1,)), (((),), 1, (1,))):
        with pytest.raises(TilewrightError) as caught:
            Hints(*wrong)
        assert caught.value.code == "bad-argument"
