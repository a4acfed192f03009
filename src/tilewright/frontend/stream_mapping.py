"""Stream's mapping files: where layers may run, and how they are cut; and the older way to say the latter."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from tilewright.base.reader import Reader
from tilewright.base.schema import LONGEST
from tilewright.core.split import Loops, Parts
from tilewright.errors import TilewrightError
from tilewright.frontend.stream_machine import CORE
from tilewright.frontend.zigzag_machine import listed, load_yaml
from tilewright.frontend.zigzag_mapping import DEFAULT, REST

MOST_DIGITS = 16
ALL = "all"


class StreamEntry(Struct, frozen=True):
    """What a mapping file says of the layers of one name or kind."""

    engines: tuple[str, ...]
    """Those that may compute it; as many as there are slices: which computes which."""
    across: Loops = ()
    """How it is cut across engines."""
    within: Loops = ()
    """How each slice is cut in time."""


class StreamMapping(Struct, frozen=True):
    """The entries of a mapping file."""

    entries: Mapping[str, StreamEntry]

    def entry(self, name: str, kind: str) -> StreamEntry:
        """Of a layer: by its name, its kind, or the default; nothing where there is none."""
        return next((self.entries[key] for key in (name, kind, DEFAULT) if key in self.entries), StreamEntry(()))


def read_stream_mapping(path: Path) -> tuple[StreamMapping, tuple[str, ...]]:
    """The entries of a mapping file, and warnings."""
    data, warnings = load_yaml(path)
    readers = [Reader(path, item, f"[{index}]") for index, item in enumerate(listed(data, path))]
    entries = {reader.text("name"): _entry(reader) for reader in readers}
    return StreamMapping(MappingProxyType(entries)), warnings


def _entry(reader: Reader) -> StreamEntry:
    engines = _engines(reader)
    across, within = (_loops(reader, key) for key in ("inter_core_tiling", "intra_core_tiling"))
    return StreamEntry(
        engines,
        tuple((dim, len(engines) if parts == REST else _parts(reader, parts)) for dim, parts in across),
        tuple((dim, _parts(reader, parts)) for dim, parts in within if parts != REST),
    )


def _engines(reader: Reader) -> tuple[str, ...]:
    """By number, as Stream has them, or by name."""
    try:
        return tuple(f"{CORE}{number}" for number in reader.integers("core_allocation"))
    except TilewrightError:
        return tuple(reader.names("core_allocation"))


def _loops(reader: Reader, key: str) -> list[tuple[str, str]]:
    if not reader.has(key) or reader.empty(key):
        return []
    pairs = [text.partition(",") for text in reader.strings(key)]
    return [(dim.strip().upper(), parts.strip()) for dim, _, parts in pairs]


def _parts(reader: Reader, text: str) -> Parts:
    if text == ALL:
        return ALL
    if not (text.isascii() and text.isdigit() and len(text) < MOST_DIGITS and int(text)):
        raise reader.wrong("", f"'{text[:LONGEST]}' must be a number of parts, or {ALL}")
    return int(text)
