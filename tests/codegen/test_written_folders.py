"""Folders are replaced whole: whatever goes wrong on the way, all files are old or all are new."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tilewright.base import files
from tilewright.base.folders import write_folder
from tilewright.codegen.project import write_project, written_names, written_project
from tilewright.errors import TilewrightError

HERE = Path(__file__).parent
OTHER_FILE_SYSTEM = Path("/dev/shm")
NOBODY = 65534
OLD = {"network.c": b"old", "source/network.h": b"old", "gone/more/old.c": b"old"}
NEW = {"network.c": b"new", "source/network.h": b"new", "board/new.c": b"new"}


def contents(folder: Path) -> dict[str, bytes]:
    """Files that are no lists of files."""
    found = {str(p.relative_to(folder)): p for p in sorted(folder.rglob("*")) if p.is_symlink() or p.is_file()}
    assert not any(path.is_symlink() for path in found.values())
    return {name: path.read_bytes() for name, path in found.items() if not name.endswith(".tilewright.json")}


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder on another file system than usual, where there is one."""
    with tempfile.TemporaryDirectory(dir=OTHER_FILE_SYSTEM if os.access(OTHER_FILE_SYSTEM, os.W_OK) else None) as name:
        yield Path(name)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("faults") / "faults.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", made, HERE / "faults.c", "-ldl"], check=True)
    return made


