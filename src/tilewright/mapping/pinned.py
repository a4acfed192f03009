"""Mappings that a user gives instead of a search: files of them, and whether what they keep has room.

A `.json` file holds any number of mappings, each with the names of its layer and machine (`tilewright.mapping.text`); a
`.yaml` file holds one in the form of Timeloop (`tilewright.mapping.timeloop`), which names neither.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from msgspec import Struct

from tilewright.base.descriptions import read_text
from tilewright.core.mapping import SpatialMapping, TemporalMapping
from tilewright.core.workload import Layer
from tilewright.errors import TilewrightError
from tilewright.machine.array import ArrayEngine
from tilewright.mapping.allocate import tiles, too_small, usable
from tilewright.mapping.spatial import check_units
from tilewright.mapping.text import from_json, to_json
from tilewright.mapping.timeloop import from_timeloop, to_timeloop
from tilewright.price.array import ArrayCost

JSON, TIMELOOP = (".json",), (".yaml", ".yml")
ALL = "mappings"
"""The key of a file that holds several."""

SAME = 1e-9
"""Sizes that differ by less are the same: parts of units make them fractions."""


class Pinned(Struct, frozen=True):
    """A mapping that was read, as it stands in the file: only a layer and a machine give it a meaning."""

    layer: str
    machine: str
    """Empty where the form has no names."""
    value: object

    def read(
        self, layer: Layer, engine: ArrayEngine, *, corrected: bool = False
    ) -> tuple[SpatialMapping, TemporalMapping]:
        """The mapping for a layer, checked: loops run over all of it, and everything fits."""
        read = from_timeloop if isinstance(self.value, str) else from_json
        spatial, temporal = read(layer, engine, cast("str", self.value))
        check_room(layer, engine, spatial, temporal, corrected=corrected)
        return spatial, temporal


def pinned_for(layer: Layer, engine: ArrayEngine, pinned: Sequence[Pinned]) -> Pinned | None:
    """The mapping that is meant for a layer: that of its name and machine, or the only one of its name."""
    mine = [each for each in pinned if each.layer in ("", layer.name)]
    exact = [each for each in mine if each.machine == engine.name]
    return next(iter(exact or mine), None) if len(exact or mine) == 1 else None


def read_mappings(path: Path) -> tuple[Pinned, ...]:
    """The mappings of a file."""
    check_form(path)
    text = read_text(path, "bad-mapping")
    if path.suffix in TIMELOOP:
        return (Pinned("", "", text),)
    try:
        data: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _wrong(path, f"it is not JSON: {error}") from error
    top = cast("dict[str, object]", data) if isinstance(data, dict) else {}
    items = top.get(ALL, [top] if top else None)
    if not isinstance(items, list):
        raise _wrong(path, f"it holds neither a mapping nor a list of them under '{ALL}'")
    found: list[Pinned] = []
    for item in cast("list[object]", items):
        if not isinstance(item, dict):
            raise _wrong(path, f"'{ALL}' has an item that is not a mapping")
        names = cast("dict[str, object]", item)
        found.append(Pinned(str(names.get("layer", "")), str(names.get("machine", "")), names))
    return tuple(found)


def print_mappings(path: Path, costs: Sequence[ArrayCost]) -> str:
    """The text of a file of mappings, in the form that its name asks for."""
    check_form(path)
    if path.suffix in TIMELOOP:
        if len(costs) != 1:
            raise TilewrightError(
                "bad-argument",
                f"'{path}': a file in Timeloop's form holds one mapping, not {len(costs)}",
                help="name one layer, one machine and an objective with one result, or write a .json file",
            )
        return to_timeloop(costs[0].layer, costs[0].engine, costs[0].spatial, costs[0].temporal)
    values = [to_json(cost.layer, cost.engine, cost.spatial, cost.temporal) for cost in costs]
    lines = ",\n".join(f"    {json.dumps(value)}" for value in values)
    return f'{{\n  "{ALL}": [\n{lines}\n  ]\n}}\n'


def check_room(
    layer: Layer, engine: ArrayEngine, spatial: SpatialMapping, temporal: TemporalMapping, *, corrected: bool = False
) -> None:
    """An error where more units are used than there are, or tiles do not fit into a memory."""
    check_units(layer, engine, spatial.loops)
    taken = tiles(layer, engine, spatial, temporal)
    for memory in usable(engine, corrected=corrected):
        wanted = [(name, kept[memory.name]) for name, kept in taken.items() if memory.name in kept]
        if sum(bits for _, bits in wanted) > memory.bits * (1 + SAME):
            raise too_small(layer, memory, wanted, "keep less there, or make it larger")


def check_form(path: Path) -> None:
    """An error where a file's name does not say what form it has."""
    if path.suffix not in (*JSON, *TIMELOOP):
        raise TilewrightError(
            "bad-argument",
            f"'{path}': a file of mappings ends in .json, or in .yaml for the form of Timeloop",
            help="name it so",
        )


def _wrong(path: Path, why: str) -> TilewrightError:
    return TilewrightError("bad-mapping", f"'{path}': {why}", help="--export writes a file that can be read")
