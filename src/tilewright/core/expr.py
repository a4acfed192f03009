"""Whole-number expressions of loop variables: what addresses, tile bounds and kernel arguments are made of.

An expression is kept as `constant + sum(coefficient * atom)`, where an atom is a loop variable or something that is not
linear. Variables know their range, so that `min(4*i + 4, 32)` with i below 8 becomes `4*i + 4`, and the size of a tile
that is never ragged becomes a plain number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from math import gcd
from typing import Literal

from msgspec import Struct


class Var(Struct, frozen=True):
    """A loop variable with its smallest and largest value."""

    name: str
    low: int
    high: int


class Term(Struct, frozen=True):
    """Something that is not linear in the loop variables.

    `first` is the second argument where the first one, a loop variable, is 0, else the third.
    """

    kind: Literal["min", "max", "div", "mod", "mul", "first"]
    arguments: tuple[Expr, ...]


Atom = Var | Term


class Expr(Struct, frozen=True, dict=True):
    """`constant + sum(coefficient * atom)`."""

    terms: tuple[tuple[Atom, int], ...] = ()
    constant: int = 0

    def __add__(self, other: Size) -> Expr:
        if isinstance(other, int):
            return Expr(self.terms, self.constant + other)
        merged = dict(self.terms)
        for atom, factor in other.terms:
            merged[atom] = merged.get(atom, 0) + factor
        return Expr(tuple((a, f) for a, f in merged.items() if f), self.constant + other.constant)

    def __mul__(self, other: Size) -> Expr:
        if isinstance(other, Expr) and other.terms and self.terms:
            (mine, a), (theirs, b) = _primitive(self), _primitive(other)
            return Expr(((Term("mul", (a, b)), mine * theirs),))
        factor = other if isinstance(other, int) else other.constant
        scaled, number = (self, factor) if self.terms or isinstance(other, int) else (_lift(other), self.constant)
        if not number:
            return Expr()
        return Expr(tuple((a, f * number) for a, f in scaled.terms), scaled.constant * number)

    def __neg__(self) -> Expr:
        return self * -1

    def __sub__(self, other: Size) -> Expr:
        return self + -other

    def __rsub__(self, other: int) -> Expr:
        return -self + other

    __radd__ = __add__
    __rmul__ = __mul__

    def __floordiv__(self, divisor: int) -> Expr:
        if divisor == 1:
            return self
        if all(f % divisor == 0 for _, f in self.terms):
            return Expr(tuple((a, f // divisor) for a, f in self.terms), self.constant // divisor)
        # C divides towards zero: the dividend is moved to where that is the same as rounding down.
        shift = max(0, -(self.bounds[0] // divisor))
        return Expr(((Term("div", (self + shift * divisor, Expr((), divisor))), 1),), -shift)

    def __mod__(self, divisor: int) -> Expr:
        if all(f % divisor == 0 for _, f in self.terms):
            return Expr((), self.constant % divisor)
        return Expr(((Term("mod", (self, Expr((), divisor))), 1),))

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """Values between which it lies for all values of its variables."""
        low = high = self.constant
        for atom, factor in self.terms:
            ends = [factor * end for end in _atom_bounds(atom)]
            low, high = low + min(ends), high + max(ends)
        return low, high

    def value(self, at: Mapping[str, int]) -> int:
        """Its value where every variable has one."""
        return self.constant + sum(factor * _atom_value(atom, at) for atom, factor in self.terms)

    def rewritten(self, rule: Callable[[Atom], Size | None]) -> Size:
        """The expression with atoms replaced; where the rule says None, parts of the atom may still be."""
        result: Size = self.constant
        for atom, factor in self.terms:
            result = result + _atom_rewritten(atom, rule) * factor
        return plain(result)

    @cached_property
    def depth(self) -> int:
        """How deep terms that are not linear lie in each other."""
        terms = [atom for atom, _ in self.terms if isinstance(atom, Term)]
        return max((1 + argument.depth for term in terms for argument in term.arguments), default=0)

    @cached_property
    def variables(self) -> frozenset[str]:
        found: set[str] = set()
        for atom, _ in self.terms:
            found |= {atom.name} if isinstance(atom, Var) else {v for a in atom.arguments for v in a.variables}
        return frozenset(found)

    def __str__(self) -> str:
        parts: list[str] = []
        for atom, factor in self.terms:
            text = _atom_text(atom)
            sign = ("-" if factor < 0 else "") if not parts else ("- " if factor < 0 else "+ ")
            parts.append(f"{sign}{text if abs(factor) == 1 else f'{text} * {abs(factor)}'}")
        if self.constant or not parts:
            sign = "" if not parts else "+ " if self.constant >= 0 else "- "
            parts.append(f"{sign}{abs(self.constant) if parts else self.constant}")
        return " ".join(parts)


Size = int | Expr
"""A number that is known now, or one that depends on where the loops stand."""


def variable(name: str, count: int) -> Size:
    """A loop variable that runs over `count` values from 0."""
    return Expr(((Var(name, 0, count - 1), 1),)) if count > 1 else 0


def plain(value: Size) -> Size:
    """A number where nothing varies."""
    return value.constant if isinstance(value, Expr) and not value.terms else value


def rounded_up(value: Size, unit: int) -> Size:
    """The next multiple of a number."""
    return plain((value + (unit - 1)) // unit * unit)


def smaller(a: Size, b: Size) -> Size:
    return _extreme("min", a, b)


def larger(a: Size, b: Size) -> Size:
    return _extreme("max", a, b)


def clamp(value: Size, low: int, high: int) -> Size:
    return smaller(larger(value, low), high)


def at_first(index: Size, first: Size, later: Size) -> Size:
    """`first` where a loop stands at its first tile, `later` after it."""
    if isinstance(index, int):
        return first if index == 0 else later
    if index.bounds[0] > 0:
        return later
    if plain(_lift(first) - later) == 0:
        return first
    return Expr(((Term("first", (index, _lift(first), _lift(later))), 1),))


def bounds_of(value: Size) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else value.bounds


def value_of(value: Size, at: Mapping[str, int]) -> int:
    return value if isinstance(value, int) else value.value(at)


def _lift(value: Size) -> Expr:
    return Expr((), value) if isinstance(value, int) else value


def _primitive(value: Expr) -> tuple[int, Expr]:
    """A number and an expression without common factors, of which it is the product."""
    factor = gcd(value.constant, *(f for _, f in value.terms)) * (1 if value.terms[0][1] > 0 else -1)
    return factor, Expr(tuple((a, f // factor) for a, f in value.terms), value.constant // factor)


def _extreme(kind: Literal["min", "max"], a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b) if kind == "min" else max(a, b)
    low, high = (_lift(a) - b).bounds
    if low >= 0:
        return plain(b if kind == "min" else a)
    if high <= 0:
        return plain(a if kind == "min" else b)
    return Expr(((Term(kind, (_lift(a), _lift(b))), 1),))


def _atom_bounds(atom: Atom) -> tuple[int, int]:
    if isinstance(atom, Var):
        return atom.low, atom.high
    ends = [a.bounds for a in atom.arguments]
    match atom.kind:
        case "min":
            return min(low for low, _ in ends), min(high for _, high in ends)
        case "max":
            return max(low for low, _ in ends), max(high for _, high in ends)
        case "div":
            return ends[0][0] // ends[1][0], ends[0][1] // ends[1][0]
        case "mod":
            return 0, ends[1][0] - 1
        case "first":
            return min(ends[1][0], ends[2][0]), max(ends[1][1], ends[2][1])
        case "mul":
            products = [x * y for x in ends[0] for y in ends[1]]
            return min(products), max(products)


def _atom_value(atom: Atom, at: Mapping[str, int]) -> int:
    if isinstance(atom, Var):
        return at[atom.name]
    if atom.kind == "first":
        index, first, later = atom.arguments
        return first.value(at) if index.value(at) == 0 else later.value(at)
    a, b = (argument.value(at) for argument in atom.arguments)
    match atom.kind:
        case "min":
            return min(a, b)
        case "max":
            return max(a, b)
        case "div":
            return a // b
        case "mod":
            return a % b
        case "mul":
            return a * b


def _atom_rewritten(atom: Atom, rule: Callable[[Atom], Size | None]) -> Size:
    found = rule(atom)
    if found is not None or isinstance(atom, Var):
        return Expr(((atom, 1),)) if found is None else found
    arguments = [argument.rewritten(rule) for argument in atom.arguments]
    a, b = arguments[:2]
    match atom.kind:
        case "min":
            return smaller(a, b)
        case "max":
            return larger(a, b)
        case "div":
            return a // atom.arguments[1].constant
        case "mod":
            return a % atom.arguments[1].constant
        case "mul":
            return a * b
        case "first":
            return at_first(a, b, arguments[2])


def _atom_text(atom: Atom) -> str:
    """As C. Divisions are of numbers that are not negative."""
    if isinstance(atom, Var):
        return atom.name
    texts = [str(a) for a in atom.arguments]
    match atom.kind:
        case "min" | "max":
            return f"tw_{atom.kind}({texts[0]}, {texts[1]})"
        case "div" | "mod":
            return f"({texts[0]}) {'/' if atom.kind == 'div' else '%'} {texts[1]}"
        case "first":
            return f"({texts[0]} == 0 ? {texts[1]} : {texts[2]})"
        case "mul":
            return " * ".join(t if _is_factor(a) else f"({t})" for a, t in zip(atom.arguments, texts, strict=True))


def _is_factor(value: Expr) -> bool:
    """Whether its text is one behind a product sign, too."""
    quotient = any(isinstance(atom, Term) and atom.kind in ("div", "mod") for atom, _ in value.terms)
    return len(value.terms) == 1 and not value.constant and not quotient
