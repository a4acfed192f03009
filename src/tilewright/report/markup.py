"""HTML from texts: what is a name or a text in a page is escaped where it is put."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&#39;", '"': "&#34;"})
HEAD, STYLE = (Path(__file__).with_name(name) for name in ("head.html", "common.css"))
_PLACE = re.compile(r"\{\{ (\w+) \}\}")


def escaped(text: object) -> str:
    """A text as it stands in a page, also between quotes."""
    return str(text).translate(_ESCAPED)


def lines(parts: Iterable[str]) -> str:
    """Each part as a line."""
    return "".join(f"{part}\n" for part in parts)


def page(template: Path, **parts: str) -> str:
    """A page: the file with `{{ name }}` replaced by the part of that name. The parts are HTML already.

    `head` is how all pages begin, with the style that they have in common.
    """
    parts["common"] = _text(STYLE)
    parts["head"] = _filled(_text(HEAD), parts)
    return _filled(_text(template), parts)


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8").removesuffix("\n")


def _filled(text: str, parts: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda place: parts[place[1]], text)
