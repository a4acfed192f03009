"""What drives does while it would wait: jobs of other engines are described and queued, and transfers awaited before
jobs.

Describing a job takes some hundred cycles, most of them to bring code into caches. What drives has time for it before
the last barrier, transfer or job that the start comes behind. Looking whether a transfer is complete takes some cycles,
too, and most are long before a job is. Engines do one thing after the other, so what a group starts there first may
read what the group before it makes there, and is started before that is awaited.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import eq, ge, gt, lt

from msgspec import Struct
from msgspec.structs import replace

from tilewright.core.expr import Size, value_of
from tilewright.core.program import (
    AwaitEngine,
    AwaitTransfers,
    Copy,
    Driven,
    For,
    If,
    Invoke,
    Let,
    Mark,
    Meet,
    OnCores,
    Release,
    Routine,
    StartEngine,
    Statement,
)


def described_early(routines: Iterable[Routine], engines: Collection[str]) -> tuple[Routine, ...]:
    """The same routines, which run one after the other, with jobs of some engines described as early as that helps."""
    found = list(routines)
    before: list[list[Statement]] = []
    for routine in found:
        before.append([])
        for statement in routine.body:
            made = statement
            if isinstance(statement, OnCores):
                inside: list[Statement] = []
                for own in statement.beside:
                    inside.append(_started([*before, inside], own, engines))
                made = replace(statement, beside=tuple(inside))
            before[-1].append(_started(before, made, engines))
    return tuple(replace(routine, body=tuple(body)) for routine, body in zip(found, before, strict=True))


def queued_behind(routines: Sequence[Routine], engines: Collection[str]) -> tuple[Routine, ...]:
    """The same routines, which run one after the other: a job that is started right behind waiting for another one of
    the same engine is started before that, as engines take a job while they work. All that it needs is there by then,
    and what cores do next still comes behind the first one."""
    found = [list(routine.body) for routine in routines]
    waits: tuple[list[Statement], int] | None = None
    for statements in found:
        for place, statement in enumerate(statements):
            match statement:
                case Driven(body=(*_, AwaitEngine(engine=engine, recent=True))) if engine in engines:
                    waits = statements, place
                case Meet() | Mark():
                    pass
                case OnCores(beside=inside) if waits is not None:
                    statements[place] = replace(statement, beside=_queued(*waits, inside))
                    waits = None
                case _:
                    waits = None
    return tuple(replace(routine, body=tuple(body)) for routine, body in zip(routines, found, strict=True))


def _queued(statements: list[Statement], place: int, inside: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Moves the start of a job from the beginning of what is done beside cores to before a wait; what is left there."""
    driven = statements[place]
    assert isinstance(driven, Driven)
    last = driven.body[-1]
    assert isinstance(last, AwaitEngine)
    first = next((n for n, own in enumerate(inside) if not isinstance(own, Mark)), len(inside))
    match inside[first : first + 1]:
        case (StartEngine(engine=engine, goes=True),) if engine == last.engine:
            # The first wait is over at once: it tells what the second one waits for.
            before = replace(last, recent=False)
            statements[place] = Driven((*driven.body[:-1], before, *inside[: first + 1], before))
            return inside[first + 1 :]
        case _:
            return inside


RELATIONS = {"==": eq, "<": lt, ">": gt, ">=": ge}
"""Of tests of turns."""


class _Ended(Struct, frozen=True):
    """A wait for an engine that a routine ends with, but for waits for transfers."""

    statements: list[Statement]
    place: int
    engine: str
    told: bool
    """Whether something else than that was awaited, or looked for, since the engine's last job was started."""


def started_first(routines: Sequence[Routine]) -> tuple[Routine, ...]:
    """The same routines, which run one after the other: where one ends with waiting for an engine, and the next one
    first of all starts a job there, it is awaited behind that start."""
    found = [list(routine.body) for routine in routines]
    ended: _Ended | None = None
    told = False
    for statements in found:
        for place, statement in enumerate(statements):
            match statement:
                case Mark():
                    continue
                case StartEngine(goes=True) if ended is not None and ended.engine == statement.engine:
                    _later(ended)
                    behind = Driven((AwaitEngine(statement.engine, recent=False),))
                    statements[place] = replace(statement, beside=(behind, *statement.beside))
                case For() if ended is not None and _starts(statement, ended.engine):
                    _later(ended)
                case Driven(body=(*_, AwaitEngine(engine=engine, recent=True))):
                    ended = _Ended(statements, place, engine, told)
                    continue
                case Driven(body=body) if all(isinstance(own, AwaitTransfers) for own in body):
                    continue
                case _:
                    pass
            told, ended = _tells(statements[place], told), None
    kept = [[statement for statement in statements if statement != Driven(())] for statements in found]
    return tuple(replace(routine, body=tuple(body)) for routine, body in zip(routines, kept, strict=True))


def _later(ended: _Ended) -> None:
    """Takes a wait away: what is started next is awaited with it, or behind it the jobs before the last wait are."""
    driven = ended.statements[ended.place]
    assert isinstance(driven, Driven)
    tells = () if ended.told else (AwaitEngine(ended.engine, recent=False),)
    ended.statements[ended.place] = Driven((*driven.body[:-1], *tells))


