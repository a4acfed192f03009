"""error[bad-buffer]: buffers that contradict themselves or each other."""

from __future__ import annotations

import pytest

from tilewright.errors import TilewrightError
from tilewright.plan.addresses.allocate import Buffer, allocate

WRONG = {
    "given twice": [Buffer("a", 1, 0, 1), Buffer("a", 1, 0, 1)],
    "its size is -1": [Buffer("a", -1, 0, 1)],
    "its lifetime [3, 3) is empty": [Buffer("a", 1, 3, 3)],
    "its alignment 12 is not a power of two": [Buffer("a", 1, 0, 1, align=12)],
    "its alignment 0 is not a power of two": [Buffer("a", 1, 0, 1, align=0)],
    "it is pinned at -16": [Buffer("a", 1, 0, 1, pin=-16)],
    "no multiple of 16": [Buffer("a", 1, 0, 1, pin=8)],
    "it may live in no bank": [Buffer("a", 1, 0, 1, bank=())],
    "unknown buffer 'b'": [Buffer("a", 1, 0, 1, alias="b")],
    "part of itself": [Buffer("a", 1, 0, 1, alias="b"), Buffer("b", 1, 0, 1, alias="a")],
    "alias offset but no alias": [Buffer("a", 1, 0, 1, alias_offset=16)],
    "its offset in 'a' is -16": [Buffer("a", 1, 0, 1), Buffer("b", 1, 0, 1, alias="a", alias_offset=-16)],
    "8 bytes inside": [Buffer("a", 64, 0, 1), Buffer("b", 1, 0, 1, alias="a", alias_offset=8)],
    "their pins want": [Buffer("a", 64, 0, 1, pin=0), Buffer("b", 1, 0, 1, alias="a", pin=16)],
    "no bank in common": [Buffer("a", 1, 0, 1, bank=("x",)), Buffer("b", 1, 0, 1, alias="a", bank=("y",))],
    "pinned to the same bytes": [Buffer("a", 32, 0, 2, pin=0), Buffer("b", 32, 1, 3, pin=16)],
}


@pytest.mark.parametrize("said", WRONG)
def test_contradictions_are_named(said: str) -> None:
    with pytest.raises(TilewrightError) as raised:
        allocate(WRONG[said])
    assert raised.value.code == "bad-buffer"
    assert said in str(raised.value)
