"""A page about schedules over many engines: when everything runs, how full memories are, and two beside each other.

It is drawn from traces, so a schedule that was written before can stand beside a new one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from tilewright.report.bars import BAR, LABEL, ROW, VALUE, WIDTH, Caption, Picture, Rectangle, colour, short, stacked
from tilewright.report.costs import energy_text
from tilewright.report.costs_page import TEMPLATE, picture_section
from tilewright.report.markup import escaped, lines, page
from tilewright.schedule.trace import CHANNELS, ENGINES, MEMORIES

HIGH, COLUMNS = 44.0, 400
"""Pixels of a memory, and moments at which it is looked at."""
CLOSE = 0.25
"""Pixels between bars of an operation that are drawn as one."""
MOST_EDGES = 20_000
TICKS, COLOURED = 8, 32
"""Moments with a number, about, and operations that the legend names."""
MEANING = {
    "compute": "engines",
    "streamed": "streamed",
    "fetch": "from home",
    "pass": "between engines",
    "evict": "for want of room",
    "result": "results",
}
SCRIPT = """<script>
for (const svg of document.querySelectorAll("svg[data-edges]")) {
  const edges = JSON.parse(svg.dataset.edges), boxes = [...svg.querySelectorAll("rect")];
  svg.addEventListener("click", event => {
    for (const line of svg.querySelectorAll("line")) line.remove();
    const box = boxes.indexOf(event.target.closest("rect"));
    for (const [from, to] of edges.filter(edge => edge.includes(box))) {
      const [a, b] = [boxes[from], boxes[to]].map(each => each.getBBox());
      const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
      const ends = {x1: a.x + a.width, y1: a.y + a.height / 2, x2: b.x, y2: b.y + b.height / 2};
      for (const [name, value] of Object.entries(ends)) line.setAttribute(name, value);
      line.setAttribute("stroke", "var(--bound)");
      svg.append(line);
    }
  });
}
</script>"""


class TracedSchedule(Struct, frozen=True):
    """A schedule as a trace has it."""

    name: str
    events: Sequence[Mapping[str, Any]]
    values: Mapping[str, Any]
    """Latency, energy and so on, as `tilewright schedule --json` prints them."""
    before: Sequence[tuple[int, int]] = ()
    """Pairs of nodes of which the second waits for the first, where they are known."""


def render_schedules(title: str, schedules: Sequence[TracedSchedule]) -> str:
    """The page as text, with the same scale of time for all schedules."""
    longest = max(max(int(one.values["latency"]) for one in schedules), 1)
    pictures = [_energies(schedules)]
    for one in schedules:
        pictures += [_timeline(one, longest), _memories(one, longest)]
    head = [f"<h1>{escaped(title)}</h1>", "<p>When everything runs, as the scheduler predicts it.</p>"]
    body = lines([*head, *_figures(schedules)]) + "".join(map(picture_section, pictures)) + _paths(schedules)
    return page(TEMPLATE, title=escaped(title), body=body + SCRIPT + "\n")


def _figures(schedules: Sequence[TracedSchedule]) -> list[str]:
    """What schedules come to, beside each other."""
    rows = compared([one.values for one in schedules])
    names = "".join(f"<th>{escaped(one.name)}</th>" for one in schedules)
    more = "<th>change</th>" if len(schedules) == 2 else ""
    cells = (
        f"<tr><td>{escaped(name)}</td>{''.join(f'<td>{escaped(text)}</td>' for text in texts)}</tr>"
        for name, *texts in rows
    )
    return ["<section>", f"<table><tr><th></th>{names}{more}</tr>", *cells, "</table>", "</section>"]


def compared(values: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Names and texts of what schedules come to; of two, the change from the second to the first as well."""
    found: list[tuple[str, ...]] = []
    for name, key in (
        ("cycles", "latency"),
        ("energy", "energy"),
        ("energy times cycles", "edp"),
        ("bits in memories", "memory"),
        ("nodes", "nodes"),
        ("transfers", "transfers"),
    ):
        numbers = [float(each[key]) for each in values]
        texts = [energy_text(n) if key == "energy" else f"{n:.4g}" if key == "edp" else f"{n:,.0f}" for n in numbers]
        if len(numbers) == 2:
            texts.append(f"{numbers[0] / numbers[1] - 1:+.1%}" if numbers[1] else "")
        found.append((name, *texts))
    return found


