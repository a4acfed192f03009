"""error[not-many-core]: a machine whose engines have no channels between them."""

from __future__ import annotations

import pytest

from tilewright.errors import TilewrightError
from tilewright.machine.library import load_machine
from tilewright.schedule.fabric import fabric_of


@pytest.mark.parametrize(
    ("name", "why"), [("siracusa", "is not an array"), ("tpu-like", "names no memory as its home")]
)
def test_not_many_core(name: str, why: str) -> None:
    with pytest.raises(TilewrightError) as caught:
        fabric_of(load_machine(name))
    assert caught.value.code == "not-many-core"
    assert why in caught.value.reasons[0]
