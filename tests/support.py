"""What tests share: golden files, the external cases, and work that is counted instead of timed."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

GOLDEN_FOLDER = Path(__file__).resolve().parent / "golden"
CASES_VARIABLE = "TILEWRIGHT_CASES"


@dataclass(frozen=True)
class Golden:
    """Compares text with a checked-in file of tests/golden, or writes that file under `--update-goldens`."""

    folder: Path
    update: bool

    def __call__(self, name: str, text: str) -> None:
        path = self.folder / name
        if self.update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        assert path.is_file(), f"golden file {name} is missing; write it with: pytest --update-goldens"
        expected = path.read_text(encoding="utf-8")
        difference = difflib.unified_diff(
            expected.splitlines(), text.splitlines(), f"golden/{name}", "this run", lineterm=""
        )
        assert text == expected, "\n".join([*difference, "accept the change with: pytest --update-goldens"])


@dataclass(frozen=True)
class Case:
    """A network with inputs and expected outputs, outside the repository."""

    name: str
    network: Path


def cases_folder() -> Path | None:
    """The folder of external cases; None where there is none on this machine."""
    text = os.environ.get(CASES_VARIABLE, "")
    if not text:
        return None
    folder = Path(text)
    if not folder.is_dir():
        raise NotADirectoryError(f"{CASES_VARIABLE} names {text}, which is no folder")
    return folder


def find_cases(top: Path, folders: tuple[str, ...]) -> list[Case]:
    """The cases (network.onnx, or X.onnx beside X.npz) below some folders of `top`, or below all of it."""
    roots = [top / folder for folder in folders] or [top]
    networks = (
        path
        for root in roots
        for path in root.rglob("*.onnx")
        if path.name == "network.onnx" or path.with_suffix(".npz").is_file()
    )
    return [Case(_case_name(top, path), path) for path in sorted(networks)]


def _case_name(top: Path, network: Path) -> str:
    relative = network.relative_to(top)
    return (relative.parent if network.name == "network.onnx" else relative.with_suffix("")).as_posix()


every_case = pytest.mark.sample(every=10, family="cases")
"""Marks the six tests that all cases run through; `make test` runs more than half of the cases, each in one of them."""


MOST_GROWTH = 2.15
"""How much more work the second half of something may be than its second quarter: 2 is linear, 4 quadratic, and trees
get a little deeper."""


def lines_run(work: Callable[[], object]) -> int:
    """How many lines of Python a piece of work runs, those of comprehensions once for each element."""
    count = 0

    def trace(frame: object, event: str, argument: object) -> Any:
        nonlocal count
        del frame, argument
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def assert_linear(counts: Sequence[int]) -> None:
    """Fails unless the work for 1, 2 and 4 times as much grows in proportion."""
    first, second, fourth = counts
    assert fourth - second <= MOST_GROWTH * (second - first), counts
