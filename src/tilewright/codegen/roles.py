"""Who runs what: the cores, or what drives the DMA and other engines beside them, and where all of them have to meet.

Lowering says what is done, in order. Here what no core needs to run is left to what drives, so that a platform may give
each role a program without the other's statements; and cores meet before they work only where something was waited for
since they last were together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from tilewright.core.program import (
    AwaitEngine,
    AwaitTransfers,
    Copy,
    Driven,
    For,
    If,
    Let,
    Mark,
    Meet,
    OnCores,
    Routine,
    StartEngine,
    Statement,
)


def with_roles(routines: Iterable[Routine], memory: str) -> tuple[Routine, ...]:
    """The same routines, which run one after the other on cores that work in `memory`."""
    found: list[Routine] = []
    together = False
    for routine in routines:
        body, together = _met(_divided(routine.body, memory), together)
        found.append(replace(routine, body=tuple(body)))
    return tuple(found)


def _divided(statements: Sequence[Statement], memory: str) -> list[Statement]:
    """Puts what only the driver runs into blocks."""
    found: list[Statement] = []
    for statement in statements:
        match statement:
            case Let():
                found.append(statement)
            case _ if _driven(statement, memory):
                last = found[-1] if found else None
                if isinstance(last, Driven):
                    found[-1] = Driven((*last.body, statement))
                else:
                    found.append(Driven((statement,)))
            case If() | For():
                found.append(replace(statement, body=tuple(_divided(statement.body, memory))))
            case StartEngine():
                found.append(replace(statement, beside=tuple(_divided(statement.beside, memory))))
            case _:
                found.append(statement)
    return found


def _driven(statement: Statement, memory: str) -> bool:
    """Whether no core runs any of it: cores copy within their memory, and pass marks, by which they are seen."""
    match statement:
        case Copy():
            return not statement.inside(memory)
        case AwaitTransfers() | AwaitEngine() | Let():
            return True
        case If(body=body) | For(body=body):
            return all(_driven(inner, memory) for inner in body)
        case _:
            return False


def _met(statements: Sequence[Statement], together: bool) -> tuple[list[Statement], bool]:
    """Lets cores meet where they may not be together; whether they are at the end."""
    found: list[Statement] = []
    for statement in statements:
        match statement:
            case OnCores():
                found += [statement] if together else [Meet(), statement]
                together = True
            case If(tests=tests, body=body):
                inner, at_end = _met(body, together)
                found.append(replace(statement, body=tuple(inner)))
                together = at_end and (together or not tests)
            case For(body=body):
                inner, at_end = _met(body, together)
                if together and not at_end:  # the second turn begins otherwise than the first
                    inner, at_end = _met(body, False)
                found.append(replace(statement, body=tuple(inner)))
                together = at_end
            case Let() | Mark():
                found.append(statement)
            case StartEngine(beside=beside):
                inner, _ = _met(beside, False)
                found.append(replace(statement, beside=tuple(inner)))
                together = False
            case _:
                found.append(statement)
                together = False
    return found, together
