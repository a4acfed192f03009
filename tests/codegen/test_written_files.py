"""Single files are written whole; what is no file of its own is written as it is."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tilewright.base.files import STAGING, staging, sweep, write_file
from tilewright.errors import TilewrightError


def test_folders_above_are_made(tmp_path: Path) -> None:
    write_file(tmp_path / "a" / "b" / "file", b"new")
    assert (tmp_path / "a" / "b" / "file").read_bytes() == b"new"


def test_folders_above_go_again(tmp_path: Path) -> None:
    with pytest.raises(TilewrightError, match="cannot write"):
        write_file(tmp_path / "a" / "b" / ("x" * 300), b"new")
    assert not list(tmp_path.iterdir())


def test_a_link_and_permissions_stay(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "file").chmod(0o600)
    (tmp_path / "link").symlink_to("file")
    write_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600


def test_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write_file(tmp_path / "pipe", b"new")
    reader.join()
    assert read == [b"new"]
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_that_is_a_file(tmp_path: Path, name: str) -> None:
    """The file that is open is written, and no other takes its place."""
    with (tmp_path / "out").open("wb") as out:
        child = os.fork()
        if not child:
            os.dup2(out.fileno(), 1)
            write_file(Path(name), b"x")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert os.fstat(out.fileno()).st_nlink == 1
    assert (tmp_path / "out").read_bytes() == b"x"


def test_a_full_disk() -> None:
    with pytest.raises(TilewrightError, match="/dev/full"):
        write_file(Path("/dev/full"), b"x")


def test_a_loop_of_links_and_a_folder(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for place in (tmp_path / "loop", tmp_path):
        with pytest.raises(TilewrightError, match="cannot write"):
            write_file(place, b"x")


def test_only_what_nobody_uses_is_swept(tmp_path: Path) -> None:
    (tmp_path / f"{STAGING}left").mkdir()
    (tmp_path / f"{STAGING}left" / "file").write_text("half")
    with staging(tmp_path) as used:
        (used / "file").write_text("half")
        sweep(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == [used.name]
        assert (used / "file").exists()
    assert not list(tmp_path.iterdir())
