"""error[bad-split]: an operation split along a loop whose parts depend on one another, or that it does not have."""

from __future__ import annotations

import pytest

from schedule.small import chain
from tilewright.core.split import OperationSplit
from tilewright.errors import TilewrightError
from tilewright.schedule.nodes import split_network


@pytest.mark.parametrize(("loop", "why"), [("C", "would not be independent"), ("Q", "has no such loop")])
def test_bad_split(loop: str, why: str) -> None:
    with pytest.raises(TilewrightError) as caught:
        split_network(chain(), {"c1": OperationSplit(within=((loop, 2),))})
    assert caught.value.code == "bad-split"
    assert f"'c1' cannot be split along {loop}" in caught.value.what
    assert why in caught.value.reasons[0]
    assert caught.value.help == "split it along K, OY, OX"
