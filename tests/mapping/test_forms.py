"""Mappings go out and come back."""

from __future__ import annotations

import json

import pytest

from mapping.random_problems import random_problem
from tilewright.errors import TilewrightError
from tilewright.mapping.search import Search
from tilewright.mapping.text import from_json, to_json
from tilewright.mapping.timeloop import from_timeloop, to_timeloop


@pytest.mark.parametrize("seed", [5, 6, 8, 9, 11, 12])
def test_there_and_back(seed: int) -> None:
    found = random_problem(seed, 5)
    try:
        best = Search(found, "energy").run().best[0].mapping
    except TilewrightError:
        return
    text = json.dumps(to_json(found.layer, found.engine, found.spatial, best))
    assert from_json(found.layer, found.engine, json.loads(text)) == (found.spatial, best)
    other = to_timeloop(found.layer, found.engine, found.spatial, best)
    assert from_timeloop(found.layer, found.engine, other) == (found.spatial, best)
