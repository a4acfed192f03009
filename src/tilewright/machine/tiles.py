"""Memories that lie in tiles with some harts each; the part `tiles` of harts in a description."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, cast

from msgspec import Meta, structs

from tilewright.base.schema import Part, Source

MOST = 2**20
POWER = Annotated[int, Meta(ge=1, le=MOST)]
CYCLES = Annotated[int, Meta(ge=1, le=MOST)]


class TilesPart(Part, frozen=True, kw_only=True):
    """Tiles with some harts and banks each, in groups; all numbers of these are powers of two."""

    harts: POWER
    """Of a tile."""
    banks: POWER
    """Of a tile."""
    groups: POWER = 1
    """Of tiles."""
    subgroups: POWER = 1
    """Of each group."""
    own_bytes: Annotated[int, Meta(ge=0, le=MOST)] = 0
    """Bytes in a row that lie in one tile, at the start of the memory; all others lie in all banks in turn."""
    cycles_tile: CYCLES
    """From a request to its answer in the same tile."""
    cycles_subgroup: CYCLES
    """To another tile of the subgroup."""
    cycles_group: CYCLES
    """To another subgroup."""
    cycles_far: CYCLES
    """To another group."""


def tile_numbers(part: TilesPart | None, harts: int, banks: int, source: Source) -> Mapping[str, int] | None:
    """As the simulator takes them, for so many harts next to a memory of so many banks."""
    if part is None:
        return None
    tiles = harts // part.harts
    if tiles * part.harts != harts or tiles * part.banks != banks:
        raise source.wrong("", f"{harts} harts and {banks} banks are no tiles of {part.harts} and {part.banks}")
    return MappingProxyType({**cast("dict[str, int]", structs.asdict(part)), "tiles": tiles})
