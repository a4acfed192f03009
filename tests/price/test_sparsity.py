"""Operands with zeros: what they take in memories and on ports, and what operations with them cost."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from price.small_array import MACHINE, SPATIAL, TEMPORAL, product
from tilewright.core.mapping import SpatialMapping
from tilewright.core.workload import Layer
from tilewright.core.workload_file import print_workload, read_workload_file
from tilewright.machine.array import ArrayEngine, InMemoryCompute
from tilewright.mapping.best import best_mapping
from tilewright.price.array import evaluate, unit_energies
from tilewright.price.layers import thinned
from tilewright.price.sparsity import packed, packed_bits


def thin(layer: Layer, **densities: float) -> Layer:
    """The layer with these densities; all other operands have no zeros."""
    output, *inputs = (replace(o, density=densities.get(o.name, 1.0)) for o in layer.operands)
    return replace(layer, output=output, inputs=tuple(inputs))


@pytest.mark.parametrize(
    ("bits", "density", "expected"),
    [
        (8, 1.0, 8),
        (8, 0.9, 8),
        (8, 0.875, 8),
        (8, 0.75, 7),
        (8, 0.25, 3),
        (10, 0.7, 8),
        (8, 0.0, 1),
        (1, 0.5, 1),
        (0, 0.5, 0),
    ],
)
def test_bits_of_a_packed_element(bits: int, density: float, expected: int) -> None:
    """Its share of bits and one that says whether it is zero, but never more than it has."""
    assert packed_bits(bits, density) == expected


def test_nothing_changes_without_zeros() -> None:
    assert packed(product()) == product()


def test_sums_are_not_packed() -> None:
    layer = packed(thin(product(), I=0.5, O=0.25))
    assert [(o.bits, o.final_bits) for o in layer.operands] == [(16, 3), (5, 5), (8, 8)]


def test_units_idle_where_an_input_is_zero() -> None:
    """32 products of 0.5 pJ, of which an eighth has no zero; cycles of the array stay."""
    dense, sparse = (evaluate(thin(product(), I=d, W=d / 2), MACHINE, SPATIAL, TEMPORAL) for d in (1.0, 0.5))
    assert dense.unit_energy == pytest.approx(32 * 0.5 * 0.5)
    assert sparse.unit_energy == pytest.approx(32 * 0.5 * 0.125)
    assert sparse.latency.computing == dense.latency.computing


def test_packed_operands_take_fewer_words_and_cycles() -> None:
    """Weights of 8 bits over a port of 16 in steps of 8: two of them take a word; packed ones of 3 bits half a word."""
    dense = evaluate(product(), MACHINE, SPATIAL, TEMPORAL)
    sparse = evaluate(packed(thin(product(), W=0.25)), MACHINE, SPATIAL, TEMPORAL)
    words = [sum(move.words for move in cost.moves if move.operand == "W") for cost in (dense, sparse)]
    assert words == [16, 8]
    assert sparse.cycles <= dense.cycles


def test_in_memory_arrays_compute_with_zeros_too() -> None:
    engine = ArrayEngine("imc", {"D1": 4, "D2": 4}, (), compute_in_memory=InMemoryCompute(True, 8, 8, 2, 8))
    spatial = SpatialMapping({"D1": (("K", 4),), "D2": (("C", 4),)})
    dense, sparse = (unit_energies(thin(product(), I=density), engine, spatial) for density in (1.0, 0.5))
    assert dense == sparse


@pytest.mark.parametrize("objective", ["latency", "energy"])
def test_the_search_knows(objective: str) -> None:
    """Its best mapping costs what the model says, and no more than that of the dense layer."""
    costs: list[float] = []
    for layer in (
        product(rows=8, columns=8, depth=8),
        packed(thin(product(rows=8, columns=8, depth=8), I=0.5, W=0.25)),
    ):
        best = best_mapping(layer, MACHINE, [SPATIAL], "latency" if objective == "latency" else "energy").best[0]
        cost = evaluate(layer, MACHINE, best.spatial, best.temporal)
        assert (best.energy, best.latency) == pytest.approx((cost.energy, cost.cycles))
        costs.append(cost.cycles if objective == "latency" else cost.energy)
    assert costs[1] <= costs[0]


def test_a_file_says_how_many_zeros_there_are(tmp_path: Path) -> None:
    """It is printed as it was read; what the command line says comes before it."""
    path = tmp_path / "layers.yaml"
    text = 'layers: [{equation: "O[m][n] += A[m][k] * B[k][n]", sizes: {M: 8, N: 8, K: 8}, density: {B: 0.25}}]'
    path.write_text(text, encoding="utf-8")
    workload = read_workload_file(path)
    assert [operand.density for operand in workload.layers[0].operands] == [1, 1, 0.25]
    path.write_text(print_workload(workload), encoding="utf-8")
    assert read_workload_file(path).layers[0].inputs == workload.layers[0].inputs
    assert [operand.bits for operand in thinned(workload.layers[0], {}).inputs] == [8, 3]
    assert [operand.bits for operand in thinned(workload.layers[0], {"B": 0.5, "I1": 0.75}).inputs] == [7, 5]
