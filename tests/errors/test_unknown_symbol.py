"""error[unknown-symbol]: a name that the simulated program does not have."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.small_programs import small_program
from tilewright.errors import TilewrightError
from tilewright.sim.simulator import Simulator


def test_unknown_symbol(tmp_path: Path) -> None:
    simulator = Simulator("siracusa")
    with pytest.raises(TilewrightError) as before:
        simulator.run_until("main")
    assert before.value.code == "unknown-symbol"
    assert before.value.reasons == ("no program is loaded",)
    simulator.load(small_program(tmp_path, "hello", "STATUS=0"))
    with pytest.raises(TilewrightError, match="the program has no symbol 'absent'"):
        simulator.read("absent")
