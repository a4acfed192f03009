"""Random networks on platforms: against onnxruntime or an oracle of their own, and against the interpreter."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from batches import Batch, BatchError, Member
from benchmarks.fuzzing.programs import objects_folder, outputs_of
from benchmarks.fuzzing.workers import Verdict, failure
from samples import KINDS, NODE, Sample, differences, sample
from tilewright.api import Compiled, Options, compile_model
from tilewright.api.cases import UNSUPPORTED
from tilewright.api.feeding import fit
from tilewright.codegen.build import SANITIZE, STRICT
from tilewright.core.graph import Array
from tilewright.core.interpret import interpret
from tilewright.errors import TilewrightError
from tilewright.machine.target import Sizes
from tilewright.sim import EmulatedMachine

GENERIC = "generic"
CHECKED = ("-O0", *STRICT, *SANITIZE)
BUILDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    *(("gcc", CHECKED), ("clang", ("-O0",)), ("clang", CHECKED), ("gcc", ("-O0",))) * 3,
    ("gcc", ("-O1",)),
    ("clang", ("-O0",)),
    ("gcc", ("-O2", "-march=native")),
    ("clang", ("-O2", "-march=native")),
)
"""By turns, batch after batch. Most are without optimisation, which takes a third of the time; half have sanitizers."""
BATCH = 64
SMALL = frozenset({"does-not-fit"})
"""Errors that a valid network may end in: the machine is too small for it."""
LEAST = re.compile(r"needs at least (\d+) bytes of L1")
ROOM = (0, 512, 2048, 2048, 8192, 32768)
"""Bytes of L1; 0 is the platform's own."""
MORE = (1.0, 1.0, 1.2, 2.0)
LEVELS = {
    GENERIC: ("-O0",),
    "scratchpad": ("-O0", "-O0", "-O0", "-O2"),
    "siracusa": ("-O1", "-O1", "-O2"),
    "snitch": ("-O1", "-O1", "-O2"),
    "snitch-ita": ("-O1", "-O1", "-O2"),
    "mempool-16": ("-O1", "-O1", "-O2"),
    "cortex-m4": ("-O1", "-O1", "-O2"),
}
"""Flags behind the platform's own: less to do for the C compiler."""
HOMES: dict[str, tuple[str, ...]] = {
    "scratchpad": ("L2", "L3"),
    "siracusa": ("L2", "L3"),
    "snitch": ("DRAM",),
    "snitch-ita": ("DRAM",),
    "mempool-16": ("L2",),
}
"""Platforms that work in L1, and the memories that may be home there."""
MOMENTS = ("start", "wait", "random")


Source = Callable[[int], Sample]
"""Network i of a seed."""


class Way(Struct, frozen=True):
    """How a sample is compiled for a platform, built and run."""

    options: Options
    machine: EmulatedMachine | None = None
    flags: tuple[str, ...] = ()


def warm(platform: str) -> None:
    """Loads what a compilation loads, so that forked processes have it; without a thread, which they would not have."""
    objects_folder()
    with tempfile.TemporaryDirectory(prefix="tilewright-fuzz-") as scratch:
        for index in (0, KINDS.index("quantiser"), KINDS.index("qdq")):
            made = sample(0, index)
            compile_model(made.write(Path(scratch)), Options(platform=platform))


def _refused(made: Sample, index: int, error: TilewrightError) -> Verdict:
    """Nodes have all types and attributes that the standard allows, some of which nobody uses."""
    allowed = SMALL | UNSUPPORTED if made.kind == NODE else SMALL
    if error.code in allowed and error.help:
        return Verdict(index, "refused", error.code)
    return Verdict(index, "traceback", str(error).replace("\n", " ")[:400])


