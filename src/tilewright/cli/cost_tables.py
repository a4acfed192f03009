"""Tables of costs on array machines."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.table import Table

from tilewright.api.costing import NetworkCost, NodeCost
from tilewright.api.mapping import Mapped
from tilewright.machine.array import Arrays
from tilewright.price.array import ArrayCost
from tilewright.report.costs import energy_by_memory, energy_text, latency_parts, nest_rows

RIGHT = ("operations", "energy", "cycles", "use of units")


def network_table(found: NetworkCost) -> Table:
    """A line for each operator that costs something, and the total."""
    table = Table(title=f"{found.network} on {found.machine.name}", show_footer=True)
    table.add_column("layer", "total", overflow="fold")
    table.add_column("operator")
    for name, total in zip(RIGHT, _totals(found), strict=True):
        table.add_column(name, total, justify="right")
    table.add_column("unrolled")
    table.add_column("energy goes to")
    several = len(found.machine.modes) > 1
    if several:
        table.add_column("mode")
    for node in found.nodes:
        if node.layers:
            modes = dict.fromkeys(mapped.cost.engine.name for mapped in node.layers)
            table.add_row(*_node(node), *([", ".join(modes)] if several else []))
    return table


def _totals(found: NetworkCost) -> tuple[str, str, str, str]:
    ideal = sum(m.layer.operations * m.cost.engine.cycles / m.cost.engine.units for m in found.layers)
    used = ideal / found.cycles if found.cycles else 0.0
    return f"{found.operations:,}", energy_text(found.energy), f"{found.cycles:,.0f}", f"{used:.1%}"


def _node(node: NodeCost) -> list[str]:
    costs = [mapped.cost for mapped in node.layers]
    most = max(costs, key=lambda c: c.layer.operations)
    ideal = sum(cost.latency.ideal for cost in costs)
    parts = f" ({len(costs)} parts)" if len(costs) > 1 else ""
    return [
        node.name,
        node.op + parts,
        f"{node.operations:,}",
        energy_text(node.energy),
        f"{node.cycles:,.0f}",
        f"{ideal / node.cycles:.1%}",
        unrolled_text(most),
        _largest(costs),
    ]


def _largest(costs: Sequence[ArrayCost]) -> str:
    parts = energy_by_memory(costs, Arrays("", (tuple(cost.engine for cost in costs),)))
    name = max(parts, key=lambda part: parts[part])
    return f"{name} {parts[name] / (sum(parts.values()) or 1.0):.0%}"


def unrolled_text(cost: ArrayCost) -> str:
    """`D1: K=32, D2: C=3`."""
    used = (
        (array, " ".join(f"{dim}={steps}" for dim, steps in loops if steps > 1))
        for array, loops in cost.spatial.loops.items()
    )
    return ", ".join(f"{array}: {text}" for array, text in used if text) or "nothing"


def order_text(cost: ArrayCost) -> str:
    """The loops in time, outermost first; steps of neighbours of one dimension are multiplied."""
    found: list[str] = []
    for dim, loops in groupby(reversed(cost.temporal.order), key=lambda loop: loop[0]):
        steps = 1
        for _, each in loops:
            steps *= each
        if steps > 1:
            found.append(f"{dim} {steps}")
    return ", ".join(found) or "none"


def machines_table(found: Sequence[NetworkCost]) -> Table:
    """A line for each machine, the best values in bold."""
    table = Table(title=f"{found[0].network} on {len(found)} machines")
    table.add_column("machine")
    for name in ("units", "energy", "cycles", "energy x cycles", "use of units"):
        table.add_column(name, justify="right")
    least = [min(values) for values in zip(*((c.energy, c.cycles, c.product) for c in found), strict=True)]
    for cost in found:
        values = (cost.energy, cost.cycles, cost.product)
        texts = (energy_text(cost.energy), f"{cost.cycles:,.0f}", f"{cost.product:.3g}")
        shown = [f"[bold]{t}[/bold]" if v == best else t for t, v, best in zip(texts, values, least, strict=True)]
        table.add_row(cost.machine.name, f"{cost.machine.units:,}", *shown, _totals(cost)[3])
    return table


def nest_table(cost: ArrayCost) -> Table:
    """The loops against the memories of each operand; a tile stays in a memory while the loops at it run."""
    table = Table(title=f"{cost.layer.name} on {cost.engine.name}: loops, outermost first")
    table.add_column("loop")
    for operand in cost.layer.operands:
        table.add_column(f"{operand.name} ({operand.slot})")
    before: dict[str, str] = {}
    for row in nest_rows(cost):
        cells = [
            "" if row.unrolled else "|" if before.get(o.name) == row.memories[o.name] else row.memories[o.name]
            for o in cost.layer.operands
        ]
        before = dict(row.memories)
        table.add_row(row.loop, *cells)
    return table


def parts_table(cost: ArrayCost) -> Table:
    """Energy by memory and operand."""
    names = [operand.name for operand in cost.layer.operands]
    table = Table(title="energy")
    table.add_column("in")
    for name in (*names, "all"):
        table.add_column(name, justify="right")
    table.add_row("array", *("" for _ in names), energy_text(cost.unit_energy))
    for memory in cost.engine.memories:
        mine = {n: sum(m.energy for m in cost.moves if m.operand == n and m.memory is memory) for n in names}
        if any(mine.values()):
            shown = (energy_text(value) if value else "" for value in mine.values())
            table.add_row(memory.name, *shown, energy_text(sum(mine.values())))
    return table


def summary(mapped: Mapped) -> str:
    """Two lines about a mapped layer."""
    cost = mapped.cost
    times = ", ".join(f"{name} {cycles:,.0f}" for name, cycles in latency_parts([cost]).items())
    proof = "proved best" if mapped.proved else "best found"
    known = f"{proof} of {mapped.covered:,} mappings, {mapped.evaluated:,} of them evaluated"
    if mapped.covered == 1 and not mapped.proved:
        known = "as given, not searched"
    return (
        f"{energy_text(cost.energy)}, {cost.cycles:,.0f} cycles ({times}), {cost.utilisation:.1%} of the units in use\n"
        f"{known}"
    )


def front_table(found: Sequence[Mapped]) -> Table:
    """A Pareto front."""
    table = Table(title=f"{len(found)} mappings that no other one beats")
    for name in ("cycles", "energy", "energy x cycles"):
        table.add_column(name, justify="right")
    table.add_column("unrolled")
    table.add_column("loops, outermost first")
    for each in found:
        cost = each.cost
        texts = (f"{cost.cycles:,.0f}", energy_text(cost.energy), f"{cost.product:.4g}")
        table.add_row(*texts, unrolled_text(cost), order_text(cost))
    return table
