"""Runs programs of this computer, whose output is taken as it comes and whose time is limited."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO

from tilewright.errors import TilewrightError
from tilewright.sim.limits import Limits, Sink, time_limit

CHUNK = 1 << 16
PAUSE = 0.2
"""Seconds after which a process is looked at that says nothing."""


class Running:
    """A process, with those that it starts; however the block ends that it is used in, they do not outlive it."""

    def __init__(
        self,
        command: Sequence[str],
        name: str,
        limits: Limits,
        *,
        output: Sink,
        messages: Sink | None = None,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        pass_fds: Sequence[int] = (),
    ) -> None:
        """`name` is the program's for errors; `messages` takes its stderr, which is part of `output` without."""
        self._name = name
        self._limits = limits
        self._end = time.monotonic() + limits.seconds
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if messages else subprocess.STDOUT,
                cwd=folder,
                env=environment,
                pass_fds=pass_fds,
                start_new_session=True,
            )
        except OSError as reason:
            raise TilewrightError(
                "run-failed",
                f"'{command[0]}' cannot be started",
                reasons=[str(reason)],
                help="is it a program for this computer?",
            ) from reason
        self._selector = selectors.DefaultSelector()
        self._watch(self.process.stdout, output)
        if messages:
            self._watch(self.process.stderr, messages)

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._selector.close()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def _watch(self, stream: IO[bytes] | None, sink: Sink) -> None:
        if stream is not None:
            self.watch(stream.fileno(), sink)

    def watch(self, descriptor: int, sink: Sink) -> None:
        """Takes what comes from another file of the process, too."""
        self._selector.register(descriptor, selectors.EVENT_READ, sink)

    @property
    def ended(self) -> bool:
        """Whether nothing will come any more."""
        return not self._selector.get_map()

    def pump(self, pause: float = PAUSE) -> bool:
        """Waits for something to come, for a while, and hands it on; False where nothing came."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise time_limit(self._name, self._limits)
        ready = self._selector.select(min(pause, left))
        for key, _ in ready:
            data = _read(key.fd)
            if not data:
                self._selector.unregister(key.fd)
            key.data(data)
        return bool(ready)

    def finish(self, news: Callable[[], None] = lambda: None) -> int:
        """Waits for the end; the exit status. `news` is called now and then."""
        while self.process.poll() is None:
            news()
            if self.ended:
                self._wait()
            else:
                self.pump()
        while not self.ended and self.pump(0):
            pass
        return self.process.returncode

    def _wait(self) -> None:
        try:
            self.process.wait(max(self._end - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            raise time_limit(self._name, self._limits) from None


def _read(descriptor: int) -> bytes:
    """What has come, nothing at the end."""
    try:
        return os.read(descriptor, CHUNK)
    except ConnectionResetError:
        return b""
