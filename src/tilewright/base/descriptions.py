"""Text files that users name: read whole, up to a size, and YAML in them without its traps.

YAML is a language in which a few lines mean gigabytes, a list may hold itself and the second of two equal keys wins.
What is written that way is refused before values are made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import yaml
from msgspec import Struct, field

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
        scanned = _Scan()
        for event in cast("Iterator[Any]", cast("Any", yaml).parse(text, _LOADER)):
            scanned.add(event)
        return scanned.value if scanned.usual else yaml.load(text, _LOADER), tuple(scanned.repeated)
    # Texts of types with a form of their own, such as dates and numbers of any base, fail in many ways.
    except (yaml.YAMLError, AttributeError, TypeError, KeyError, IndexError, OverflowError) as reason:
        raise ValueError(str(reason)) from reason


class _Open(Struct):
    """A list or mapping whose end is still to come."""

    anchor: str | None
    is_mapping: bool
    value: Any
    size: int = 1
    """Of it with all values in it."""
    texts: set[str] = field(default_factory=set[str])
    """Those of the keys of a mapping."""
    key: Any = None
    at_key: bool = False


class _Scan:
    """Goes over the events of a text once: makes its value, and refuses what means too much before it is made.

    Mappings with keys that are no texts or numbers, aliases, tags and merged keys are unusual: others make their value.
    """

    def __init__(self) -> None:
        self._whole = _Open(None, is_mapping=False, value=[])
        self._stack = [self._whole]
        self._anchors: dict[str, int] = {}
        self._documents = 0
        self.repeated: list[str] = []
        """A line for each key that stands a second time in its mapping."""
        self.usual = True
        self._kinds: dict[object, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._begin,
            yaml.SequenceStartEvent: self._begin,
            yaml.MappingEndEvent: self._end,
            yaml.SequenceEndEvent: self._end,
            yaml.AliasEvent: self._alias,
            yaml.DocumentStartEvent: self._document,
        }

    @property
    def value(self) -> object:
        """That of a usual text."""
        return self._whole.value[0] if self._whole.value else None

    def add(self, event: Any) -> None:
        take = self._kinds.get(event.__class__)
        if take is not None:
            take(event)

    def _document(self, _event: Any) -> None:
        self._documents += 1
        self.usual &= self._documents == 1

    def _scalar(self, event: Any) -> None:
        top, text = self._stack[-1], event.value
        if top.at_key:
            if text in top.texts:
                self.repeated.append(f"{_line(event)}: '{text}' is there twice; the first one has no effect")
            top.texts.add(text)
        if event.anchor:
            self._anchors[event.anchor] = 1
        plain = event.implicit[0]
        self.usual &= event.tag is None and not (plain and text in _MERGE)
        self._put(_plain_value(text) if plain and self.usual else text, 1)

    def _begin(self, event: Any) -> None:
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        self.usual &= event.tag is None and not self._stack[-1].at_key
        self._stack.append(_Open(event.anchor, is_mapping, {} if is_mapping else [], at_key=is_mapping))
        if len(self._stack) > DEEPEST:
            raise ValueError(f"line {_line(event)} is more than {DEEPEST} lists and mappings deep")

    def _end(self, _event: Any) -> None:
        done = self._stack.pop()
        if done.anchor:
            self._anchors[done.anchor] = done.size
        self._put(done.value, done.size)

    def _alias(self, event: Any) -> None:
        self.usual = False
        anchor = event.anchor or ""
        if any(open_one.anchor == anchor for open_one in self._stack):
            raise ValueError(f"'*{anchor}' in line {_line(event)} is part of itself")
        self._put(None, self._anchors.get(anchor, 0))

    def _put(self, value: Any, size: int) -> None:
        top = self._stack[-1]
        top.size += size
        if top.size > MOST_VALUES:
            raise ValueError(f"it stands for more than {MOST_VALUES:,} values")
        if not top.is_mapping:
            top.value.append(value)
        elif not self.usual:
            top.at_key = not top.at_key
        elif top.at_key:
            top.key, top.at_key = value, False
        else:
            top.value[top.key], top.at_key = value, True


_MERGE = ("<<", "=")
"""Plain scalars that mean something in mappings."""
_VALUES = _LOADER("")


@lru_cache(maxsize=4096)
def _plain_value(text: str) -> Any:
    """What a scalar without quotes and tag is: a number, a truth, nothing, a text. None of them can be changed."""
    tag = cast("Any", _VALUES).resolve(yaml.ScalarNode, text, (True, False))
    if tag == "tag:yaml.org,2002:str":
        return text
    return _VALUES.yaml_constructors[tag](_VALUES, yaml.ScalarNode(tag, text))


def _line(event: Any) -> int:
    return event.start_mark.line + 1
