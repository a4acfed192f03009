"""ZigZag's workload files in YAML: one layer after another, as equations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeGuard

from tilewright.base.descriptions import stem_of
from tilewright.base.reader import Reader
from tilewright.base.schema import MOST_WHOLE
from tilewright.core.equation import LayerText, parse_equation, read_layer
from tilewright.core.workload import Workload
from tilewright.frontend.zigzag_machine import listed, load_yaml

LINKS = {"O": "O", "W": "I2", "I": "I1"}
"""The slots of operands with usual names; a mapping file may say otherwise."""


def read_yaml_workload(path: Path) -> tuple[Workload, tuple[str, ...]]:
    """The layers of a workload file, and warnings."""
    data, warnings = load_yaml(path)
    return workload_of_items(listed(data, path), path), warnings


def workload_of_items(items: Sequence[object], path: Path) -> Workload:
    """The layers of what a workload file holds; `path` is what errors call it."""
    return Workload(stem_of(path), tuple(map(read_layer, texts_of_items(items, path))))


def read_layer_texts(path: Path) -> tuple[tuple[LayerText, ...], tuple[str, ...]]:
    """The layers of a workload file as they are written, and warnings."""
    data, warnings = load_yaml(path)
    return texts_of_items(listed(data, path), path), warnings


def texts_of_items(items: Sequence[object], path: Path) -> tuple[LayerText, ...]:
    """The layers of what a workload file holds, as they are written."""
    readers = [Reader(path, item, f"[{index}]") for index, item in enumerate(items)]
    names = {reader.integer("id"): _name(reader) for reader in readers}
    return tuple(_layer(reader, names) for reader in readers)


def _name(reader: Reader) -> str:
    return reader.text("name") if reader.has("name") else f"Layer{reader.integer('id')}"


def _layer(reader: Reader, names: dict[int, str]) -> LayerText:
    number = reader.integer("id")
    dims, sizes = reader.names("loop_dims"), reader.integers("loop_sizes", 1)
    if len(dims) != len(sizes):
        raise reader.wrong("loop_sizes", f"has {len(sizes)} entries for {len(dims)} dimensions")
    equation = reader.text("equation")
    operands = [name for name, _ in parse_equation(equation)[1]]
    sources = _numbers(reader, "operand_source") if reader.has("operand_source") else {}
    for operand, source in sources.items():
        if source not in names:
            raise reader.wrong(f"operand_source.{operand}", f"there is no layer {source}")
    axes = [axis.upper() for axis in reader.names("pr_loop_dims")] if reader.has("pr_loop_dims") else []
    return LayerText(
        name=names[number],
        kind=reader.text("operator_type"),
        equation=equation,
        dims={dim.upper(): size for dim, size in zip(dims, sizes, strict=True)},
        relations=tuple(reader.strings("dimension_relations")) if reader.has("dimension_relations") else (),
        bits=_numbers(reader, "operand_precision"),
        sources={name: (names[source],) for name, source in sources.items() if source != number},
        slots={name: LINKS[name] for name in operands if name in LINKS},
        constants=frozenset(name for name in operands if sources.get(name, number) == number),
        axis_sizes=_axis_sizes(reader, axes) if reader.has("pr_loop_sizes") else {},
        padding=_padding(reader, axes) if reader.has("padding") else {},
    )


def _numbers(reader: Reader, key: str) -> dict[str, int]:
    part = reader.part(key)
    return {name: part.integer(name) for name in reader.mapping(key)}


def _axis_sizes(reader: Reader, axes: list[str]) -> dict[str, int]:
    sizes = reader.integers("pr_loop_sizes", 1)
    if len(sizes) != len(axes):
        raise reader.wrong("pr_loop_sizes", f"has {len(sizes)} entries for {len(axes)} axes")
    return dict(zip(axes, sizes, strict=True))


def _padding(reader: Reader, axes: list[str]) -> dict[str, tuple[int, int]]:
    pairs = [(before, after) for before, after in reader.pairs("padding") if _steps(before) and _steps(after)]
    if len(pairs) != len(axes) or len(pairs) != len(reader.pairs("padding")):
        raise reader.wrong("padding", f"must be two numbers for each of {len(axes)} axes")
    return dict(zip(axes, pairs, strict=True))


def _steps(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and 0 <= value <= MOST_WHOLE
