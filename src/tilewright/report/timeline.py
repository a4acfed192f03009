"""The predicted timeline as pictures: lanes for the cores and every DMA, bars for what they do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod

from msgspec import Struct

from tilewright.core.plan import Plan, Schedule
from tilewright.report.memory import COLOURS, RIGHT, WIDTH, Tick, round_up
from tilewright.timeline.clock import CORES, OUT, Bar
from tilewright.timeline.replay import Timed, lanes
from tilewright.timeline.replay import Timeline as Replayed

LEFT, TOP, LANE, BAR, BOTTOM = 120, 6, 32, 26, 22
"""Pixels: room for the names of lanes, above them, height of a lane and of a full bar, room for ticks."""
NARROWEST = 0.4
MOST_GROUPS = 400
"""Bars of a lane in the picture of all groups; beyond, neighbours are drawn as one."""
CLOSE_UPS, STEPS, MOST_BARS = 12, 12, 1000
"""Groups that are drawn step by step, their steps, and bars of all of them."""


class TimedBar(Struct, frozen=True):
    """A bar as a rectangle."""

    x: float
    y: float
    width: float
    height: float
    colour: str
    text: str


class Chart(Struct, frozen=True):
    """Lanes over time in cycles."""

    name: str
    """Of the element in the page."""
    title: str
    width: float
    height: float
    left: float
    right: float
    bottom: float
    lanes: tuple[Tick, ...]
    ticks: tuple[Tick, ...]
    marks: tuple[TimedBar, ...]


class TimelinePicture(Struct, frozen=True):
    """All groups in one picture, and the longest of them step by step."""

    whole: Chart
    close_ups: tuple[Chart, ...]


def timeline(plan: Plan, schedule: Schedule, replayed: Replayed) -> TimelinePicture:
    """When everything is predicted to run."""
    return TimelinePicture(_whole(plan, schedule, replayed.groups), _close_ups(plan, schedule, replayed))


def _whole(plan: Plan, schedule: Schedule, groups: Sequence[Timed]) -> Chart:
    """Each group as one bar per lane, as wide as the group lasts and as high as the lane is busy."""
    total = groups[-1].stop if groups else 1.0
    together = -(-len(groups) // MOST_GROUPS)
    bars: list[tuple[Bar, float, str, int]] = []
    for first in range(0, len(groups), together):
        mine = groups[first : first + together]
        for lane, start, stop, share, text in _merged(plan, schedule, mine):
            bars.append((Bar(lane, "compute", "", start, stop, -1), share, text, first // together))
    return _chart(
        "timeline-all",
        f"{total:,.0f} cycles in {len(groups)} groups",
        total,
        [(bar, share, f"var(--c{number % COLOURS})", text) for bar, share, text, number in bars],
        lambda lane: _lane_name(plan, schedule, lane),
        lanes(plan.platform),
    )


def _merged(plan: Plan, schedule: Schedule, mine: Sequence[Timed]) -> Iterable[tuple[str, float, float, float, str]]:
    start, stop = mine[0].start, mine[-1].stop
    names = [_title(plan, timed) for timed in mine]
    for lane in lanes(plan.platform):
        busy = sum(timed.busy(lane) for timed in mine)
        if busy and stop > start:
            moved = sum(timed.passed.moved.get(lane, 0) for timed in mine)
            text = [*names, f"{stop - start:,.0f} cycles from {start:,.0f}"]
            text.append(f"{_lane_name(plan, schedule, lane)} busy for {busy:,.0f}")
            yield lane, start, stop, min(1.0, busy / (stop - start)), "\n".join([*text, *_bytes(moved)])


def _close_ups(plan: Plan, schedule: Schedule, replayed: Replayed) -> tuple[Chart, ...]:
    longest = sorted((t for t in replayed.groups if t.group.loops), key=lambda t: (-t.cycles, t.index))
    found: dict[int, Chart] = {}
    room = MOST_BARS
    for timed in longest[:CLOSE_UPS]:
        bars = replayed.bars(timed.index, STEPS)
        room -= len(bars)
        if room < 0:
            break
        found[timed.index] = _close_up(plan, schedule, timed, bars)
    return tuple(found[index] for index in sorted(found))


def _close_up(plan: Plan, schedule: Schedule, timed: Timed, bars: Sequence[Bar]) -> Chart:
    steps = prod(loop.count for loop in timed.group.loops)
    shown = f"first {STEPS} of {steps} tiles" if steps > STEPS else f"all {steps} tiles"
    return _chart(
        f"timeline-{timed.index}",
        f"{_title(plan, timed)}: {shown}, {timed.cycles:,.0f} cycles in all",
        max((bar.stop for bar in bars), default=1.0),
        [(bar, 1.0, _colour(bar), _bar_text(bar)) for bar in bars],
        lambda lane: _lane_name(plan, schedule, lane),
        lanes(plan.platform),
    )


def _chart(
    name: str,
    title: str,
    total: float,
    bars: Sequence[tuple[Bar, float, str, str]],
    label: Callable[[str], str],
    order: Sequence[str],
) -> Chart:
    used = [lane for lane in order if any(bar.lane == lane for bar, *_ in bars)]
    row = {lane: TOP + LANE * index for index, lane in enumerate(used)}
    scale = (WIDTH - LEFT - RIGHT) / (total or 1.0)
    bottom = TOP + LANE * len(used)
    every = round_up(max(1, -int(-total // 8)))
    return Chart(
        name,
        title,
        WIDTH,
        bottom + BOTTOM,
        LEFT,
        WIDTH - RIGHT,
        bottom,
        tuple(Tick(row[lane] + LANE / 2, label(lane)) for lane in used),
        tuple(Tick(round(LEFT + at * scale, 1), f"{at:,}") for at in range(0, int(total) + 1, every)),
        tuple(_mark(bar, share, colour, text, row[bar.lane], scale) for bar, share, colour, text in bars),
    )


def _mark(bar: Bar, share: float, colour: str, text: str, top: float, scale: float) -> TimedBar:
    height = max(2.0, BAR * share)
    return TimedBar(
        round(LEFT + bar.start * scale, 2),
        round(top + (LANE - BAR) / 2 + BAR - height, 1),
        round(max(NARROWEST, (bar.stop - bar.start) * scale), 2),
        round(height, 1),
        colour,
        text,
    )


def _colour(bar: Bar) -> str:
    if bar.kind == "compute":
        return "var(--kernel)"
    return f"var(--c{(0, 6, 2)[bar.slot]})" if bar.kind == "load" else f"var(--c{(1, 3, 5)[bar.slot]})"


def _title(plan: Plan, timed: Timed) -> str:
    nodes = (plan.graph.nodes[work.step] for work in timed.group.works)
    return f"group {timed.index}, " + ", ".join(node.label for node in nodes)


def _lane_name(plan: Plan, schedule: Schedule, lane: str) -> str:
    if lane == CORES:
        return "1 core" if schedule.cores == 1 else f"{schedule.cores} cores"
    if lane in plan.platform.engines:
        return lane
    between = plan.platform.links[lane.removesuffix(OUT)].between
    return f"DMA {'-'.join(reversed(between) if lane.endswith(OUT) else between)}"


def _bar_text(bar: Bar) -> str:
    what = {"compute": "compute", "load": "load", "store": "store", "stage": "copy"}[bar.kind]
    slot = f" (slot {bar.slot})" if bar.kind != "compute" else ""
    lines = [
        f"{what} {bar.name}{slot}",
        f"tile {bar.step}",
        f"{bar.stop - bar.start:,.0f} cycles from {bar.start:,.0f}",
    ]
    return "\n".join([*lines, *_bytes(bar.bytes)])


def _bytes(count: int) -> list[str]:
    return [f"{count:,} bytes"] if count else []
