"""Pictures of numbers as marks with places: stacked bars, points, and loops against memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.cost.array import ArrayCost
from tilewright.report.costs import nest_rows
from tilewright.report.memory import COLOURS

WIDTH, LABEL, VALUE, ROW, BAR = 1060.0, 250.0, 110.0, 22.0, 16.0
"""Pixels: of a picture, of the names at its left, of the numbers at its right, of a row and of its bar."""
HEIGHT, LEFT, BOTTOM = 360.0, 90.0, 40.0
"""Of a picture of points, and of what stands beside and below it."""
LONGEST = 38
COLUMN, LOOP = 150.0, 240.0
"""Of a picture of loops: an operand, and the loops."""


@dataclass(frozen=True)
class Box:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float
    colour: str
    text: str


@dataclass(frozen=True)
class Label:
    """A text in a picture."""

    x: float
    y: float
    text: str
    end: bool = False
    """Whether it ends there."""


@dataclass(frozen=True)
class Picture:
    """Rectangles, points and texts, with what the colours mean."""

    title: str
    note: str
    width: float
    height: float
    boxes: tuple[Box, ...] = ()
    labels: tuple[Label, ...] = ()
    points: tuple[Box, ...] = ()
    legend: tuple[tuple[str, str], ...] = ()


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
    boxes: list[Box] = []
    labels: list[Label] = []
    for index, (name, values, text) in enumerate(rows):
        top, x = ROW * index, LABEL
        labels.append(Label(LABEL - 8, top + BAR - 2, short(name), end=True))
        for part in parts:
            width = values.get(part, 0.0) * scale
            if width > 0:
                share = values[part] / (sum(values.values()) or 1.0)
                shown = f"{name}\n{part}: {values[part]:,.0f} ({share:.1%})"
                boxes.append(Box(round(x, 2), top + 2, round(width, 2), BAR, colour(parts.index(part)), shown))
                x += width
        labels.append(Label(round(x + 6, 2), top + BAR - 2, text))
    legend = tuple((part, colour(index)) for index, part in enumerate(parts))
    return Picture(title, note, WIDTH, ROW * len(rows) + 4, tuple(boxes), tuple(labels), legend=legend)


def scatter(title: str, note: str, points: Sequence[tuple[float, float, str]]) -> Picture:
    """Cycles to the right, energy upwards."""
    across, up = [x for x, _, _ in points], [y for _, y, _ in points]
    wide, high = max(across) - min(across) or 1.0, max(up) - min(up) or 1.0
    marks: list[Box] = []
    for x, y, text in points:
        left = LEFT + (x - min(across)) / wide * (WIDTH - LEFT - 60)
        top = 20 + (max(up) - y) / high * (HEIGHT - BOTTOM - 30)
        marks.append(Box(round(left, 1), round(top, 1), 6, 6, "var(--kernel)", text))
    labels = (
        Label(LEFT, HEIGHT - 8, f"{min(across):,.0f} cycles"),
        Label(WIDTH - 10, HEIGHT - 8, f"{max(across):,.0f} cycles", end=True),
        Label(LEFT - 10, 24, f"{max(up):.4g} pJ", end=True),
        Label(LEFT - 10, HEIGHT - BOTTOM, f"{min(up):.4g} pJ", end=True),
    )
    return Picture(title, note, WIDTH, HEIGHT, labels=labels, points=tuple(marks))


def nest(cost: ArrayCost) -> Picture:
    """Loops, outermost first, and beside them the memory that keeps each operand's tile while they run."""
    operands = cost.layer.operands
    memories = [memory.name for memory in cost.engine.memories]
    labels = [Label(LOOP + COLUMN * i + 6, 14, f"{o.name} ({o.slot})") for i, o in enumerate(operands)]
    boxes: list[Box] = []
    rows = nest_rows(cost)
    for index, row in enumerate(rows):
        top = 22 + ROW * index
        labels.append(Label(6.0 + (0 if row.unrolled else 6 * index), top + BAR - 2, row.loop))
        for place, operand in enumerate(operands):
            name = row.memories.get(operand.name)
            if name is None:
                continue
            level = colour(memories.index(name))
            boxes.append(Box(LOOP + COLUMN * place, top, COLUMN - 6, ROW, level, f"{operand.name} in {name}"))
            first = index == 0 or rows[index - 1].memories.get(operand.name) != name
            if first:
                labels.append(Label(LOOP + COLUMN * place + 6, top + BAR - 2, name))
    return Picture(
        f"{cost.layer.name} on {cost.engine.name}",
        f"{cost.layer.equation}; a tile stays in a memory while the loops beside its name run",
        LOOP + COLUMN * len(operands),
        26 + ROW * len(rows),
        tuple(boxes),
        tuple(labels),
    )
