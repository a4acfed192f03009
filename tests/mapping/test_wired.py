"""What may be unrolled where, by the wires of a machine."""

from __future__ import annotations

from math import prod

import pytest
from msgspec.structs import replace

from tilewright.core.workload import Layer
from tilewright.core.workload_file import equation_layer
from tilewright.machine.library import load_array
from tilewright.mapping.wired import Unrolling, unrollings, wired
from tilewright.price.layers import narrow

BITS = {"O": 16}

CONV = narrow(
    equation_layer(
        "O[k][oy][ox] += I[c][iy][ix] * W[k][c][fy][fx], iy = oy + fy, ix = ox + fx",
        {"K": 64, "C": 3, "OY": 20, "OX": 20, "FY": 3, "FX": 3},
    ),
    BITS,
)
ADD = equation_layer("O[p] += A[p] * B[p]", {"P": 100})
RELU = equation_layer("O[p] += A[p]", {"P": 100})
SCALE = equation_layer("O[p] += A[p] * B[q]", {"P": 100, "Q": 1})


@pytest.mark.parametrize(
    ("layer", "machine", "expected"),
    [
        (CONV, "tpu-like", {"D1": ("K",), "D2": ("C", "FY", "FX")}),
        (CONV, "eyeriss-like", {"D1": ("K",), "D2": ("OY", "OX")}),
        (ADD, "tpu-like", {"D1": ("P",), "D2": ()}),
        (RELU, "tpu-like", {"D1": ("P",), "D2": ()}),
        (SCALE, "tpu-like", {"D1": ("P",), "D2": ()}),
    ],
)
def test_wires_decide_by_the_operands_that_a_loop_indexes(
    layer: Layer, machine: str, expected: dict[str, tuple[str, ...]]
) -> None:
    assert wired(layer, load_array(machine)) == expected


def test_most_units_come_first_and_a_loop_may_lie_along_two_dimensions() -> None:
    first, *_ = unrollings(CONV, load_array("edge-tpu-like"))
    assert str(first) == "D1: K=8, D2: C=3, D3: OY=4, D4: OY=4"
    assert len(unrollings(CONV, load_array("edge-tpu-like"), Unrolling(most=7))) == 7


def test_tiles_of_what_is_unrolled_fit_into_memories() -> None:
    machine = load_array("neureka-3x3")
    pixels = equation_layer("O[p] += A[p][q]", {"P": 600, "Q": 64})
    for found in unrollings(pixels, machine):
        lane = [steps for array in ("X", "Y", "FX", "FY") for _, steps in found.loops[array]]
        assert 1 < prod(lane) * 8 <= 512


def test_given_dimensions_stay() -> None:
    machine = load_array("tpu-like")
    for found in unrollings(CONV, machine, Unrolling(given=(("D2", (("FX", 3), ("FY", 3))),))):
        assert found.loops["D2"] == (("FX", 3), ("FY", 3))
    assert all(found.loops["D1"][0][0] == "K" for found in unrollings(CONV, machine))


def test_without_wires_anything_goes_anywhere() -> None:
    machine = replace(load_array("tpu-like"), wiring={})
    assert wired(CONV, machine) == {}
    assert unrollings(CONV, machine)[0].factor("K") > 1


def test_several_loops_share_a_dimension_if_wanted() -> None:
    first, *_ = unrollings(CONV, load_array("tpu-like"), Unrolling(mixed=True))
    assert len(first.loops["D2"]) > 1
