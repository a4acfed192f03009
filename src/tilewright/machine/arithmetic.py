"""Arithmetic of headers as trees: parsed, checked, rewritten and made into code.

The trees are small and of few kinds, and there are thousands of them: what Python's own library does for trees of any
kind takes several times as long.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, reduce
from types import CodeType
from typing import Any

Number = int | float

EXTREMES = ("max", "min")
_LEAST, _COMPARISON, _SUM, _PRODUCT, _MINUS, _ATOM = range(1, 7)
"""How tightly nodes bind; of `and`, `or` and what is no arithmetic, the least."""
_BINARY: dict[type[ast.operator], tuple[str, int]] = {
    ast.Add: ("+", _SUM),
    ast.Sub: ("-", _SUM),
    ast.Mult: ("*", _PRODUCT),
    ast.Div: ("/", _PRODUCT),
    ast.FloorDiv: ("//", _PRODUCT),
    ast.Mod: ("%", _PRODUCT),
}
_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


def parse(text: str) -> ast.expr:
    """The tree of a text; ValueError where it is no expression."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as reason:
        raise ValueError(f"'{text}' is not an arithmetic formula") from reason


@lru_cache(maxsize=4096)
def check(text: str) -> None:
    """ValueError with the reason, for a text that is no formula."""
    waiting = [parse(text)]
    while waiting:
        node = waiting.pop()
        if not _allowed(node):
            raise ValueError(f"'{ast.unparse(node)}' is not an arithmetic formula")
        waiting += _parts(node)


def _allowed(node: ast.expr) -> bool:
    match node:
        case ast.BinOp():
            return type(node.op) in _BINARY
        case ast.UnaryOp():
            return isinstance(node.op, ast.USub)
        case ast.Compare():
            return all(type(op) in _COMPARED for op in node.ops)
        case ast.Call(func=ast.Name(id="log")):
            return len(node.args) == 1 and not node.keywords
        case ast.Call(func=ast.Name(id=function)):
            return function in EXTREMES and bool(node.args) and not node.keywords
        case ast.Constant():
            return isinstance(node.value, (int, float))
        case _:
            return isinstance(node, (ast.Name, ast.BoolOp, ast.NamedExpr))


