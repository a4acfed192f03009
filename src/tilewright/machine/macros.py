"""Macros of C headers in formulas: arithmetic that both the code and its price need is said once, in C."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from tilewright.machine.arithmetic import named, parse, rewritten, with_arguments, written

_DEFINITION = re.compile(r"^#define[ \t]+(\w+)\(([\w, ]+)\)[ \t]+(.+)$", re.MULTILINE)
_AS_FORMULA = {"/": "//", "tw_min": "min", "tw_max": "max"}
"""What C and formulas write differently, for whole numbers that are not negative."""


class Macro(Struct, frozen=True):
    """A macro with parameters; its body is C."""

    parameters: tuple[str, ...]
    body: str

    def formula(self) -> ast.expr:
        text = re.sub(r"/|\btw_min\b|\btw_max\b", lambda found: _AS_FORMULA[found.group()], self.body)
        return parse(text)


@lru_cache(maxsize=64)
def macros(text: str) -> Mapping[str, Macro]:
    """The macros with parameters that a C header defines."""
    found = _DEFINITION.findall(text.replace("\\\n", " "))
    return {name: Macro(tuple(p.strip() for p in given.split(",")), body) for name, given, body in found}


def expanded(formula: str, known: Mapping[str, Macro]) -> str:
    """A formula with macros replaced by what they stand for; ValueError where that is no arithmetic."""
    return written(_expanded(parse(formula), known)) if "(" in formula else formula


def _expanded(node: ast.expr, known: Mapping[str, Macro]) -> ast.expr:
    def change(part: ast.expr) -> ast.expr:
        macro = known.get(named(part))
        if macro is None or not isinstance(part, ast.Call):
            return part
        if len(part.args) != len(macro.parameters):
            raise ValueError(f"'{ast.unparse(part)}' needs {len(macro.parameters)} arguments")
        inner = {name: other for name, other in known.items() if other is not macro}
        arguments = dict(zip(macro.parameters, part.args, strict=True))
        return _expanded(with_arguments(macro.formula(), arguments), inner)

    return rewritten(node, change)
