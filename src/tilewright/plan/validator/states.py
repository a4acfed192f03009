"""The validator of states in tiled plans: an old value is not read any more once the new one is written over it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.core.plan import Choice, Plan, Schedule
from tilewright.plan.validator.groups import Opened
from tilewright.plan.validator.inplace import replaceable
from tilewright.plan.validator.memory import MemoryLayout


def state_problems(plan: Plan, schedule: Schedule, groups: Sequence[Opened], layout: MemoryLayout) -> Iterator[str]:
    """Groups that read the old value of a state behind the one that overwrites it, or beside it."""
    for old, new in plan.graph.updates.items():
        written = layout.made(new)
        for opened in groups:
            for position, mine in enumerate(opened.members):
                for use in mine.uses:
                    if use.writes or layout.root(use.tensor) != old:
                        continue
                    late = opened.number > written or opened.number < written <= layout.moved.end(opened.number)
                    beside = opened.number == written and not _over(plan, opened, position, old, use.tensor)
                    if late or beside:
                        yield f"{opened.where(position)}: reads '{use.tensor}' of state '{old}', overwritten by '{new}'"
        for stage in schedule.stages:
            if layout.root(stage.tensor) == old and stage.first > written:
                yield f"copy of '{stage.tensor}': state '{old}' may be overwritten before it is complete"


def _over(plan: Plan, opened: Opened, position: int, old: str, tensor: str) -> bool:
    """Whether the last node of a group writes each tile over what it alone has read for that tile."""
    step = opened.group.works[position].step
    node = plan.graph.nodes[step]
    # Its kernel sees buffers in the engine's memory, so what matters are the indices.
    by_indices = Choice(plan.choices[step].engine, None)
    return (
        position == opened.last
        and tensor == old
        and node.outputs[0] == plan.graph.updates[old]
        and replaceable(plan, node, by_indices, old)
    )
