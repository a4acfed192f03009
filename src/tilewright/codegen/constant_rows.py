"""Constants that one transfer copies: where constants are arrays in C, these are members of one object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from tilewright.core.expr import plain
from tilewright.core.program import Constant, Copy, Driven, For, If, OnCores, Program, StartEngine, Statement


class ConstantRow(Struct, frozen=True):
    """Neighbours; a row of one is an array by itself."""

    constants: tuple[Constant, ...]

    @property
    def first(self) -> Constant:
        return self.constants[0]

    @property
    def end(self) -> int:
        """Behind its last byte."""
        last = self.constants[-1]
        return last.offset + last.array.nbytes


def constant_rows(program: Program) -> list[ConstantRow]:
    """All constants of a program, in their order but for those that are copied together."""
    reach: dict[tuple[int, int], int] = {}
    for routine in program.routines:
        for copy in _copies(routine.body):
            place, at = copy.source.place, plain(copy.source.place.offset + copy.source.offset)
            if place.space == "constant" and isinstance(at, int) and isinstance(copy.bytes, int) and not copy.counts:
                reach[place.index, at] = max(reach.get((place.index, at), 0), at + copy.bytes)
    found: dict[int, ConstantRow] = {}
    ends: dict[int, int] = {}
    last: dict[int, int] = {}
    for number, constant in sorted(enumerate(program.constants), key=lambda each: (each[1].section, each[1].offset)):
        section = constant.section
        if constant.offset < ends.get(section, 0):
            first = last[section]
            found[first] = ConstantRow((*found[first].constants, constant))
        else:
            found[number], last[section] = ConstantRow((constant,)), number
        end = max(reach.get((section, constant.offset), 0), constant.offset + constant.array.nbytes)
        ends[section] = max(ends.get(section, 0), end)
    return [found[number] for number in sorted(found)]


def _copies(statements: Iterable[Statement]) -> Iterator[Copy]:
    for statement in statements:
        match statement:
            case Copy():
                yield statement
            case If(body=body) | For(body=body) | Driven(body=body):
                yield from _copies(body)
            case OnCores(body=body, beside=beside) | StartEngine(body=body, beside=beside):
                yield from _copies((*body, *beside))
            case _:
                pass
