"""Results on disk, found again by what they were made from: small files, whole or not there, the least used go first.

Any process may read, add or remove at any time. What cannot be read counts as not there, what cannot be written is
left out: a cache saves time and decides nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from tilewright.base.files import cannot_write, write_file
from tilewright.errors import TilewrightError

VARIABLE = "TILEWRIGHT_CACHE"
"""The environment variable that names another folder."""
USUAL = 256 << 20
"""Bytes that entries may take where nobody says otherwise."""
_SUFFIX, _LIMIT = ".entry", "limit"


class Entry(Struct, frozen=True):
    """A file of the cache."""

    path: Path
    bytes: int
    """On disk."""
    used: float
    """When it was last read or written."""


class Cache(Struct, frozen=True):
    """A folder of entries by key, which is a name for a file."""

    folder: Path

    def get(self, key: str) -> bytes | None:
        """What was put there; None where nothing was."""
        path = self._path(key)
        try:
            found = path.read_bytes()
        except OSError:
            return None
        with suppress(OSError):
            os.utime(path)
        return found

    def put(self, key: str, data: bytes) -> None:
        """Keeps something, as far as that is possible, and makes room for it."""
        if len(data) <= self.limit:
            with suppress(TilewrightError):
                write_file(self._path(key), data)
            self.shrink()

    def entries(self) -> tuple[Entry, ...]:
        """All of them, the least used first."""
        return tuple(sorted(self._found(), key=lambda entry: (entry.used, entry.path.name)))

    def shrink(self) -> None:
        """Removes what was not used for the longest time until the rest is within the limit."""
        entries = self.entries()
        over = sum(entry.bytes for entry in entries) - self.limit
        for entry in entries:
            if over <= 0:
                return
            with suppress(OSError):
                entry.path.unlink()
            over -= entry.bytes

    def clear(self) -> None:
        """Removes all entries."""
        for entry in self.entries():
            with cannot_write(entry.path):
                entry.path.unlink(missing_ok=True)

    @property
    def limit(self) -> int:
        """Bytes that entries may take."""
        try:
            return int((self.folder / _LIMIT).read_text())
        except (OSError, ValueError):
            return USUAL

    def set_limit(self, limit: int) -> None:
        """Says how many bytes entries may take, from now on."""
        write_file(self.folder / _LIMIT, f"{limit}\n".encode())
        self.shrink()

    def _path(self, key: str) -> Path:
        return self.folder / (key + _SUFFIX)

    def _found(self) -> Iterator[Entry]:
        with suppress(OSError), os.scandir(self.folder) as files:
            for file in files:
                if file.name.endswith(_SUFFIX):
                    with suppress(FileNotFoundError):  # somebody else may have removed it by now
                        known = file.stat()
                        size = max(known.st_size, known.st_blocks * 512)
                        yield Entry(Path(file.path), size, known.st_mtime)


def user_cache() -> Cache:
    """The cache of whoever runs this."""
    given = os.environ.get(VARIABLE)
    if given:
        return Cache(Path(given))
    home = os.environ.get("XDG_CACHE_HOME")
    return Cache((Path(home) if home else Path.home() / ".cache") / "tilewright")
