"""Runs the program of a plan, and looks at every tensor on the way: where it is made, and where it is read."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from msgspec import Struct, field

from tilewright.api.compiling import Compiled
from tilewright.api.measuring import Building
from tilewright.codegen import build, lower, project_files, project_in
from tilewright.codegen.observing import HEADER, Sight, recording, sights, stopping
from tilewright.core.graph import Array, Graph, TensorType
from tilewright.core.program import Mark, Program
from tilewright.errors import TilewrightError
from tilewright.sim.chip import run_on_chip
from tilewright.sim.host import run_on_host
from tilewright.sim.qemu import run_in_qemu
from tilewright.sim.settings import EmulatedMachine
from tilewright.sim.watching import Watched, watch_on_chip

FLAGS = ("-include", HEADER)
ALIGNMENT = 16
"""Of inputs and outputs on an emulated board."""

HOST_SINK = """#include <stdio.h>

void tw_observe(int number, const void *data, size_t bytes) {{
    static FILE *file;
    if (!file) file = fopen({path}, "wb");
    if (!file) return;
    fwrite(&number, sizeof number, 1, file);
    fwrite(data, 1, bytes, file);
    fflush(file); /* whatever becomes of the program */
}}
"""
BOARD_SINK = """extern unsigned char __io_start[], __io_end[];

