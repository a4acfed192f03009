"""The report page: one HTML file that needs nothing else, and is the same to the byte for the same plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.base.files import write_file
from tilewright.core.plan import Plan, Schedule
from tilewright.core.program import NetworkPort, Program
from tilewright.machine.parts import Memory
from tilewright.report.counted import counted_rows
from tilewright.report.flow import LANE, ROW, flow
from tilewright.report.groups import GroupTable, group_span, group_table
from tilewright.report.layers import LOOP_NEST, LayerRow, layers
from tilewright.report.memory import human_bytes, memory_maps
from tilewright.report.profile import profile_rows, roofline
from tilewright.report.timeline import timeline
from tilewright.timeline.replay import plan_timeline

if TYPE_CHECKING:
    from tilewright.sim.marks import GroupProfile

TEMPLATE = Path(__file__).with_name("page.html.jinja")


@dataclass(frozen=True)
class Figure:
    """A number worth a tile at the top of the page."""

    label: str
    value: str
    note: str


def write_report(plan: Plan, program: Program, path: Path, *, title: str) -> None:
    """Writes the page, whole or not at all."""
    write_file(path, render_report(plan, program, title=title).encode())


def render_report(plan: Plan, program: Program, *, title: str, simulated: Sequence[GroupProfile] = ()) -> str:
    """The page as text, with what a profiled run of the program took where there was one."""
    import jinja2  # only a report needs it, and a cold start is felt

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["bytes"] = human_bytes
    environment.filters["count"] = human_count
    rows = layers(plan)
    schedule = plan.schedule
    replayed = plan_timeline(plan, schedule) if schedule else None
    table = group_table(plan, schedule, replayed) if schedule else None
    measured = profile_rows(plan, schedule, simulated) if schedule and simulated else ()
    counted = counted_rows(plan, simulated) if simulated and not schedule else ()
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        title=title,
        platform=plan.platform,
        figures=(*_sizes(plan, program, table), *_figures(program, rows)),
        flow=flow(plan.graph, rows),
        row_height=ROW,
        lane=LANE,
        maps=memory_maps(plan),
        moment=_moment(schedule),
        timeline=timeline(plan, schedule, replayed) if schedule and replayed else None,
        groups=table,
        measured=measured,
        counted=counted,
        roofline=roofline(plan, schedule, measured) if schedule else None,
        near=plan.platform.engines[schedule.engine].memory if schedule else "",
        plan=plan,
        program=program,
        layers=rows,
        most=max((row.macs for row in rows), default=0),
        loop_nest=LOOP_NEST,
    )


def human_count(value: int) -> str:
    """`1234567` as `1.23 M`."""
    for exponent, unit in ((9, "G"), (6, "M"), (3, "k")):
        if value >= 10**exponent:
            return f"{value / 10**exponent:.3g} {unit}"
    return str(value)


def _moment(schedule: Schedule | None) -> Callable[[int], int]:
    """Where a step stands on the time axis of the memory maps."""
    return (lambda step: group_span(schedule, step, step + 1)[0]) if schedule else (lambda step: step)


def _sizes(plan: Plan, program: Program, table: GroupTable | None) -> tuple[Figure, ...]:
    weights = Figure(
        "Weights",
        human_bytes(program.constant_bytes),
        f"{program.constant_bytes:,} bytes, constant, in {len(program.constants)} arrays",
    )
    if table is None:
        proof = "proven minimal for this order" if plan.optimal else f"at least {plan.lower_bound:,} bytes are needed"
        return Figure("Arena", human_bytes(plan.arena_bytes), f"{plan.arena_bytes:,} bytes, {proof}"), weights
    totals = table.totals
    memories = tuple(
        Figure(name, human_bytes(used), f"{used:,} bytes needed{_limit(plan.platform.memories[name])}")
        for name, used in totals.used.items()
        if used
    )
    gap = totals.gap
    proof = "" if gap is None else ", no plan considered is faster" if gap < 5e-5 else f", at most {gap:.1%} too slow"
    return (
        Figure(
            plan.platform.unit.capitalize(),
            human_count(round(totals.cycles)),
            f"{totals.cycles:,.0f} {totals.known}{proof}",
        ),
        *memories,
        Figure("Moved", human_bytes(totals.moved), f"{totals.moved:,} bytes to and from the cores' memory"),
        Figure(
            "Activations",
            human_bytes(totals.activation_peak),
            f"{totals.activation_peak:,} bytes at once, in all memories",
        ),
        weights,
    )


def _limit(memory: Memory) -> str:
    return "" if memory.bytes is None else f" of {memory.bytes:,}"


def _figures(program: Program, rows: tuple[LayerRow, ...]) -> tuple[Figure, ...]:
    kernels = sum(not row.code.startswith(LOOP_NEST) for row in rows)
    macs = sum(row.macs for row in rows)
    return (
        Figure("Inputs", human_bytes(_bytes(program.inputs)), _ports(program.inputs)),
        Figure("Outputs", human_bytes(_bytes(program.outputs)), _ports(program.outputs)),
        Figure("MACs", human_count(macs), f"{macs:,} multiply-accumulates per inference"),
        Figure("Layers", str(len(rows)), f"{kernels} by kernels, {len(rows) - kernels} by loop nests"),
    )


def _bytes(ports: tuple[NetworkPort, ...]) -> int:
    return sum(port.type.bytes for port in ports)


def _ports(ports: tuple[NetworkPort, ...]) -> str:
    if len(ports) == 1:
        return f"{ports[0].name}: {ports[0].type}"
    return f"{len(ports)} tensors, held by the caller"
