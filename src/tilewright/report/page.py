"""The report page: one HTML file that needs nothing else, and is the same to the byte for the same plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tilewright.codegen import write_project
from tilewright.core.plan import Plan
from tilewright.core.program import Port, Program
from tilewright.report.flow import LANE, ROW, flow
from tilewright.report.layers import LOOP_NEST, Layer, layers
from tilewright.report.memory import human_bytes, memory_maps

TEMPLATE = Path(__file__).with_name("page.html.jinja")


@dataclass(frozen=True)
class Figure:
    """A number worth a tile at the top of the page."""

    label: str
    value: str
    note: str


def write_report(plan: Plan, program: Program, path: Path, *, title: str) -> None:
    """Writes the page, whole or not at all."""
    write_project({path.name: render_report(plan, program, title=title).encode()}, path.parent)


def render_report(plan: Plan, program: Program, *, title: str) -> str:
    """The page as text."""
    import jinja2  # only a report needs it, and a cold start is felt

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["bytes"] = human_bytes
    environment.filters["count"] = human_count
    rows = layers(plan)
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        title=title,
        platform=plan.platform,
        figures=_figures(plan, program, rows),
        flow=flow(plan.graph, rows),
        row_height=ROW,
        lane=LANE,
        maps=memory_maps(plan),
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


def _figures(plan: Plan, program: Program, rows: tuple[Layer, ...]) -> tuple[Figure, ...]:
    kernels = sum(row.code != LOOP_NEST for row in rows)
    proof = "proven minimal for this order" if plan.optimal else f"at least {plan.lower_bound:,} bytes are needed"
    macs = sum(row.macs for row in rows)
    weights = len(program.constants)
    return (
        Figure("Arena", human_bytes(plan.arena_bytes), f"{plan.arena_bytes:,} bytes, {proof}"),
        Figure(
            "Weights",
            human_bytes(program.constant_bytes),
            f"{program.constant_bytes:,} bytes, constant, in {weights} arrays",
        ),
        Figure("Inputs", human_bytes(_bytes(program.inputs)), _ports(program.inputs)),
        Figure("Outputs", human_bytes(_bytes(program.outputs)), _ports(program.outputs)),
        Figure("MACs", human_count(macs), f"{macs:,} multiply-accumulates per inference"),
        Figure("Layers", str(len(rows)), f"{kernels} by kernels, {len(rows) - kernels} by loop nests"),
    )


def _bytes(ports: tuple[Port, ...]) -> int:
    return sum(port.type.bytes for port in ports)


def _ports(ports: tuple[Port, ...]) -> str:
    if len(ports) == 1:
        return f"{ports[0].name}: {ports[0].type}"
    return f"{len(ports)} tensors, held by the caller"
