"""ZigZag's mapping files: what is unrolled where, in which order loops run, and which slot each operand takes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct, field
from msgspec.structs import replace

from tilewright.base.reader import Reader
from tilewright.base.schema import LONGEST
from tilewright.core.workload import Layer, Workload
from tilewright.frontend.zigzag_machine import listed, load_yaml

MOST_DIGITS = 16
DEFAULT = "default"
REST = "*"
"""In place of steps: as many as are left."""


class MappingEntry(Struct, frozen=True):
    """What a mapping file says of the layers of one name or kind."""

    name: str
    unrolled: Mapping[str, tuple[tuple[str, int], ...]] = field(default_factory=lambda: MappingProxyType({}))
    """By array dimension; one that is missing is searched."""
    hints: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """By array dimension, the layer's dimensions that may be unrolled along it."""
    order: tuple[tuple[str, int | None], ...] = ()
    """Loops in time, innermost first; None where as many steps as are left."""
    slots: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def linked(self, layer: Layer) -> Layer:
        """The layer with the slots that the mapping gives its operands."""
        operands = [replace(o, slot=self.slots.get(o.name, o.slot)) for o in layer.operands]
        return replace(layer, output=operands[0], inputs=tuple(operands[1:]))


class MappingFile(Struct, frozen=True):
    """The entries of a mapping file."""

    entries: Mapping[str, MappingEntry]

    def entry(self, layer: Layer) -> MappingEntry:
        """The entry of a layer: by its name, its kind, or the default."""
        for name in (layer.name, layer.kind, DEFAULT):
            if name in self.entries:
                return self.entries[name]
        return MappingEntry(DEFAULT)

    def linked(self, workload: Workload) -> Workload:
        """The workload with the slots of all layers."""
        return replace(workload, layers=tuple(self.entry(layer).linked(layer) for layer in workload.layers))


def read_mapping(path: Path) -> tuple[MappingFile, tuple[str, ...]]:
    """The entries of a mapping file, and warnings."""
    data, warnings = load_yaml(path)
    readers = [Reader(path, item, f"[{index}]") for index, item in enumerate(listed(data, path))]
    entries = {entry.name: entry for entry in map(_entry, readers)}
    return MappingFile(MappingProxyType(entries)), warnings


def _entry(reader: Reader) -> MappingEntry:
    unrolled: dict[str, tuple[tuple[str, int], ...]] = {}
    if reader.has("spatial_mapping") and not reader.empty("spatial_mapping"):
        part = reader.part("spatial_mapping")
        for array in reader.mapping("spatial_mapping"):
            unrolled[array] = tuple(_loop(part, array, text) for text in part.strings(array))
    hint = reader.part("spatial_mapping_hint") if reader.has("spatial_mapping_hint") else None
    links = reader.part("memory_operand_links")
    return MappingEntry(
        name=reader.text("name"),
        unrolled=MappingProxyType(unrolled),
        hints=MappingProxyType({array: tuple(hint.strings(array)) for array in hint.keys} if hint else {}),
        order=_order(reader) if reader.has("temporal_ordering") and not reader.empty("temporal_ordering") else (),
        slots=MappingProxyType({name: links.text(name) for name in links.keys}),
    )


def _order(reader: Reader) -> tuple[tuple[str, int | None], ...]:
    return tuple(
        (str(dim), None if steps == REST else _steps(reader, "temporal_ordering", steps, f"[{dim}, {steps}]"))
        for dim, steps in reader.pairs("temporal_ordering")
    )


def _steps(reader: Reader, key: str, value: object, whole: str) -> int:
    """How often a loop runs."""
    text = str(value)
    if not (text.isascii() and text.isdigit() and len(text) < MOST_DIGITS and int(text)):
        raise reader.wrong(key, f"'{whole[:LONGEST]}' is not a dimension with its steps, such as 'K, 32'")
    return int(text)


def _loop(part: Reader, array: str, text: str) -> tuple[str, int]:
    dim, _, steps = (piece.strip() for piece in text.partition(","))
    return dim, _steps(part, array, steps, text)