def _starts(loop: For, engine: str) -> bool:
    """Whether a loop first of all starts a job of an engine, and then waits there."""
    done = _done(loop.body, {loop.name: loop.start})
    for statement in done:
        if isinstance(statement, StartEngine):
            following = next(done, None)
            alone = statement.engine == engine and statement.goes and not statement.beside
            return alone and isinstance(following, AwaitEngine) and following.engine == engine
        if not isinstance(statement, AwaitTransfers):
            return False
    return False


def _tells(statement: Statement, told: bool) -> bool:
    """Whether some engine has been waited for since a job was last started, given whether that was so before."""
    match statement:
        case For(name=name, start=start, stop=stop, body=body):
            turns = range(max(start, stop - 2), stop)
            done = [own for turn in turns for own in _done(body, {name: turn})]
        case _:
            done = _done((statement,), {})
    for own in done:
        match own:
            case AwaitEngine():
                told = True
            case StartEngine(goes=True) | If() | For():
                told = False
            case _:
                pass
    return told


def _done(statements: Iterable[Statement], values: Mapping[str, int]) -> Iterator[Statement]:
    """What is done at a turn of a loop, in order; what depends on a size that is known when it runs stays an If."""
    for statement in statements:
        match statement:
            case Mark():
                pass
            case Let(name=name, value=value):
                values = {**values, name: value_of(value, values)} if _is_known(value, values) else values
            case If(tests=tests, body=body):
                if not all(_is_known(test.value, values) for test in tests):
                    yield statement
                elif all(RELATIONS[test.relation](value_of(test.value, values), test.bound) for test in tests):
                    yield from _done(body, values)
            case Driven(body=body):
                yield from _done(body, values)
            case OnCores(beside=beside) | StartEngine(beside=beside):
                yield statement
                yield from _done(beside, values)
            case _:
                yield statement


def _is_known(value: Size, values: Mapping[str, int]) -> bool:
    return isinstance(value, int) or value.variables <= values.keys()


def transfers_first(routines: Iterable[Routine]) -> tuple[Routine, ...]:
    """The same routines, which run one after the other: what is awaited behind a job is awaited before it."""
    found = list(routines)
    before: list[list[Statement]] = []
    for routine in found:
        before.append([])
        for statement in routine.body:
            match statement:
                case Driven(body=body):
                    if not (all(isinstance(own, AwaitTransfers) for own in body) and _joined(before, body)):
                        before[-1].append(Driven(_ordered(body)))
                case OnCores() | StartEngine():
                    before[-1].append(replace(statement, beside=_ordered(statement.beside)))
                case _:
                    before[-1].append(statement)
    return tuple(replace(routine, body=tuple(body)) for routine, body in zip(found, before, strict=True))


def _joined(before: list[list[Statement]], waits: tuple[Statement, ...]) -> bool:
    """Puts waits for transfers into the block before them, if that ends with waiting for a job; whether it does."""
    for statements in reversed(before):
        for place in range(len(statements) - 1, -1, -1):
            match statements[place]:
                case Mark():
                    continue
                case Driven(body=body) if isinstance(body[-1], AwaitEngine):
                    statements[place] = Driven(_ordered((*body, *waits)))
                    return True
                case _:
                    return False
    return False


def _ordered(statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
    found: list[Statement] = []
    for statement in statements:
        place = len(found)
        if isinstance(statement, AwaitTransfers):
            while place and isinstance(found[place - 1], AwaitEngine | Mark):
                place -= 1
            if not any(isinstance(passed, AwaitEngine) for passed in found[place:]):
                place = len(found)
        found.insert(place, statement)
    return tuple(found)


def _started(before: list[list[Statement]], statement: Statement, engines: Collection[str]) -> Statement:
    """A statement that just starts what has been described in those before it, or the same."""
    if isinstance(statement, StartEngine) and _movable(statement, engines) and _described(before, statement):
        return replace(statement, body=())
    return statement


def _movable(start: StartEngine, engines: Collection[str]) -> bool:
    """Whether it is one call that describes one job, which is the same wherever it is made."""
    return start.engine in engines and start.single and len(start.body) == 1 and isinstance(start.body[0], Invoke)


def _described(before: list[list[Statement]], start: StartEngine) -> bool:
    """Puts the description of a job before the last waits of what comes before it; whether there are any."""
    job, waited = replace(start, beside=(), goes=False), False
    for statements in reversed(before):
        for place in range(len(statements) - 1, -1, -1):
            statement = statements[place]
            if _waits(statement):
                waited |= not isinstance(statement, Mark)
                continue
            match statement:
                case Driven(body=body) if all(isinstance(own, Copy) for own in body):
                    continue
                case OnCores(beside=inside):
                    statements[place] = replace(statement, beside=_before_waits(inside, job))
                    return True
                case Driven(body=body) if _waits(body[-1]):
                    statements[place] = Driven(_before_waits(body, job))
                    return True
                case _ if waited:
                    statements.insert(place + 1, job)
                    return True
                case _:
                    return False
    return False


def _waits(statement: Statement) -> bool:
    """Whether it is nothing but waiting; marks do nothing."""
    match statement:
        case Meet() | Release() | AwaitTransfers() | AwaitEngine() | Mark():
            return True
        case Driven(body=body):
            return all(map(_waits, body))
        case _:
            return False


def _before_waits(statements: tuple[Statement, ...], job: Statement) -> tuple[Statement, ...]:
    place = len(statements)
    while place and _waits(statements[place - 1]):
        place -= 1
    return (*statements[:place], job, *statements[place:])
