"""CP-SAT, the constraint solver of `ortools`. It is imported when the first model is made, as that takes a second.

Effort is counted in steps, on one thread: the same call gives the same result on any machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, CpSolver, IntervalVar, IntVar, LinearExprT

    __all__ = ["CpModel", "CpSolver", "IntVar", "IntervalVar", "LinearExprT"]

OPTIMAL, FEASIBLE, INFEASIBLE = "OPTIMAL", "FEASIBLE", "INFEASIBLE"
"""What `solved` says of a model."""


def new_model() -> CpModel:
    """A model without variables."""
    from ortools.sat.python import cp_model

    return cp_model.CpModel()


def new_solver(effort: float, seed: int = 0) -> CpSolver:
    """A solver that gives up after some of CP-SAT's own unit of time."""
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = effort
    return solver


def solved(solver: CpSolver, model: CpModel) -> str:
    """What comes out, by name."""
    return solver.status_name(solver.solve(model))