def _energies(schedules: Sequence[TracedSchedule]) -> Picture:
    rows: list[tuple[str, dict[str, float], str]] = []
    for one in schedules:
        parts: dict[str, float] = defaultdict(float)
        for cause, energy in one.values["energies"].items():
            parts[MEANING[cause.partition(" ")[0]]] += energy
        rows.append((one.name, parts, energy_text(float(one.values["energy"]))))
    return stacked("Energy", "In pJ, by what it is for.", rows, tuple(MEANING.values()))


def _timeline(one: TracedSchedule, longest: int) -> Picture:
    """A lane for each engine and channel, with colours by operation."""
    names = {
        (each["pid"], each["tid"]): str(each["args"]["name"]) for each in one.events if each["name"] == "thread_name"
    }
    work = [each for each in one.events if each["ph"] == "X" and each["pid"] in (ENGINES, CHANNELS)]
    used = {(each["pid"], each["tid"]) for each in work}
    row = {lane: number for number, lane in enumerate(lane for lane in names if lane in used)}
    order = {name: number for number, name in enumerate(dict.fromkeys(str(e["args"].get("operation")) for e in work))}
    scale = (WIDTH - LABEL - VALUE / 2) / longest
    boxes: list[Rectangle] = []
    box_of: dict[int, int] = {}
    for lane, top in row.items():
        mine = sorted((e for e in work if (e["pid"], e["tid"]) == lane), key=lambda e: (e["args"]["start"], e["name"]))
        for start, end, texts, nodes, operation in _bars(mine, scale):
            for node in nodes:
                box_of[node] = len(boxes)
            width = round(max(end - start, 1) * scale, 2)
            text = "\n".join([*texts, f"{end - start:,} cycles from {start:,}"])
            x = round(LABEL + start * scale, 2)
            boxes.append(Rectangle(x, ROW * top + 2, max(width, CLOSE), BAR, colour(order[operation]), text))
    labels = [Caption(LABEL - 8, ROW * top + BAR - 2, short(names[lane]), end=True) for lane, top in row.items()]
    labels += _ticks(longest, scale, ROW * len(row) + 14)
    edges = {
        (box_of[first], box_of[second])
        for first, second in one.before
        if first in box_of and second in box_of and box_of[first] != box_of[second]
    }
    note = "Engines and channels; colours are operations."
    note += " A click on a bar shows what it waits for, and what waits for it." if 0 < len(edges) <= MOST_EDGES else ""
    return Picture(
        f"Timeline of {one.name}",
        note,
        WIDTH,
        ROW * len(row) + 20,
        tuple(boxes),
        tuple(labels),
        legend=tuple((name, colour(number)) for name, number in list(order.items())[:COLOURED]),
        edges=tuple(sorted(edges)) if len(edges) <= MOST_EDGES else (),
    )


def _bars(events: Iterable[Mapping[str, Any]], scale: float) -> Iterable[tuple[int, int, list[str], list[int], str]]:
    """Start, end, texts, nodes and operation of bars: neighbours that are too close to be told apart are one."""
    last: tuple[int, int, list[str], list[int], str] | None = None
    for each in events:
        about = each["args"]
        start, end, operation = int(about["start"]), int(about["end"]), str(about.get("operation"))
        nodes = [int(about["node"])] if "node" in about else []
        way = [f"{about['cause']}, {about['from']} to {about['to']}, {about['bits']:,} bits"] if "from" in about else []
        if last and last[4] == operation and (start - last[1]) * scale < CLOSE and (end - start) * scale < 1:
            texts = [last[2][0], f"to {each['name']}"]
            last = (last[0], end, texts, [*last[3], *nodes], operation)
            continue
        if last:
            yield last
        last = (start, end, [str(each["name"]), *way], nodes, operation)
    if last:
        yield last


