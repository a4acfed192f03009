"""error[does-not-fit]: what is said when buffers exceed the memory given."""

from __future__ import annotations

import pytest

from tilewright.errors import TilewrightError
from tilewright.plan.addresses.allocate import BufferRequest, allocate


def test_too_much_is_live_at_once() -> None:
    buffers = [
        BufferRequest("big", 4096, 2, 6),
        BufferRequest("weights", 1024, 0, 9),
        BufferRequest("late", 4096, 6, 7),
    ]
    with pytest.raises(TilewrightError) as raised:
        allocate(buffers, capacity=4096)
    assert str(raised.value) == (
        "error[does-not-fit]: bank 'arena' needs at least 5120 bytes, 4096 given\n"
        "  'big' of 4096 bytes is live at time 2\n"
        "  'weights' of 1024 bytes is live at time 2\n"
        "  the smallest size known to work is 5120 bytes\n"
        "  help: give 'arena' 5120 bytes, or make the buffers above smaller or shorter-lived"
    )


def test_many_live_buffers_are_counted() -> None:
    with pytest.raises(TilewrightError) as raised:
        allocate([BufferRequest(f"b{i}", 16, 0, 1) for i in range(20)], capacity=100)
    assert "and 12 more with 192 bytes" in raised.value.reasons


def test_one_buffer_is_larger_than_every_bank() -> None:
    with pytest.raises(TilewrightError) as raised:
        allocate([BufferRequest("big", 64, 0, 1, bank=("fast", "slow"))], capacity={"fast": 16, "slow": 32})
    assert raised.value.code == "does-not-fit"
    assert raised.value.reasons == ("'fast' has 16 bytes", "'slow' has 32 bytes")


def test_all_banks_together_are_too_small() -> None:
    buffers = [BufferRequest(name, 32, 0, 1, bank=("fast", "slow")) for name in "abc"]
    with pytest.raises(TilewrightError) as raised:
        allocate(buffers, capacity=32)
    assert raised.value.what == "the buffers do not fit into the banks given ('fast' 32, 'slow' 32 bytes)"
    assert raised.value.reasons[-1] == "the smallest size of one bank known to hold them all is 96 bytes"
