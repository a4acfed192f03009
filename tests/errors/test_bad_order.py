"""error[bad-order]: an order of loops with steps that the layer does not have."""

from __future__ import annotations

import pytest

from tilewright.core.mapping import SpatialMapping
from tilewright.core.workload_file import equation_layer
from tilewright.errors import TilewrightError
from tilewright.machine.library import load_array
from tilewright.mapping.strategies import loma
from tilewright.mapping.tables import problem


def test_bad_order() -> None:
    layer = equation_layer("O[m] += A[m][k]", {"M": 8, "K": 4}, {"O": 16})
    given = problem(layer, load_array("tpu-like"), SpatialMapping({"D1": (), "D2": ()}))
    with pytest.raises(TilewrightError) as caught:
        loma(given, order=(("M", 3),))
    assert caught.value.code == "bad-order"
    assert "the order has 3 steps of M, of which 8 are left" in caught.value.what
