"""Tilewright: compiles neural networks to bare-metal C, and answers what they cost."""

from __future__ import annotations

from tilewright.api import (
    Case,
    CaseResult,
    Comparison,
    Compiled,
    Options,
    Ran,
    find_cases,
    run_case,
)
from tilewright.api import compile_model as compile
from tilewright.api import run_model as run
from tilewright.errors import TilewrightError
from tilewright.frontend import load, save

__version__ = "0.1.0"
__all__ = [
    "Case",
    "CaseResult",
    "Comparison",
    "Compiled",
    "Options",
    "Ran",
    "TilewrightError",
    "compile",
    "find_cases",
    "load",
    "run",
    "run_case",
    "save",
]
