"""Numbers of epilogues that are the same in all calls of a kernel instance become literals of its text.

Layers share an instance, whose epilogue is told the numbers of each at every call. Those in which no two layers differ,
such as the shift of most requantisations, need not be told: calls and kernels are shorter without.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from tilewright.core.program import (
    Argument,
    CFunction,
    Driven,
    For,
    If,
    Invoke,
    Literal,
    OnCores,
    ParameterBlock,
    Program,
    StartEngine,
    Statement,
)

LARGEST = 2048
"""Numbers below are part of an instruction on RISC-V, and most of them are on Arm; of others, powers of two are."""

_WIDE_FACTOR = re.compile(r"\* \(u?int64_t\)(\w+)")

Same = Mapping[int, str]
"""Numbers by the place of their field in the block."""


def baked(program: Program) -> Program:
    """The same program, with such numbers in the texts of its functions."""
    known = {f"struct {f.name}_epilogue": _better_known(f) for f in program.functions}
    blocks: dict[str, list[ParameterBlock]] = defaultdict(list)
    for invoke in _invokes([*program.calls, *(s for routine in program.routines for s in routine.body)]):
        for argument in invoke.arguments:
            if isinstance(argument, ParameterBlock):
                blocks[argument.ctype].append(argument)
    same = {ctype: _same(mine, known[ctype]) for ctype, mine in blocks.items()}
    return replace(
        program,
        functions=tuple(_told(function, same) for function in program.functions),
        calls=tuple(_shorter(call, same) if isinstance(call, Invoke) else call for call in program.calls),
        routines=tuple(replace(r, body=_without(r.body, same)) for r in program.routines),
    )


def _invokes(statements: Iterable[Statement]) -> Iterator[Invoke]:
    for statement in statements:
        match statement:
            case Invoke():
                yield statement
            case If(body=body) | For(body=body) | Driven(body=body):
                yield from _invokes(body)
            case OnCores(body=body, beside=beside) | StartEngine(body=body, beside=beside):
                yield from _invokes((*body, *beside))
            case _:
                pass


def _same(blocks: Sequence[ParameterBlock], asked: Sequence[bool]) -> Same:
    """Of the first fields that are asked for, those in which no two blocks differ."""
    fields = zip(*(block.fields for block in blocks), strict=True)
    return {
        place: values[0].text
        for place, (values, wanted) in enumerate(zip(fields, asked, strict=False))
        if wanted and isinstance(values[0], Literal) and all(v == values[0] for v in values) and _short(values[0].text)
    }


def _better_known(function: CFunction) -> list[bool]:
    """Which members of a function's block are no factors of products of 64 bits. Of those with a number that they know,
    compilers make additions and shifts by the dozen, as if there were no instruction for half of it."""
    wide = {found[1] for found in _WIDE_FACTOR.finditer(function.text)}
    return [member[1].partition("_")[2] not in wide for member in _numbers(function)]


def _short(number: str) -> bool:
    """Whether an instruction has room for it; others would be put into a register again and again."""
    value = abs(int(number)) if re.fullmatch("-?[0-9]+", number) else None
    return value is not None and (value < LARGEST or value & (value - 1) == 0)


def _told(function: CFunction, same: Mapping[str, Same]) -> CFunction:
    """A function that knows what it is no longer told."""
    numbers = same.get(f"struct {function.name}_epilogue")
    if not numbers:
        return function
    text, members = function.text, _numbers(function)
    for place, number in numbers.items():
        text = text.replace(members[place].group(), "", 1)
        text = re.sub(rf"(?:\be|\(e\))->{members[place][1]}\b", f"({number})", text)
    # A block has at least one field.
    empty = re.compile(rf"^(struct {function.name}_epilogue {{\n)(}};)", re.MULTILINE)
    return replace(function, text=empty.sub(r"\1    char unused;\n\2", text))


def _numbers(function: CFunction) -> list[re.Match[str]]:
    """Those members of a function's block that tell operands of its steps and their numbers, in order."""
    head = f"struct {function.name}_epilogue {{\n"
    begin = function.text.find(head)
    if begin < 0:
        return []
    end = function.text.index("};", begin)
    return list(re.compile(r"^ +.*\b(s[0-9]+_\w+);\n", re.MULTILINE).finditer(function.text, begin, end))


def _without(statements: Sequence[Statement], same: Mapping[str, Same]) -> tuple[Statement, ...]:
    """Statements whose calls tell only what differs."""
    found: list[Statement] = []
    for statement in statements:
        match statement:
            case Invoke():
                found.append(_shorter(statement, same))
            case If() | For() | Driven():
                found.append(replace(statement, body=_without(statement.body, same)))
            case OnCores() | StartEngine():
                body, beside = _without(statement.body, same), _without(statement.beside, same)
                found.append(replace(statement, body=body, beside=beside))
            case _:
                found.append(statement)
    return tuple(found)


def _shorter(invoke: Invoke, same: Mapping[str, Same]) -> Invoke:
    return replace(invoke, arguments=tuple(_block(argument, same) for argument in invoke.arguments))


def _block(argument: Argument, same: Mapping[str, Same]) -> Argument:
    if not isinstance(argument, ParameterBlock) or not same.get(argument.ctype):
        return argument
    left = [field for place, field in enumerate(argument.fields) if place not in same[argument.ctype]]
    return replace(argument, fields=tuple(left or [Literal("0")]))
