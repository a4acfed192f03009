"""Work in forked processes with limits of time and memory: what goes wrong there ends one process, and is told."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import asdict

Status = Literal["right", "refused", "wrong", "traceback", "crash", "hang", "memory"]
FINE: frozenset[Status] = frozenset({"right", "refused"})

MOST_BYTES = 2 << 30
"""How much a process may grow."""
CPU_SECONDS = 120
"""Of one item; the compiler's own processes not counted."""
WALL_SECONDS = 900.0
"""Of one item; a loaded machine takes many times the CPU time."""


class Verdict(Struct, frozen=True):
    """What became of item `index`. `detail` is one line of what is wrong, or the code of the error."""

    index: int
    status: Status
    detail: str = ""

    @property
    def fine(self) -> bool:
        return self.status in FINE


Judge = Callable[[Sequence[int]], Iterator[Verdict]]
"""Judges items in order."""


def failure(index: int, error: BaseException) -> Verdict:
    """The verdict for an exception that nobody expected."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "tilewright" in frame.filename] or frames
    where = f"{Path(own[-1].filename).name}:{own[-1].lineno}"
    text = f"{type(error).__name__} at {where}: {error}"
    status: Status = "memory" if isinstance(error, MemoryError) else "traceback"
    return Verdict(index, status, text.replace("\n", " ")[:400])


def virtual_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def limit_growth() -> None:
    """Programs with sanitizers need more, and lift the limit."""
    most = virtual_bytes() + MOST_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _allow_cpu(seconds: int) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    end = int(used.ru_utime + used.ru_stime) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (end, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _work(judge: Judge, items: Sequence[int], pipe: int, cpu_seconds: int) -> None:
    """In the child: one line for each verdict."""
    limit_growth()
    _allow_cpu(cpu_seconds)
    with os.fdopen(pipe, "w") as told:
        for verdict in judge(items):
            told.write(json.dumps(asdict(verdict)) + "\n")
            told.flush()
            _allow_cpu(cpu_seconds)


def judged(
    judge: Judge, items: Sequence[int], wall_seconds: float = WALL_SECONDS, cpu_seconds: int = 0
) -> Iterator[Verdict]:
    """The verdicts of some items, by a process of their own, and another one from behind an item that ends it."""
    cpu_seconds = cpu_seconds or CPU_SECONDS
    left = list(items)
    while left:
        status: Status = "crash"
        detail = ""
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.setpgid(0, 0)
            code = 1
            try:
                os.close(reading)
                _work(judge, left, writing, cpu_seconds)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        with suppress(OSError):
            # Both do it, whoever comes first.
            os.setpgid(child, child)
        os.close(writing)
        ended: int | None = None
        try:
            for line in _lines(reading, wall_seconds):
                verdict = Verdict(**json.loads(line))
                left.remove(verdict.index)
                yield verdict
            ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        except TimeoutError:
            status, detail = "hang", f"no verdict within {wall_seconds:.0f} s"
        finally:
            os.close(reading)
            if ended is None:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
        if left:
            if ended == -signal.SIGXCPU:
                status, detail = "hang", f"more than {cpu_seconds} s of CPU time"
            yield Verdict(left.pop(0), status, detail or f"the process ended with status {ended}")


def _lines(pipe: int, wall_seconds: float) -> Iterator[str]:
    rest = b""
    while True:
        if not select.select([pipe], [], [], wall_seconds)[0]:
            raise TimeoutError
        chunk = os.read(pipe, 1 << 16)
        if not chunk:
            return
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line.decode() for line in whole)
