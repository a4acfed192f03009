"""Mappings in the YAML form of Timeloop: for each memory its loops in time, its unrolled loops and what it keeps.

Timeloop has one order of loops for each memory and cuts it at the same place for all operands, while here each operand
has its own cuts. Each memory gets the loops between its cuts; where operands of a memory are cut apart, it is written
once for each of them (`MEMORY.OPERAND`), in the order of the cuts. That form reads back exactly.
"""

from __future__ import annotations

import re
from typing import cast

import yaml

from tilewright.base.descriptions import parse_yaml
from tilewright.core.mapping import SpatialMapping, TemporalMapping
from tilewright.core.workload import Layer
from tilewright.errors import TilewrightError
from tilewright.machine.array import ArrayEngine
from tilewright.mapping.text import check

Loops = tuple[tuple[str, int], ...]
LONGEST = 200
"""Letters of a reason."""


def to_timeloop(layer: Layer, engine: ArrayEngine, spatial: SpatialMapping, temporal: TemporalMapping) -> str:
    """The text of a mapping; targets from the array outwards."""
    cuts: list[tuple[int, int, str, str]] = []
    for operand in layer.operands:
        for memory, cut in zip(engine.levels(operand.slot), temporal.cuts[operand.name], strict=True):
            cuts.append((cut, engine.memories.index(memory), memory.name, operand.name))
    entries: list[dict[str, object]] = [
        {
            "target": f"array.{array}",
            "type": "spatial",
            "factors": _factors(layer, loops),
            "permutation": [dim for dim, _ in loops],
        }
        for array, loops in spatial.loops.items()
        if loops
    ]
    done = 0
    for cut, _, memory, operand in sorted(cuts, key=lambda found: found[:2]):
        loops = temporal.order[done:cut]
        done = cut
        entries.append(
            {
                "target": f"{memory}.{operand}",
                "type": "temporal",
                # One factor a loop: a dimension may occur more than once here.
                "factors": [f"{dim}={steps}" for dim, steps in loops],
                "permutation": [dim for dim, _ in loops],
            }
        )
        others = [other.name for other in layer.operands if other.name != operand]
        entries.append({"target": f"{memory}.{operand}", "type": "bypass", "keep": [operand], "bypass": others})
    return yaml.safe_dump({"mapping": entries}, sort_keys=False, default_flow_style=None, width=120)


def _factors(layer: Layer, loops: Loops) -> list[str]:
    return [f"{dim}={dict(loops).get(dim, 1)}" for dim in layer.dims if dict(loops).get(dim, 1) > 1]


def from_timeloop(layer: Layer, engine: ArrayEngine, text: str) -> tuple[SpatialMapping, TemporalMapping]:
    """The mapping of such a text. A target without an operand keeps what its `bypass` entry says, by default all."""
    try:
        return _read(layer, engine, text)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _wrong(layer, f"something is missing or of the wrong kind: {str(error)[:LONGEST]}") from error


def _read(layer: Layer, engine: ArrayEngine, text: str) -> tuple[SpatialMapping, TemporalMapping]:
    data, _ = parse_yaml(text)
    entries = [dict(entry) for entry in cast("dict[str, list[dict[str, object]]]", data)["mapping"]]
    spatial: dict[str, Loops] = dict.fromkeys(engine.dims, ())
    order: list[tuple[str, int]] = []
    cuts: dict[str, dict[str, int]] = {operand.name: {} for operand in layer.operands}
    bypassed = {str(e["target"]): set(cast("list[str]", e.get("bypass", []))) for e in entries if e["type"] == "bypass"}
    for entry in entries:
        target, kind = str(entry["target"]), entry["type"]
        memory, _, operand = target.partition(".")
        if kind == "spatial":
            array = operand if operand in engine.dims else memory
            if array not in engine.dims:
                raise _wrong(layer, f"array '{engine.name}' has no dimension {array}")
            spatial[array] = _loops(layer, entry)
        elif kind == "temporal":
            order += _loops(layer, entry)
            for name, found in cuts.items():
                if (operand == name or not operand) and name not in bypassed.get(target, set()):
                    found[memory] = len(order)
    mapped = SpatialMapping(spatial)
    try:
        kept = {o.name: tuple(cuts[o.name][m.name] for m in engine.levels(o.slot)) for o in layer.operands}
    except KeyError as error:
        raise _wrong(layer, f"no target says what memory {error} keeps") from error
    temporal = TemporalMapping(tuple(order), {name: (*found[:-1], len(order)) for name, found in kept.items()})
    check(layer, engine, mapped, temporal)
    return mapped, temporal


def _loops(layer: Layer, entry: dict[str, object]) -> Loops:
    """Factors in the order of the permutation (innermost first); without one, as they stand."""
    given = entry.get("factors", [])
    texts = given.split() if isinstance(given, str) else [str(text) for text in cast("list[object]", given)]
    loops: list[tuple[str, int]] = []
    for text in texts:
        found = re.fullmatch(r"([A-Za-z]\w*?)\s*=?\s*(\d+)", text.strip().rstrip(","))
        if not found or found[1] not in layer.dims:
            raise _wrong(layer, f"'{text[:LONGEST]}' is no factor of its dimensions {', '.join(layer.dims)}")
        if int(found[2]) > 1:
            loops.append((found[1], int(found[2])))
    said = entry.get("permutation", "")
    names = re.findall(r"\w+", said) if isinstance(said, str) else [str(name) for name in cast("list[object]", said)]
    if len(set(names)) < len(names):
        return tuple(loops)
    rank = {name: index for index, name in enumerate(names)}
    return tuple(sorted(loops, key=lambda loop: rank.get(loop[0], len(rank))))


def _wrong(layer: Layer, why: str) -> TilewrightError:
    return TilewrightError(
        "bad-mapping",
        f"layer '{layer.name}': not a mapping in Timeloop's form: {why}",
        help="write one with to_timeloop for this layer and machine, and change that",
    )
