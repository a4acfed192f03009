"""Programs that are looked at while they run: what is in memory where a node has been computed.

The program is that of the plan, with marks before and behind each node (`lower(..., observed=True)`). Of every mark it
is known which bytes hold which part of which tensor: what a node makes, and what it reads, as it finds it there. So
every tensor is seen where it really is, tiles of fused nodes included, and no plan is changed for that.

On this computer and on emulated boards a header that is included by force writes these bytes down. On simulated chips a
mark is one instruction without effect, at which the simulator stops to look.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import get_args

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tilewright.codegen.groups import lowerings
from tilewright.codegen.lowering import Lowering
from tilewright.codegen.pieces import Pieces
from tilewright.codegen.statements import StatementPrinter
from tilewright.codegen.works import HeldRegion, whole
from tilewright.core.expr import Size
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import is_view
from tilewright.core.plan import Place, Plan
from tilewright.core.program import (
    Driven,
    For,
    If,
    Mark,
    MarkedPlace,
    OnCores,
    Pointer,
    Program,
    StartEngine,
    Statement,
)
from tilewright.core.tiles import Region, Use, member

HEADER = "tilewright_observer.h"
SOURCE = "tilewright_observer.c"


class ObservedSpan(Struct, frozen=True):
    """Bytes that are looked at."""

    place: Place
    bytes: int


class ObservedPiece(Struct, frozen=True):
    """Part of a tensor among the bytes of a span."""

    node: int
    """Which node of the graph makes or reads it."""
    tensor: str
    made: bool
    span: int
    offset: int
    strides: tuple[int, ...]
    """In bytes."""
    region: tuple[slice, ...]

    def array(self, data: bytes, kind: TensorType) -> Array:
        """Its elements in the bytes of its span."""
        shape = [part.stop - part.start for part in self.region]
        return np.ndarray(shape, kind.dtype.numpy, data, self.offset, self.strides).copy()


class Sight(Struct, frozen=True):
    """What is to be seen at a mark."""

    mark: Mark
    spans: tuple[ObservedSpan, ...]
    turns: tuple[tuple[ObservedPiece, ...], ...]
    """What the spans hold whenever the program comes there, in order."""
    beside: bool = False
    """Whether an engine beside the cores makes it, so that only what drives that knows when it is done."""

    @property
    def bytes(self) -> int:
        """Of all that is seen there."""
        return len(self.turns) * sum(span.bytes for span in self.spans)


def sights(plan: Plan) -> tuple[Sight, ...]:
    """All of a plan."""
    found = _whole_nodes(plan) if plan.schedule is None else _tiles(plan)
    return tuple(sight for sight in found if sight.spans)


def _whole_nodes(plan: Plan) -> Iterator[Sight]:
    for step, node in enumerate(plan.graph.nodes):
        if is_view(node):
            continue
        uses = member(plan.graph, node, plan.choices[step].kernel).uses
        at: tuple[tuple[MarkedPlace, bool], ...] = (("work", False), ("made", True))
        for place, writes in at:
            mine = [use for use in uses if use.writes == writes and use.type.bytes]
            held = [(use, plan.places[use.tensor]) for use in mine]
            seen = [(use, HeldRegion(p, 0, whole(use.type))) for use, p in held if p.space != "constant"]
            spans = tuple(ObservedSpan(held.place, use.type.bytes) for use, held in seen)
            pieces = tuple(_piece(step, use, n, held, held.region) for n, (use, held) in enumerate(seen))
            yield Sight(Mark(step, place), spans, (pieces,))


def _tiles(plan: Plan) -> Iterator[Sight]:
    assert plan.schedule is not None
    for group in lowerings(plan, plan.schedule, Pieces(plan)):
        for position in range(len(group.group.works)):
            yield _of_work(plan, group, position)


def _of_work(plan: Plan, group: Lowering, position: int) -> Sight:
    """What is to be seen when a node of a group has been computed: its tile, and what it is made from."""
    step, buffers = group.group.works[position].step, group.group.works[position].buffers
    uses = [use for use in group.members[position].uses if _seen(plan, group, buffers, use)]
    near, known = group.memory, group.group.buffers
    spans = tuple(
        ObservedSpan(
            Place(near, known[buffers[use.key]].offset), known[buffers[use.key]].bytes * known[buffers[use.key]].slots
        )
        if use.key in buffers
        else ObservedSpan(group.at_home(position, use)[0].place, use.type.bytes)
        for use in uses
    )
    written = [span for use, span in zip(uses, spans, strict=True) if use.writes]
    turns: list[tuple[ObservedPiece, ...]] = []
    for at in _steps(group, position):
        now = replace(group, step=at)
        pieces: list[ObservedPiece] = []
        for number, (use, span) in enumerate(zip(uses, spans, strict=True)):
            # What is written over is not there any more.
            if use.writes or not any(_overlap(span, other) for other in written):
                held = now.in_buffer(buffers[use.key]) if use.key in buffers else now.at_home(position, use)[0]
                pieces.append(_piece(step, use, number, held, now.trace.regions[position][use.key]))
        turns.append(tuple(pieces))
    beside = plan.platform.beside(plan.choices[step].kernel) is not None
    return Sight(Mark(group.index, "made", position), spans, tuple(turns), beside)


def _seen(plan: Plan, group: Lowering, buffers: Mapping[str, int], use: Use) -> bool:
    """Whether the bytes of a use tell its values: packed ones do not, nor those within a result."""
    if not use.type.bytes or use.pack:
        return False
    if use.key in buffers:
        return group.group.buffers[buffers[use.key]].within < 0
    return plan.places[use.tensor].space != "constant"


def _steps(group: Lowering, position: int) -> Iterator[tuple[int, ...]]:
    """The steps at which a node is computed, in order."""
    depth = group.work_depth(position)
    counts = [loop.count if k <= depth else 1 for k, loop in enumerate(group.group.loops)]
    yield from product(*map(range, counts))


def _overlap(one: ObservedSpan, other: ObservedSpan) -> bool:
    if (one.place.space, one.place.index) != (other.place.space, other.place.index):
        return False
    return one.place.offset < other.place.offset + other.bytes and other.place.offset < one.place.offset + one.bytes


def _piece(step: int, use: Use, span: int, held: HeldRegion, region: Region) -> ObservedPiece:
    size = use.type.dtype.bytes
    offset = _number(held.offset) + _number(held.at(region)) * size
    strides = tuple(_number(stride) * size for stride in held.strides())
    parts = tuple(slice(_number(part.start), _number(part.stop)) for part in region)
    return ObservedPiece(step, use.tensor, use.writes, span, offset, strides, parts)


def _number(value: Size) -> int:
    if isinstance(value, int):
        return value
    assert not value.terms, f"{value} is not known"
    return value.constant


# The C that writes down what is seen


def recording(program: Program, seen: Sequence[Sight], sink: str) -> dict[str, bytes]:
    """Files for a program that writes down what is seen: a header to include by force, and `sink`, a C function.

    Each span is written behind its number: they are counted over all sights.
    """
    printer = StatementPrinter(program, {}, binary=False)
    number = 0
    lines = ["void tw_observe(int number, const void *data, size_t bytes);", *_marks(("work", "made"))]
    texts: dict[tuple[str, int, int], list[str]] = {}
    for mark in _marks_in([*program.calls, *(s for routine in program.routines for s in routine.body)]):
        texts[mark.place, mark.group, mark.number] = []
    for sight in seen:
        mine = texts[sight.mark.place, sight.mark.group, sight.mark.number]
        for span in sight.spans:
            pointer = printer.argument(Pointer(span.place, "void", True))
            mine.append(f"tw_observe({number}, {pointer}, {span.bytes})")
            number += 1
    for (place, group, position), calls in texts.items():
        lines.append(f"#define TW_SEEN_{place}_{group}_{position} ({', '.join(calls) or '(void)0'})")
    return {HEADER: _header(lines), SOURCE: sink.encode()}


def stopping() -> dict[str, bytes]:
    """A header for a program that does nothing at marks, but has an instruction there."""
    entry = r'".pushsection .tilewright.marks\n.4byte 9f\n.asciz \"" #group " made " #number "\"\n.popsection\n9: nop"'
    lines = [*_marks(("made",)), "#undef TW_MARK_made"]
    lines.append(f'#define TW_MARK_made(group, number) __asm__ volatile({entry}::: "memory")')
    return {HEADER: _header(lines)}


def _marks_in(statements: Iterable[Statement]) -> Iterator[Mark]:
    """Marks by which programs are looked at."""
    for statement in statements:
        match statement:
            case Mark(place="work" | "made"):
                yield statement
            case If(body=body) | For(body=body) | Driven(body=body):
                yield from _marks_in(body)
            case OnCores(body=body, beside=beside) | StartEngine(body=body, beside=beside):
                yield from _marks_in((*body, *beside))
            case _:
                pass


def _marks(seen: Sequence[MarkedPlace]) -> list[str]:
    lines = ["#define TW_MARK(group, place, number) TW_MARK_##place(group, number)"]
    for place in get_args(MarkedPlace):
        text = f"TW_SEEN_{place}_##group##_##number" if place in seen else "((void)0)"
        lines.append(f"#define TW_MARK_{place}(group, number) {text}")
    return lines


def _header(lines: Sequence[str]) -> bytes:
    guard = "TILEWRIGHT_OBSERVER_H"
    body = [f"#ifndef {guard}", f"#define {guard}", "#ifndef __ASSEMBLER__", "#include <stddef.h>", *lines]
    return ("\n".join([*body, "#endif", "#endif", ""])).encode()