def _ticks(longest: int, scale: float, y: float) -> list[Caption]:
    return [
        Caption(round(LABEL + at * scale, 1), y, f"{at:,}")
        for at in range(0, longest + 1, max(1, 10 ** (len(str(longest // TICKS)) - 1) * _leading(longest // TICKS)))
    ]


def _leading(number: int) -> int:
    """A round first digit that is no less than a number's."""
    digit = int(str(number)[0])
    return next(each for each in (1, 2, 5, 10) if each > digit or each == 10)


def _memories(one: TracedSchedule, longest: int) -> Picture:
    """How full each memory is over time, as high as it is large."""
    series: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for each in one.events:
        if each["ph"] == "C" and each["pid"] == MEMORIES:
            about = each["args"]
            series[str(each["name"])].append((int(about["time"]), int(about["bits"]), int(about["of"])))
    scale = (WIDTH - LABEL - VALUE) / longest
    boxes: list[Rectangle] = []
    labels: list[Caption] = []
    for number, (name, changes) in enumerate(series.items()):
        base = (HIGH + 6) * (number + 1)
        size, most = changes[0][2], max(bits for _, bits, _ in changes)
        labels.append(Caption(LABEL - 8, base - 4, short(name), end=True))
        labels.append(Caption(WIDTH - VALUE + 6, base - 4, f"{most / size:.1%} of {size:,}"))
        boxes.append(Rectangle(LABEL, base, round(longest * scale, 1), 1, "var(--line)", ""))
        for start, end, bits in _filled(changes, longest):
            height = round(max(HIGH * bits / max(most, 1), 0.5), 1)
            text = f"{name}\n{bits:,} bits ({bits / size:.1%}) from cycle {start:,}"
            x, width = round(LABEL + start * scale, 2), round((end - start) * scale, 2)
            boxes.append(Rectangle(x, round(base - height, 1), width, height, colour(number), text))
    labels += _ticks(longest, scale, (HIGH + 6) * len(series) + 16)
    note = "Each memory as high as it is full at most; beside it the part of its size that this is."
    return Picture(f"Memories of {one.name}", note, WIDTH, (HIGH + 6) * len(series) + 22, tuple(boxes), tuple(labels))


def _filled(changes: Sequence[tuple[int, int, int]], longest: int) -> Iterable[tuple[int, int, int]]:
    """Start, end and bits: the most of each of many parts of the time, equal neighbours as one."""
    step = -(-longest // COLUMNS)
    most: dict[int, int] = {}
    now, at = 0, 0
    for column in range(-(-longest // step)):
        most[column] = now
        while at < len(changes) and changes[at][0] < (column + 1) * step:
            now = changes[at][1]
            most[column] = max(most[column], now)
            at += 1
    start = 0
    for column in range(1, len(most) + 1):
        if most.get(column) != most[start]:
            if most[start]:
                yield start * step, min(column * step, longest), most[start]
            start = column


def _paths(schedules: Sequence[TracedSchedule]) -> str:
    """The critical path of each schedule."""
    found: list[str] = []
    for one in schedules:
        rows = (
            f"<tr><td>{escaped(step['kind'])}</td><td>{escaped(step['name'])}</td><td>{escaped(step['where'])}</td>"
            f"<td>{step['start']:,}</td><td>{step['end'] - step['start']:,}</td></tr>"
            for step in one.values["critical_path"]
        )
        head = "<tr><th></th><th>of</th><th>where</th><th>from cycle</th><th>cycles</th></tr>"
        found += ["<section>", f"<h2>Critical path of {escaped(one.name)}</h2>", '<div class="scroll">']
        found += [f"<table>{head}", *rows, "</table>", "</div>", "</section>"]
    return lines(found)
