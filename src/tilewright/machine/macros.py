"""Macros of C headers in formulas: arithmetic that both the code and its price need is said once, in C."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

_DEFINITION = re.compile(r"^#define[ \t]+(\w+)\(([\w, ]+)\)[ \t]+(.+)$", re.MULTILINE)
_AS_FORMULA = {"/": "//", "tw_min": "min", "tw_max": "max"}
"""What C and formulas write differently, for whole numbers that are not negative."""


@dataclass(frozen=True)
class Macro:
    """A macro with parameters; its body is C."""

    parameters: tuple[str, ...]
    body: str

    def formula(self) -> ast.expr:
        text = re.sub(r"/|\btw_min\b|\btw_max\b", lambda found: _AS_FORMULA[found.group()], self.body)
        return ast.parse(text.strip(), mode="eval").body


def macros(text: str) -> dict[str, Macro]:
    """The macros with parameters that a C header defines."""
    found = _DEFINITION.findall(text.replace("\\\n", " "))
    return {name: Macro(tuple(p.strip() for p in given.split(",")), body) for name, given, body in found}


def expanded(formula: str, known: Mapping[str, Macro]) -> str:
    """A formula with macros replaced by what they stand for; ValueError where that is no arithmetic."""
    try:
        return ast.unparse(_Expansion(known).visit(ast.parse(formula, mode="eval").body))
    except SyntaxError as reason:
        raise ValueError(f"'{formula}' is not an arithmetic formula") from reason


class _Expansion(ast.NodeTransformer):
    def __init__(self, known: Mapping[str, Macro]) -> None:
        self._known = known

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        macro = self._known.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if macro is None:
            return node
        if len(node.args) != len(macro.parameters):
            raise ValueError(f"'{ast.unparse(node)}' needs {len(macro.parameters)} arguments")
        inner = _Expansion({name: other for name, other in self._known.items() if other is not macro})
        return inner.visit(_Arguments(dict(zip(macro.parameters, node.args, strict=True))).visit(macro.formula()))


class _Arguments(ast.NodeTransformer):
    def __init__(self, given: Mapping[str, ast.expr]) -> None:
        self._given = given

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._given.get(node.id, node)
