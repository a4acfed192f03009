"""What is known before a search: no mapping is below it, and it leaves little to search."""

from __future__ import annotations

import pytest

from mapping.brute_force import all_costs
from mapping.random_problems import random_problem
from tilewright.core.workload import Layer, Operand
from tilewright.machine.library import load_array
from tilewright.mapping.batch import Evaluator
from tilewright.mapping.best import best_mapping
from tilewright.mapping.bounds import Bounds
from tilewright.mapping.floors import Floors
from tilewright.mapping.goals import Wanted
from tilewright.mapping.hiding import Loads
from tilewright.mapping.parts import Space
from tilewright.mapping.spatial import candidates
from tilewright.mapping.wired import wired

ROUNDING = 1 + 1e-9


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_nothing_is_below_the_floors(seed: int, corrected: bool) -> None:
    found = random_problem(seed, 3, corrected=corrected)
    energy, latency = all_costs(found)
    if not len(energy):
        return
    least = Floors(found.layer, found.engine, corrected=corrected).least(found.spatial)
    assert least[0] <= energy.min() * ROUNDING
    assert least[1] <= latency.min() * ROUNDING


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_no_mapping_is_below_all_parts(seed: int, corrected: bool) -> None:
    found = random_problem(seed, 3, corrected=corrected)
    energy, latency = all_costs(found)
    if not len(energy):
        return
    space = Space(Evaluator(found), Wanted())
    loads = Loads(space)
    parts = space.parts()
    assert min(map(space.least_energy, parts)) <= energy.min() * ROUNDING
    assert min(loads.least_latency(space, part) for part in parts) <= latency.min() * ROUNDING
    bounds = [Bounds(space, loads, part) for part in parts]
    for one in bounds:
        assert one.apart[0] <= one.root[0] * ROUNDING
        assert one.apart[1] <= max(one.root[1] * ROUNDING, one.root[1] / ROUNDING)
    assert min(one.root[0] for one in bounds) <= energy.min() * ROUNDING
    assert min(one.root[1] for one in bounds) <= latency.min() * ROUNDING


@pytest.mark.parametrize(("corrected", "product"), [(True, 145019717795.84), (False, 74725317381.12)])
def test_a_product_on_all_spatial_mappings_of_a_large_machine(corrected: bool, product: float) -> None:
    engine = load_array("tpu-v4i-like")
    inputs = (Operand("A", "I1", ("M", "K")), Operand("B", "I2", ("K", "N")))
    layer = Layer("product", "matmul", dict.fromkeys("MNK", 512), Operand("Y", "O", ("M", "N"), (), 32, 8), inputs)
    spatials = candidates(layer, engine, hints=wired(layer, engine), most=None)
    assert len(spatials) == 576
    result = best_mapping(layer, engine, spatials, "edp", corrected=corrected)
    assert result.proved
    assert result.best[0].product == pytest.approx(product)
    assert result.covered > 1e22
