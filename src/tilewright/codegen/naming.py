"""Gives names to what statements say more than once, so that generated loops can be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from tilewright.core.expr import Expr, Size, Term, Var
from tilewright.core.program import (
    Argument,
    AwaitEngine,
    AwaitTransfers,
    Copy,
    Driven,
    For,
    If,
    Invoke,
    Let,
    Literal,
    Mark,
    Maybe,
    Meet,
    MoveBytes,
    Number,
    OnCores,
    ParameterBlock,
    Pointer,
    Release,
    StartEngine,
    Statement,
    Test,
)

Rewrite = Callable[[Size], Size]


LONGEST = 2
"""Depth of expressions that need no name of their own."""


class ExpressionNames:
    """Names for expressions that are too long to be repeated inside others."""

    def __init__(self) -> None:
        self._lets: dict[str, Expr] = {}
        self._known: dict[Expr, Expr] = {}

    def __call__(self, value: Size) -> Size:
        if isinstance(value, int) or value.depth < LONGEST:
            return value
        if value not in self._known:
            name = f"n{len(self._lets)}"
            self._lets[name] = value
            self._known[value] = Expr(((Var(name, *value.bounds), 1),))
        return self._known[value]

    def behind(self, names: Iterable[str]) -> set[str]:
        """These names and all that their values depend on."""
        found: set[str] = set()
        pending = list(names)
        while pending:
            name = pending.pop()
            if name not in found:
                found.add(name)
                pending += self._lets[name].variables if name in self._lets else ()
        return found

    def needed(self, body: Sequence[Statement]) -> set[str]:
        """All names that have to be known before some statements."""
        mentioned: set[str] = set()

        def collect(value: Size) -> Size:
            mentioned.update(value.variables if isinstance(value, Expr) else ())
            return value

        for statement in body:
            _mapped(statement, collect)
        return self.behind(mentioned)

    def values(self, needed: set[str]) -> list[tuple[str, Expr]]:
        """What some names stand for, each behind what it depends on."""
        return [(name, value) for name, value in self._lets.items() if name in needed]


def with_names(body: Sequence[Statement], apart: str) -> tuple[Statement, ...]:
    """Statements with a Let for every term that occurs twice; terms that mention the variable `apart` are left."""
    counts: Counter[Term] = Counter()

    def count(value: Size) -> Size:
        for term in _terms(value):
            counts[term] += 1
        return value

    for statement in body:
        _mapped(statement, count)
    wanted = [term for term, times in counts.items() if times > 1 and apart not in Expr(((term, 1),)).variables]
    names: dict[Term, Var] = {}
    lets: list[Statement] = []
    for term in sorted(wanted, key=_depth):
        low, high = Expr(((term, 1),)).bounds
        lets.append(Let(f"v{len(names)}", _rewritten(Expr(((term, 1),)), names)))
        names[term] = Var(f"v{len(names)}", low, high)
    return (*lets, *(_mapped(statement, lambda value: _rewritten(value, names)) for statement in body))


def _terms(value: Size) -> list[Term]:
    if isinstance(value, int):
        return []
    own = [atom for atom, _ in value.terms if isinstance(atom, Term)]
    return own + [inner for term in own for argument in term.arguments for inner in _terms(argument)]


def _depth(term: Term) -> int:
    return 1 + max((_depth(inner) for argument in term.arguments for inner in _terms(argument)), default=0)


def _rewritten(value: Size, names: dict[Term, Var]) -> Size:
    if isinstance(value, int):
        return value
    return value.rewritten(lambda a: Expr(((names[a], 1),)) if isinstance(a, Term) and a in names else None)


def _mapped(statement: Statement, rewrite: Rewrite) -> Statement:
    match statement:
        case Invoke():
            return replace(statement, arguments=tuple(_argument(a, rewrite) for a in statement.arguments))
        case If():
            tests = tuple(Test(rewrite(t.value), t.relation, t.bound) for t in statement.tests)
            return If(tests, tuple(_mapped(s, rewrite) for s in statement.body))
        case For() | OnCores() | Driven() | StartEngine():
            return replace(statement, body=tuple(_mapped(s, rewrite) for s in statement.body))
        case Let():
            return Let(statement.name, rewrite(statement.value))
        case Mark() | Meet() | Release() | AwaitEngine():
            return statement
        case AwaitTransfers():
            return AwaitTransfers(rewrite(statement.channel))
        case MoveBytes():
            return MoveBytes(
                _pointer(statement.to, rewrite), _pointer(statement.source, rewrite), rewrite(statement.bytes)
            )
        case Copy():
            return replace(
                statement,
                channel=rewrite(statement.channel),
                to=_pointer(statement.to, rewrite),
                source=_pointer(statement.source, rewrite),
                bytes=rewrite(statement.bytes),
                counts=tuple(rewrite(c) for c in statement.counts),
                to_strides=tuple(rewrite(s) for s in statement.to_strides),
                source_strides=tuple(rewrite(s) for s in statement.source_strides),
            )


def _argument(argument: Argument, rewrite: Rewrite) -> Argument:
    match argument:
        case Literal():
            return argument
        case Number():
            return Number(rewrite(argument.value))
        case Pointer():
            return _pointer(argument, rewrite)
        case ParameterBlock():
            return replace(argument, fields=tuple(_field(f, rewrite) for f in argument.fields))
        case Maybe():
            return Maybe(_pointer(argument.pointer, rewrite), rewrite(argument.value))


def _field(field: Pointer | Literal | Number, rewrite: Rewrite) -> Pointer | Literal | Number:
    match field:
        case Literal():
            return field
        case Number():
            return Number(rewrite(field.value))
        case Pointer():
            return _pointer(field, rewrite)


def _pointer(pointer: Pointer, rewrite: Rewrite) -> Pointer:
    return replace(pointer, offset=rewrite(pointer.offset))
