"""HTML from texts: what is a name or a text in a page is escaped where it is put."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&#39;", '"': "&#34;"})
STYLE = Path(__file__).with_name("common.css")
_PLACE = re.compile(r"\{\{ (\w+) \}\}")


def escaped(text: object) -> str:
    """A text as it stands in a page, also between quotes."""
    return str(text).translate(_ESCAPED)


def lines(parts: Iterable[str]) -> str:
    """Each part as a line."""
    return "".join(f"{part}\n" for part in parts)


def page(template: Path, **parts: str) -> str:
    """A page: the file with `{{ name }}` replaced by the part of that name. The parts are HTML already.

    `common` is the style of all pages.
    """
    parts["common"] = STYLE.read_text(encoding="utf-8").removesuffix("\n")
    text = template.read_text(encoding="utf-8").removesuffix("\n")
    return _PLACE.sub(lambda place: parts[place[1]], text)
