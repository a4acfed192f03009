"""error[internal-error]: a fault of Tilewright itself, with a status that says neither "wrong" nor "your mistake"."""

from __future__ import annotations

import json

import pytest

from tilewright.cli import app as command_line
from tilewright.cli.app import run


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> None:
        raise KeyError("\x1bwhatever")

    monkeypatch.setattr(command_line, "app", fail)


@pytest.mark.usefixtures("faulty")
def test_a_fault_of_our_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ops"]) == 70
    text = capsys.readouterr().err
    assert text.startswith("error[internal-error]: KeyError: '\\x1bwhatever'\n  in test_internal_error.py, line ")
    assert "please report it" in text
    assert "Traceback" not in text


@pytest.mark.usefixtures("faulty")
def test_with_a_traceback(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_DEBUG", "1")
    assert run(["ops", "--json"]) == 70
    printed = capsys.readouterr()
    assert "Traceback (most recent call last)" in printed.err
    assert json.loads(printed.out)["error"]["code"] == "internal-error"


def test_an_interrupt_anywhere(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "app", stop)
    assert run(["ops"]) == 130
    assert capsys.readouterr().err == "interrupted; nothing was left half-written\n"
