"""Plans by which a CPU and a GPU work on one image together: what they are, checks, in files."""

from __future__ import annotations

from phonebit.planner.plan.execution_plan import ExecutionPlan, OutputPart, PlannedPart, Processor
from phonebit.planner.plan.stored_plans import layer_outputs, stored_plans, with_plan
from phonebit.planner.plan.verify_plan import verify_plan

__all__ = [
    "ExecutionPlan",
    "OutputPart",
    "PlannedPart",
    "Processor",
    "layer_outputs",
    "stored_plans",
    "verify_plan",
    "with_plan",
]
