"""Planning: which kernel computes each node, in which order, and where every tensor lives."""

from __future__ import annotations

from tilewright.plan.check import PlanError, check
from tilewright.plan.options import PlanOptions
from tilewright.plan.planner import plan

__all__ = ["PlanError", "PlanOptions", "check", "plan"]
