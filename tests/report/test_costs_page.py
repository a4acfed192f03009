"""The page about costs: the same text each time, nothing unescaped, parts that add up to the whole."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

import tilewright
from tilewright.core.workload_file import equation_layer
from tilewright.price.array import ArrayCost
from tilewright.report.bars import LABEL, nest, scatter, stacked
from tilewright.report.costs import bytes_text, energy_by_memory, energy_text, latency_parts, nest_rows
from tilewright.report.costs_page import Costed, render_costs


@pytest.fixture(scope="module")
def cost() -> ArrayCost:
    layer = equation_layer("O[m][n] += A[m][k] * B[k][n]", {"M": 16, "N": 12, "K": 8})
    (found,) = tilewright.search(replace(layer, name="<one>"), "tpu-like")
    return found.cost


def test_page(cost: ArrayCost) -> None:
    network = Costed("<net>", cost.engine, (("<one>", (cost,)),))
    text = render_costs("<net>", [network, network], [[cost, cost]])
    assert text == render_costs("<net>", [network, network], [[cost, cost]])
    assert "<net>" not in text
    assert "<one>" not in text
    for title in ("Energy of the machines", "Energy times cycles", "Cycles of &lt;net&gt; on tpu-like", "Pareto front"):
        assert title in text


def test_parts_add_up(cost: ArrayCost) -> None:
    assert sum(energy_by_memory([cost], cost.engine).values()) == pytest.approx(cost.energy)
    assert sum(latency_parts([cost]).values()) == pytest.approx(cost.cycles)


def test_bars_are_as_long_as_their_values() -> None:
    picture = stacked("t", "n", [("a", {"x": 1.0, "y": 3.0}, "4"), ("b", {"x": 2.0}, "2")], ("x", "y"))
    first, second, third = picture.boxes
    assert second.width == pytest.approx(3 * first.width, rel=1e-3)
    assert third.width == pytest.approx(2 * first.width, rel=1e-3)
    assert second.x == pytest.approx(LABEL + first.width, rel=1e-3)


def test_nest_has_a_box_for_each_loop_and_operand(cost: ArrayCost) -> None:
    in_time = [row for row in nest_rows(cost) if not row.unrolled]
    assert len(nest(cost).boxes) == 3 * (len(in_time) + 1)  # and one for all of the layer


def test_nest_says_what_is_kept(cost: ArrayCost) -> None:
    texts = [label.text for label in nest(cost).labels]
    assert [text for text in texts if text.startswith("dram")] == ["dram 192 B", "dram 128 B", "dram 96 B"]


def test_points_lie_where_they_belong() -> None:
    left, right = scatter("t", "n", [(1.0, 9.0, "a"), (2.0, 3.0, "b")]).points
    assert left.x < right.x
    assert left.y < right.y  # less energy is further down


def test_lines_stand_at_round_numbers_around_all_points() -> None:
    picture = scatter("t", "n", [(2585.0, 1.415e6, "a"), (2906.0, 8.265e5, "b")])
    assert [label.text for label in picture.labels[:3]] == ["2,500", "2,600", "2,700"]
    assert {"1.5 uJ", "800 nJ"} <= {label.text for label in picture.labels}
    assert len(scatter("t", "n", [(7.0, 7.0, "alone")]).points) == 1


@pytest.mark.parametrize(("bits", "text"), [(4, "4 bits"), (12288, "1.5 KB"), (8 * 2**20, "1 MB")])
def test_sizes(bits: float, text: str) -> None:
    assert bytes_text(bits) == text


@pytest.mark.parametrize(("value", "text"), [(12.0, "12 pJ"), (4.5e3, "4.5 nJ"), (1.234e6, "1.23 uJ"), (2e9, "2 mJ")])
def test_energies(value: float, text: str) -> None:
    assert energy_text(value) == text
