"""ZigZag's workload files in YAML: one layer after another, as equations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from tilewright.core.equation import LayerText, parse_equation, read_layer
from tilewright.core.reader import Reader
from tilewright.core.workload import Workload
from tilewright.frontend.zigzag_machine import load_yaml

LINKS = {"O": "O", "W": "I2", "I": "I1"}
"""The slots of operands with usual names; a mapping file may say otherwise."""


def read_yaml_workload(path: Path) -> tuple[Workload, tuple[str, ...]]:
    """The layers of a workload file, and warnings."""
    data, warnings = load_yaml(path)
    return workload_of_items(cast("list[Any]", data or []), path), warnings


def workload_of_items(items: Sequence[object], path: Path) -> Workload:
    """The layers of what a workload file holds; `path` is what errors call it."""
    readers = [Reader(path, item, f"[{index}]") for index, item in enumerate(items)]
    names = {reader.integer("id"): _name(reader) for reader in readers}
    return Workload(path.stem, tuple(read_layer(_layer(reader, names)) for reader in readers))


def _name(reader: Reader) -> str:
    return reader.text("name") if reader.has("name") else f"Layer{reader.integer('id')}"


def _layer(reader: Reader, names: dict[int, str]) -> LayerText:
    number = reader.integer("id")
    dims, sizes = reader.strings("loop_dims"), reader.integers("loop_sizes")
    if len(dims) != len(sizes):
        raise reader.wrong("loop_sizes", f"has {len(sizes)} entries for {len(dims)} dimensions")
    equation = reader.text("equation")
    operands = [name for name, _ in parse_equation(equation)[1]]
    sources = cast("dict[str, int]", reader.mapping("operand_source") if reader.has("operand_source") else {})
    for operand, source in sources.items():
        if source not in names:
            raise reader.wrong(f"operand_source.{operand}", f"there is no layer {source}")
    axes = [axis.upper() for axis in reader.strings("pr_loop_dims")] if reader.has("pr_loop_dims") else []
    return LayerText(
        name=names[number],
        kind=reader.text("operator_type"),
        equation=equation,
        dims={dim.upper(): size for dim, size in zip(dims, sizes, strict=True)},
        relations=tuple(reader.strings("dimension_relations")) if reader.has("dimension_relations") else (),
        bits=cast("dict[str, int]", reader.mapping("operand_precision")),
        sources={name: (names[source],) for name, source in sources.items() if source != number},
        slots={name: LINKS[name] for name in operands if name in LINKS},
        constants=frozenset(name for name in operands if sources.get(name, number) == number),
        axis_sizes=dict(zip(axes, reader.integers("pr_loop_sizes"), strict=True))
        if reader.has("pr_loop_sizes")
        else {},
        padding=_padding(reader, axes),
    )


def _padding(reader: Reader, axes: list[str]) -> dict[str, tuple[int, int]]:
    if not reader.has("padding"):
        return {}
    pairs = cast("list[list[int]]", reader.value("padding"))
    return {axis: (before, after) for axis, (before, after) in zip(axes, pairs, strict=True)}
