"""Folders on disk: several files are replaced together, so that a reader finds all old or all new ones, at any moment.

A folder that is not there yet is written beside its place and then renamed. One that is there stays the same folder,
for shells, mounts and watchers, and files of others in it are not touched. `.tilewright-swap` in it holds the old
files, the new ones, and a link `now` to either. One by one, the files of the folder become links to what has their name
below `now`, which changes nothing for a reader; then `now` is turned from the old to the new files in one step; and one
by one, the new files take the place of the links. Whoever works in the folder next can tell from `now` which way to go
on after a process was killed.

Where the file system knows no links, all old files go before the first new one comes: a killed process may leave some
of the old or some of the new files, but no mixture, and the next one mends it.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Collection, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tilewright.base.files import (
    again_if_broken_off,
    cannot_write,
    locked,
    parents_of,
    staging,
    sweep,
    sync,
    sync_folder,
)

SWAP = ".tilewright-swap"
"""The folder in which the files of a folder are replaced."""
OLD, NEW, NOW = "old", "new", "now"

Fill = Callable[[Path], None]
"""Writes new files into an empty folder."""
Stale = Callable[[Path], Collection[str]]
"""Names of files in a folder that are to go when the new ones come."""


def write_folder(folder: Path, fill: Fill) -> None:
    """Writes what `fill` makes into a folder, all of it or nothing; other files there stay."""
    with written_folder(folder, fill, lambda _: ()):
        pass


@contextmanager
def written_folder(folder: Path, fill: Fill, stale: Stale, help: str = "") -> Generator[None]:
    """The same; as long as the block lasts, no other process replaces files there."""
    with ExitStack() as held:
        with cannot_write(folder, help):
            # A link to a folder stays; what it leads to is written.
            place = Path(os.path.realpath(folder))
            while not (_replaced(place, fill, stale, held) if os.path.lexists(place) else _created(place, fill, held)):
                pass
        yield


def _created(place: Path, fill: Fill, held: ExitStack) -> bool:
    """Makes the folder; False if somebody else was faster."""
    with parents_of(place), staging(place.parent) as scratch:
        made = scratch / NEW
        made.mkdir()
        fill(made)
        _sync_all(made)
        lock = held.enter_context(ExitStack())
        lock.enter_context(locked(made))
        try:
            made.rename(place)
        except OSError as reason:
            lock.close()
            if reason.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
            return False
        sync_folder(place.parent)
    return True


def _replaced(place: Path, fill: Fill, stale: Stale, held: ExitStack) -> bool:
    """Writes into a folder that is there."""
    held.enter_context(locked(place))
    for folder in (place, place.parent):  # there while it was made
        sweep(folder)
    swap = _Swap(place)
    swap.settle()
    try:
        swap.prepare(fill, stale)
        swap.commit()
    finally:
        again_if_broken_off(swap.settle)
    return True


class _Swap:
    """Old and new files of a locked folder, and which of them count."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = folder / SWAP
        self.old, self.new, self.now = self.place / OLD, self.place / NEW, self.place / NOW
        self.has_links = True

    def prepare(self, fill: Fill, stale: Stale) -> None:
        """Everything that can fail; for a reader nothing changes."""
        self.place.mkdir()
        self.new.mkdir()
        fill(self.new)
        _sync_all(self.new)
        names = _names(self.new)
        for name in names:
            _check(self.folder, name)
        names = sorted({*names, *(name for name in stale(self.folder) if _hideable(self.folder, name))})
        self.old.mkdir()
        for name in names:
            self._keep(name)
        self.has_links = self._try_links()
        self._point(OLD)
        for name in names:
            self._hide(name)

    def commit(self) -> None:
        """The step from the old files to the new ones."""
        self._point(NEW)
        sync_folder(self.place)

    def settle(self) -> None:
        """Brings files to their places: the new ones once they count, else the old ones. Then all traces go."""
        if self.place.is_symlink() or not self.place.is_dir():
            return
        counting = self._counting()
        if counting is not None:
            for name in sorted({*_names(self.old), *_names(self.new)}):
                self._show(name, counting)
            sync_folder(self.folder)
            self.now.unlink()
        shutil.rmtree(self.place)

    def _keep(self, name: str) -> None:
        """Keeps an old file, if there is one, and which folders there are above it."""
        for parent in reversed(_folders(name)):
            if (self.folder / parent).is_dir():
                (self.old / parent).mkdir(exist_ok=True)
        if (self.folder / name).is_file():
            try:
                (self.old / name).hardlink_to(self.folder / name)
            except OSError:  # not on every file system, and not for files of others
                shutil.copy2(self.folder / name, self.old / name)

    def _try_links(self) -> bool:
        try:
            self._link.symlink_to(OLD)
        except OSError as reason:
            if reason.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
                raise
            return False
        self._link.unlink()
        return True

    def _point(self, files: str) -> None:
        """Says which files count."""
        if self.has_links:
            self._link.symlink_to(files)
        else:
            self._link.write_text(files)
            sync(self._link)
        self._link.replace(self.now)

    def _counting(self) -> Path | None:
        """The files that count; None before there was a choice."""
        if not os.path.lexists(self.now):
            return None
        files = str(self.now.readlink()) if self.now.is_symlink() else self.now.read_text()
        return self.place / files if files in (OLD, NEW) else None

    def _hide(self, name: str) -> None:
        """A link to what counts takes the place of a file."""
        file = self.folder / name
        if self.has_links:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._link.symlink_to(_to_counting(name))
            self._link.replace(file)
        else:
            file.unlink(missing_ok=True)

    def _show(self, name: str, counting: Path) -> None:
        """The file that counts takes its place again, if it was hidden."""
        file = self.folder / name
        is_link = file.is_symlink() and file.readlink() == _to_counting(name)
        if not _inside(self.folder, name) or (os.path.lexists(file) and not is_link):
            return
        if os.path.lexists(counting / name):
            file.parent.mkdir(parents=True, exist_ok=True)
            (counting / name).replace(file)
            return
        file.unlink(missing_ok=True)
        for parent in _folders(name):
            if not (counting / parent).is_dir() and _is_empty(self.folder / parent):
                (self.folder / parent).rmdir()

    @property
    def _link(self) -> Path:
        """Where links are made before they are moved to their place."""
        return self.place / "link"


