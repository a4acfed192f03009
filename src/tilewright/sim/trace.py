"""A run as a trace that Perfetto and chrome://tracing open: a lane for each hart, and lanes for transfers and jobs.

One cycle of the machine is one nanosecond of the trace. Events are written while the program runs, so that a run which
is broken off leaves a trace of what came before.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from tilewright import _native
from tilewright.base.files import cannot_write
from tilewright.sim.simulator import Simulator

START, CALL, LEAVE, JUMP, ASLEEP, AWAKE = range(6)
"""Kinds of events, as native/src/machine/trace.h numbers them."""

HARTS, DEVICES = 1, 2
"""Processes of the trace; their threads are the lanes."""

SLEEP = "asleep"
MOST_SLICES = 3_000_000
"""Of functions and sleep; viewers do not take many more."""


class TraceWriter:
    """Writes the trace of one simulator: `update` after each part of a run, and the rest when it is closed."""

    def __init__(self, path: Path, simulator: Simulator) -> None:
        self._simulator = simulator
        self._path = path
        self._stacks: dict[int, list[str]] = {}
        self._latest: dict[int, int] = {}
        self._slices = 0
        self._left_out = 0
        self._first = True
        with cannot_write(path):
            self._file: IO[str] = path.open("w", encoding="utf-8")
        self._file.write('{"displayTimeUnit": "ns", "traceEvents": [')
        self._name("process_name", HARTS, 0, "harts")
        for index, name in enumerate(simulator.timing.hart_names):
            self._name("thread_name", HARTS, index, name)

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def left_out(self) -> int:
        """Events that were too many."""
        return self._left_out + self._simulator.native.trace_left_out

    def update(self) -> None:
        """Writes what harts did since the last time."""
        taken = (values.tolist() for values in self._simulator.native.take_trace())
        with cannot_write(self._path):
            for time, hart, kind, address in zip(*taken, strict=True):
                self._hart_event(time, hart, kind, address)

    def close(self) -> None:
        """Ends all that is still open, adds the transfers, and makes the file whole."""
        if self._file.closed:
            return
        try:
            self.update()
            for hart, stack in self._stacks.items():
                while stack:
                    # A hart may have run ahead of the machine.
                    self._end(max(self._simulator.cycles, self._latest[hart]), hart)
            self._transfers()
        finally:
            with cannot_write(self._path), self._file:
                self._file.write("\n]}\n")

    def _hart_event(self, time: int, hart: int, kind: int, address: int) -> None:
        stack = self._stacks.setdefault(hart, [])
        self._latest[hart] = time
        if kind == AWAKE:
            if stack and stack[-1] == SLEEP:
                self._end(time, hart)
        elif kind == ASLEEP:
            self._begin(time, hart, SLEEP)
        elif kind == LEAVE:
            # The last one stays: a hart is always in some function.
            if len(stack) > 1:
                self._end(time, hart)
        else:
            if kind == START:
                while stack:
                    self._end(time, hart)
            elif kind == JUMP and stack:
                self._end(time, hart)
            function = self._simulator.place(address).function
            self._begin(time, hart, function or f"{address:#x}")

    def _begin(self, time: int, hart: int, name: str) -> None:
        self._stacks[hart].append(name)
        if self._slices < MOST_SLICES:
            self._slices += 1
            self._write({"ph": "B", "pid": HARTS, "tid": hart, "ts": time / 1000, "name": name})
        else:
            self._left_out += 1

    def _end(self, time: int, hart: int) -> None:
        self._stacks[hart].pop()
        if self._slices < MOST_SLICES:
            self._write({"ph": "E", "pid": HARTS, "tid": hart, "ts": time / 1000})

    def _transfers(self) -> None:
        """Transfers and jobs; what runs at the same time in one lane gets a row of its own."""
        self._name("process_name", DEVICES, 0, "transfers and jobs")
        rows: dict[str, list[tuple[int, int]]] = {}  # by lane: number of each row, and when it is free
        numbers = 0
        for transfer in self._simulator.native.transfers():
            finished = transfer["finished"] if transfer["finished"] >= 0 else self._simulator.cycles
            lane = rows.setdefault(transfer["lane"], [])
            free = next((i for i, (_, until) in enumerate(lane) if until <= transfer["started"]), len(lane))
            if free == len(lane):
                self._name("thread_name", DEVICES, numbers, transfer["lane"] + (f" ({free + 1})" if free else ""))
                lane.append((numbers, 0))
                numbers += 1
            row = lane[free][0]
            lane[free] = (row, finished)
            self._write(self._slice(transfer, row, finished))

    def _slice(self, transfer: _native.Transfer, row: int, finished: int) -> dict[str, Any]:
        started = transfer["started"]
        return {
            "ph": "X",
            "pid": DEVICES,
            "tid": row,
            "ts": started / 1000,
            "dur": (finished - started) / 1000,
            "name": transfer["what"],
            "args": {
                "bytes": transfer["bytes"],
                "cycles": finished - started,
                "asked for by": self._simulator.timing.hart_names[transfer["hart"]],
                "at": str(self._simulator.place(transfer["pc"])),
            },
        }

    def _name(self, what: str, process: int, thread: int, name: str) -> None:
        self._write({"ph": "M", "pid": process, "tid": thread, "name": what, "args": {"name": name}})

    def _write(self, event: dict[str, Any]) -> None:
        self._file.write(("\n" if self._first else ",\n") + json.dumps(event))
        self._first = False
