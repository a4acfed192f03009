"""Tilewright: compiles neural networks to bare-metal C, and answers what they cost."""

from __future__ import annotations

from tilewright.api import (
    Case,
    CaseResult,
    Comparison,
    Compiled,
    Limits,
    MapOptions,
    Mapped,
    NetworkCost,
    NodeCost,
    Options,
    Ran,
    cost,
    find_cases,
    find_machine,
    run_case,
    search,
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
    "Limits",
    "MapOptions",
    "Mapped",
    "NetworkCost",
    "NodeCost",
    "Options",
    "Ran",
    "TilewrightError",
    "compile",
    "cost",
    "find_cases",
    "find_machine",
    "load",
    "run",
    "run_case",
    "save",
    "search",
]
