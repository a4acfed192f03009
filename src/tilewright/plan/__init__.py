"""Planning: which kernel computes each node, in which order, and where every tensor lives."""

from __future__ import annotations

from tilewright.plan.options import PlanOptions
from tilewright.plan.planner import plan
from tilewright.plan.validator.check import PlanError, check

__all__ = ["PlanError", "PlanOptions", "check", "plan"]
