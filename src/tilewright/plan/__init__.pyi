from tilewright.plan.options import PlanOptions as PlanOptions
from tilewright.plan.planner import alternatives as alternatives
from tilewright.plan.planner import plan as plan
from tilewright.plan.validator.check import PlanError as PlanError
from tilewright.plan.validator.check import check as check
