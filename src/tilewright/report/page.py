"""The report page: one HTML file that needs nothing else, and is the same to the byte for the same plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from tilewright.base.files import write_file
from tilewright.core.plan import Plan, Schedule
from tilewright.core.program import NetworkPort, Program
from tilewright.machine.parts import Memory
from tilewright.report.counted import counted_rows
from tilewright.report.flow import ROW, flow
from tilewright.report.groups import Totals, group_span, group_table
from tilewright.report.layers import LOOP_NEST, LayerRow, layers
from tilewright.report.markup import escaped, lines, page
from tilewright.report.memory import human_bytes, memory_maps
from tilewright.report.profile import profile_rows, roofline
from tilewright.report.sections import (
    counted_section,
    groups_section,
    human_count,
    layers_section,
    memory_section,
    network_section,
    ports_section,
    simulated_section,
    timeline_section,
)
from tilewright.report.timeline import timeline
from tilewright.timeline.replay import plan_timeline

if TYPE_CHECKING:
    from tilewright.sim.marks import GroupProfile

TEMPLATE = Path(__file__).with_name("page.html")


class Figure(Struct, frozen=True):
    """A number worth a tile at the top of the page."""

    label: str
    value: str
    note: str


def write_report(plan: Plan, program: Program, path: Path, *, title: str) -> None:
    """Writes the page, whole or not at all."""
    write_file(path, render_report(plan, program, title=title).encode())


def render_report(
    plan: Plan, program: Program, *, title: str, simulated: Sequence[GroupProfile] = (), changed: str = ""
) -> str:
    """The page as text, with what a profiled run of the program took, and what was changed, where there was such."""
    rows = layers(plan)
    schedule = plan.schedule
    moment = _moment(schedule)
    figures = list(_figures(program, rows))
    tiled = runs = ""
    if schedule:
        replayed = plan_timeline(plan, schedule)
        table = group_table(plan, schedule, replayed)
        figures = [*_tiled_sizes(plan, program, table.totals), *figures]
        tiled = timeline_section(schedule, timeline(plan, schedule, replayed))
        tiled += groups_section(plan.platform, schedule, table.rows)
        if simulated:
            measured = profile_rows(plan, schedule, simulated)
            runs = simulated_section(plan.platform, schedule, measured, roofline(plan, schedule, measured))
    else:
        figures = [*_sizes(plan, program), *figures]
        runs = counted_section(plan.platform, counted_rows(plan, simulated)) if simulated else ""
    body = [
        _head(plan, title, figures, changed),
        memory_section(plan, memory_maps(plan)),
        tiled,
        runs,
        network_section(flow(plan.graph, rows), moment),
        layers_section(rows, moment),
        ports_section(program),
    ]
    return page(TEMPLATE, title=escaped(title), row_height=str(ROW), body="".join(body))


def _head(plan: Plan, title: str, figures: Sequence[Figure], changed: str) -> str:
    platform = plan.platform
    about = f"<p>Compiled by Tilewright for <b>{escaped(platform.name)}</b>: {escaped(platform.summary)}</p>"
    about += f"<p>{escaped(changed)}</p>" if changed else ""
    boxes = (
        f'  <div class="figure"><span class="label">{escaped(figure.label)}</span><b>{escaped(figure.value)}</b>'
        f"<span>{escaped(figure.note)}</span></div>"
        for figure in figures
    )
    return lines([f"<h1>{escaped(title)}</h1>", about, "", '<div class="figures">', *boxes, "</div>", ""])


def _moment(schedule: Schedule | None) -> Callable[[int], int]:
    """Where a step stands on the time axis of the memory maps."""
    return (lambda step: group_span(schedule, step, step + 1)[0]) if schedule else (lambda step: step)


def _weights(program: Program) -> Figure:
    return Figure(
        "Weights",
        human_bytes(program.constant_bytes),
        f"{program.constant_bytes:,} bytes, constant, in {len(program.constants)} arrays",
    )


def _sizes(plan: Plan, program: Program) -> tuple[Figure, ...]:
    proof = "proven minimal for this order" if plan.optimal else f"at least {plan.lower_bound:,} bytes are needed"
    arena = Figure("Arena", human_bytes(plan.arena_bytes), f"{plan.arena_bytes:,} bytes, {proof}")
    return arena, _weights(program)


def _tiled_sizes(plan: Plan, program: Program, totals: Totals) -> tuple[Figure, ...]:
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
        _weights(program),
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