def _judged(made: Sample, ran: Callable[[], tuple[Sequence[Array], Member]], index: int) -> Verdict:
    """The verdict on the outputs that something gives."""
    try:
        outputs, member = ran()
        graph = member.compiled.plan.graph
        expected = made.expected
        wrong = differences(made, member.compiled, outputs, expected)
        if not wrong:
            wrong = [
                f"the interpreter: {text}"
                for text in differences(made, member.compiled, interpret(graph, member.inputs), expected)
            ]
    except TilewrightError as error:
        return _refused(made, index, error)
    except BatchError as error:
        return Verdict(index, "crash" if error.code == "run-failed" else "traceback", str(error)[:400])
    except Exception as error:
        return failure(index, error)
    return Verdict(index, "wrong" if wrong else "right", f"{made.kind}: {'; '.join(wrong)}"[:400] if wrong else "")


def on_generic(source: Source, items: Sequence[int]) -> Iterator[Verdict]:
    """Networks on this computer, built many at a time."""
    for start in range(0, len(items), BATCH):
        yield from _batch(source, items[start : start + BATCH])


def _batch(source: Source, items: Sequence[int]) -> Iterator[Verdict]:
    compiler, flags = BUILDS[items[0] // BATCH % len(BUILDS)]
    with tempfile.TemporaryDirectory(prefix="tilewright-fuzz-") as scratch:
        folder = Path(scratch)
        members: list[tuple[int, Sample, Member]] = []
        for index in items:
            made = source(index)
            try:
                compiled = compile_model(made.write(folder), Options(name=f"n{index}"), samples=made.inputs)
            except TilewrightError as error:
                yield _refused(made, index, error)
            except Exception as error:
                yield failure(index, error)
            else:
                members.append((index, made, Member(compiled, fit(made.inputs, compiled.plan.graph))))
        if not members:
            return
        batch = Batch([member for _, _, member in members], folder)
        batch.build(compiler, flags)
        for at, (index, made, member) in enumerate(members):
            yield _judged(made, lambda at=at, member=member: (batch.run(at), member), index)


def compiled_in_a_way(platform: str, made: Sample, index: int, folder: Path) -> tuple[Compiled, Way]:
    """The network in one of the ways to run it there; the number chooses it.

    Where the memory is too small for the network, it has a little more than the least that is needed.
    """
    rng = Random(index)
    model, way = made.write(folder), Way(Options(platform=platform), None, (rng.choice(LEVELS[platform]),))
    if platform in HOMES:
        home, cores, room = rng.choice(HOMES[platform]), rng.choice((8, 1, 3)), rng.choice(ROOM)
        machine = EmulatedMachine(rng.choice(MOMENTS), index) if platform == "scratchpad" else None
        small = Options(platform=platform, sizes=Sizes({"L1": room} if room else {}, home, cores))
        try:
            return compile_model(model, small, samples=made.inputs), replace(way, options=small, machine=machine)
        except TilewrightError as error:
            found = LEAST.search(str(error))
            if not found:
                raise
        sizes = Sizes({"L1": int(int(found[1]) * rng.choice(MORE))}, home, cores)
        way = replace(way, options=Options(platform=platform, sizes=sizes), machine=machine)
    return compile_model(model, way.options, samples=made.inputs), way


def on_platform(platform: str, source: Source, items: Sequence[int]) -> Iterator[Verdict]:
    """Networks on one of the other platforms, one at a time."""
    for index in items:
        made = source(index)
        with tempfile.TemporaryDirectory(prefix="tilewright-fuzz-") as scratch:
            yield run_once(platform, made, index, Path(scratch))


def run_once(platform: str, made: Sample, index: int, folder: Path) -> Verdict:
    """The verdict on a sample that is run by itself."""

    def ran() -> tuple[Sequence[Array], Member]:
        compiled, way = compiled_in_a_way(platform, made, index, folder)
        fed = fit(made.inputs, compiled.plan.graph)
        return outputs_of(compiled, fed, folder, way.flags, way.machine), Member(compiled, fed)

    return _judged(made, ran, index)