def _parts(node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.BinOp():
            return [node.left, node.right]
        case ast.UnaryOp():
            return [node.operand]
        case ast.Compare():
            return [node.left, *node.comparators]
        case ast.BoolOp():
            return node.values
        case ast.Call():
            return node.args
        case ast.NamedExpr():
            return [node.value]
        case _:
            return []


def rewritten(node: ast.expr, change: Callable[[ast.expr], ast.expr]) -> ast.expr:
    """A tree whose parts are changed first, and then itself. What is no arithmetic stays as it is."""
    match node:
        case ast.BinOp():
            node.left, node.right = rewritten(node.left, change), rewritten(node.right, change)
        case ast.UnaryOp():
            node.operand = rewritten(node.operand, change)
        case ast.Compare():
            node.left = rewritten(node.left, change)
            node.comparators = [rewritten(part, change) for part in node.comparators]
        case ast.BoolOp():
            node.values = [rewritten(part, change) for part in node.values]
        case ast.Call():
            node.args = [rewritten(part, change) for part in node.args]
        case ast.NamedExpr():
            node.value = rewritten(node.value, change)
        case _:
            pass
    return change(node)


def written(node: ast.expr, least: int = 0) -> str:
    """The text of a tree, as `ast.unparse` has it; in brackets if it binds less tightly than `least`."""
    match node:
        case ast.Name():
            return node.id
        case ast.Constant():
            return repr(node.value)
        case ast.BinOp() if type(node.op) in _BINARY:
            symbol, own = _BINARY[type(node.op)]
            text = f"{written(node.left, own)} {symbol} {written(node.right, own + 1)}"
        case ast.UnaryOp(op=ast.USub()):
            own, text = _MINUS, f"-{written(node.operand, _MINUS)}"
        case ast.Compare() if all(type(op) in _COMPARED for op in node.ops):
            sides = zip(node.ops, node.comparators, strict=True)
            own, first = _COMPARISON, written(node.left, _COMPARISON + 1)
            text = " ".join((first, *(f"{_COMPARED[type(op)]} {written(side, own + 1)}" for op, side in sides)))
        case ast.Call(func=ast.Name(id=function), keywords=[]):
            return f"{function}({', '.join(map(written, node.args))})"
        case ast.NamedExpr():
            return f"({node.target.id} := {written(node.value, _ATOM)})"
        case _:
            own, text = _LEAST, ast.unparse(node)
    return f"({text})" if own < least else text


def named(node: ast.expr) -> str:
    """The name of what a node calls; "" where it calls nothing that has one."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def with_arguments(node: ast.expr, arguments: dict[str, ast.expr]) -> ast.expr:
    """A tree with others in the places of names."""
    return rewritten(node, lambda part: arguments.get(part.id, part) if isinstance(part, ast.Name) else part)


@lru_cache(maxsize=4096)
def compiled(text: str, *, arrays: bool = False) -> CodeType:
    """The code of a checked formula, for `evaluated`: of numbers, or of `arrays` too.

    That of arrays calls `both`, `either`, `max` and `min`, each for two values.
    """
    return _code(rewritten(parse(text), _of_arrays if arrays else _of_numbers), text)


@lru_cache(maxsize=4096)
def worked_out(text: str, numbers: tuple[tuple[str, Number], ...]) -> CodeType:
    """A checked formula with all that follows from some numbers: where its code is equal to another one, so are their
    values, whatever further names stand for."""
    known: dict[str, Number] = dict(numbers)

    def change(node: ast.expr) -> ast.expr:
        if node.id not in known if isinstance(node, ast.Name) else not all(map(_is_number, _parts(node))):
            return node
        try:
            return ast.Constant(evaluated(_code(_of_numbers(node), text), NUMBERS, known), lineno=1, col_offset=0)
        except (ArithmeticError, ValueError):
            return node

    return _code(rewritten(parse(text), change), text)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)


def _code(tree: ast.expr, text: str) -> CodeType:
    return compile(ast.Expression(tree), text, "eval")


def evaluated(code: CodeType, functions: dict[str, Any], names: Mapping[str, Any]) -> Any:
    """The value of a compiled formula; KeyError for an unknown name."""
    try:
        # Nothing but what `arithmetic.check` lets through is compiled.
        return eval(code, functions, names)
    except NameError as missing:
        raise KeyError(missing.name) from missing


NUMBERS: dict[str, Any] = {"__builtins__": {}, "log": math.log, "max": max, "min": min}


_AT = {"lineno": 1, "col_offset": 0}
"""Where nodes are that no text has; Python insists on it."""


def _of_numbers(node: ast.expr) -> ast.expr:
    """Makes `and` and `or` say true or false, not one of their values."""
    match node:
        case ast.BoolOp():
            node.values = [ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), part, **_AT), **_AT) for part in node.values]
            return node
        case ast.Call(func=ast.Name(id=function), args=[one]) if function in EXTREMES:
            return one
        case _:
            return node


def _of_arrays(node: ast.expr) -> ast.expr:
    """Makes functions of two values of what Python decides by the truth of one."""
    match node:
        case ast.BoolOp():
            return _joined("both" if isinstance(node.op, ast.And) else "either", node.values)
        case ast.Call(func=ast.Name(id=function)) if function in EXTREMES:
            return _joined(function, node.args)
        case ast.Compare(ops=[_, _, *_]):
            sides = zip([node.left, *node.comparators], node.ops, node.comparators, strict=False)
            return _joined("both", [ast.Compare(left, [symbol], [right], **_AT) for left, symbol, right in sides])
        case _:
            return node


def _joined(function: str, values: Sequence[ast.expr]) -> ast.expr:
    return reduce(lambda a, b: ast.Call(ast.Name(function, ast.Load(), **_AT), [a, b], [], **_AT), values)
