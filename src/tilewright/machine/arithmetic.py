"""Arithmetic of headers as trees: parsed, checked and rewritten.

The trees are small and of few kinds, and there are thousands of them: what Python's own library does for trees of any
kind takes several times as long.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import lru_cache

EXTREMES = ("max", "min")
_OPERATORS = frozenset({ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod})
_COMPARISONS = frozenset({ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE})


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
            return type(node.op) in _OPERATORS
        case ast.UnaryOp():
            return isinstance(node.op, ast.USub)
        case ast.Compare():
            return all(type(op) in _COMPARISONS for op in node.ops)
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


def named(node: ast.expr) -> str:
    """The name of what a node calls; "" where it calls nothing that has one."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def with_arguments(node: ast.expr, arguments: dict[str, ast.expr]) -> ast.expr:
    """A tree with others in the places of names."""
    return rewritten(node, lambda part: arguments.get(part.id, part) if isinstance(part, ast.Name) else part)
