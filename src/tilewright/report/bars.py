"""Pictures of numbers as marks with places: stacked bars, points, and loops against memories."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor, log10

from msgspec import Struct

from tilewright.mapping.allocate import tiles
from tilewright.price.array import ArrayCost
from tilewright.report.costs import UNITS, bytes_text, energy_text, nest_rows
from tilewright.report.memory import COLOURS

WIDTH, LABEL, VALUE, ROW, BAR = 1060.0, 250.0, 110.0, 22.0, 16.0
"""Pixels: of a picture, of the names at its left, of the numbers at its right, of a row and of its bar."""
HEIGHT, LEFT, RIGHT, BOTTOM, TICKS = 380.0, 90.0, 70.0, 56.0, 6
"""Of a picture of points, of what stands beside and below it, and how many lines it has each way, about."""
POINT, LINE = "var(--kernel)", "var(--line)"
LONGEST = 38
COLUMN, LOOP = 170.0, 240.0
"""Of a picture of loops: an operand, and the loops."""


class Rectangle(Struct, frozen=True):
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float
    colour: str
    text: str


class Caption(Struct, frozen=True):
    """A text in a picture."""

    x: float
    y: float
    text: str
    end: bool = False
    """Whether it ends there."""


class Picture(Struct, frozen=True):
    """Rectangles, points and texts, with what the colours mean."""

    title: str
    note: str
    width: float
    height: float
    boxes: tuple[Rectangle, ...] = ()
    labels: tuple[Caption, ...] = ()
    points: tuple[Rectangle, ...] = ()
    legend: tuple[tuple[str, str], ...] = ()
    edges: tuple[tuple[int, int], ...] = ()
    """Numbers of boxes of which the second waits for the first."""


def colour(index: int) -> str:
    return f"var(--c{index % COLOURS})"


def short(name: str) -> str:
    """The end of a long name, which is what tells names apart."""
    return name if len(name) <= LONGEST else "…" + name[1 - LONGEST :]


def stacked(
    title: str, note: str, rows: Sequence[tuple[str, Mapping[str, float], str]], parts: Sequence[str]
) -> Picture:
    """A bar for each row (name, parts, text of the whole), its parts one after another."""
    most = max((sum(values.values()) for _, values, _ in rows), default=0.0) or 1.0
    scale = (WIDTH - LABEL - VALUE) / most
    boxes: list[Rectangle] = []
    labels: list[Caption] = []
    for index, (name, values, text) in enumerate(rows):
        top, x = ROW * index, LABEL
        labels.append(Caption(LABEL - 8, top + BAR - 2, short(name), end=True))
        for part in parts:
            width = values.get(part, 0.0) * scale
            if width > 0:
                share = values[part] / (sum(values.values()) or 1.0)
                shown = f"{name}\n{part}: {values[part]:,.0f} ({share:.1%})"
                boxes.append(Rectangle(round(x, 2), top + 2, round(width, 2), BAR, colour(parts.index(part)), shown))
                x += width
        labels.append(Caption(round(x + 6, 2), top + BAR - 2, text))
    legend = tuple((part, colour(index)) for index, part in enumerate(parts))
    return Picture(title, note, WIDTH, ROW * len(rows) + 4, tuple(boxes), tuple(labels), legend=legend)


def scatter(
    title: str,
    note: str,
    points: Sequence[tuple[float, float, str]],
    *,
    across: str = "cycles",
    text: Callable[[float], str] = energy_text,
) -> Picture:
    """Points with lines at round numbers: `across` is what goes to the right, `text` how numbers upwards are told."""
    along, up = _Axis.over([x for x, _, _ in points]), _Axis.over([y for _, y, _ in points])
    right, top, base = WIDTH - LEFT - RIGHT, 20.0, HEIGHT - BOTTOM
    marks = [
        Rectangle(
            round(LEFT + along.part(x) * right, 1), round(base - up.part(y) * (base - top), 1), 6, 6, POINT, shown
        )
        for x, y, shown in points
    ]
    lines: list[Rectangle] = []
    labels: list[Caption] = []
    for value in along.ticks:
        x = round(LEFT + along.part(value) * right, 1)
        lines.append(Rectangle(x, top, 1, base - top, LINE, ""))
        labels.append(Caption(x, base + 18, f"{value:,.0f}"))
    for value in up.ticks:
        y = round(base - up.part(value) * (base - top), 1)
        lines.append(Rectangle(LEFT, y, right, 1, LINE, ""))
        labels.append(Caption(LEFT - 10, y + 4, text(value), end=True))
    labels.append(Caption(LEFT + right, HEIGHT - 4, across, end=True))
    return Picture(title, note, WIDTH, HEIGHT, tuple(lines), tuple(labels), tuple(marks))


class _Axis(Struct, frozen=True):
    """From one round number to another."""

    ticks: tuple[float, ...]

    @classmethod
    def over(cls, values: Sequence[float]) -> _Axis:
        """Round numbers from below the least value to above the greatest."""
        wide = max(values) - min(values) or abs(max(values)) or 1.0
        rough = wide / TICKS
        step = next(m * 10 ** floor(log10(rough)) for m in (1, 2, 5, 10) if m * 10 ** floor(log10(rough)) >= rough)
        first, last = floor(min(values) / step), ceil(max(values) / step)
        return cls(tuple(step * index for index in range(first, max(last, first + 1) + 1)))

    def part(self, value: float) -> float:
        return (value - self.ticks[0]) / (self.ticks[-1] - self.ticks[0])


def nest(cost: ArrayCost) -> Picture:
    """Loops, outermost first, and beside them the memory that keeps each operand's tile while they run."""
    operands, rows = cost.layer.operands, nest_rows(cost)
    parts = (UNITS, *(memory.name for memory in cost.engine.memories))
    taken = tiles(cost.layer, cost.engine, cost.spatial, cost.temporal)
    labels = [Caption(LOOP + COLUMN * i + 6, 14, f"{o.name} ({o.slot})") for i, o in enumerate(operands)]
    labels.append(Caption(6.0, 22 + BAR - 2, "all of the layer"))
    for index, row in enumerate(rows):
        labels.append(Caption(6.0 + 6 * (0 if row.unrolled else index + 1), 22 + ROW * (index + 1) + BAR - 2, row.loop))
    boxes: list[Rectangle] = []
    for place, operand in enumerate(operands):
        left, before = LOOP + COLUMN * place, ""
        outermost = cost.engine.levels(operand.slot)[-1].name
        for index, name in enumerate([outermost, *(r.memories[operand.name] for r in rows if not r.unrolled)]):
            top, kept = 22 + ROW * index, f"{name} {bytes_text(taken[operand.name][name])}"
            boxes.append(Rectangle(left, top, COLUMN - 6, ROW, colour(parts.index(name)), f"{operand.name} in {kept}"))
            if name != before:
                labels.append(Caption(left + 6, top + BAR - 2, kept))
            before = name
    return Picture(
        f"{cost.layer.name} on {cost.engine.name}: {cost.cycles:,.0f} cycles, {energy_text(cost.energy)}",
        f"{cost.layer.equation}; a tile of the size beside its name stays in a memory while loops of its colour run",
        LOOP + COLUMN * len(operands),
        26 + ROW * (len(rows) + 1),
        tuple(boxes),
        tuple(labels),
    )
