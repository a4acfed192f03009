"""error[bad-task]: two tasks of an ordering problem make the same buffer."""

from __future__ import annotations

import pytest

from tilewright.errors import TilewrightError
from tilewright.plan.order import OrderedTask, order


def test_bad_task() -> None:
    with pytest.raises(TilewrightError, match="'one' and 'other' make the same buffer") as caught:
        order([OrderedTask("one", (), ("x",)), OrderedTask("other", (), ("x",))], {"x": 1}, frozenset())
    assert caught.value.code == "bad-task"
