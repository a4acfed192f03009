"""What networks cost: equal layers once, any number of processes, everything costs something, given orders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

import tilewright
from onnx_models import model, node, value, write
from tilewright import MapOptions, TilewrightError
from tilewright.api.costing import read_network
from tilewright.api.mapping import Known
from tilewright.core.workload import Layer, Workload
from tilewright.core.workload_file import equation_layer, read_workload_file
from tilewright.machine.library import machine_names
from tilewright.mapping.goals import Objective
from tilewright.mapping.wired import Unrolling


def product(m: int, n: int, k: int) -> Layer:
    return equation_layer("O[m][n] += A[m][k] * B[k][n]", {"M": m, "N": n, "K": k})


def block(tmp_path: Path) -> Path:
    """Two equal convolutions, a pool, a view, a product and a softmax."""
    weight, dense = np.zeros((4, 4, 3, 3), np.float32), np.zeros((4, 6), np.float32)
    nodes = [
        node("Conv", "x w", "a", name="conv1", pads=[1, 1, 1, 1]),
        node("Conv", "a v", "b", name="conv2", pads=[1, 1, 1, 1]),
        node("GlobalAveragePool", "b", "c", name="pool"),
        node("Flatten", "c", "d", name="flat"),
        node("MatMul", "d m", "e", name="dense"),
        node("Softmax", "e", "y", name="softmax"),
    ]
    constants = {"w": weight, "v": weight + 1, "m": dense}
    return write(tmp_path / "block.onnx", model(nodes, [value("x", (1, 4, 8, 8))], ["y"], constants=constants))


@pytest.mark.parametrize("machine", machine_names())
def test_every_operator_costs_something_on_every_machine(machine: str, tmp_path: Path) -> None:
    found = tilewright.cost(block(tmp_path), machine)
    assert [n.name for n in found.nodes if not n.layers] == ["flat"]
    for each in found.nodes:
        if each.layers:
            assert each.energy > 0
            assert each.cycles > 0
            assert each.operations > 0
    assert found.proved
    assert found.narrowed
    assert found.energy == sum(n.energy for n in found.nodes)


def test_equal_layers_are_searched_once(tmp_path: Path) -> None:
    found = tilewright.cost(block(tmp_path), "tpu-like")
    first, second = found.nodes[0].layers[0], found.nodes[1].layers[0]
    assert found.searched == len(found.layers) - 1
    assert (first.layer.name, second.layer.name) == ("conv1", "conv2")
    assert first.cost.cycles == second.cost.cycles


def test_layers_that_are_known_are_not_searched(tmp_path: Path) -> None:
    known: Known = {}
    first = tilewright.cost(block(tmp_path), "tpu-like", known=known)
    again = tilewright.cost(block(tmp_path), "tpu-like", known=known)
    assert first.searched == len(known) > 0
    assert again.searched == 0
    assert (again.energy, again.cycles) == (first.energy, first.cycles)


def test_layers_of_one_shape_have_one_search_and_names_of_their_own() -> None:
    """The second product has other names, in the same places."""
    layers = (
        product(8, 16, 4),
        replace(equation_layer("Y[a][b] += X[a][c] * W[c][b]", {"A": 8, "B": 16, "C": 4}), name="two"),
    )
    found = tilewright.cost(Workload("both", layers), "tpu-like")
    first, second = found.layers
    assert found.searched == 1
    assert second.cost.energy == first.cost.energy
    assert set(second.cost.temporal.cuts) == {"Y", "X", "W"}
    assert {move.operand for move in second.cost.moves} == {"Y", "X", "W"}
    assert tilewright.search(layers[1], "tpu-like")[0].cost.energy == second.cost.energy


@pytest.mark.parametrize("objective", ["latency", "energy", "edp", "pareto"])
def test_a_layer_with_nothing_left_to_run_in_time(objective: Objective) -> None:
    layer = equation_layer("Y[d] += A[d] * B[d]", {"D": 8})
    found = tilewright.search(layer, "edge-array", MapOptions(objective=objective))
    assert len(found) == 1 or objective == "pareto"
    assert all(one.proved and one.cost.cycles > 0 for one in found)


def test_zeros_save_energy() -> None:
    dense = tilewright.search(product(16, 16, 16), "tpu-like")[0].cost
    sparse = tilewright.search(product(16, 16, 16), "tpu-like", MapOptions(density={"I2": 0.25, "A": 0.5}))[0].cost
    assert sparse.unit_energy == pytest.approx(dense.unit_energy / 8)
    assert sparse.energy < dense.energy


def test_results_do_not_depend_on_processes_or_repetition(tmp_path: Path) -> None:
    once = tilewright.cost(block(tmp_path), "tpu-like", MapOptions(objective="energy"))
    again = tilewright.cost(block(tmp_path), "tpu-like", MapOptions(objective="energy"))
    several = tilewright.cost(block(tmp_path), "tpu-like", MapOptions(objective="energy", jobs=2))
    chosen = [[(m.cost.spatial, m.cost.temporal, m.evaluated) for m in one.layers] for one in (once, again, several)]
    assert chosen[0] == chosen[1] == chosen[2]


def test_objectives() -> None:
    layer = product(24, 20, 12)
    (fast,) = tilewright.search(layer, "meta-prototype-like", MapOptions(objective="latency"))
    (frugal,) = tilewright.search(layer, "meta-prototype-like", MapOptions(objective="energy"))
    (both,) = tilewright.search(layer, "meta-prototype-like", MapOptions(objective="edp"))
    front = tilewright.search(layer, "meta-prototype-like", MapOptions(objective="pareto"))
    assert front[0].cost.cycles == fast.cost.cycles <= both.cost.cycles
    assert front[-1].cost.energy == pytest.approx(frugal.cost.energy)
    assert both.cost.product == pytest.approx(min(m.cost.product for m in front))
    with pytest.raises(TilewrightError, match="one mapping for each layer"):
        tilewright.cost(layer, "tpu-like", MapOptions(objective="pareto"))


def test_given_order_is_no_better_than_the_search() -> None:
    layer = product(64, 64, 64)
    unrolling = Unrolling((("D1", (("N", 32),)), ("D2", (("K", 32),))))
    order = (("M", 8), ("K", None), ("N", None))
    (given,) = tilewright.search(layer, "tpu-like", MapOptions(unrolling=unrolling, order=order))
    (best,) = tilewright.search(layer, "tpu-like", MapOptions(unrolling=unrolling))
    assert given.cost.temporal.order == (("M", 8), ("K", 2), ("N", 2), ("M", 8))
    assert best.cost.spatial == given.cost.spatial
    assert best.cost.product <= given.cost.product
    with pytest.raises(TilewrightError, match="do not divide"):
        tilewright.search(layer, "tpu-like", MapOptions(unrolling=unrolling, order=(("M", 5),)))


def test_results_that_stay_on_chip_cost_less(tmp_path: Path) -> None:
    far = tilewright.cost(block(tmp_path), "tpu-like")
    near = tilewright.cost(block(tmp_path), "tpu-like", MapOptions(locality=True))
    assert near.energy < far.energy


def test_fewer_bits_cost_less() -> None:
    wide, small = (
        tilewright.cost(product(32, 32, 32), "tpu-like", MapOptions(bits=bits))
        for bits in ({"I1": 8, "I2": 8, "O": 16, "final": 8}, {"I1": 4, "I2": 4, "O": 16, "final": 8})
    )
    assert small.energy < wide.energy


def test_layers_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text(
        """\
layers:
  - name: conv
    equation: O[k][oy][ox] += W[k][c][fy][fx] * I[c][iy][ix]
    where: [iy = 2*oy + fy, ix = 2*ox + fx]
    sizes: {K: 8, C: 4, OY: 5, OX: 5, FY: 3, FX: 3}
    bits: {W: 4, I: 8, O: 20, O_final: 8}
    constants: [W]
  - name: sum
    equation: S[k] += A[k][p]
    sizes: {K: 8, P: 25}
    from: {A: conv}
""",
        encoding="utf-8",
    )
    conv, total = read_workload_file(path).layers
    image, weights = conv.operand("I"), conv.operand("W")
    assert (image.slot, weights.slot, weights.bits, conv.output.bits) == ("I1", "I2", 4, 20)
    assert conv.elements(image) == 4 * 11 * 11
    assert total.inputs[0].sources == ("conv",)
    found = tilewright.cost(path, "meta-prototype-like")
    assert [n.name for n in found.nodes] == ["conv", "sum"]
    assert read_network(path).workload.layers == (conv, total)
