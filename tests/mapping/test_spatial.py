"""Unrollings: given ones are reduced to what is there, open ones are filled."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from price.small_array import BUFFER, MACHINE, REGISTER, product
from price.zigzag_lines import machine, mapping, sampled, searched, stated_layer, stated_spatial
from tilewright.core.mapping import SpatialMapping
from tilewright.errors import TilewrightError
from tilewright.machine.array import FROM_LOW, Port
from tilewright.mapping.spatial import candidates, normalise

WIDE = replace(MACHINE, dims={"D1": 8, "D2": 4}, memories=(REGISTER, replace(BUFFER, serves=("D1", "D2"))))


def loops(found: SpatialMapping) -> dict[str, tuple[tuple[str, int], ...]]:
    return {array: tuple(sorted(loop for loop in some if loop[1] > 1)) for array, some in found.loops.items()}


def test_no_more_than_the_layer_has() -> None:
    """4 columns, of which a port of 16 bits brings weights for 2; dimensions that the layer does not have go."""
    found = normalise(product(), WIDE, {"D1": (("K", 64),), "D2": (("OX", 4),)})
    assert loops(found) == {"D1": (("K", 2),), "D2": ()}


def test_no_more_than_the_inner_memory_holds() -> None:
    """A register of 32 bits that serves a row holds two sums of 16 bits, whatever its ports carry."""
    ports = tuple(replace(port, bits=256) for port in REGISTER.ports)
    row = replace(WIDE, memories=(replace(REGISTER, serves=("D1",), ports=ports), replace(BUFFER, slots=("I1", "I2"))))
    wide = replace(row, memories=(row.memories[0], replace(row.memories[1], ports=(_wide(),), serves=("D1", "D2"))))
    assert loops(normalise(product(), wide, {"D1": (("K", 4),)}))["D1"] == (("K", 2),)


def _wide() -> Port:
    port = BUFFER.ports[0]
    return replace(port, bits=256, moves=tuple(move for move in port.moves if move[1] != FROM_LOW))


def test_an_array_dimension_that_there_is_not() -> None:
    with pytest.raises(TilewrightError, match="array 'small' has no dimension D7"):
        normalise(product(), MACHINE, {"D7": (("K", 2),)})


def test_open_dimensions_are_filled() -> None:
    """The most units first."""
    found = candidates(product(rows=8, columns=8), MACHINE, most=None)
    assert loops(found[0])["D1"] in ((("D", 2),), (("K", 2),))
    assert loops(found[-1])["D1"] == ()


@pytest.mark.cases
def test_mappings_of_files() -> None:
    """What ZigZag makes of the mapping files for each layer."""
    for line in (*sampled(), *searched()):
        layer, engine = stated_layer(line), machine(line["accelerator"])
        entry = mapping(line["mapping"]).entry(layer)
        found = candidates(layer, engine, entry.unrolled, entry.hints, mixed="mixed" in line["flags"])
        assert loops(stated_spatial(line["user_spatial_mapping"])) in [loops(some) for some in found]
        assert len(found) == 1 or "mixed" in line["flags"]
