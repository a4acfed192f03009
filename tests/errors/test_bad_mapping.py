"""error[bad-mapping]: what is wrong with a mapping that was written by hand."""

from __future__ import annotations

import pytest

from mapping.random_problems import possible_problems
from tilewright.errors import TilewrightError
from tilewright.mapping.search import Search
from tilewright.mapping.text import from_json, to_json
from tilewright.mapping.timeloop import from_timeloop


def test_what_is_wrong_with_a_mapping() -> None:
    found = possible_problems(1, 4)[0]
    best = Search(found, "energy").run().best[0].mapping
    value = to_json(found.layer, found.engine, found.spatial, best)
    with pytest.raises(TilewrightError, match="steps in time instead of"):
        from_json(found.layer, found.engine, value | {"order": ()})
    with pytest.raises(TilewrightError, match="missing or of the wrong kind"):
        from_json(found.layer, found.engine, {"spatial": {}})
    with pytest.raises(TilewrightError, match="is no factor of its dimensions"):
        from_timeloop(found.layer, found.engine, "mapping: [{target: outside, type: temporal, factors: Q=3}]")
