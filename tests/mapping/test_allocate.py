"""Loops of one order go to the memories that the original gives them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from price.small_array import BUFFER, MACHINE, REGISTER, SPATIAL, TEMPORAL, product
from price.zigzag_lines import machine, sampled, searched, stated_layer, stated_spatial, stated_temporal
from tilewright.errors import TilewrightError
from tilewright.mapping.allocate import allocate


def test_a_small_layer() -> None:
    """The register of 32 bits keeps two sums of 16 bits, while C and K run; the buffer has room for everything."""
    assert dict(allocate(product(), MACHINE, SPATIAL, TEMPORAL.order).cuts) == {"O": (2, 3), "I": (3,), "W": (3,)}


def test_no_mapping_says_what_is_missing() -> None:
    small = replace(MACHINE, memories=(REGISTER, replace(BUFFER, bits=200)))
    with pytest.raises(TilewrightError) as caught:
        allocate(product(), small, SPATIAL, TEMPORAL.order)
    assert "memory 'buffer' is 56 bits too small for I and W and O" in str(caught.value)
    assert "W needs 128 of 200 bits" in str(caught.value)


@pytest.mark.cases
def test_allocations_of_the_original() -> None:
    for line in (*sampled(), *searched()):
        stated = stated_temporal(line)
        found = allocate(
            stated_layer(line),
            machine(line["accelerator"]),
            stated_spatial(line["user_spatial_mapping"]),
            stated.order,
            even=line.get("tm_type") == "even",
        )
        assert found.cuts == stated.cuts
