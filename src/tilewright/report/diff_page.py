"""A page that shows how errors grow from layer to layer, and where a network goes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, log10

from msgspec import Struct

from tilewright.report.bars import Picture, scatter
from tilewright.report.costs_page import TEMPLATE, picture_section
from tilewright.report.markup import escaped, lines, page

LEAST = 1e-9
"""Errors below it are shown as this: what is equal has none."""
HEADS = ("", "layer", "operators", "code", "behind passes", "program")


class LayerError(Struct, frozen=True):
    """A layer with the largest error of its result, as a part of its largest value; None where it is not known."""

    layer: str
    op: str
    code: str
    passes: float | None
    program: float | None
    wrong: bool


def render_diff(title: str, about: str, layers: Sequence[LayerError], findings: Sequence[Sequence[str]]) -> str:
    """The page as text. A finding is a sentence, and what speaks for it."""
    head = [f"<h1>{escaped(title)}</h1>", f"<p>{escaped(about)}</p>"]
    for what, *more in findings or [["No layer differs by more than rounding."]]:
        points = "".join(f"<li>{escaped(text)}</li>" for text in more)
        head.append(f"<section><h2>{escaped(what)}</h2><ul>{points}</ul></section>")
    pictures = [
        *_picture("Of the program", "Against the network behind its passes.", layers, [r.program for r in layers]),
        *_picture("Of passes and integers", "Against the model as given.", layers, [r.passes for r in layers]),
    ]
    return page(
        TEMPLATE, title=escaped(title), body=lines(head) + "".join(map(picture_section, pictures)) + _table(layers)
    )


def _picture(title: str, note: str, layers: Sequence[LayerError], errors: Sequence[float | None]) -> list[Picture]:
    points = [
        (float(number), log10(max(error, LEAST)), f"{row.layer}: {error:.2g}")
        for number, (row, error) in enumerate(zip(layers, errors, strict=True))
        if error is not None and isfinite(error)
    ]
    if not points:
        return []
    whole = f"{note} The largest error of each layer's result, as a part of its largest value."
    return [scatter(title, whole, points, across="layer", text=lambda power: f"{10**power:.0e}")]


def _table(layers: Sequence[LayerError]) -> str:
    rows = [
        "<tr>"
        + "".join(f"<td>{escaped(text)}</td>" for text in (n, r.layer, r.op, r.code, _text(r.passes), _text(r.program)))
        + ("<td><b>wrong</b></td>" if r.wrong else "<td></td>")
        + "</tr>"
        for n, r in enumerate(layers)
    ]
    heads = "".join(f"<th>{escaped(head)}</th>" for head in (*HEADS, ""))
    return lines(["<section>", "<h2>Layers</h2>", '<div class="scroll"><table>', f"<tr>{heads}</tr>", *rows]) + lines(
        ["</table></div>", "</section>"]
    )


def _text(error: float | None) -> str:
    return "" if error is None else f"{error:.2g}" if error else "0"
