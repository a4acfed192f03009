"""Files on disk, written whole or not at all.

What is new is first written to a folder of its own on the same file system, and then moved to its place in one step.
That folder is locked as long as somebody works in it, so whoever comes next can tell what a killed process left behind.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tilewright.errors import TilewrightError

STAGING = ".tilewright-tmp-"
"""How names of folders begin in which something is being written."""
PATIENCE = 60.0
"""Seconds to wait for another process that works in the same folder."""

_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EINVAL})
"""What file systems say that know no locks."""
_OPEN_FILES = Path("/proc")
"""Where links lead to files that a process has open, such as /dev/stdout."""
_MOST_LINKS = 40


def is_file(path: Path) -> bool:
    """Whether there is such a file. A name that is too long, or lies where nobody may look, names none."""
    try:
        return path.is_file()
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    """The same for a folder."""
    try:
        return path.is_dir()
    except OSError:
        return False


def write_file(path: Path, data: bytes) -> None:
    """Writes one file, and the folders that it lies in; if that fails, all is as it was.

    What cannot be replaced, such as a pipe, a device or /dev/stdout, is written as it is.
    """
    with cannot_write(path):
        place = _replaceable(path)
        if place is None:
            path.write_bytes(data)
            return
        with parents_of(place), staging(place.parent) as scratch:
            made = scratch / "file"
            made.write_bytes(data)
            if place.exists():
                made.chmod(stat.S_IMODE(place.stat().st_mode))
            sync(made)
            made.replace(place)
            sync_folder(place.parent)


def check_places(*paths: Path | None) -> None:
    """The error that `write_file` would end in, told before the work whose results are to be written there."""
    for path in filter(None, paths):
        with cannot_write(path):
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
            place = _replaceable(path)
            if place is not None:
                with staging(next(parent for parent in place.parents if parent.exists())):
                    pass


@contextmanager
def cannot_write(path: Path, help: str = "") -> Generator[None]:
    """Errors of the system become one that names what was to be written."""
    try:
        yield
    except OSError as reason:
        raise TilewrightError(
            "cannot-write", f"cannot write to '{path}'", reasons=[str(reason)], help=help or "choose another place"
        ) from reason


def _replaceable(path: Path) -> Path | None:
    """The file behind all links, or None for what is no file of its own: devices, pipes, files that are open."""
    for _ in range(_MOST_LINKS):
        if _OPEN_FILES in Path(os.path.realpath(path.parent)).parents:
            return None
        if not path.is_symlink():
            return path if path.is_file() or not path.exists() else None
        path = path.parent / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


@contextmanager
def parents_of(path: Path) -> Generator[None]:
    """Makes the folders above `path`; those that were not there go again if the block fails."""
    missing = [parent for parent in path.parents if not parent.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for parent in missing:
            with suppress(OSError):  # somebody else may use it by now
                parent.rmdir()
        raise


@contextmanager
def staging(folder: Path) -> Generator[Path]:
    """An empty folder in `folder`, for things that will be moved to their place; it is gone in the end."""
    sweep(folder)
    place = folder / (STAGING + secrets.token_hex(8))
    with ExitStack() as held:
        held.callback(again_if_broken_off, lambda: _remove(place))
        while not place.is_dir():  # who sweeps may have taken it before it was locked
            place.mkdir(exist_ok=True)
            with suppress(FileNotFoundError):
                held.enter_context(locked(place))
        yield place


def sweep(folder: Path) -> None:
    """Removes what killed processes left in a folder, as far as that is allowed."""
    for place in sorted(folder.glob(STAGING + "*")):
        with suppress(OSError):
            handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(place)
            finally:
                os.close(handle)


def _remove(place: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(place)


def again_if_broken_off(clean: Callable[[], object]) -> None:
    """Cleans up; if that fails or is interrupted, once more, and only an interruption is told then."""
    try:
        clean()
    except BaseException as fault:
        clean()
        if not isinstance(fault, OSError):
            raise


@contextmanager
def locked(folder: Path) -> Generator[None]:
    """Holds a folder, for which others wait. The system lets go of it when the process ends, however it does."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _lock(handle)
        yield
    finally:
        os.close(handle)


def _lock(handle: int) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as reason:
            if time.monotonic() > end:
                raise TimeoutError("another tilewright command works in this folder") from reason
            time.sleep(0.02)
        except OSError as reason:
            if reason.errno in _NO_LOCKS:
                return
            raise


def sync(file: Path) -> None:
    """Waits until a file is on disk, so that it is there before what is moved later."""
    handle = os.open(file, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """The same for the names in a folder, where the file system can do that."""
    with suppress(OSError):
        sync(folder)
