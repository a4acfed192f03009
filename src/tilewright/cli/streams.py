"""Standard output and error that fail in a way that can be told: a full device, a reader that has gone."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

from tilewright.errors import TilewrightError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class OutputClosed(Exception):
    """Whoever read what is printed, such as `head`, has read enough."""


class _Guarded(io.FileIO):
    """A stream of the process. After a failure, all further bytes are dropped, also those that wait in buffers."""

    def __init__(self, descriptor: int, *, vital: bool) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._vital, self._failed = vital, False

    def write(self, data: ReadableBuffer, /) -> int:
        if self._failed:
            return memoryview(data).nbytes
        try:
            return super().write(data)
        except OSError as reason:
            self._failed = True
            if not self._vital:
                return memoryview(data).nbytes
            if isinstance(reason, BrokenPipeError):
                # Not an OSError, for which libraries have exit statuses of their own.
                raise OutputClosed from reason
            raise TilewrightError(
                "cannot-write",
                "standard output cannot be written to",
                reasons=[str(reason)],
                help="what is there is cut off; make room, or send it elsewhere",
            ) from reason


def guard_streams() -> None:
    """Makes failures of stdout errors, and those of stderr nothing at all; both show any character somehow."""
    sys.stdout = _guarded(sys.stdout, 1, vital=True)
    sys.stderr = _guarded(sys.stderr, 2, vital=False)


def _guarded(stream: TextIO | None, descriptor: int, *, vital: bool) -> TextIO:
    if stream is None:
        # Closed by the shell: what is opened next must not get its number, and then what is printed.
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123  # open as long as the process
    raw = _Guarded(descriptor, vital=vital)
    return io.TextIOWrapper(
        io.BufferedWriter(raw), stream.encoding, errors="backslashreplace", line_buffering=raw.isatty() or not vital
    )
