"""Formulas of kernel headers over many tiles at once, and the names that they may use."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache, reduce
from itertools import pairwise
from typing import Any

import numpy as np

from tilewright.core.domain import Affine, Domain
from tilewright.core.kernel import Number

Numbers = Any
"""A number, or an array of them."""

_OPERATORS: dict[type[ast.AST], Callable[[Numbers, Numbers], Numbers]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: operator.mod,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.And: np.logical_and,
    ast.Or: np.logical_or,
}


class Names(dict[str, Numbers]):
    """Numbers of a call on a tile by name, worked out when asked for: `core.matching.tile_names` over many tiles.

    `sizes` are those of the dimensions, `extent` gives that of an operand's axis, `strided` operands may be parts of
    larger ones. `complete` turns false where a product of dimensions has no stride because they are not walked as one.
    `split` is the dimension that cores share: `X_sPART` are the elements of an operand between parts of two cores.
    `beyond` is how far windows of the tile reach over the edges of an operand's axis, both together: `X_o1`.
    Operands of `whole` lie in their tensors, whose strides they have.
    """

    def __init__(
        self,
        domain: Domain,
        known: Mapping[str, Number],
        sizes: Mapping[str, Numbers],
        extent: Callable[[str, int], Numbers],
        strided: frozenset[str] = frozenset(),
        split: str = "",
        beyond: Callable[[str, int], Numbers] | None = None,
        whole: Collection[str] = (),
    ) -> None:
        super().__init__(sizes)
        self._whole = whole
        self._split = split
        self._strided = strided
        self._domain, self._known, self._sizes, self._extent = domain, known, sizes, extent
        self._beyond = beyond
        self.complete: Numbers = True

    def __missing__(self, name: str) -> Numbers:
        self[name] = found = self._find(name)
        return found

    def _find(self, name: str) -> Numbers:
        parts = self._domain.products.get(name)
        if parts is not None:
            return reduce(operator.mul, (self[part] for part in parts), 1)
        operand, _, rest = name.rpartition("_")
        if operand in self._domain.access and rest[:1] == "n" and rest[1:].isdigit():
            return self._extent(operand, int(rest[1:]))
        if operand in self._domain.access and rest == "sPART":
            return self._stride(operand, self._split) * self[self._split] if self._split else 0
        if operand in self._domain.access and rest[:1] == "o" and rest[1:].isdigit():
            return self._beyond(operand, int(rest[1:])) if self._beyond else 0
        along = rest[1:].isdigit() or rest[1:] in {*self._domain.dims, *self._domain.products}
        if operand in self._domain.access and rest[:1] == "s" and along:
            return self._stride(operand, rest[1:])
        return self._known[name]

    def _stride(self, operand: str, of: str) -> Numbers:
        axes = self._domain.access[operand]
        linear: dict[str, Numbers] = {}
        step: Numbers = 1
        for number in reversed(range(len(axes))):
            if of == str(number):
                return step
            axis = axes[number]
            if isinstance(axis, Affine) and axis.divisor == 1:
                for name, coefficient in axis.terms:
                    linear[name] = linear.get(name, 0) + step * coefficient
            whole = operand in self._whole
            step = step * (self._domain.shapes[operand][number] if whole else self._extent(operand, number))
        if of not in self._domain.products:
            return linear.get(of, 0)
        real = [part for part in self._domain.products[of] if self._domain.dims[part] > 1]
        for a, b in pairwise(real):
            walked = linear.get(a, 0) == linear.get(b, 0) * self[b]
            if operand in self._strided and b in linear:
                # A part of something larger is walked as one only where nothing of it is left out.
                walked = np.logical_and(walked, self[b] == self._domain.dims[b])
            self.complete = np.logical_and(self.complete, walked)
        return linear.get(real[-1], 0) if real else 0


@lru_cache(maxsize=4096)
def _parse(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def evaluate(text: str, names: Names) -> Numbers:
    """The value of a formula, which may be an array; `core.kernel.formula` has checked its text."""
    return _value(_parse(text), names)


def condition(name: str, text: str, names: Names) -> Numbers:
    """Whether a predicate of a header holds: `core.kernel.holds` over many tiles."""
    names.complete = True
    found = evaluate(text if re.match(rf"^[\s(]*{name}\b", text) else f"{name} {text}", names)
    return np.logical_and(found, names.complete)


def _value(node: ast.expr, names: Names) -> Numbers:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return names[name]
        case ast.NamedExpr(target=ast.Name(id=name), value=value):
            names[name] = found = _value(value, names)
            return found
        case ast.BinOp(left=left, op=symbol, right=right):
            return _OPERATORS[type(symbol)](_value(left, names), _value(right, names))
        case ast.UnaryOp(operand=operand):
            return -_value(operand, names)
        case ast.BoolOp(op=symbol, values=values):
            return reduce(_OPERATORS[type(symbol)], (_value(v, names) for v in values))
        case ast.Call(func=ast.Name(id=name), args=args):
            return reduce(np.maximum if name == "max" else np.minimum, (_value(a, names) for a in args))
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            values = [_value(v, names) for v in (left, *comparators)]
            pairs = zip(ops, values, values[1:], strict=False)
            return reduce(np.logical_and, (_OPERATORS[type(o)](a, b) for o, a, b in pairs))
        case _:
            raise ValueError(f"'{ast.unparse(node)}' is not an arithmetic formula")
