"""error[bad-buffer]: buffers that contradict themselves or each other."""

from __future__ import annotations

import pytest

from tilewright.errors import TilewrightError
from tilewright.plan.addresses.allocate import BufferRequest, allocate

WRONG = {
    "given twice": [BufferRequest("a", 1, 0, 1), BufferRequest("a", 1, 0, 1)],
    "its size is -1": [BufferRequest("a", -1, 0, 1)],
    "its lifetime [3, 3) is empty": [BufferRequest("a", 1, 3, 3)],
    "its alignment 12 is not a power of two": [BufferRequest("a", 1, 0, 1, align=12)],
    "its alignment 0 is not a power of two": [BufferRequest("a", 1, 0, 1, align=0)],
    "it is pinned at -16": [BufferRequest("a", 1, 0, 1, pin=-16)],
    "no multiple of 16": [BufferRequest("a", 1, 0, 1, pin=8)],
    "it may live in no bank": [BufferRequest("a", 1, 0, 1, bank=())],
    "unknown buffer 'b'": [BufferRequest("a", 1, 0, 1, alias="b")],
    "part of itself": [BufferRequest("a", 1, 0, 1, alias="b"), BufferRequest("b", 1, 0, 1, alias="a")],
    "alias offset but no alias": [BufferRequest("a", 1, 0, 1, alias_offset=16)],
    "its offset in 'a' is -16": [BufferRequest("a", 1, 0, 1), BufferRequest("b", 1, 0, 1, alias="a", alias_offset=-16)],
    "8 bytes inside": [BufferRequest("a", 64, 0, 1), BufferRequest("b", 1, 0, 1, alias="a", alias_offset=8)],
    "their pins want": [BufferRequest("a", 64, 0, 1, pin=0), BufferRequest("b", 1, 0, 1, alias="a", pin=16)],
    "no bank in common": [
        BufferRequest("a", 1, 0, 1, bank=("x",)),
        BufferRequest("b", 1, 0, 1, alias="a", bank=("y",)),
    ],
    "pinned to the same bytes": [BufferRequest("a", 32, 0, 2, pin=0), BufferRequest("b", 32, 1, 3, pin=16)],
}


@pytest.mark.parametrize("said", WRONG)
def test_contradictions_are_named(said: str) -> None:
    with pytest.raises(TilewrightError) as raised:
        allocate(WRONG[said])
    assert raised.value.code == "bad-buffer"
    assert said in str(raised.value)
