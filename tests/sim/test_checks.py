"""What the simulator's checks find in faulty programs, and that they find nothing in correct ones."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from sim.faults import Run, built, marked, ran

L1 = range(0x10000000, 0x10040000)
L2 = range(0x1C000000, 0x1C200000)


@dataclass(frozen=True)
class Expected:
    """What must be found in a program, and nothing else of that severity."""

    kind: str
    hart: str
    function: str
    addresses: range
    """That the address is one of."""
    message: str
    transfer: str = ""
    """How its description begins."""
    warning: bool = False
    mark: tuple[str, str] = ("", "FAULT")
    """File and mark of the line, where it is not in the program itself."""


DMA_STARTS = ("chip.h", "STARTS")
FAULTS = {
    "uninitialised_read": Expected("uninitialised-read", "cluster 0", "program", L1, "reads 1 byte never written"),
    "uninitialised_far_read": Expected("uninitialised-read", "cluster 1", "program", L2, "reads 4 bytes never written"),
    "uninitialised_after_dma": Expected("uninitialised-read", "cluster 0", "program", L1, "reads 1 byte never written"),
    "uninitialised_float": Expected("uninitialised-read", "cluster 0", "program", L1, "reads 4 bytes never written"),
    "copied_without_value": Expected(
        "unused-read", "cluster 0", "copy", L1, "copies 1 byte never written", warning=True
    ),
    "read_without_use": Expected(
        "unused-read",
        "cluster 0",
        "program",
        L1,
        "reads 4 bytes never written, and does not use the value",
        warning=True,
    ),
    "outside": Expected("bad-access", "cluster 1", "program", range(0x1D000000, 0x1D000004), "store outside of all"),
    "read_in_flight": Expected("race", "cluster 0", "program", L1, "is still writing", "DMA 4096 bytes"),
    "read_unwaited": Expected(
        "race", "cluster 0", "program", L1, "wrote, without having waited for its end", "DMA 64 bytes"
    ),
    "stale_event": Expected("race", "cluster 0", "program", L1, "is still writing", "DMA 4096 bytes"),
    "overwritten_in_flight": Expected("race", "cluster 1", "program", L1, "is still reading", "DMA 4096 bytes"),
    "overlapping_transfers": Expected(
        "overlap", "cluster 0", "program", L1, "is still reading", "DMA 2048 bytes", mark=DMA_STARTS
    ),
    "npu_race": Expected("race", "cluster 0", "program", L1, "is still writing", "NEUREKA job 0"),
    "npu_uninitialised": Expected(
        "uninitialised-read", "cluster 0", "program", L1, "uses bytes", "NEUREKA job 0", mark=("npu.h", "STARTS")
    ),
    "unaligned_transfer": Expected(
        "unaligned-transfer", "cluster 0", "program", L2, "multiple of 4", "DMA 64 bytes", True, DMA_STARTS
    ),
    "double_free": Expected(
        "double-free", "cluster 0", "program", range(0x10204404, 0x10204408), "counter 0", mark=("chip.h", "FREES")
    ),
    "stack_overflow": Expected("stack-overflow", "cluster 1", "depth", L1, "below the end of the stack"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_where_it_is(name: str, tmp_path: Path) -> None:
    expected = FAULTS[name]
    run = ran(built(name, True, tmp_path))
    assert len(run.findings) == 1, "\n".join(map(str, run.findings))
    found = run.findings[0]
    source, mark = expected.mark
    assert (found.kind, found.warning, found.hart) == (expected.kind, expected.warning, expected.hart)
    assert found.place.function == expected.function
    assert found.place.line in marked(source or f"{name}.c", mark)
    assert found.data.address in expected.addresses
    assert expected.message in found.message
    if expected.transfer:
        assert found.transfer is not None
        assert found.transfer.what.startswith(expected.transfer)
        assert found.transfer.hart == "cluster 0"
        assert found.transfer.place.line.startswith(("chip.h:", "npu.h:"))
        assert found.transfer.range is not None
        assert found.data.address in range(*found.transfer.range)
    else:
        assert found.transfer is None


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("timing", ["rtl", "gvsoc"])
def test_the_correct_twin_is_left_alone(name: str, timing: str, tmp_path: Path) -> None:
    run = ran(built(name, False, tmp_path), timing)
    assert run.findings == (), "\n".join(map(str, run.findings))
    assert run.stop == "exited"


@pytest.mark.parametrize("timing", ["rtl", "gvsoc"])
@pytest.mark.parametrize(("name", "cores"), [("correct", 8), ("ways_of_waiting", 1)])
def test_correct_programs_are_left_alone(name: str, cores: int, timing: str, tmp_path: Path) -> None:
    run = ran(built(name, False, tmp_path, cores), timing)
    assert run.findings == (), "\n".join(map(str, run.findings))
    assert (run.stop, run.exit_code) == ("exited", 16)


def test_checks_change_no_cycle_and_are_silent_when_off(tmp_path: Path) -> None:
    program = built("read_unwaited", True, tmp_path)
    on, off = ran(program), ran(program, checks=False)
    assert off == Run(on.stop, on.exit_code, on.cycles, ())


def test_a_finding_is_written_with_its_transfer(tmp_path: Path) -> None:
    found = ran(built("read_unwaited", True, tmp_path)).findings[0]
    first, where, *calls, address, transfer, missing = str(found).splitlines()
    assert first.startswith("race: reads 1 byte that DMA 64 bytes, 0x1c0")
    assert re.fullmatch(r"  cluster 0 at 0x1c01\w+ in program\+0x\w+ \(read_unwaited.c:\d+\), cycle \d+", where)
    assert address == "  address 0x10000008 in buffer+0x8"
    assert re.fullmatch(
        r"  transfer: DMA 64 bytes, \S+ -> 0x10000000, bytes 0x10000000..0x10000040, "
        r"started by cluster 0 at \S+ in program\+0x\w+ \(chip.h:\d+\) in cycle \d+, ended in cycle \d+",
        transfer,
    )
    assert [re.search(r" in (\w+)", call)[1] for call in calls if (re.match(r"    called from 0x", call))] == [
        "tw_cluster_main",
        "_start",
    ]
    assert missing == "  missing: to free counter 0 of 'mchan' once its status shows the end"
