"""A page about costs on array machines: where energy and cycles go, machines beside each other, loops and fronts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from tilewright.base.files import write_file
from tilewright.machine.array import ArrayEngine, Arrays
from tilewright.price.array import ArrayCost
from tilewright.report.bars import Picture, nest, scatter, stacked
from tilewright.report.costs import UNITS, energy_by_memory, energy_text, latency_parts
from tilewright.report.markup import escaped, lines, page

TEMPLATE = Path(__file__).with_name("costs_page.html")
MOST_ROWS, NESTS = 60, 6
"""Layers in a picture, and layers whose loops are drawn."""
END = ' text-anchor="end"'
KINDS: tuple[str, ...] = (UNITS, "rf", "sram", "dram")


class Costed(Struct, frozen=True):
    """A network on a machine: the layers of each of its operators."""

    network: str
    machine: ArrayEngine | Arrays
    nodes: tuple[tuple[str, tuple[ArrayCost, ...]], ...]

    @property
    def layers(self) -> tuple[ArrayCost, ...]:
        return tuple(cost for _, costs in self.nodes for cost in costs)


def write_costs(path: Path, title: str, networks: Sequence[Costed], fronts: Sequence[Sequence[ArrayCost]] = ()) -> None:
    """Writes the page, whole or not at all."""
    write_file(path, render_costs(title, networks, fronts).encode())


def render_costs(title: str, networks: Sequence[Costed], fronts: Sequence[Sequence[ArrayCost]] = ()) -> str:
    """The page as text; `fronts` are searches of single layers, each with one mapping or several."""
    pictures = [*_machines(networks), *(p for one in networks for p in _network(one)), *_fronts(fronts)]
    head = [f"<h1>{escaped(title)}</h1>", "<p>What it costs on array machines, as the analytical model says.</p>"]
    return page(TEMPLATE, title=escaped(title), body=lines(head) + "".join(map(picture_section, pictures)))


def picture_section(picture: Picture) -> str:
    """A picture with its title and what colours mean."""
    title = escaped(picture.title)
    marks = (f'<span style="--mark: {colour}"><i></i>{escaped(name)}</span>' for name, colour in picture.legend)
    parts = [
        "<section>",
        f"<h2>{title}</h2>",
        f"<p>{escaped(picture.note)}</p>",
        *([f'<div class="legend">{"".join(marks)}</div>'] if picture.legend else []),
        '<div class="scroll">',
        f'<svg width="{picture.width}" height="{picture.height}" role="img" aria-label="{title}"{_edges(picture)}>',
        *(
            f'<rect x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" fill="{box.colour}">'
            f"<title>{escaped(box.text)}</title></rect>"
            for box in picture.boxes
        ),
        *(
            f'<circle cx="{point.x}" cy="{point.y}" r="{point.width}" fill="{point.colour}">'
            f"<title>{escaped(point.text)}</title></circle>"
            for point in picture.points
        ),
        *(
            f'<text x="{label.x}" y="{label.y}"{END if label.end else ""}>{escaped(label.text)}</text>'
            for label in picture.labels
        ),
    ]
    return lines([*parts, "</svg>", "</div>", "</section>"])


def _edges(picture: Picture) -> str:
    return f" data-edges='{json.dumps(picture.edges, separators=(',', ':'))}'" if picture.edges else ""


def _machines(networks: Sequence[Costed]) -> list[Picture]:
    if len(networks) < 2:
        return []
    energies = [(one.machine.name, _by_kind(one), energy_text(_energy(one))) for one in networks]
    cycles = [(one.machine.name, latency_parts(one.layers), f"{_cycles(one):,.0f}") for one in networks]
    products = [(one.machine.name, _energy(one) * _cycles(one)) for one in networks]
    return [
        stacked("Energy of the machines", "In pJ, by where it goes.", energies, KINDS),
        stacked("Cycles of the machines", "By what they are for.", cycles, tuple(latency_parts([]))),
        stacked(
            "Energy times cycles",
            "In pJ times cycles: less is better.",
            [(name, {"product": value}, f"{value:.4g}") for name, value in products],
            ("product",),
        ),
    ]


def _energy(one: Costed) -> float:
    return sum(cost.energy for cost in one.layers)


def _cycles(one: Costed) -> float:
    return sum(cost.cycles for cost in one.layers)


def _by_kind(one: Costed) -> dict[str, float]:
    kinds = {memory.name: memory.kind if memory.kind in KINDS else "sram" for memory in one.machine.memories}
    found: dict[str, float] = dict.fromkeys(KINDS, 0.0)
    for name, energy in energy_by_memory(one.layers, one.machine).items():
        found[kinds.get(name, UNITS)] += energy
    return found


def _network(one: Costed) -> list[Picture]:
    shown = sorted(one.nodes, key=lambda node: -sum(cost.energy for cost in node[1]))[:MOST_ROWS]
    nodes = [node for node in one.nodes if node in shown]
    left = len(one.nodes) - len(nodes)
    note = f" The {left} cheapest of {len(one.nodes)} are left out." if left else ""
    energies = [
        (name, energy_by_memory(costs, one.machine), energy_text(sum(c.energy for c in costs))) for name, costs in nodes
    ]
    cycles = [(name, latency_parts(costs), f"{sum(c.cycles for c in costs):,.0f}") for name, costs in nodes]
    title = f"{one.network} on {one.machine.name}"
    memories = (UNITS, *(memory.name for memory in one.machine.memories))
    largest = sorted((c for _, costs in nodes for c in costs), key=lambda c: -c.energy)[:NESTS]
    return [
        stacked(f"Energy of {title}", f"In pJ, by memory.{note}", energies, memories),
        stacked(f"Cycles of {title}", f"By what they are for.{note}", cycles, tuple(latency_parts([]))),
        *(nest(cost) for cost in (largest if left + len(nodes) else [])),
    ]


def _fronts(fronts: Sequence[Sequence[ArrayCost]]) -> list[Picture]:
    found: list[Picture] = []
    for costs in fronts:
        first = costs[0]
        if len(costs) > 1:
            points = [
                (c.cycles, c.energy, f"{c.cycles:,.0f} cycles, {energy_text(c.energy)}\n{c.spatial}") for c in costs
            ]
            note = "Mappings that no other one beats in both energy and cycles."
            found.append(scatter(f"Pareto front of {first.layer.name} on {first.engine.name}", note, points))
        found += [nest(cost) for cost in _telling(costs)]
        memories = (UNITS, *(memory.name for memory in first.engine.memories))
        rows = [(f"{c.cycles:,.0f} cycles", energy_by_memory([c], c.engine), energy_text(c.energy)) for c in costs]
        found.append(stacked(f"Energy of {first.layer.name}", "In pJ, by memory.", rows, memories))
    return found


def _telling(front: Sequence[ArrayCost]) -> list[ArrayCost]:
    """Of a front, the fastest mapping, the one of least energy times cycles, and the most frugal."""
    picked = (front[0], min(front, key=lambda cost: cost.product), front[-1])
    return list({id(cost): cost for cost in picked}.values())
