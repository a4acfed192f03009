"""Calibrate: what it takes to start transfers and to wait for them, seen in programs that do nothing else.

The core that drives passes a mark before and behind each statement, and the simulator notes when a DMA is given a
command and when it has done it. So each time is that of one statement, and the median of many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product
from statistics import median
from types import MappingProxyType
from typing import TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tilewright.api.bench import Progress, compiler_of, quantiles, quiet, rounded
from tilewright.base.dtype import INT8
from tilewright.codegen import build, lower, project_files, project_in
from tilewright.core.graph import Graph, Node, TensorType
from tilewright.core.op import Operator, call_of
from tilewright.core.program import AwaitTransfers, Copy, Driven, For, If, Mark, Meet, Program, Statement
from tilewright.errors import TilewrightError
from tilewright.machine.calibration import COMPILER, TIMES, Calibration
from tilewright.machine.parts import Link
from tilewright.machine.staleness import times_key
from tilewright.machine.target import Target
from tilewright.ops import operators
from tilewright.plan import PlanOptions, plan
from tilewright.sim.chip import Chip
from tilewright.sim.marks import MarkPlace, Profiler

TURNS, WARM = 7, 2
"""Of a program, and the first of them that counts: code and data are in the caches by then."""
COUNTS = (2, 3, 4)
"""Transfers in a row, in one program each."""
SIZES = (256, 1024, 2048)
"""Bytes of each of these, program by program."""
ROWS = 8
"""Of a transfer, where it has some."""
BYTES = 1 << 14
"""Of the tensor that is copied from."""
LAYERS = (256, 2048, BYTES)
"""Bytes of layers of networks: what passes before the first and behind the last one depends on the code in between."""
T = TypeVar("T")
Seen = dict[str, list[float]]
"""What was seen of each time."""


class TransfersSeen(Struct, frozen=True):
    """A program as it ran: when the core that drives came to its marks, and when transfers began and ended."""

    marks: tuple[tuple[int, MarkPlace], ...]
    transfers: tuple[tuple[int, int], ...]
    cycles: int

    @property
    def besides(self) -> int:
        """Cycles before its first mark and behind its last."""
        return self.cycles - (self.marks[-1][0] - self.marks[0][0])


class Turn(Struct, frozen=True):
    """The same of a turn of its loop."""

    marks: tuple[int, ...]
    transfers: tuple[tuple[int, int], ...]


def measured_times(platform: Target, progress: Progress = quiet) -> Calibration:
    """Runs a few programs for each DMA."""
    ran: list[Seen] = []
    links = [link for link in platform.links.values() if shown(platform, link)]
    kinds = [(link, count, runs) for link in links for count in COUNTS for runs in (1, ROWS)[: link.rank]]
    for number, (link, count, runs) in enumerate(kinds):
        progress(TIMES, number, len(kinds))
        bytes_each = SIZES[number % len(SIZES)]
        ran.append(_look(_turns_of(platform, link, count, bytes_each // runs, runs), link, bytes_each, runs))
    for count, size in product(COUNTS, LAYERS) if links else ():
        ran.append({"network": [_ran(platform, _layers(platform, count, size)).besides]})
    progress(TIMES, len(kinds), len(kinds))
    if not ran:
        raise TilewrightError(
            "no-samples",
            f"times of '{platform.name}' cannot be calibrated",
            reasons=["no DMA copies between the memory of its cores and that of inputs and results"],
            help="say in platform.yaml how long its transfers take",
        )
    values, errors = medians(ran), held_out_errors(ran)
    for link in links:
        more = f"{link.name}.issue_rows"
        if more in values:
            values[more] = max(values[more] - values[f"{link.name}.issue"], 0.0)
    return Calibration(
        MappingProxyType({**times_key(platform), COMPILER: compiler_of(platform)}),
        MappingProxyType({name: rounded(value) for name, value in sorted(values.items())}),
        shapes=len(errors),
        held_out=MappingProxyType(quantiles(errors)),
    )


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


# Programs


def _turns_of(platform: Target, link: Link, count: int, size: int, runs: int) -> list[Turn]:
    """Starts transfers one behind the other, waits for the last one, then for those that are complete by then."""
    layer = _layers(platform, 1, BYTES)
    first = next(_copies(layer.routines[0].body))
    near = first.to.place.space
    rooms = tuple((name, max(room, BYTES) if name == near else room) for name, room in layer.memories)
    started = (_copy(first, number, number * size * runs, size, runs, link) for number in range(count))
    waits = (s for number in reversed(range(count)) for s in (AwaitTransfers(number), Mark(0, "now", number)))
    body = (Mark(0, "begin"), For("t", 0, TURNS, (Driven((*started, *waits)),)), Meet())
    routines = (replace(layer.routines[0], body=body),)
    found = _ran(platform, replace(layer, memories=rooms, routines=routines, functions=()))
    marks = [time for time, place in found.marks if place.name == "now"]
    pairs = zip(_by_turn(marks), _by_turn(found.transfers), strict=True)
    return [Turn(tuple(mine), tuple(moved)) for mine, moved in pairs]


def _layers(platform: Target, count: int, size: int) -> Program:
    """The program of some layers, each with one operand of so many bytes."""
    kind = TensorType(INT8, (size,))
    op = next(name for name, op in sorted(operators().items()) if _same(op, kind))
    nodes = tuple(Node(op, (f"x{number}",), (f"y{number}",), {}, f"layer{number}") for number in range(count))
    inputs, outputs = tuple(node.inputs[0] for node in nodes), tuple(node.outputs[0] for node in nodes)
    types = MappingProxyType(dict.fromkeys((*inputs, *outputs), kind))
    graph = Graph("times", inputs, outputs, nodes, types, MappingProxyType({}))
    return lower(plan(graph, platform, PlanOptions(seconds=0.0)))


def _same(op: Operator, kind: TensorType) -> bool:
    """Whether an operator makes a tensor element by element into one of the same type."""
    try:
        return op.kind == "elementwise" and op.body is not None and call_of(op, [kind], {}).outputs == (kind,)
    except TilewrightError:
        return False


def _copies(statements: Sequence[Statement]) -> Iterator[Copy]:
    for statement in statements:
        match statement:
            case Copy():
                yield statement
            case Driven(body=body) | For(body=body) | If(body=body):
                yield from _copies(body)
            case _:
                pass


def _copy(like: Copy, channel: int, offset: int, size: int, runs: int, link: Link) -> Copy:
    """A transfer of runs of bytes, which lie apart in the far memory where there are several."""
    strides = ((runs,), (size,), (2 * size,)) if runs > 1 else ((), (), ())
    to, source = replace(like.to, offset=offset), replace(like.source, offset=offset)
    return Copy(channel, to, source, size, *strides, link.rank)


def _ran(platform: Target, program: Program) -> TransfersSeen:
    with project_in(None, project_files([program], platform), program.name) as project:
        built = build(project, platform, program.name, flags=("-g0",))
        kinds = [port.type for port in program.outputs]
        chip = Chip(built.executable, len(program.inputs), kinds, platform, steps=1)
        profiler = Profiler(chip.simulator, platform)
        chip.run([np.zeros(port.type.shape, port.type.dtype.numpy) for port in program.inputs])
        transfers = ((each["started"], each["finished"]) for each in chip.simulator.native.transfers())
        return TransfersSeen(profiler.driven(), tuple(transfers), chip.cycles)


def _by_turn(things: Sequence[T]) -> list[Sequence[T]]:
    """Those of each turn."""
    each = len(things) // TURNS
    return [things[turn * each : (turn + 1) * each] for turn in range(TURNS)]


# What they show


def _between(turn: Turn) -> list[int]:
    """Cycles from each transfer's begin to that of the next one."""
    return [b - a for (a, _), (b, _) in pairwise(turn.transfers)]


def _look(turns: Sequence[Turn], link: Link, size: int, runs: int) -> Seen:
    """What a program shows of transfers of so many bytes, in so many runs."""
    seen: Seen = {}

    def add(name: str, times: Iterable[float]) -> None:
        seen.setdefault(name, []).extend(times)

    warm = [median(times) for times in zip(*(_between(turn) for turn in turns[WARM:]), strict=True)]
    for number, (cold, usual) in enumerate(zip(_between(turns[0]), warm, strict=True)):
        add("further transfer" if number else "first transfer", [max(cold - usual, 0.0)])
    for turn in turns[WARM:]:
        ended = [end for _, end in turn.transfers]
        add(f"{link.name}.{'issue' if runs == 1 else 'issue_rows'}", _between(turn))
        if runs == 1:
            # What others are in front of begins as these end.
            alone = (
                end - begin for (begin, end), free in zip(turn.transfers, [0, *ended], strict=False) if begin > free
            )
            add(f"{link.name}.setup", (cycles - size / link.bytes_per_cycle for cycles in alone))
        add("wake", [turn.marks[0] - ended[-1]])
        add("wait", (b - a for a, b in pairwise(turn.marks)))
    return seen
