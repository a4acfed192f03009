"""Text files that users name: read whole, up to a size, and YAML in them without its traps.

YAML is a language in which a few lines mean gigabytes, a list may hold itself and the second of two equal keys wins.
What is written that way is refused before values are made of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import yaml

from tilewright.errors import TilewrightError

MOST_BYTES = 16 << 20
MOST_VALUES, DEEPEST = 200_000, 64
"""Of a YAML text: values with all that aliases stand for, and how deep they lie in each other."""
_LOADER = cast("type[yaml.SafeLoader]", getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def stem_of(path: Path) -> str:
    """The name of a file without its ending, as a text that can be written: what is no UTF-8 in it is escaped."""
    return path.stem.encode("utf-8", "backslashreplace").decode()


def read_text(path: Path, code: str) -> str:
    """The text of a file; `code` is that of the error where it is none."""
    try:
        if not path.is_file():
            # A device may have no end, and a pipe no beginning.
            raise FileNotFoundError("there is no such file")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as reason:
        raise TilewrightError(
            "missing-file", f"'{path}' cannot be read", reasons=[str(reason)], help="name a file that can be read"
        ) from reason
    if len(content) > MOST_BYTES:
        raise TilewrightError(code, f"'{path}' is larger than {MOST_BYTES >> 20} MiB", help="name a description")
    try:
        return content.decode()
    except UnicodeDecodeError as reason:
        raise TilewrightError(
            code, f"'{path}' is not text: {reason}", help="it has to be YAML or JSON in UTF-8"
        ) from reason


def read_yaml(path: Path, code: str) -> object:
    """What a YAML file holds; keys that are there twice are an error."""
    data, repeated = load_yaml(path, code)
    for line in repeated:
        raise TilewrightError(code, f"{path.name}:{line}", help="leave one of them away")
    return data


def load_yaml(path: Path, code: str) -> tuple[object, tuple[str, ...]]:
    """What a YAML file holds, the last of equal keys; and a line for each that another one replaces."""
    try:
        return parse_yaml(read_text(path, code))
    except ValueError as reason:
        raise TilewrightError(
            code, f"{path.name} is not YAML: {reason}", help=f"check indentation, quotes and brackets in '{path}'"
        ) from reason


@lru_cache(maxsize=64)
def parse_yaml(text: str) -> tuple[object, tuple[str, ...]]:
    """The same of a text; ValueError with the reason where it is no YAML, or too much of it.

    Cached, since a process that compiles many networks reads the same few descriptions each time.
    """
    try:
        repeated = tuple(_checked(text))
        return yaml.load(text, _LOADER), repeated
    # Texts of types with a form of their own, such as dates and numbers of any base, fail in many ways.
    except (yaml.YAMLError, AttributeError, TypeError, KeyError, IndexError, OverflowError) as reason:
        raise ValueError(str(reason)) from reason


@dataclass
class _Open:
    """A list or mapping whose end is still to come."""

    anchor: str | None
    is_mapping: bool
    values: int = 1
    children: int = 0
    keys: set[str] = field(default_factory=set[str])

    @property
    def at_key(self) -> bool:
        return self.is_mapping and self.children % 2 == 0


def _checked(text: str) -> Iterator[str]:
    """Goes over a text without making values; a line for each key that stands a second time in its mapping."""
    stack: list[_Open] = [_Open(None, is_mapping=False)]
    anchors: dict[str, int] = {}
    events: Iterator[Any] = cast("Any", yaml).parse(text, _LOADER)
    for event in events:
        size, top = 0, stack[-1]
        line: int = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            anchor = event.anchor or ""
            size = anchors.get(anchor, 0)
            if any(open_one.anchor == anchor for open_one in stack):
                raise ValueError(f"'*{anchor}' in line {line} is part of itself")
        elif isinstance(event, yaml.ScalarEvent):
            size = 1
            if top.at_key and event.value in top.keys:
                yield f"{line}: '{event.value}' is there twice; the first one has no effect"
            if top.at_key:
                top.keys.add(event.value)
            if event.anchor:
                anchors[event.anchor] = size
        elif isinstance(event, yaml.CollectionStartEvent):
            stack.append(_Open(event.anchor, isinstance(event, yaml.MappingStartEvent)))
            if len(stack) > DEEPEST:
                raise ValueError(f"line {line} is more than {DEEPEST} lists and mappings deep")
            continue
        elif isinstance(event, yaml.CollectionEndEvent):
            size = stack.pop().values
            if top.anchor:
                anchors[top.anchor] = size
        stack[-1].values += size
        stack[-1].children += bool(size)
        if stack[-1].values > MOST_VALUES:
            raise ValueError(f"it stands for more than {MOST_VALUES:,} values")
