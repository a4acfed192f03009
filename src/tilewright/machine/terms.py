"""Structural terms of a kernel's cycles: what its loops count, without what each count takes.

A header names them, `calibration.json` has a coefficient for each (`core.calibration`), and their sum is the kernel's
formula of cycles. Sizes of blocks are said by name, so that texts of terms need no numerals.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache

from tilewright.machine.arithmetic import named, parse, rewritten, with_arguments, written

MOST_TERMS = 8
_BLOCKS = {"twos": 2, "threes": 3, "fours": 4, "eights": 8, "sixteens": 16}
FUNCTIONS: Mapping[str, str] = {
    # Blocks begun, the last of which may be short; whole ones; what is left behind these; whether something is.
    **{name: f"(x + {size - 1}) // {size}" for name, size in _BLOCKS.items()},
    **{f"whole_{name}": f"x // {size}" for name, size in _BLOCKS.items()},
    **{f"left_of_{name}": f"x % {size}" for name, size in _BLOCKS.items()},
    **{f"ragged_{name}": f"(x % {size} > 0) * 1" for name, size in _BLOCKS.items()},
    "words": "(x + 3) // 4",
    # Conditions are 1 or 0.
    "some": "(x > 0) * 1",
    "none": "(x == 0) * 1",
    "one": "(x == 1) * 1",
    "several": "(x > 1) * 1",
    "unless": "1 - (x > 0) * 1",
    "steps": "(x + y - 1) // y",
    # Of 16 banks of words, which 8 cores share.
    "crowd": "(x % 16 == 0) * (y % 16 == 0) + 2 * (x % 32 == 0) * (y % 32 == 0) + 4 * (x % 64 == 0) * (y % 64 == 0)",
    # Taps along an axis that lie outside, of windows that reach x over its edges and are y apart.
    "beyond": "x * (x + 2 * y) / (4 * y)",
}
"""What texts of terms may call, with one argument or two: the same as a formula of x and y."""


@lru_cache(maxsize=4096)
def expanded(text: str) -> str:
    """A term as a plain formula; ValueError for what is none."""
    return written(rewritten(parse(text), _expanded))


def _expanded(node: ast.expr) -> ast.expr:
    """A formula in place of a call."""
    text = FUNCTIONS.get(named(node))
    if text is None or not isinstance(node, ast.Call):
        return node
    wanted = "xy" if "y" in text else "x"
    if len(node.args) != len(wanted) or node.keywords:
        count = "one argument" if len(wanted) == 1 else "two arguments"
        raise ValueError(f"{named(node)} takes {count}, in '{ast.unparse(node)}'")
    return with_arguments(parse(text), dict(zip(wanted, node.args, strict=True)))


def weighted(terms: Mapping[str, str], coefficients: Mapping[str, float]) -> str:
    """The formula of cycles; a term without a coefficient counts once."""
    parts = ((coefficients.get(name, 1.0), text) for name, text in terms.items())
    # A term that takes nothing may still give a name to something that others ask for.
    used = [f"{factor:g}*({text})" for factor, text in parts if factor or ":=" in text]
    return " + ".join(used) or "0"
