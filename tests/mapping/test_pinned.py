"""Mappings that are given: for which layer they are meant, and whether they fit."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from mapping.random_problems import possible_problems
from tilewright.errors import TilewrightError
from tilewright.mapping.pinned import Pinned, check_room, pinned_for, read_mappings
from tilewright.mapping.search import Search
from tilewright.mapping.tables import Problem, problem


def tight(found: Problem, *, corrected: bool) -> None:
    """What the search finds has room, and not in a memory that is any smaller than what it fills."""
    best = Search(found, "energy").run().best[0].mapping
    check_room(found.layer, found.engine, found.spatial, best, corrected=corrected)
    memories = [replace(memory, bits=1) for memory in found.engine.memories]
    with pytest.raises(TilewrightError, match="bits too small for"):
        check_room(found.layer, replace(found.engine, memories=tuple(memories)), found.spatial, best)


def test_what_is_found_has_room() -> None:
    for found in possible_problems(12, 4):
        tight(found, corrected=False)
        again = problem(found.layer, found.engine, found.spatial, corrected=True)
        try:
            best = Search(again, "energy").run().best[0].mapping
        except TilewrightError:
            continue
        check_room(found.layer, found.engine, found.spatial, best, corrected=True)


def test_more_units_than_there_are() -> None:
    found = next(p for p in possible_problems(12, 4) if any(s > 1 for v in p.spatial.loops.values() for _, s in v))
    best = Search(found, "energy").run().best[0].mapping
    smaller = replace(found.engine, dims=dict.fromkeys(found.engine.dims, 1))
    with pytest.raises(TilewrightError, match="the mapping unrolls over"):
        check_room(found.layer, smaller, found.spatial, best)


def test_which_mapping_is_meant() -> None:
    found = possible_problems(1, 4)[0]
    layer, engine = found.layer, found.engine
    mine, elsewhere, other = (
        Pinned(layer.name, engine.name, {}),
        Pinned(layer.name, "elsewhere", {}),
        Pinned("other", engine.name, {}),
    )
    assert pinned_for(layer, engine, (other, elsewhere, mine)) == mine
    assert pinned_for(layer, engine, (other, elsewhere)) == elsewhere
    assert pinned_for(layer, engine, (other,)) is None
    assert pinned_for(layer, engine, (elsewhere, replace(elsewhere, machine="third"))) is None
    assert pinned_for(layer, engine, (Pinned("", "", ""),)) is not None


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.json", "{", "it is not JSON"),
        ("a.json", "[]", "neither a mapping nor a list"),
        ("a.json", '{"mappings": 3}', "neither a mapping nor a list"),
        ("a.json", '{"mappings": [3]}', "an item that is not a mapping"),
        ("a.txt", "{}", "ends in .json"),
    ],
)
def test_files_that_hold_no_mapping(name: str, text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TilewrightError, match=why):
        read_mappings(path)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(TilewrightError, match="cannot be read"):
        read_mappings(tmp_path / "nowhere.json")
