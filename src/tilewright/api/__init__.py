"""The jobs behind the command line, for Python: compile, run, test, cost, search."""

from __future__ import annotations

from tilewright.api.cases import Case, CaseResult, find_cases, load_case, run_case
from tilewright.api.compiling import Compiled, Options, compile_model, plan_model
from tilewright.api.costing import NetworkCost, NodeCost, cost
from tilewright.api.mapping import MapOptions, Mapped, find_machine, search
from tilewright.api.running import Comparison, Ran, run_model
from tilewright.sim.limits import Limits

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
    "compile_model",
    "cost",
    "find_cases",
    "find_machine",
    "load_case",
    "plan_model",
    "run_case",
    "run_model",
    "search",
]
