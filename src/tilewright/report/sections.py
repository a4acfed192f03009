"""The sections of the report page as HTML."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.core.plan import Plan, Schedule
from tilewright.core.program import Program
from tilewright.machine.target import Target
from tilewright.report.counted import CountedRow
from tilewright.report.flow import FlowChart, Row
from tilewright.report.groups import BufferRow, GroupRow
from tilewright.report.layers import LOOP_NEST, LayerRow
from tilewright.report.markup import escaped, lines
from tilewright.report.memory import BufferBar, MemoryMap, human_bytes
from tilewright.report.profile import ProfileRow, Roofline
from tilewright.report.timeline import Chart, TimelinePicture


def human_count(value: int) -> str:
    """`1234567` as `1.23 M`."""
    for exponent, unit in ((9, "G"), (6, "M"), (3, "k")):
        if value >= 10**exponent:
            return f"{value / 10**exponent:.3g} {unit}"
    return str(value)


def _number(text: str) -> str:
    return f'<td class="number">{text}</td>'


def _bar(share: float) -> str:
    return f'<div style="width: {100 * share:.1f}%"></div>'


def _table(head: str, rows: Sequence[str], body: str = "<tbody>") -> str:
    """A table that scrolls by itself."""
    parts = ['<div class="scroll">', "<table>", f"<thead><tr>{head}</tr></thead>", body, *rows]
    return lines([*parts, "</tbody>", "</table>", "</div>"])


def _heads(*texts: str) -> str:
    """Headings of columns; those of numbers begin with `#`."""
    return "".join(f'<th class="number">{t[1:]}</th>' if t.startswith("#") else f"<th>{t}</th>" for t in texts)


TIMES = "\N{MULTIPLICATION SIGN}"
_BAR_HEAD = '<th class="bar"></th>'


# Memory


def memory_section(plan: Plan, maps: Sequence[MemoryMap]) -> str:
    """All memories over time."""
    begin = lines(['<section aria-labelledby="memory">', '<h2 id="memory">Memory map</h2>'])
    if not maps:
        return begin + lines(["<p>Nothing is kept between layers: the arena is empty.</p>", "</section>"])
    if plan.schedule:
        more = "A group is layers that run together, tile by tile; its tile buffers are in the memory of the cores "
        more += "while it runs. Inputs, outputs and weights are not drawn."
    else:
        more = "Inputs and weights lie elsewhere."
    about = f"<p>Each rectangle is a buffer: from left to right the {maps[0].unit}s during which it is held, from "
    about += f"bottom to top its addresses. {more}</p>\n"
    return begin + about + "".join(_memory(memory, plan.lower_bound) for memory in maps) + "</section>\n"


def _memory(memory: MemoryMap, lower_bound: int) -> str:
    left, right, bottom, below = memory.left, memory.right, memory.bottom, memory.bottom + 16
    label = f"Memory map of {escaped(memory.name)}: {len(memory.blocks)} buffers in {memory.bytes} bytes"
    parts = [
        *([f"<p>{escaped(memory.title)}</p>"] if memory.title else []),
        '<div class="scroll">',
        f'<svg width="{memory.width}" height="{memory.height}" role="img" aria-label="{label}">',
        *(
            f'<line class="grid" x1="{left}" y1="{tick.at}" x2="{right}" y2="{tick.at}"/>'
            f'<text x="{left - 8}" y="{tick.at + 4}" text-anchor="end">{escaped(tick.text)}</text>'
            for tick in memory.addresses
        ),
        *(f'<text x="{t.at}" y="{below}" text-anchor="middle">{escaped(t.text)}</text>' for t in memory.steps),
        *(text for block in memory.blocks for text in _block(memory, block)),
        f'<rect class="now" x="0" y="{memory.top}" width="0" height="{bottom - memory.top}" data-left="{left}" '
        f'data-width="{memory.step_width}"/>',
    ]
    if memory.bound is not None:
        what = f"No allocation of this order needs fewer than {lower_bound:,} bytes"
        line = f'<line class="bound" x1="{left}" y1="{memory.bound}" x2="{right}" y2="{memory.bound}">'
        text = f'<text class="bound-text" x="{right}" y="{memory.bound - 6}" text-anchor="end">'
        parts += [f"{line}<title>{what}</title></line>", f"{text}lower bound {human_bytes(lower_bound)}</text>"]
    parts += [f'<text x="{left - 8}" y="{below}" text-anchor="end">{memory.unit}</text>', "</svg>", "</div>"]
    return lines(parts)


def _block(memory: MemoryMap, block: BufferBar) -> list[str]:
    buffer = block.buffer
    held = f"{memory.unit} {buffer.first}"
    if buffer.last - buffer.first != 1:
        held = f"{memory.unit}s {buffer.first} to {buffer.last - 1}"
    found = [
        f'<rect class="block" x="{block.x}" y="{block.y}" width="{block.width}" height="{block.height}" '
        f'fill="var(--c{block.colour})"><title>{escaped(buffer.name)}',
        f"{buffer.bytes:,} bytes at {buffer.place.offset:,}",
        f"held in {held}</title></rect>",
    ]
    if block.label:
        found.append(f'<text class="inside" x="{block.x + 5}" y="{block.y + 12}">{escaped(block.label)}</text>')
    return found


# Time


_COLOURS = (("kernel", "compute"), ("c0", "load"), ("c6", "load, other slot"), ("c1", "store"))


def _legend(*entries: tuple[str, str]) -> str:
    spans = (f'<span style="--mark: var(--{colour})"><i></i>{text}</span>' for colour, text in entries)
    return f'<div class="legend">{"".join(spans)}</div>'


def timeline_section(schedule: Schedule, drawn: TimelinePicture) -> str:
    """When everything runs."""
    measured = "Timeline: groups as measured, their parts as predicted"
    parts = [
        "",
        '<section aria-labelledby="timeline">',
        f'<h2 id="timeline">{measured if schedule.measured else "Predicted timeline"}</h2>',
        f"<p>{escaped(drawn.whole.title)}. Each group is a bar in every lane: as wide as the group lasts, as high as "
        "the lane is busy.</p>",
        _chart(drawn.whole),
    ]
    if drawn.close_ups:
        parts.append(
            "<p>The longest groups, tile by tile. Where bars of a DMA stand below bars of the cores, transfers cost no "
            "time.</p>"
        )
        parts.append(_legend(*_COLOURS, ("c3", "store, other slot")))
    for index, chart in enumerate(drawn.close_ups):
        begin = f'<details class="chart" id="{escaped(chart.name)}"{"" if index else " open"}>'
        parts += [f"{begin}<summary>{escaped(chart.title)}</summary>", _chart(chart), "</details>"]
    return lines([*parts, "</section>"])


def _chart(drawn: Chart) -> str:
    below = drawn.bottom + 15
    parts = [
        '<div class="scroll">',
        f'<svg width="{drawn.width}" height="{drawn.height}" role="img" aria-label="Timeline of '
        f'{escaped(drawn.title)}">',
    ]
    for index, tick in enumerate(drawn.ticks):
        anchor = ("end" if tick.at > drawn.right - 40 else "middle") if index else "start"
        parts.append(
            f'<line class="grid" x1="{tick.at}" y1="0" x2="{tick.at}" y2="{drawn.bottom}"/>'
            f'<text x="{tick.at}" y="{below}" text-anchor="{anchor}">{escaped(tick.text)}</text>'
        )
    for lane in drawn.lanes:
        parts.append(f'<text x="{drawn.left - 10}" y="{lane.at + 4}" text-anchor="end">{escaped(lane.text)}</text>')
    for mark in drawn.marks:
        parts.append(
            f'<rect class="mark" x="{mark.x}" y="{mark.y}" width="{mark.width}" height="{mark.height}" '
            f'fill="{mark.colour}"><title>{escaped(mark.text)}</title></rect>'
        )
    return lines([*parts, "</svg>", "</div>"])


def groups_section(platform: Target, schedule: Schedule, rows: Sequence[GroupRow]) -> str:
    """What was chosen for each group."""
    near = platform.engines[schedule.engine].memory
    took = "took when it was measured" if schedule.measured else "is predicted to take"
    head = _heads("#group", "layers", "tiles", "buffers", f"#{near} bytes", "#moved", f"#{platform.unit}", "bound by")
    begin = ["", '<section aria-labelledby="groups">', '<h2 id="groups">Groups</h2>']
    about = f"<p>What was chosen for each group, and what it {took}.</p>"
    return lines([*begin, about]) + _table(head, [_group(row) for row in rows]) + "</section>\n"


def _group(row: GroupRow) -> str:
    named = zip(row.steps, row.layers, strict=False)
    layers = ", ".join(f'<a href="#layer-{step}">{escaped(name)}</a>' for step, name in named)
    cut = [f"<code>{escaped(dim)} {size}{TIMES}{count}</code> " for dim, size, count in row.loops if count > 1]
    return (
        f'<tr>{_number(str(row.index))}<td class="name">{layers}</td><td>{"".join(cut) or "whole"}</td>'
        f"<td>{''.join(map(_buffer, row.buffers))}</td>{_number(f'{row.near_bytes:,}')}{_number(f'{row.moved:,}')}"
        f"{_number(f'{row.cycles:,.0f}')}<td>{row.bound}</td></tr>"
    )


def _buffer(buffer: BufferRow) -> str:
    name = escaped(buffer.tensor)
    slots = f"{TIMES}{buffer.slots}" if buffer.slots > 1 else ""
    size = "" if buffer.within else f"<code>{buffer.bytes:,}{slots}</code> "
    within = f" within {escaped(buffer.within)}" if buffer.within else ""
    return f'<div class="buffer" title="{name}">{size}{name}{within}{" (lines kept)" if buffer.kept else ""}</div>'


# Runs


def counted_section(platform: Target, rows: Sequence[CountedRow]) -> str:
    """A run that was counted layer by layer."""
    estimate, unit = platform.estimate, platform.unit
    most = max(row.time for row in rows) or 1
    each = f" Cycles are an estimate: {estimate.each:.2f} for each of the {unit}." if estimate else ""
    head = _heads("#step", "layer", "operator", "code", "#MACs", f"#{unit}") + _BAR_HEAD
    head += _heads("#share", "#MAC each", *(["#cycles (estimate)"] if estimate else []))
    about = f"<p>{unit.capitalize()} of each layer, counted by an emulator.{each}</p>"
    begin = ["", '<section aria-labelledby="simulated">', '<h2 id="simulated">Counted run</h2>', about]
    body = [
        f'<tr>{_number(str(row.step))}<td class="name"><a href="#layer-{row.step}">{escaped(row.layer)}</a></td>'
        f"<td>{escaped(row.op)}</td><td>{escaped(row.code)}</td>{_number(f'{row.macs:,}' if row.macs else '')}"
        f'{_number(f"{row.time:,}")}<td class="bar">{_bar(row.time / most)}</td>{_number(f"{row.share:.1%}")}'
        f"{_number(f'{row.rate:.2f}' if row.macs else '')}{_number(f'{row.cycles:,}') if estimate else ''}</tr>"
        for row in rows
    ]
    return lines(begin) + _table(head, body) + "</section>\n"


def simulated_section(platform: Target, schedule: Schedule, rows: Sequence[ProfileRow], roof: Roofline | None) -> str:
    """A simulated run, group by group."""
    unit, most = platform.unit, max(row.cycles for row in rows) or 1
    head = _heads("#group", "layers", "#tiles", f"#{unit}") + _BAR_HEAD
    head += _heads("#share", f"#MAC/{unit[:-1]}", f"#{schedule.known}", "#ratio", "#DMA in", "#DMA out", "#waited")
    about = f"<p>What each group took on the simulated machine, and what was {schedule.known}.</p>"
    begin = ["", '<section aria-labelledby="simulated">', '<h2 id="simulated">Simulated run</h2>', about]
    body = [
        f'<tr>{_number(str(row.group))}<td class="name">{escaped(", ".join(row.layers))}</td>{_number(str(row.tiles))}'
        f'{_number(f"{row.cycles:,}")}<td class="bar">{_bar(row.cycles / most)}</td>{_number(f"{row.share:.1%}")}'
        f"{_number(f'{row.rate:.2f}' if row.macs else '')}{_number(f'{row.predicted:,.0f}')}"
        f"{_number(f'{row.ratio:.2f}')}{_number(f'{row.loading:,}')}{_number(f'{row.storing:,}')}"
        f"{_number(f'{row.waiting:,}')}</tr>"
        for row in rows
    ]
    return lines(begin) + _table(head, body) + (_roofline(roof) if roof else "") + "</section>\n"


def _roofline(roof: Roofline) -> str:
    left, right, bottom = roof.left, roof.right, roof.bottom
    parts = [
        '<h2 id="roofline" style="margin-top: 18px">Roofline</h2>',
        f"<p>MAC/cycle over MAC/byte between the memories; the line is what DMA and cores allow: {escaped(roof.note)}. "
        "Larger dots take more of the time.</p>",
        '<div class="scroll">',
        f'<svg width="{roof.width}" height="{roof.height}" role="img" '
        f'aria-label="Roofline of {len(roof.dots)} groups">',
        *(
            f'<line class="grid" x1="{left}" y1="{tick.at}" x2="{right}" y2="{tick.at}"/>'
            f'<text x="{left - 8}" y="{tick.at + 4}" text-anchor="end">{escaped(tick.text)}</text>'
            for tick in roof.rows
        ),
        *(
            f'<line class="grid" x1="{tick.at}" y1="{roof.top}" x2="{tick.at}" y2="{bottom}"/>'
            f'<text x="{tick.at}" y="{bottom + 16}" text-anchor="middle">{escaped(tick.text)}</text>'
            for tick in roof.columns
        ),
        f'<text x="{right}" y="{bottom + 32}" text-anchor="end">MAC/byte</text>',
        f'<polyline class="bound" points="{roof.roof}" fill="none"/>',
        *(
            f'<circle class="mark" cx="{dot.x}" cy="{dot.y}" r="{dot.radius}" fill="var(--kernel)" '
            f'fill-opacity="0.7"><title>{escaped(dot.text)}</title></circle>'
            for dot in roof.dots
        ),
    ]
    return lines([*parts, "</svg>", "</div>"])


# The network


def network_section(flow: FlowChart, moment: Callable[[int], int]) -> str:
    """Layers in their order."""
    width = flow.lane_width
    parts = [
        "",
        '<section aria-labelledby="network">',
        '<h2 id="network">Network</h2>',
        "<p>Layers in the order in which they run, with what is fused behind them. Tensors that skip layers run down "
        "the lanes on the left.</p>",
        _legend(("kernel", "kernel"), ("nest", LOOP_NEST), ("port", "input or output")),
        '<div class="flow">',
        f'<svg class="edges" width="{width}" height="{flow.height}" aria-hidden="true">',
        *(f'<path d="{path}"/>' for path in flow.paths()),
        *(f'<path class="head" d="M{width} {y}l-6 -4v8z"/>' for y in flow.arrows()),
        "</svg>",
        f'<ol style="margin-left: {width}px">',
    ]
    for index, row in enumerate(flow.rows):
        parts += ['<li class="linked">' if index in flow.linked else "<li>", _row(row, moment), "</li>"]
    return lines([*parts, "</ol>", "</div>", "</section>"])


def _row(row: Row, moment: Callable[[int], int]) -> str:
    layer, title, subtitle = row.layer, escaped(row.title), escaped(row.subtitle)
    tensor = f'<span class="side"><code>{escaped(row.tensor)}</code>'
    title = f'<b title="{title}">{title}</b>'
    if layer is None:
        return (
            f'<span class="box port" style="--mark: var(--port)">{title}<small>{subtitle}</small></span>{tensor}</span>'
        )
    mark = "nest" if layer.code == LOOP_NEST else "kernel"
    macs = f" · {human_count(layer.macs)} MACs" if layer.macs else ""
    return (
        f'<a class="box" style="--mark: var(--{mark})" href="#layer-{layer.step}" data-step="{moment(layer.step)}">'
        f'{title}<small title="{subtitle}">{subtitle}</small></a>{tensor} · {escaped(layer.code)}{macs}</span>'
    )


def layers_section(layers: Sequence[LayerRow], moment: Callable[[int], int]) -> str:
    """The code of each layer."""
    most = max((layer.macs for layer in layers), default=0)
    head = _heads("#step", "layer", "operator", "output", "#weights", "#MACs") + _BAR_HEAD + _heads("code")
    begin = [
        "",
        '<section aria-labelledby="layers">',
        '<h2 id="layers">Layers</h2>',
        "<p>Which code computes each layer, and why other kernels of that operator were not taken.</p>",
        '<div class="tools"><input type="search" id="filter" placeholder="Filter by name, operator or code" '
        f'aria-label="Filter the layers"><span id="shown">{len(layers)} layers</span></div>',
    ]
    rows = [_layer(layer, moment(layer.step), most) for layer in layers]
    return lines(begin) + _table(head, rows, '<tbody id="rows">') + "</section>\n"


def _layer(layer: LayerRow, moment: int, most: int) -> str:
    weights = human_bytes(layer.weight_bytes) if layer.weight_bytes else ""
    nest = ' class="nest"' if layer.code == LOOP_NEST else ""
    others = "".join(f"<li><code>{escaped(r.kernel)}</code> {escaped(r.reason)}</li>" for r in layer.rejected)
    if others:
        others = f"<details><summary>{len(layer.rejected)} did not fit</summary><ul>{others}</ul></details>"
    return (
        f'<tr id="layer-{layer.step}" data-step="{moment}">{_number(str(layer.step))}'
        f'<td class="name">{escaped(layer.name)}</td><td>{escaped(layer.op)}</td>'
        f"<td><code>{escaped(layer.output)}</code></td>{_number(weights)}"
        f"{_number(f'{layer.macs:,}' if layer.macs else '')}"
        f'<td class="bar">{_bar(layer.macs / most) if layer.macs else ""}</td>'
        f"<td><span{nest}>{escaped(layer.code)}</span>{others}</td></tr>"
    )


def ports_section(program: Program) -> str:
    """What callers give and get."""
    rows = [
        f'<tr><td>{kind} {index}</td><td class="name">{escaped(port.name)}</td>'
        f"<td><code>{escaped(port.type)}</code></td>{_number(f'{port.type.bytes:,}')}</tr>"
        for kind, ports in (("input", program.inputs), ("output", program.outputs))
        for index, port in enumerate(ports)
    ]
    begin = lines(["", '<section aria-labelledby="ports">', '<h2 id="ports">Inputs and outputs</h2>'])
    return begin + _table(_heads("", "name", "type", "#bytes"), rows) + "</section>\n"
