"""What starts of engines take follows from programs; its errors are those of programs that it does not follow from."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tilewright.api import calibrating_engines
from tilewright.api.calibrating_engines import HELD_OUT, EngineProgram, held_out_errors, measured_engine
from tilewright.machine.calibration import START_TERMS
from tilewright.machine.target import load_platform

PLATFORM, ENGINE = "mempool-ita", "ita"


def test_starts_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each program is held out once."""
    monkeypatch.setattr(calibrating_engines, "PROGRAMS", 8)
    held_out: list[tuple[int, ...]] = []
    solved = calibrating_engines.solved_starts

    def noted(ran: Sequence[EngineProgram], engine: str) -> dict[str, float]:
        held_out.append(tuple(id(one) for one in ran))
        return solved(ran, engine)

    monkeypatch.setattr(calibrating_engines, "solved_starts", noted)
    found = measured_engine(load_platform(PLATFORM), ENGINE)
    assert {*found.terms} == {*START_TERMS}
    assert found.terms["fork"] > 0
    *folds, every = held_out
    assert len(every) == found.shapes == 8
    assert len(folds) == HELD_OUT
    assert sorted(one for fold in folds for one in {*every} - {*fold}) == sorted(every)


def test_errors_are_those_of_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    """With starts that take far too long, programs seem to."""

    def slow(_ran: Sequence[EngineProgram], _engine: str) -> dict[str, float]:
        return {"fork": 9000.0}

    monkeypatch.setattr(calibrating_engines, "PROGRAMS", 6)
    bare = load_platform(PLATFORM)
    ran = calibrating_engines.engine_programs(bare, ENGINE, 0)
    right = held_out_errors(ran, ENGINE)
    monkeypatch.setattr(calibrating_engines, "solved_starts", slow)
    wrong = held_out_errors(ran, ENGINE)
    assert all(abs(after) > abs(before) for before, after in zip(right, wrong, strict=True))
