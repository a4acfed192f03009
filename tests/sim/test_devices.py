"""Devices of the cluster as programs see them: registers, events, transfers, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from sim.device_programs import platform, ran, with_setting

TIMINGS = ("rtl", "gvsoc")
EVENT_OF = {"dma": 1 << 8, "dma interrupt": 1 << 9, "npu": 1 << 12, "barrier": 1 << 16}


@pytest.mark.parametrize("timing", TIMINGS)
def test_masks(tmp_path: Path, timing: str) -> None:
    results = ran("masks", tmp_path, timing=timing).results
    assert results[0:3] == (0x0A, 0x3A, 0xF001)
    assert results[3:10] == (0x50, 0x10, 0x10, 0x50, 0x10, 0x40, 0)
    assert results[10:14] == (0x3A, 0xABC, 1, 4)


@pytest.mark.parametrize("timing", TIMINGS)
def test_software_events(tmp_path: Path, timing: str) -> None:
    results = ran("software_events", tmp_path, timing=timing).results
    assert results[0] == 0, "core 1 should be asleep"
    ping, pong, all_of_them = 1 << 3, 1 << 5, 1 << 7
    assert results[1:7] == (pong, 0, pong, 0, all_of_them, all_of_them)
    assert results[8:11] == (ping, ping, all_of_them)


@pytest.mark.parametrize("timing", TIMINGS)
def test_barriers(tmp_path: Path, timing: str) -> None:
    ended = ran("barriers", tmp_path, cores=8, timing=timing)
    results = ended.results
    assert results[0:3] == (6, 6, 4), "core 2 should have arrived before core 1"
    assert results[3] == EVENT_OF["barrier"]
    assert results[5:7] == (EVENT_OF["barrier"],) * 2
    assert results[16:24] == (20,) * 8
    statistics = ended.simulator.native.statistics()["event_unit"]
    assert statistics["barriers"] == 2 * 20 + 1 + 1 + 1 + 1 + 1
    assert statistics["waits"] >= 8 * 43


@pytest.mark.parametrize("timing", TIMINGS)
def test_mutexes(tmp_path: Path, timing: str) -> None:
    results = ran("mutexes", tmp_path, cores=8, timing=timing).results
    assert results[0:3] == (8 * 25, 1234, 77)


@pytest.mark.parametrize("timing", TIMINGS)
def test_dispatch(tmp_path: Path, timing: str) -> None:
    results = ran("dispatch", tmp_path, cores=8, timing=timing).results
    assert results[64] == 0xFF
    assert results[1:8] == tuple(55 if core == 2 else 1055 for core in range(1, 8))
    assert results[33:40] == (99,) * 7


@pytest.mark.parametrize("timing", TIMINGS)
def test_interrupts(tmp_path: Path, timing: str) -> None:
    results = ran("interrupts", tmp_path, cores=3, timing=timing).results
    assert results[0:2] == (0, 1)
    assert results[2] == 0x80000004
    assert results[3:5] == (0, 0)
    assert results[5:9] == (1 << 5, 2, 3, 3)
    assert results[16] == 0, "core 0 should wait again after its handler"


def test_timer(tmp_path: Path) -> None:
    results = ran("timer", tmp_path).results
    assert results[0] == 0
    assert results[1] > 50
    assert results[2:4] == (0, 123)
    assert results[4] == 1 << 11
    assert 1000 <= results[5] <= 1080
    assert results[6] == 0
    assert results[8:14] == (1 << 10,) * 6
    # The first round fetches its instructions, the last one those behind the loop.
    assert [results[i + 1] - results[i] for i in range(17, 20)] == [300] * 3
    assert 400 / 4 <= results[24] <= 1000
    assert results[25:27] == (7, 1)


def lines(first: int, total: int, length: int, stride: int) -> list[int]:
    """Places of all bytes of a transfer with lines."""
    return [first + byte // length * stride + byte % length for byte in range(total)]


@pytest.mark.parametrize("timing", TIMINGS)
def test_transfers(tmp_path: Path, timing: str) -> None:
    lines_in_near = with_setting(platform(), timing, "mchan", "near_lines", 1)
    ended = ran("transfers", tmp_path, timing=timing, machine=lines_in_near)
    far = [(i * 7 + (i >> 8)) & 255 for i in range(0x4000)]
    near = [(i * 13 + 5 + (i >> 7)) & 255 for i in range(0x4000)]

    def copy(to: list[int], places: Iterable[int], of: list[int], sources: Iterable[int]) -> None:
        for place, source in zip(places, sources, strict=True):
            to[place] = of[source]

    copy(near, range(1000), far, range(0x10, 0x10 + 1000))
    copy(far, range(0x2000, 0x2000 + 700), near, range(0x400, 0x400 + 700))
    copy(near, range(0x801, 0x801 + 301), far, range(0x403, 0x403 + 301))
    copy(near, range(0xA00, 0xA00 + 130), far, lines(0x600, 130, 13, 100))
    copy(far, range(0x2400, 0x2400 + 600), near, lines(0xC00, 600, 300, 400))
    copy(near, lines(0x1000, 216, 36, 64), far, lines(0x900, 216, 24, 50))
    copy(far, lines(0x2800, 100, 48, 80), near, range(0x1400, 0x1400 + 100))
    assert ended.simulator.read("near") == bytes(near)
    assert ended.simulator.read("far") == bytes(far)
    statistics = ended.simulator.native.statistics()["mchan"]
    assert statistics["transfers"] == 7
    assert statistics["bytes_in"] == 1000 + 301 + 130 + 216
    assert statistics["bytes_out"] == 700 + 600 + 100
    assert 1647 // 8 <= statistics["busy_in"] < 400


def test_counters_of_transfers(tmp_path: Path) -> None:
    results = ran("transfer_counters", tmp_path, cores=2).results
    assert results[0:4] == (0, 1, 3 << 16, 0)
    assert results[4] <= 20
    assert 2 * 2048 / 8 <= results[5] <= 2 * 2048 / 8 + 40
    assert results[6] == 0, "no event was asked for"
    # 2 wait in the core's queue, 8 in the DMA's, and 8 bursts of 256 bytes run: 5 or 6 must have been moved.
    assert 5 * 512 / 8 <= results[7] <= 7 * 512 / 8
    assert 20 * 512 / 8 <= results[8] <= 20 * 512 / 8 + 150
    assert results[12] == 20 * 3 * 4, "a pointer moves on also where the store has to wait"
    assert results[9] == EVENT_OF["dma interrupt"]
    assert results[16:32] == tuple(range(16))
    assert results[10] == 9
    assert results[11] > 400


def test_words_from_far_memory_may_come_late(tmp_path: Path) -> None:
    late = with_setting(platform(), "gvsoc", "mchan", "read_cycles", 20)
    ended = [ran("far_transfer", tmp_path, machine=machine) for machine in (platform(), late)]
    # Both bursts are asked for at once, so only the first one is waited for; it would come in the next cycle.
    assert ended[1].results[0] - ended[0].results[0] == 20 - 1
    assert ended[1].results[1] == ended[0].results[1], "to far memory"
    for each in ended:
        assert each.simulator.read("near") == bytes(i * 7 & 255 for i in range(512))


def test_early_readers_see_what_was_there_before(tmp_path: Path) -> None:
    results = ran("early_reader", tmp_path, checks=False).results
    assert results[0:3] == (1, 0, 1024)


MEASURED_TO_OUTSIDE = (106, 190, 344, 666, 1310, 2584, 5146, 10270, 20504, 40986, 81950)
MEASURED_FROM_OUTSIDE = (78, 120, 204, 386, 736, 1450, 2864, 5720, 11404, 22772, 45522)
POLL = 14
"""Cycles of the loop that looks at the status; programs cannot see the end of a transfer more exactly."""


def test_memory_outside(tmp_path: Path) -> None:
    ended = ran("hyper", tmp_path)
    results, simulator = ended.results, ended.simulator
    buffer = bytes((i * 11 + (i >> 6)) & 255 for i in range(0x10000))
    assert results[0] == 0xFF
    for size in range(1, 10):
        written = simulator.read_memory("L3", 0x100 + 17 * size, 17)
        assert written == buffer[size : 2 * size].ljust(17, b"\xff")
    assert results[1] & 1 == 1
    assert results[2] == 1 | 2 << 1
    back = simulator.read("back")
    assert back[: 1024 + 256] == buffer[:1024] + buffer[0x100:0x200]
    assert back[0x1000:0x1400] == buffer[:1024]
    for row in range(16):
        assert simulator.read_memory("L3", 0x4000 + 256 * row, 64) == buffer[64 * row : 64 * row + 64]
        assert back[0x2000 + 100 * row : 0x2000 + 100 * row + 64] == buffer[64 * row : 64 * row + 64]
    for i in range(20):
        assert simulator.read_memory("L3", 0x8000 + 128 * i, 64) == buffer[64 * i : 64 * i + 64]
    for first, measured in ((16, MEASURED_TO_OUTSIDE), (32, MEASURED_FROM_OUTSIDE)):
        for index, expected in enumerate(measured):
            assert abs(results[first + index] - expected) <= POLL + 2, (first, 64 << index)
    for index, expected in ((48, 846), (49, 841), (50, 736 + 22), (51, 1310)):
        assert abs(results[index] - expected) <= POLL + 2, index
    statistics = simulator.native.statistics()["udma"]
    assert statistics["bytes_written"] > statistics["transfers"] > 60


def test_jobs(tmp_path: Path) -> None:
    ended = ran("jobs", tmp_path)
    results = ended.results
    first, second = 1 << 0, 1 << 8
    assert results[0] == 0
    assert results[1:5] == (2, 0xFFFFFFFE, first, 3), "of the second round"
    assert results[5:8] == (first | second, 0xFFFFFFFF, 2)
    assert results[8] == results[10] == EVENT_OF["npu"]
    assert results[9] == second
    assert results[12] == 0
    # Measured: 2188 from trigger to idle, 2184 to the event, 2176 from event to event.
    assert results[11] == 2176
    assert results[13] == 2184
    assert 2188 <= results[14] <= 2192
    output = ended.simulator.read("output")
    assert output[: 12 * 12 * 64] == output[12 * 12 * 64 :] == expected_output()
    statistics = ended.simulator.native.statistics()["neureka"]
    assert statistics["jobs"] == 8
    assert statistics["busy"] == 8 * 2176
    assert statistics["multiplications"] == 8 * 12 * 12 * 64 * 64
    assert sum(value for name, value in statistics.items() if name.startswith("cycles_")) == 8 * 2176


def expected_output() -> bytes:
    """What the job computes, from the layout of weights on."""
    pixels = [(i * 5 + (i >> 5)) & 255 for i in range(12 * 12 * 64)]
    raw = [(i * 29 + (i >> 4)) & 255 for i in range(64 * 64)]

    def weight(output: int, channel: int) -> int:
        block = (output * 2 + channel // 32) * 32
        bits = [(channel % 32) // 4 * 32 + plane * 4 + channel % 4 for plane in range(8)]
        return sum((raw[block + bit // 8] >> bit % 8 & 1) << plane for plane, bit in enumerate(bits)) - 128

    weights = [[weight(output, channel) for channel in range(64)] for output in range(64)]
    result = bytearray()
    for pixel in range(12 * 12):
        values = pixels[64 * pixel : 64 * pixel + 64]
        for output, row in enumerate(weights):
            total = sum(a * b for a, b in zip(values, row, strict=True)) * (3 + output % 5) + 100000 + 999 * output
            result.append(max(0, min(255, total >> 12)))
    return bytes(result)
