"""Programs of single statements between marks, and what the simulator sees of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tilewright.base.dtype import INT8
from tilewright.codegen import build, lower, project_files, project_in
from tilewright.core.graph import Graph, Node, TensorType
from tilewright.core.op import Operator, call_of
from tilewright.core.program import CFunction, Copy, Driven, For, If, Invoke, Mark, Meet, Program, Statement
from tilewright.errors import TilewrightError
from tilewright.machine.parts import Link
from tilewright.machine.target import Target
from tilewright.ops import operators
from tilewright.plan import PlanOptions, plan
from tilewright.sim.chip import Chip
from tilewright.sim.marks import MarkPlace, Profiler

TURNS, WARM = 7, 2
"""Of a program, and the first of them that counts: code and data are in the caches by then."""
BYTES = 1 << 14
"""Of each tensor of a program."""
OTHER_CODE = "other_code"
EVICT = Invoke(OTHER_CODE, (), "")
"""Runs more code than caches have: what comes behind it is in none of them."""
EVICTS = CFunction(
    OTHER_CODE,
    f"static __attribute__((noinline, unused)) void {OTHER_CODE}(void) {{\n"
    '    __asm__ volatile(".rept 4096\\nnop\\n.endr");\n'
    "}",
)
T = TypeVar("T")
Seen = dict[str, list[float]]
"""What was seen of each time."""


class Transfer(Struct, frozen=True):
    """When a DMA was given a command, and when it had done it."""

    lane: str
    """The DMA, and its direction."""
    begun: int
    ended: int

    @property
    def cycles(self) -> int:
        return self.ended - self.begun


class Turn(Struct, frozen=True):
    """A turn of a program's loop: when the core that drives came to its marks, and transfers by the order of their
    begin."""

    marks: tuple[int, ...]
    transfers: tuple[Transfer, ...]


class ProgramSeen(Struct, frozen=True):
    """A program as it ran."""

    marks: tuple[tuple[int, MarkPlace], ...]
    transfers: tuple[Transfer, ...]
    cycles: int

    @property
    def besides(self) -> int:
        """Cycles before its first mark and behind its last."""
        return self.cycles - (self.marks[-1][0] - self.marks[0][0])


class TimedProgram:
    """A program of one layer, for other statements in its place."""

    def __init__(self, platform: Target) -> None:
        self._platform = platform
        self._program = layers(platform, 1, BYTES)
        self.load, self.store = copies(self._program.routines[0].body)

    def turns(self, body: Sequence[Statement], before: Sequence[Statement] = ()) -> list[Turn]:
        """What each turn of a loop over statements shows; they have marks at `now`."""
        platform = self._platform
        loop = For("t", 0, TURNS, tuple(body))
        statements = (Mark(0, "begin"), *before, loop, Meet())
        link = platform.link(platform.home, platform.cores.memory)
        wanted = {platform.cores.memory, link.through if link is not None else ""}
        rooms = tuple((name, max(room, BYTES) if name in wanted else room) for name, room in self._program.memories)
        routines = (replace(self._program.routines[0], body=statements),)
        changed = replace(self._program, memories=rooms, routines=routines, functions=(EVICTS,))
        found = ran(platform, changed)
        marks = [time for time, place in found.marks if place.name == "now"]
        first = len(found.transfers) % TURNS
        pairs = zip(_by_turn(marks), _by_turn(found.transfers[first:]), strict=True)
        return [Turn(tuple(mine), tuple(moved)) for mine, moved in pairs]


def layers(platform: Target, count: int, size: int) -> Program:
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


def copies(statements: Sequence[Statement]) -> Iterator[Copy]:
    """All transfers among statements."""
    for statement in statements:
        match statement:
            case Copy():
                yield statement
            case Driven(body=body) | For(body=body) | If(body=body):
                yield from copies(body)
            case _:
                pass


def copy(like: Copy, channel: int, offset: int, size: int, runs: int, link: Link) -> Copy:
    """A transfer of runs of bytes, which lie apart in the memory of the source where there are several."""
    strides = ((runs,), (size,), (2 * size,)) if runs > 1 else ((), (), ())
    to, source = replace(like.to, offset=offset), replace(like.source, offset=offset)
    return Copy(channel, to, source, size, *strides, link.rank)


def ran(platform: Target, program: Program) -> ProgramSeen:
    """Builds a program and runs it."""
    with project_in(None, project_files([program], platform), program.name) as project:
        built = build(project, platform, program.name, flags=("-g0",))
        kinds = [port.type for port in program.outputs]
        chip = Chip(built.executable, len(program.inputs), kinds, platform, steps=1)
        profiler = Profiler(chip.simulator, platform)
        chip.run([np.zeros(port.type.shape, port.type.dtype.numpy) for port in program.inputs])
        moved = chip.simulator.native.transfers()
        transfers = tuple(Transfer(one["lane"], one["started"], one["finished"]) for one in moved)
        return ProgramSeen(profiler.driven(), transfers, chip.cycles)


def _by_turn(things: Sequence[T]) -> list[Sequence[T]]:
    """Those of each turn."""
    each = len(things) // TURNS
    return [things[turn * each : (turn + 1) * each] for turn in range(TURNS)]
