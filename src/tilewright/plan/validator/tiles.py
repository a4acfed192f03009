"""The validator of tiled plans (`plan.schedule`): proves that they compute what their graph says, byte for byte.

Nothing here knows how plans are made. Regions come from the validator's own arithmetic on access maps, replayed for
every step of every group at once (`check_regions`), so nothing below is a sample:

- structure: every node that is no view is in one group, in order; groups read what earlier groups made; uses name
  buffers of their own tensor in their own packing (`check_groups`, `check_memory`).
- coverage: tiles partition each result of a group's last node axis by axis, no loop moves two axes, so every element is
  written exactly once. Inner tensors hold at each step what their readers touch: computed then, or kept from the step
  before, by induction along the innermost loop.
- reductions: loops over them are innermost, cover them exactly, and belong to a kernel that adds up parts, alone in its
  group, with bytes of its own for the sums of a tile.
- room: each buffer holds the largest region of its tensor at any step.
- kernels and cores: chunks cover the largest tile along a parallel dimension; what each core's kernel touches is one
  run of bytes, suits the blocks of packed constants and leaves uncut what the kernel and its epilogue need whole;
  scratch bytes suffice for the largest part (`check_kernels`).
- memories: tensors from first write to last read, staged copies from their start, tile buffers and scratch bytes lie
  aligned inside their memories and apart while they live, with the exceptions that nodes allow (`check_memory`). Home
  and weight memory also have room for ports and constants. `used` must cover what has an address.
- parts: operands that are loaded to where the result has them have their place inside of its tile, at every step, and
  with what is left to the cores are all of it, each element once (`within`).
- transfers: whatever is not within the engine's reach has a DMA to it, and no group loads what it makes itself.
- moves and runs: nothing is read before it is awaited, nothing written or loaded over what is still read or stored, at
  any step (`moves`); what is moved is complete where it comes from (`complete`).

Not checked, because no plan says it: the numbers kernels are called with, and predicted cycles.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tilewright.core.op import is_view
from tilewright.core.plan import Plan, Schedule
from tilewright.plan.validator.complete import incomplete
from tilewright.plan.validator.groups import Opened, group_problems, open_group
from tilewright.plan.validator.kernels import work_problems
from tilewright.plan.validator.memory import MemoryLayout
from tilewright.plan.validator.states import state_problems
from tilewright.plan.validator.within import within_problems


def tiled(plan: Plan, schedule: Schedule) -> Iterator[str]:
    """Everything that is wrong with a tiled plan whose nodes and ports are right."""
    ahead = {run.group for run in schedule.runs if run.start.shift < 0}
    problems = [*_machine(plan, schedule), *_partition(plan, schedule, ahead)]
    groups: list[Opened] = []
    if not problems:
        for number, group in enumerate(schedule.groups):
            opened, found = open_group(plan, number, group, ahead=number in ahead)
            problems += found
            groups += [opened] if opened else []
    yield from problems
    if problems:
        # Only groups whose parts belong together can be replayed.
        return
    for opened in groups:
        yield from group_problems(opened)
        yield from within_problems(opened, plan.choices[opened.group.works[-1].step])
        for position, work in enumerate(opened.group.works):
            yield from work_problems(opened, position, plan.graph, plan.choices[work.step], schedule.cores)
    layout = MemoryLayout(plan, schedule, groups)
    malformed = layout.malformed()
    yield from malformed
    if not malformed:
        yield from layout.problems()
        yield from incomplete(layout)
    yield from state_problems(plan, schedule, groups, layout)


def _machine(plan: Plan, schedule: Schedule) -> Iterator[str]:
    """The machine has what the schedule speaks of."""
    engine = plan.platform.engines.get(schedule.engine)
    if engine is None:
        yield f"engine '{schedule.engine}' is none of '{plan.platform.name}'"
    elif not 1 <= schedule.cores <= engine.count:
        yield f"{schedule.cores} cores of engine '{engine.name}', which has {engine.count}"
    if schedule.home not in plan.platform.memories:
        yield f"home memory '{schedule.home}' is none of '{plan.platform.name}'"
    for name in schedule.used:
        if name not in plan.platform.memories:
            yield f"memory '{name}' is none of '{plan.platform.name}'"


def _partition(plan: Plan, schedule: Schedule, ahead: Collection[int]) -> Iterator[str]:
    """Every node that computes is in exactly one group, in the order of the graph."""
    wanted = [step for step, node in enumerate(plan.graph.nodes) if not is_view(node)]
    found = [work.step for group in schedule.groups for work in group.works]
    for step in sorted({*wanted} - {*found}):
        node = plan.graph.nodes[step]
        yield f"step {step}, {node.op} '{node.label}' is in no group"
    for step in sorted({*found} - {*wanted}):
        yield f"step {step} of a group is a view or does not exist"
    if sorted(found) == wanted != found:
        yield f"groups run steps {', '.join(map(str, found))}"
    for step in sorted({step for step in found if found.count(step) > 1}):
        yield f"step {step} is in {found.count(step)} groups"
    for number, group in enumerate(schedule.groups):
        if not group.works:
            yield f"group {number} is empty"
        for work in group.works:
            engine = plan.choices[work.step].engine if work.step < len(plan.choices) else schedule.engine
            mine, cores = plan.platform.engines.get(engine), plan.platform.engines.get(schedule.engine)
            if mine is None or (cores is not None and mine.memory != cores.memory):
                yield f"group {number}: step {work.step} is for engine '{engine}'"
            elif number in ahead and (engine != schedule.engine) != (work is group.works[0]):
                yield f"group {number}: step {work.step} is for '{engine}', but the first node alone runs ahead"
            elif engine != schedule.engine and work.split:
                yield f"group {number}: cores share step {work.step}, which is for engine '{engine}'"
