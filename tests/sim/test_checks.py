"""What the simulator's checks find in faulty programs, and that they find nothing in correct ones."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from sim.faults import COMPILER, Run, built, marked, ran
from tilewright.sim.flags import flags_of
from tilewright.sim.program import load_program

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
    missing: str = ""
    """What would have put a race in order."""
    other: str = ""
    """Of a race with another hart: its name. The line that it was at has the mark OTHER."""


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
    "untold_core": Expected(
        *("race", "cluster 1", "program", L1, "reads 1 byte that cluster 0 has written, and nothing says that"),
        missing="a barrier, event, mutex or flag from cluster 0 behind its access to cluster 1",
        other="cluster 0",
    ),
    "overwritten_early": Expected(
        *("race", "cluster 1", "program", L1, "writes 1 byte that cluster 0 has read, and nothing says that it was"),
        missing="a barrier, event, mutex or flag from cluster 0 behind its access to cluster 1",
        other="cluster 0",
    ),
    "untold_transfer": Expected(
        *("race", "cluster 1", "program", L1, "wrote, and nothing says that it was first", "DMA 64 bytes"),
        missing="a barrier, event, mutex or flag from cluster 0, which has waited for it, to cluster 1",
    ),
    "other_counter": Expected(
        *("race", "cluster 0", "program", L1, "wrote, without having waited for its end", "DMA 64 bytes"),
        missing="to free counter 0 of 'mchan' once its status shows the end",
    ),
    "sent_too_early": Expected(
        *("race", "cluster 0", "program", L1, "reads bytes that cluster 1 has written", "DMA 64 bytes"),
        mark=DMA_STARTS,
        missing="from cluster 1 behind its access to cluster 0, before it starts the transfer",
        other="cluster 1",
    ),
    "unlocked": Expected("race", "cluster 1", "program", L1, "reads 1 byte that cluster 0 has written"),
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
    assert expected.missing in found.missing
    assert (found.missing != "") == (found.kind in ("race", "overlap"))
    if expected.other:
        assert found.other is not None
        assert found.other.hart == expected.other
        assert found.other.place is not None
        assert found.other.place.line in marked(f"{name}.c", "OTHER")
        assert [place.function for place in found.other.calls][-2:] == ["tw_cluster_main", "_start"]
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
@pytest.mark.parametrize(("name", "cores"), [("correct", 8), ("ways_of_waiting", 1), ("ways_of_telling", 2)])
def test_correct_programs_are_left_alone(name: str, cores: int, timing: str, tmp_path: Path) -> None:
    run = ran(built(name, False, tmp_path, cores), timing)
    assert run.findings == (), "\n".join(map(str, run.findings))
    assert (run.stop, run.exit_code) == ("exited", 16)


def test_nothing_may_be_under_way_at_the_end(tmp_path: Path) -> None:
    assert ran(built("never_waited", False, tmp_path)).findings == ()
    (found,) = ran(built("never_waited", True, tmp_path)).findings
    assert (found.kind, found.hart, found.place.function) == ("race", "fc", "_start")
    assert found.message.startswith("ends the program without having been told of the end of DMA 64 bytes")
    assert found.missing == "to free counter 0 of 'mchan' once its status shows the end"


def test_without_debug_information_no_order_is_known(tmp_path: Path) -> None:
    program = built("untold_core", True, tmp_path)
    assert ran(program).findings
    stripped = tmp_path / "stripped.elf"
    subprocess.run([COMPILER.replace("gcc", "objcopy"), "--strip-debug", str(program), str(stripped)], check=True)
    assert ran(stripped).findings == ()


def test_flags_are_volatile_numbers_but_no_large_arrays(tmp_path: Path) -> None:
    program = load_program(built("ways_of_telling", False, tmp_path))
    flags = flags_of(program)
    assert flags is not None
    named = Counter(s.name for a, _ in flags for s in program.all_symbols if s.address <= a < s.address + s.size)
    assert named == {"flag": 1, "flags": 2, "shared": 1, "small": 8, "barrier_ready": 1, "finished": 1}
    assert (program.symbols["shared"].address, 4) in flags


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
    assert [re.sub(r"    called from 0x\w+ in (\w+)\b.*", r"\1", call) for call in calls] == [
        "tw_cluster_main",
        "_start",
    ]
    assert missing == "  missing: to free counter 0 of 'mchan' once its status shows the end"
