"""Nodes and what they need of one another, against a count of elements one by one."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest

from schedule.small import SLOTS, add, chain, conv
from tilewright.core.equation import LayerText
from tilewright.core.split import Loops, OperationSplit
from tilewright.schedule.network import network_of_equations
from tilewright.schedule.nodes import Nodes, split_network
from tilewright.schedule.overlaps import Boxes, overlapping


def _elements(boxes: Boxes, number: int) -> set[int]:
    axes = [range(a, b) for a, b in zip(boxes.starts[number].tolist(), boxes.stops[number].tolist(), strict=True)]
    return {int(np.ravel_multi_index(point, boxes.shape)) if point else 0 for point in product(*axes)}


def _random_boxes(random: Random, shape: tuple[int, ...], count: int) -> Boxes:
    starts = np.array([[random.randint(0, size) for size in shape] for _ in range(count)]).reshape(count, len(shape))
    stops = np.array([[random.randint(0, size) for size in shape] for _ in range(count)]).reshape(count, len(shape))
    return Boxes(shape, starts, stops)


@pytest.mark.parametrize(
    ("shape", "other"),
    [
        ((5, 6), (5, 6)),
        ((12,), (3, 4)),
        ((2, 3, 4), (6, 4)),
        ((2, 6), (4, 3)),
        ((1, 8, 1, 1), (1, 8)),
        ((4, 3, 1), (1, 4, 3)),
        ((), ()),
    ],
)
def test_boxes_overlap_where_they_share_an_element(shape: tuple[int, ...], other: tuple[int, ...]) -> None:
    for seed in range(20):
        random = Random(seed)
        these, those = _random_boxes(random, shape, 7), _random_boxes(random, other, 6)
        first, second = overlapping(these, those)
        wanted = [(one, two) for two in range(6) for one in range(7) if _elements(these, one) & _elements(those, two)]
        assert list(zip(first.tolist(), second.tolist(), strict=True)) == wanted


def _edges(nodes: Nodes) -> set[tuple[str, str]]:
    behind = np.repeat(np.arange(nodes.count), np.diff(nodes.before_starts))
    return {(nodes.name(int(one)), nodes.name(int(two))) for one, two in zip(nodes.before, behind, strict=True)}


def test_rows_need_the_rows_that_their_windows_touch() -> None:
    rows = OperationSplit(within=(("OY", "all"),))
    nodes = split_network(chain(2), {"c0": rows, "c1": rows})
    wanted = {(f"c{i} [{row}]", f"c{i} [{row + 1}]") for i in range(2) for row in range(5)}
    wanted |= {(f"c0 [{r}]", f"c1 [{row}]") for row in range(6) for r in range(6) if abs(r - row) <= 1}
    assert _edges(nodes) == wanted
    assert nodes.chained == 10


def test_parts_that_do_not_divide_are_cut_short() -> None:
    nodes = split_network(chain(1), {"c0": OperationSplit(within=(("OY", 4),))})
    assert nodes.count == 3
    assert [shape["OY"] for shape in nodes.tiles[0].shapes] == [2]
    uneven = split_network(chain(1), {"c0": OperationSplit(within=(("OX", 5), ("OY", "all")))})
    assert sorted(shape["OX"] for shape in uneven.tiles[0].shapes) == [2]
    assert int(uneven.bits[uneven.makers >= 0].sum()) == 2 * 6 * 6 * 8


def test_slices_across_engines_are_groups_of_their_own() -> None:
    nodes = split_network(chain(1), {"c0": OperationSplit((("K", 2),), (("OY", 3),))})
    assert nodes.groups == (("c0", 0), ("c0", 1))
    assert nodes.group.tolist() == [0, 1] * 3
    assert _edges(nodes) == {(f"c0 [{i}]", f"c0 [{i + 2}]") for i in range(4)}


def test_weights_are_one_tensor_for_all_rows_and_residuals_are_read_twice() -> None:
    layers = [conv("c0"), conv("c1", "c0"), add("sum", "c1", "c0")]
    rows: Loops = (("OY", "all"),)
    nodes = split_network(
        network_of_equations("residual", layers), {each.name: OperationSplit(within=rows) for each in layers}
    )
    weights = [i for i, tensor in enumerate(nodes.tensor_of) if nodes.tensor_names[tensor] == "c0.W"]
    assert len(weights) == 1
    assert ("c0 [3]", "sum [3]") in _edges(nodes)
    assert ("c0 [2]", "sum [3]") not in _edges(nodes)


def test_a_product_behind_a_flattened_convolution() -> None:
    product_text = LayerText(
        "fc",
        "gemm",
        "O[k] += W[k][c] * I[c]",
        {"K": 4, "C": 72},
        sources={"I": ("c0",)},
        slots=SLOTS,
    )
    network = network_of_equations("flat", [conv("c0"), product_text])
    nodes = split_network(
        network, {"c0": OperationSplit(within=(("OY", 3),)), "fc": OperationSplit(within=(("K", 2),))}
    )
    assert {edge for edge in _edges(nodes) if edge[1].startswith("fc") and edge[0].startswith("c0")} == {
        (f"c0 [{i}]", f"fc [{j}]") for i in range(3) for j in range(2)
    }


def test_groups_and_channels_are_one_axis() -> None:
    grouped = LayerText(
        "g",
        "conv",
        "O[g][k][oy][ox] += W[g][k][c][fy][fx] * I[g][c][iy][ix]",
        {"G": 2, "K": 1, "C": 1, "OY": 6, "OX": 6, "FY": 1, "FX": 1},
        ("iy = 1*oy + 1*fy", "ix = 1*ox + 1*fx"),
        sources={"I": ("c0",)},
        slots=SLOTS,
    )
    network = network_of_equations("grouped", [conv("c0"), grouped])
    nodes = split_network(network, {"c0": OperationSplit(within=(("K", 2),)), "g": OperationSplit(within=(("G", 2),))})
    between = {edge for edge in _edges(nodes) if edge[0][0] != edge[1][0]}
    assert between == {("c0 [0]", "g [0]"), ("c0 [1]", "g [1]")}