@pytest.mark.parametrize("scenario", ["replaced", "fresh", "without links", "one file"])
def test_a_fault_at_every_call_that_writes(scenario: str, library: Path, elsewhere: Path) -> None:
    """An error, Ctrl-C or the end of the process at each call in turn."""
    done = subprocess.run(
        [sys.executable, HERE / "faulty_writes.py", scenario, elsewhere],
        env={**os.environ, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_output_to_another_file_system(elsewhere: Path) -> None:
    for content in (OLD, NEW):
        write_project(content, elsewhere / "c")
    assert contents(elsewhere / "c") == NEW


def test_a_mount_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be moved into such a folder from outside."""
    write_project(OLD, tmp_path)
    real = os.replace

    def replace(source: Path, target: Path) -> None:
        if not all(path.is_relative_to(tmp_path) for path in (source, target)):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(os, "rename", replace)
    write_project(NEW, tmp_path)
    assert contents(tmp_path) == NEW


def test_files_of_an_earlier_project_go_and_those_of_others_stay(tmp_path: Path) -> None:
    write_project(OLD, tmp_path)
    (tmp_path / "mine.c").write_text("mine")
    write_project(NEW, tmp_path)
    assert contents(tmp_path) == {**NEW, "mine.c": b"mine"}
    assert not (tmp_path / "gone").exists()
    assert written_names(tmp_path, "network") == tuple(sorted(NEW))


def test_a_file_that_somebody_has_changed_is_theirs(tmp_path: Path) -> None:
    write_project(OLD, tmp_path)
    (tmp_path / "gone" / "more" / "old.c").write_text("mine")
    write_project(NEW, tmp_path)
    assert contents(tmp_path) == {**NEW, "gone/more/old.c": b"mine"}


def test_another_network_in_the_same_folder_stays(tmp_path: Path) -> None:
    write_project({"first.c": b"1", "shared.h": b"s", "own.h": b"o"}, tmp_path, "first")
    write_project({"second.c": b"2", "shared.h": b"s"}, tmp_path, "second")
    write_project({"first.c": b"3"}, tmp_path, "first")
    assert contents(tmp_path) == {"first.c": b"3", "second.c": b"2", "shared.h": b"s"}


@pytest.mark.parametrize("name", ["../out.c", "/etc/hostname", "linked/out.c"])
def test_a_list_from_elsewhere_removes_nothing_outside(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "c"
    write_project({"out.c": b"x"}, folder)
    (tmp_path / "out.c").write_bytes(b"x")
    (folder / "linked").symlink_to("..")
    listed = folder / ".network.tilewright.json"
    listed.write_text(listed.read_text().replace('"out.c"', f'"{name}"'))
    write_project(NEW, folder)
    assert (tmp_path / "out.c").read_bytes() == b"x"
    listed.write_text("nonsense")
    write_project(NEW, folder)


def test_a_failure_keeps_the_very_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Times included: make must not build anew."""
    write_project(OLD, tmp_path)
    before = identities(tmp_path)
    real = os.symlink

    def symlink(target: str | Path, path: Path, is_folder: bool = False) -> None:
        if str(target) == "new":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(target, path, is_folder)

    monkeypatch.setattr(os, "symlink", symlink)
    with pytest.raises(TilewrightError, match="cannot write"):
        write_project(NEW, tmp_path)
    assert identities(tmp_path) == before


def identities(folder: Path) -> dict[Path, tuple[int, int]]:
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", ["folder", "link", "pipe", "file for a folder", "link for a folder"])
def test_something_else_in_the_place_of_a_file(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "c"
    write_project(OLD, folder)
    if kind == "folder":
        (folder / "board" / "new.c").mkdir(parents=True)
    elif kind == "link":
        (folder / "board").mkdir()
        (folder / "board" / "new.c").symlink_to("../network.c")
    elif kind == "pipe":
        (folder / "board").mkdir()
        os.mkfifo(folder / "board" / "new.c")
    elif kind == "file for a folder":
        (folder / "board").write_text("mine")
    else:
        (folder / "board").symlink_to(tmp_path)
    before = sorted(folder.rglob("*"))
    with pytest.raises(TilewrightError, match="cannot write") as caught:
        write_project(NEW, folder)
    assert "in the place of" in caught.value.reasons[0]
    assert sorted(folder.rglob("*")) == before
    assert (folder / "network.c").read_bytes() == b"old"


def test_a_link_to_a_folder_stays(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("there")
    for content in (OLD, NEW):
        write_project(content, tmp_path / "link")
        assert contents(tmp_path / "there") == content
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("target", ["loop", "file"])
def test_no_folder_can_be_there(tmp_path: Path, target: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path / target, tmp_path / target / "below"):
        with pytest.raises(TilewrightError, match="cannot write"):
            write_project(NEW, place)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "loop"]


def test_the_current_folder_stays_the_same_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "c").mkdir()
    monkeypatch.chdir(tmp_path / "c")
    before = Path.cwd().stat().st_ino
    write_project(OLD, Path())
    write_project(NEW, Path(".."))
    write_project(NEW, Path())
    assert contents(Path.cwd()) == NEW
    assert Path.cwd().stat().st_ino == (tmp_path / "c").stat().st_ino == before


def test_usual_permissions(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        for content in (OLD, NEW):
            write_project(content, tmp_path / "c")
            assert {path.stat().st_mode & 0o777 for path in (tmp_path / "c").rglob("*") if path.is_file()} == {0o640}
            assert (tmp_path / "c").stat().st_mode & 0o777 == 0o750
    finally:
        os.umask(before)


def test_one_after_another(tmp_path: Path) -> None:
    """Whoever comes second waits."""
    order: list[str] = []
    folder = tmp_path / "c"

    def second() -> None:
        write_project(NEW, folder)
        order.append("second")

    waiting = threading.Thread(target=second)
    with written_project(OLD, folder):
        waiting.start()
        time.sleep(0.1)
        assert contents(folder) == OLD
        order.append("first")
    waiting.join()
    assert order == ["first", "second"]
    assert contents(folder) == NEW


def test_nobody_waits_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "PATIENCE", 0.0)
    with written_project(OLD, tmp_path / "c"), pytest.raises(TilewrightError) as caught:
        write_project(NEW, tmp_path / "c")
    assert "another tilewright command" in caught.value.reasons[0]
    assert contents(tmp_path / "c") == OLD


def test_two_make_the_same_folder(tmp_path: Path) -> None:
    def fill(place: Path) -> None:
        if not (tmp_path / "c").exists():
            write_project(OLD, tmp_path / "c")
        (place / "network.c").write_bytes(b"new")

    write_folder(tmp_path / "c", fill)
    assert contents(tmp_path / "c") == {**OLD, "network.c": b"new"}
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def in_a_child(work: Callable[[], int], *, unprivileged: bool = False) -> int:
    """Starts a process that does some work and ends with the status it gives; its number."""
    child = os.fork()
    if not child:
        status = 99
        try:
            if unprivileged and os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            status = work()
        finally:
            os._exit(status)
    return child


def refused(folder: Path) -> int:
    try:
        write_project(NEW, folder)
    except TilewrightError as error:
        return 0 if error.code == "cannot-write" and error.help else 2
    return 1


def test_a_folder_that_one_may_only_read(elsewhere: Path) -> None:
    write_project(OLD, elsewhere / "c")
    elsewhere.chmod(0o555)
    (elsewhere / "c").chmod(0o555)
    before = identities(elsewhere)
    for place in (elsewhere / "c", elsewhere / "new"):
        child = in_a_child(partial(refused, place), unprivileged=True)
        assert os.waitpid(child, 0)[1] == 0
    assert identities(elsewhere) == before
    elsewhere.chmod(0o755)
    (elsewhere / "c").chmod(0o755)


def test_two_processes_on_one_folder(elsewhere: Path) -> None:
    """Whoever looks finds the files of one of them, whole."""

    def write(content: dict[str, bytes]) -> int:
        for _ in range(12):
            write_project(content, elsewhere / "c")
        return 0

    children = [in_a_child(partial(write, content)) for content in (OLD, NEW)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    assert contents(elsewhere / "c") in (OLD, NEW)
    assert [path.name for path in elsewhere.iterdir()] == ["c"]
