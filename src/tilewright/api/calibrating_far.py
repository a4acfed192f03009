"""Calibrate: transfers from and to a memory that another core drives the DMA of, by way of a memory in between.

The core that drives asks for them, the other one begins them and tells of their ends. What passes meanwhile is seen
from marks of the first and commands and ends of the DMAs, for one transfer at a time, or two for those that are
complete when they are waited for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from msgspec.structs import replace

from tilewright.api.timed_programs import EVICT, WARM, Seen, TimedProgram, Turn, copy
from tilewright.core.plan import Place
from tilewright.core.program import AwaitTransfers, Copy, Driven, Mark, Statement
from tilewright.machine.parts import Link
from tilewright.machine.target import Sizes, Target, resize

SIZES = (1024, 2300, 4096)
"""Bytes of transfers: another core looks at its DMA now and then, so that a single size would show one such moment."""
SHORT = 64
"""Bytes of transfers that are done before the next one can be asked for."""
SEVERAL = 3
"""Loads of a group, as is usual."""
ROWS = 8


def far_links(platform: Target) -> Iterator[tuple[Target, Link]]:
    """Links by way of another memory, each with the machine whose home is at their end."""
    near = platform.cores.memory
    for link in platform.links.values():
        if link.through and near in link.between:
            (home,) = {*link.between} - {near}
            yield resize(platform, Sizes({}, home)), link


def far_programs(machine: Target, link: Link) -> Iterator[Seen]:
    """What is seen of a link, and of that to the memory in between, program by program."""
    way, rest = machine.link(machine.home, link.through), machine.link(link.through, machine.cores.memory)
    assert way is not None
    assert rest is not None
    program = TimedProgram(machine)
    between = replace(program.load.to, place=Place(link.through))
    nearer = replace(program.load, to=between)

    def turns(*statements: Statement, before: Sequence[Statement] = ()) -> list[Turn]:
        return program.turns((Driven(statements),), (Driven(tuple(before)),))

    for size in SIZES:
        sent_on = rest.setup + size / rest.bytes_per_cycle
        loads = [copy(program.load, n, n * size, size, 1, link) for n in range(SEVERAL)]
        stage, store = copy(nearer, 0, 0, size, 1, way), copy(program.store, 0, 0, size, 1, link)
        load, stored, staged = loads[0], _stores(turns(*_one(store))), turns(*_one(stage))
        yield _loads(link, turns(*_one(load)), sent_on)
        yield {f"{link.name}.issue_rows": _started(turns(*_one(copy(load, 0, 0, size // ROWS, ROWS, link))))}
        yield _complete(link, turns(*loads, AwaitTransfers(SEVERAL - 1), *_awaited(*range(SEVERAL - 1))), sent_on)
        short = [load, *(copy(program.load, n, n * size, SHORT, 1, link) for n in range(1, SEVERAL))]
        yield _cold(link, turns(*_several(short)), turns(EVICT, *_several(short)))
        waits = turns(*loads, EVICT, *_awaited(*range(SEVERAL)))
        yield {f"{link.name}.cold_wait": [turn.marks[-1] - turn.marks[0] - SEVERAL * sent_on for turn in waits[WARM:]]}
        yield {
            f"{link.name}.passing": [more - median(_started(turns(*_one(load)))) for more in stored],
            f"{link.name}.cold_passing": [
                more - median(stored) for more in _stores(turns(EVICT, load, AwaitTransfers(0), *_one(store)))
            ],
        }
        yield {
            f"{way.name}.issue": _started(staged),
            f"{way.name}.latency": [turn.transfers[0].begun - turn.marks[1] for turn in staged[WARM:]],
            f"{way.name}.wake": [turn.marks[2] - turn.transfers[0].ended for turn in staged[WARM:]],
            f"{way.name}.cold": _more(_until_begun(turns(EVICT, *_one(stage))), _until_begun(staged)),
        }
        near = [copy(replace(load, source=between), n, n * size, size, 1, rest) for n in range(2)]
        waits = turns(*near, AwaitTransfers(1), *_awaited(0), before=(load, AwaitTransfers(0)))
        yield {"wait far": [turn.marks[1] - turn.marks[0] for turn in waits[WARM:]]}
    for name, like, by in ((link.name, program.load, link), (way.name, nearer, way)):
        short = [copy(like, number, number * SHORT, SHORT, 1, by) for number in range(SEVERAL)]
        yield {f"{name}.request": _requests(turns(*_several(short)))}


_NOW = Mark(0, "now")


def _awaited(*channels: int) -> tuple[Statement, ...]:
    """Waits, between marks."""
    return (_NOW, *(s for channel in channels for s in (AwaitTransfers(channel), _NOW)))


def _one(transfer: Copy) -> tuple[Statement, ...]:
    """Starts a transfer and waits for it, between marks."""
    return (_NOW, transfer, *_awaited(int(str(transfer.channel))))


def _several(transfers: Sequence[Copy]) -> tuple[Statement, ...]:
    """Starts transfers and waits for them, between marks."""
    return (_NOW, *transfers, *(AwaitTransfers(transfer.channel) for transfer in transfers), _NOW)


def _started(turns: Sequence[Turn]) -> list[float]:
    return [turn.marks[1] - turn.marks[0] for turn in turns[WARM:]]


def _until_begun(turns: Sequence[Turn]) -> list[float]:
    """From the statement that asks for the first transfer until that begins."""
    return [turn.transfers[0].begun - turn.marks[0] for turn in turns[WARM:]]


def _until_done(turns: Sequence[Turn]) -> list[float]:
    """From the end of the first transfer to the mark behind the last wait."""
    return [turn.marks[-1] - turn.transfers[0].ended for turn in turns[WARM:]]


def _more(times: Sequence[float], usual: Sequence[float]) -> list[float]:
    return [time - median(usual) for time in times]


def _loads(link: Link, turns: Sequence[Turn], sent_on: float) -> Seen:
    """Loads that are waited for; the transfer that sends them on comes second."""
    warm = turns[WARM:]
    return {
        f"{link.name}.issue": _started(turns),
        f"{link.name}.latency": [turn.transfers[0].begun - turn.marks[1] for turn in warm],
        f"{link.name}.wake": [turn.marks[2] - turn.transfers[0].ended - sent_on for turn in warm],
    }


def _complete(link: Link, turns: Sequence[Turn], sent_on: float) -> Seen:
    """Loads that are complete when they are waited for, as one behind them has been."""
    return {f"{link.name}.wait": [b - a - sent_on for turn in turns[WARM:] for a, b in pairwise(turn.marks)]}


def _cold(link: Link, warm: Sequence[Turn], cold: Sequence[Turn]) -> Seen:
    """What loads take more whose code is in no cache, at first not in that of the other core, either. The first one is
    waited for, and the others end soon behind it."""
    first = cold[0].marks[-1] - cold[0].marks[0]
    return {
        f"{link.name}.cold": _more(_until_begun(cold), _until_begun(warm)),
        f"{link.name}.cold_end": _more(_until_done(cold), _until_done(warm)),
        f"{link.name}.cold_start": [first - median(turn.marks[-1] - turn.marks[0] for turn in cold[WARM:])],
    }


def _stores(turns: Sequence[Turn]) -> list[float]:
    """Cycles to start a store, less those of its transfer to the memory in between."""
    found = [[t for t in turn.transfers if turn.marks[0] < t.begun < turn.marks[1]] for turn in turns[WARM:]]
    return [turn.marks[1] - turn.marks[0] - moved[0].cycles for turn, moved in zip(turns[WARM:], found, strict=True)]


def _requests(turns: Sequence[Turn]) -> list[float]:
    """Cycles between begins of transfers from the slow memory: who begins them has nothing else to do."""
    found: list[float] = []
    for turn in turns[WARM:]:
        lane = turn.transfers[0].lane
        begun = [transfer.begun for transfer in turn.transfers if transfer.lane == lane]
        found += [b - a for a, b in pairwise(begun)]
    return found