void tw_observe(int number, const void *data, size_t bytes) {{
    static unsigned char *next;
    if (!next) next = __io_start + {start};
    if ((size_t)(__io_end - next) < bytes + 4) return;
    for (int i = 0; i < 4; i++) *next++ = (unsigned char)(number >> (8 * i));
    for (size_t i = 0; i < bytes; i++) *next++ = ((const unsigned char *)data)[i];
}}
"""


class Shown(Struct):
    """A tensor as far as it was seen."""

    array: Array
    known: Array
    """Where."""

    @property
    def whole(self) -> bool:
        return bool(self.known.all())


class Observed(Struct):
    """What was seen."""

    graph: Graph
    outputs: tuple[Array, ...] = ()
    """None where the program did not come to its end."""
    made: dict[str, Shown] = field(default_factory=dict[str, Shown])
    read: dict[tuple[int, str], Shown] = field(default_factory=dict[tuple[int, str], Shown])
    """By the node that reads it."""

    def take(self, sight: Sight, turn: int, data: Sequence[bytes]) -> None:
        """What was there when the program came to a mark once more."""
        for piece in sight.turns[turn] if turn < len(sight.turns) else ():
            kind = self.graph.types[piece.tensor]
            empty = Shown(np.zeros(kind.shape, kind.dtype.numpy), np.zeros(kind.shape, np.bool_))
            if piece.made:
                shown = self.made.setdefault(piece.tensor, empty)
            else:
                shown = self.read.setdefault((piece.node, piece.tensor), empty)
            shown.array[piece.region] = piece.array(data[piece.span], kind)
            shown.known[piece.region] = True


class Runner(Struct, frozen=True):
    """How programs of a compilation are built and run."""

    compiled: Compiled
    fed: Sequence[Array]
    building: Building
    machine: EmulatedMachine

    def run(self, *, checks: bool = True) -> tuple[Array, ...]:
        """The outputs of the program as it is."""
        with self._built(self.compiled.files, ()) as executable:
            return self._outputs(executable, checks=checks)

    def observe(self) -> Observed:
        """The same, with all that can be seen on the way."""
        compiled = self.compiled
        program = lower(compiled.plan, compiled.program.name, observed=True)
        files = project_files([program], compiled.platform)
        seen, found = sights(compiled.plan), Observed(compiled.plan.graph)
        try:
            if compiled.platform.timings:
                found.outputs = self._on_chip(program, files, seen, found)
            elif compiled.platform.qemu:
                for part in self._parts(seen):
                    found.outputs = self._on_board(program, files, part, found)
            else:
                found.outputs = self._on_host(program, files, seen, found)
        except TilewrightError as error:
            # What was seen until then tells where it went wrong.
            if error.code != "run-failed":
                raise
        return found

    @contextmanager
    def _built(self, files: Mapping[str, bytes], flags: Sequence[str]) -> Generator[Path]:
        name, mine = self.compiled.program.name, self.building
        with project_in(None, files, name) as folder:
            platform, added = self.compiled.platform, (*mine.flags, *flags)
            yield build(folder, platform, name, compiler=mine.compiler, flags=added).executable

    def _outputs(self, executable: Path, *, checks: bool = True) -> tuple[Array, ...]:
        platform, limits, kinds = self.compiled.platform, self.building.limits, self._kinds
        if platform.timings:
            return run_on_chip(executable, self.fed, kinds, platform, checks=checks, limits=limits).outputs
        if platform.qemu:
            return run_in_qemu(executable, self.fed, kinds, platform, (), limits).outputs
        machine = self.machine if platform.links else None
        return run_on_host(executable, self.fed, kinds, machine=machine, limits=limits).outputs

    @property
    def _kinds(self) -> list[TensorType]:
        graph = self.compiled.plan.graph
        return [graph.types[name] for name in graph.given]

    def _on_host(
        self, program: Program, files: Mapping[str, bytes], seen: Sequence[Sight], found: Observed
    ) -> tuple[Array, ...]:
        with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
            path = Path(folder) / "seen"
            added = recording(program, seen, HOST_SINK.format(path=json.dumps(str(path))))
            with self._built({**files, **added}, FLAGS) as executable:
                try:
                    return self._outputs(executable)
                finally:
                    _take_all(path.read_bytes() if path.exists() else b"", seen, found)

    def _parts(self, seen: Sequence[Sight]) -> Iterator[list[Sight]]:
        """What can be written down at once in the memory for that on an emulated board."""
        room = self._room
        part: list[Sight] = []
        for sight in seen:
            if sum(map(_record, [*part, sight])) > room.stop - room.start and part:
                yield part
                part = []
            part.append(sight)
        yield part

    @property
    def _room(self) -> slice:
        """The memory of an emulated board that is left beside inputs and outputs."""
        memory = self.compiled.platform.memories[self.compiled.platform.home]
        sizes = [*(array.nbytes for array in self.fed), *(kind.bytes for kind in self._kinds)]
        return slice(sum(-(-size // ALIGNMENT) * ALIGNMENT for size in sizes), memory.bytes or 0)

    def _on_board(
        self, program: Program, files: Mapping[str, bytes], seen: Sequence[Sight], found: Observed
    ) -> tuple[Array, ...]:
        room = self._room
        kept = slice(room.start, min(room.start + sum(map(_record, seen)), room.stop))
        added = recording(program, seen, BOARD_SINK.format(start=room.start))
        with self._built({**files, **added}, FLAGS) as executable:
            mine = self.building.limits
            ran = run_in_qemu(executable, self.fed, self._kinds, self.compiled.platform, (), mine, left=kept)
        _take_all(ran.left, seen, found)
        return ran.outputs

    def _on_chip(
        self, program: Program, files: Mapping[str, bytes], seen: Sequence[Sight], found: Observed
    ) -> tuple[Array, ...]:
        by_mark = {(sight.mark.group, sight.mark.number): sight for sight in seen}
        watched = {
            mark: Watched(tuple((span.place, span.bytes) for span in sight.spans), sight.beside)
            for mark, sight in by_mark.items()
        }
        turns: Counter[tuple[int, int]] = Counter()

        def tell(mark: tuple[int, int], data: Sequence[bytes]) -> None:
            found.take(by_mark[mark], turns[mark], data)
            turns[mark] += 1

        platform, memories = self.compiled.platform, [name for name, _ in program.memories]
        with self._built({**files, **stopping()}, FLAGS) as executable:
            return watch_on_chip(
                executable, self.fed, self._kinds, platform, memories, watched, tell, self.building.limits
            )


def _record(sight: Sight) -> int:
    """Bytes that are written down of all that is seen at a mark."""
    return sight.bytes + 4 * len(sight.spans) * len(sight.turns)


def _take_all(data: bytes, seen: Iterable[Sight], found: Observed) -> None:
    """Reads what a program has written down: each span behind its number."""
    spans = [(sight, number) for sight in seen for number in range(len(sight.spans))]
    turns: Counter[Mark] = Counter()
    waiting: list[bytes] = []
    at = 0
    while at + 4 <= len(data):
        sight, number = spans[int.from_bytes(data[at : at + 4], "little")]
        size = sight.spans[number].bytes
        waiting.append(data[at + 4 : at + 4 + size])
        at += 4 + size
        if at <= len(data) and number == len(sight.spans) - 1:
            found.take(sight, turns[sight.mark], waiting)
            turns[sight.mark] += 1
            waiting = []