def _to_counting(name: str) -> Path:
    """The link that takes the place of a file."""
    return Path(*[".."] * len(_folders(name)), SWAP, NOW, name)


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())


def _names(folder: Path) -> list[str]:
    """All files below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_symlink() or path.is_file())


def _folders(name: str) -> list[Path]:
    """The folders that a file is in, from the inside outwards."""
    return list(Path(name).parents[:-1])


def _sync_all(folder: Path) -> None:
    for path in sorted([folder, *folder.rglob("*")]):
        (sync_folder if path.is_dir() else sync)(path)


def _inside(folder: Path, name: str) -> bool:
    """Whether no link on the way to a file leads out of the folder."""
    return not any((folder / parent).is_symlink() for parent in _folders(name))


def _hideable(folder: Path, name: str) -> bool:
    return _inside(folder, name) and (folder / name).is_file() and not (folder / name).is_symlink()


def _check(folder: Path, name: str) -> None:
    """An error if something else than a file is where a new one belongs."""
    for place in (folder / parent for parent in _folders(name)):
        if os.path.lexists(place) and (place.is_symlink() or not place.is_dir()):
            what = "a link" if place.is_symlink() else "a file"
            raise NotADirectoryError(errno.ENOTDIR, f"there is {what} in the place of a folder", str(place))
    file = folder / name
    if os.path.lexists(file) and not _hideable(folder, name):
        what = "a link" if file.is_symlink() else "a folder" if file.is_dir() else "a device or pipe"
        raise FileExistsError(errno.EEXIST, f"there is {what} in the place of a file", str(file))
