"""The textual form of a plan: residencies, then group by group its moves and runs, for golden tests and for reading."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.core.moves import Residency, Run
from tilewright.core.plan import Group, Plan, Schedule
from tilewright.core.residencies import Residencies, is_view, residencies
from tilewright.core.text import print_node
from tilewright.core.tiles import member


def print_plan(plan: Plan) -> str:
    """A plan as text: `load 0 -> 7, all: issue 3 step-1 beside, wait 3 step before` moves 0 to 7 for each step of 3."""
    known = residencies(plan)
    count = len(plan.graph.nodes) if plan.schedule is None else len(plan.schedule.groups)
    lines = [f"plan for {plan.platform.name}", "residencies"]
    lines += [f"  {number} {_residency(each, count)}" for number, each in enumerate(known.all)]
    lines += [*_flat(plan, known)] if plan.schedule is None else [*_tiled(plan, plan.schedule, known)]
    return "\n".join(lines) + "\n"


def _residency(mine: Residency, count: int) -> str:
    index = f" {mine.index}" if mine.space in ("input", "output") else ""
    slots = f"{mine.slots} x " if mine.slots > 1 else ""
    since = "start" if mine.since < 0 else str(mine.since)
    until = "end" if mine.until >= count else str(mine.until)
    pack = f' packed "{mine.pack}"' if mine.pack else ""
    inside = f", inside {mine.inside}" if mine.inside >= 0 else ""
    place = f"{mine.space}{index} + {mine.offset}, {slots}{mine.bytes} bytes"
    return f"%{mine.tensor}{pack}: {place}, {since}..{until}{inside}"


def _flat(plan: Plan, known: Residencies) -> Iterator[str]:
    yield "runs"
    for step, node in enumerate(plan.graph.nodes):
        if is_view(node):
            continue
        names = {use.key: known.whole[use.tensor] for use in member(plan.graph, node, plan.choices[step].kernel).uses}
        yield f"  run {print_node(plan.graph, node)}; {_code(plan, step)}: {_operands(names)}"


def _tiled(plan: Plan, schedule: Schedule, known: Residencies) -> Iterator[str]:
    for number, group in enumerate(schedule.groups):
        loops = ", ".join(f"{loop.dim} {loop.count} x {loop.size}" for loop in group.loops)
        yield f"group {number}" + (f": {loops}" if loops else "")
        yield from (f"  {_run(plan, schedule, group, run, known)}" for run in schedule.runs if run.group == number)
        for move in schedule.moves:
            if move.group == number:
                source, target = known.ends(move)
                reuse = "" if move.reuse is None else f", reuse {move.reuse}"
                points = f"issue {move.issue}, wait {move.wait}{reuse}"
                yield f"  {move.kind} {source} -> {target}, {move.tiles}: {points}"


def _run(plan: Plan, schedule: Schedule, group: Group, run: Run, known: Residencies) -> str:
    work = group.works[run.position]
    mine = member(plan.graph, plan.graph.nodes[work.step], plan.choices[work.step].kernel)
    names = {
        use.key: known.tiles[run.group, work.buffers[use.key]]
        if use.key in work.buffers
        else known.far(run.group, use.tensor, use.pack)
        for use in mine.uses
    }
    split = f", {work.split} by {work.chunk} on {schedule.cores}" if work.split else ""
    points = "" if run.wait == run.start else f", start {run.start}, wait {run.wait}"
    return f"run {print_node(plan.graph, mine.node)}; {_code(plan, work.step)}: {_operands(names)}{split}{points}"


def _code(plan: Plan, step: int) -> str:
    choice = plan.choices[step]
    return f"{choice.engine} {'loop nest' if choice.kernel is None else choice.kernel.path.name}".strip()


def _operands(names: dict[str, int]) -> str:
    return " ".join(f"{key}={number}" for key, number in names.items())
