"""Calibrate: what it takes to start transfers and to wait for them, seen in programs that do nothing else.

The core that drives passes a mark before and behind each statement, and the simulator notes when a DMA is given a
command and when it has done it. So each time is that of one statement, and the median of many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product
from statistics import median
from types import MappingProxyType

from tilewright.api.bench import Progress, compiler_of, quantiles, quiet, rounded
from tilewright.api.calibrating_far import SEVERAL, far_links, far_programs
from tilewright.api.calibrating_local import local_times
from tilewright.api.timed_programs import BYTES, WARM, Seen, TimedProgram, Turn, copy, layers, ran
from tilewright.core.program import AwaitTransfers, Driven, Mark
from tilewright.errors import TilewrightError
from tilewright.machine.calibration import COMPILER, TIMES, Calibration
from tilewright.machine.parts import Link
from tilewright.machine.staleness import times_key
from tilewright.machine.target import Target

PROGRAMS = 50
"""About how many there are."""
COUNTS = (2, 3, 4)
"""Transfers in a row, in one program each."""
SIZES = (256, 1024, 2048)
"""Bytes of each of these, program by program."""
ROWS = 8
"""Of a transfer, where it has some."""
LAYERS = (256, 2048, BYTES)
"""Bytes of layers of networks: what passes before the first and behind the last one depends on the code in between."""


def measured_times(platform: Target, progress: Progress = quiet) -> Calibration:
    """Runs a few programs for each DMA."""
    seen: list[Seen] = []
    for one in _programs(platform):
        progress(TIMES, len(seen), max(len(seen) + 1, PROGRAMS))
        seen.append(one)
    if not seen:
        raise TilewrightError(
            "no-samples",
            f"times of '{platform.name}' cannot be calibrated",
            reasons=["no DMA copies between the memory of its cores and that of inputs and results"],
            help="say in platform.yaml how long its transfers take",
        )
    values, errors = medians(seen), held_out_errors(seen)
    for name, usual in [*((f"{link}.issue_rows", f"{link}.issue") for link in platform.links), ("wait far", "wait")]:
        if name in values:
            values[name] = max(values[name] - values[usual], 0.0)
    for link in platform.links:
        # Of several loads, all but the first of which find what the first one did.
        if f"{link}.cold_wait" in values:
            values[f"{link}.cold_wait"] = max(values[f"{link}.cold_wait"] - SEVERAL * values[f"{link}.wait"], 0.0)
    return Calibration(
        MappingProxyType({**times_key(platform), COMPILER: compiler_of(platform)}),
        MappingProxyType({name: rounded(value) for name, value in sorted(values.items())}),
        shapes=len(errors),
        held_out=MappingProxyType(quantiles(errors)),
    )


def _programs(platform: Target) -> Iterator[Seen]:
    """What is seen in one program after the other."""
    links = [link for link in platform.links.values() if shown(platform, link)]
    kinds = [(link, count, runs) for link in links for count in COUNTS for runs in (1, ROWS)[: link.rank]]
    for number, (link, count, runs) in enumerate(kinds):
        bytes_each = SIZES[number % len(SIZES)]
        yield _look(_turns_of(platform, link, count, bytes_each // runs, runs), link, bytes_each, runs)
    for count, size in product(COUNTS, LAYERS) if links else ():
        yield {"network": [ran(platform, layers(platform, count, size)).besides]}
    for machine, link in far_links(platform):
        yield from far_programs(machine, link)
    for link in platform.links.values() if links else ():
        if link.by_cores:
            yield local_times(platform, link)


def medians(ran: Iterable[Seen]) -> dict[str, float]:
    """Each time, by what programs show of it."""
    seen: Seen = {}
    for one in ran:
        for name, times in one.items():
            seen.setdefault(name, []).extend(times)
    return {name: median(times) for name, times in seen.items() if times}


def held_out_errors(ran: Sequence[Seen]) -> list[float]:
    """Relative errors of what each program shows, by what the others show."""
    found: list[float] = []
    for number, held_out in enumerate(ran):
        values = medians([*ran[:number], *ran[number + 1 :]])
        found += [
            values[name] / time - 1 for name, times in held_out.items() if name in values for time in times if time
        ]
    return found


def shown(platform: Target, link: Link) -> bool:
    """Whether programs show what a link takes: a DMA between the cores' memory and that of inputs."""
    return {platform.home, platform.cores.memory} == {*link.between} and not (link.by_cores or link.through)


def _turns_of(platform: Target, link: Link, count: int, size: int, runs: int) -> list[Turn]:
    """Starts transfers one behind the other, waits for the last one, then for those that are complete by then."""
    program = TimedProgram(platform)
    started = (copy(program.load, number, number * size * runs, size, runs, link) for number in range(count))
    waits = (s for number in reversed(range(count)) for s in (AwaitTransfers(number), Mark(0, "now", number)))
    return program.turns((Driven((*started, *waits)),))


# What they show


def _between(turn: Turn) -> list[int]:
    """Cycles from each transfer's begin to that of the next one."""
    return [b.begun - a.begun for a, b in pairwise(turn.transfers)]


def _waits(turn: Turn) -> list[int]:
    """Cycles of each wait for a transfer that is complete."""
    return [b - a for a, b in pairwise(turn.marks)]


def _woken(turn: Turn) -> int:
    """Cycles from the end of the last transfer to the mark behind the wait for it."""
    return turn.marks[0] - turn.transfers[-1].ended


def _more(cold: Sequence[Sequence[int]], warm: Sequence[Sequence[int]]) -> list[float]:
    """What statements take more where their code is cold."""
    usual = [median(times) for times in zip(*warm, strict=True)]
    return [max(time - most, 0.0) for times in cold for time, most in zip(times, usual, strict=True)]


def _look(turns: Sequence[Turn], link: Link, size: int, runs: int) -> Seen:
    """What a program shows of transfers of so many bytes, in so many runs."""
    seen: Seen = {}

    def add(name: str, times: Iterable[float]) -> None:
        seen.setdefault(name, []).extend(times)

    warm = [median(times) for times in zip(*(_between(turn) for turn in turns[WARM:]), strict=True)]
    for number, (cold, usual) in enumerate(zip(_between(turns[0]), warm, strict=True)):
        add("further transfer" if number else "first transfer", [max(cold - usual, 0.0)])
    add("cold wait", _more([_waits(turns[0])], [_waits(turn) for turn in turns[WARM:]]))
    add("cold wake", _more([[_woken(turns[0])]], [[_woken(turn)] for turn in turns[WARM:]]))
    for turn in turns[WARM:]:
        ended = [each.ended for each in turn.transfers]
        add(f"{link.name}.{'issue' if runs == 1 else 'issue_rows'}", _between(turn))
        if runs == 1:
            # What others are in front of begins as these end.
            alone = (each for each, free in zip(turn.transfers, [0, *ended], strict=False) if each.begun > free)
            add(f"{link.name}.setup", (each.cycles - size / link.bytes_per_cycle for each in alone))
        add("wake", [_woken(turn)])
        add("wait", _waits(turn))
    return seen
