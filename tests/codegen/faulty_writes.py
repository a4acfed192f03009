"""Writes files with a fault at every call that writes, one after another; ends with an error if one does harm.

Started by tests, with `faults.c` loaded before the C library. Every attempt is a process of its own.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from enum import IntEnum
from pathlib import Path
from typing import Protocol, cast

from tilewright.base.files import STAGING, write_file
from tilewright.base.folders import SWAP, write_folder
from tilewright.codegen.project import write_project
from tilewright.errors import TilewrightError

Snapshot = dict[str, bytes | None]
"""Files with what a reader gets, and folders."""

OLD = {"network.c": b"old", "in/network.h": b"old header", "gone/old.c": b"x"}
NEW = {"network.c": b"new", "in/network.h": b"new header", "made/a/new.c": b"y"}
FOREIGN = {"mine.c": b"mine", "in/mine.h": b"mine"}


class Fault(IntEnum):
    """As `faults.c` numbers them."""

    FAIL = 0
    INTERRUPT = 1
    KILL = 2


class Library(Protocol):
    """What `faults.c` adds to the C library."""

    def faults_arm(self, at: int, what: int) -> None: ...

    def faults_count(self) -> int: ...


class Scenario:
    """Old files in a folder, and what writes the new ones."""

    whole_when_killed = True
    """Else what a killed process leaves may lack files, until the next one comes."""

    def __init__(self, top: Path) -> None:
        self.top, self.before = top, top.with_name("before")
        self.folder = top / "c"
        self.prepare()
        shutil.copytree(top, self.before, symlinks=True)

    def prepare(self) -> None:
        """The old state."""
        write_project(OLD, self.folder)
        for name, data in FOREIGN.items():
            (self.folder / name).write_bytes(data)
        (self.folder / "empty").mkdir()

    def write(self) -> None:
        write_project(NEW, self.folder)

    def next(self) -> None:
        """What comes after a killed process: here one that fails at once, but cleans up."""

        def fail(_: Path) -> None:
            raise OSError("no")

        try:
            write_folder(self.folder, fail)
        except TilewrightError:
            return
        raise AssertionError("an error was swallowed")

    def reset(self) -> None:
        shutil.rmtree(self.top)
        shutil.copytree(self.before, self.top, symlinks=True)


class Fresh(Scenario):
    """There is no folder yet."""

    def prepare(self) -> None:
        self.folder = self.top / "a" / "c"
        self.top.mkdir()


class WithoutLinks(Scenario):
    """The file system knows no links of any kind."""

    whole_when_killed = False

    def prepare(self) -> None:
        super().prepare()

        def refuse(*_: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        Path.symlink_to = Path.hardlink_to = refuse  # pyright: ignore[reportAttributeAccessIssue]


class OneFile(Scenario):
    """A single file."""

    def prepare(self) -> None:
        self.top.mkdir()
        (self.top / "file").write_bytes(b"old")

    def write(self) -> None:
        write_file(self.top / "file", b"new")

    def next(self) -> None:
        write_file(self.top / "other", b"")
        (self.top / "other").unlink()


SCENARIOS = {"replaced": Scenario, "fresh": Fresh, "without links": WithoutLinks, "one file": OneFile}


def snapshot(top: Path) -> Snapshot:
    """What a reader finds, but for what is there while files are written."""
    found: Snapshot = {}
    for path in sorted(top.rglob("*")):
        name = path.relative_to(top)
        if path.exists() and not any(part == SWAP or part.startswith(STAGING) for part in name.parts):
            found[str(name)] = path.read_bytes() if path.is_file() else None
    return found


def files(found: Snapshot) -> set[tuple[str, bytes]]:
    return {(name, data) for name, data in found.items() if data is not None}


def leftovers(top: Path) -> Iterator[Path]:
    for path in top.rglob("*"):
        if path.is_symlink() or path.name == SWAP or path.name.startswith(STAGING):
            yield path


def attempt(action: Callable[[], None], at: int, fault: Fault) -> int:
    """The exit status of a process that writes with a fault: 0 done, 1 error, 2 interrupted, 3 no such call, -9."""
    child = os.fork()
    if not child:
        library = cast("Library", ctypes.CDLL(None))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        status = 0
        try:
            library.faults_arm(at, fault)
            action()
        except TilewrightError:
            status = 1
        except KeyboardInterrupt:
            status = 2
        reached = library.faults_count() >= at
        library.faults_arm(0, 0)
        os._exit(status if reached else 3)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def judge(scenario: Scenario, fault: Fault, status: int, old: Snapshot, new: Snapshot) -> None:
    """An error unless all is old or all is new, and nothing else is there in the end."""
    found = snapshot(scenario.top)
    if status == -signal.SIGKILL:
        if scenario.whole_when_killed:
            assert files(found) in (files(old), files(new)), found
        else:
            assert files(found) <= files(old) or files(found) <= files(new), found
        scenario.next()
        found = snapshot(scenario.top)
        assert files(found) in (files(old), files(new)), found
    else:
        expected = {0: [new], 1: [old], 2: [old, new]}[status]
        assert found in expected, found
        assert status == 2 or fault is not Fault.INTERRUPT
    assert not list(leftovers(scenario.top))


def main(name: str, folder: Path) -> None:
    scenario = SCENARIOS[name](folder / "top")
    old = snapshot(scenario.top)
    scenario.write()
    new = snapshot(scenario.top)
    assert old != new
    for fault in Fault:
        at = status = 0
        while status != 3:
            at += 1
            scenario.reset()
            status = attempt(scenario.write, at, fault)
            if status != 3:
                try:
                    judge(scenario, fault, status, old, new)
                except AssertionError as error:
                    raise AssertionError(f"{name}: {fault.name} at call {at}, status {status}") from error
        print(f"{name}: {fault.name} at each of {at - 1} calls")
        assert at > 5, "faults do not arrive"


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
