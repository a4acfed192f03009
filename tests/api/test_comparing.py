"""When a result is right: the rules by which outputs are compared with what was expected."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from passes.build import Builder
from tilewright.api import Compiled, Options, compile_model
from tilewright.api.feeding import fit, noise
from tilewright.api.running import Rule, compare
from tilewright.core.graph import Array, Graph
from tilewright.errors import TilewrightError

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def compiled(kind: str = "float32", shape: str = "2") -> Compiled:
    b = Builder()
    return compile_model(b.graph(b.op("Identity", b.input("x", f"{kind}[{shape}]"))), Options())


def wrong(found: Array, expected: Array, rule: Rule = "network") -> int:
    kind = found.dtype.name
    made = compiled(kind, ",".join(map(str, found.shape)))
    (result,) = compare(made, [found], [found], [expected], rule)
    return result.wrong


def test_floats_are_right_within_an_absolute_or_a_relative_tolerance() -> None:
    found = np.array([0.0, 1000.0], np.float32)
    assert wrong(found, np.array([9e-5, 1000.009], np.float32)) == 0
    assert wrong(found, np.array([2e-4, 1000.02], np.float32)) == 2


def test_integers_have_to_be_equal_and_may_be_stated_as_floats() -> None:
    found = np.array([1, -2], np.int8)
    assert wrong(found, np.array([1.0, -2.0], np.float32)) == 0
    assert wrong(found, np.array([1.0, -1.99999], np.float32)) == 1


def test_integers_that_no_float_tells_apart_are_not_equal() -> None:
    found = np.array([2**60 + 1, 2**60], np.int64)
    for rule in ("network", "official"):
        assert wrong(found, np.array([2**60, 2**60], np.int64), rule) == 1


def test_not_a_number_is_wrong_for_networks_and_right_for_official_tests() -> None:
    odd = np.array([np.nan, np.inf], np.float32)
    assert wrong(odd, odd) == 1
    assert wrong(odd, odd, "official") == 0
    assert wrong(odd, np.array([0.0, np.inf], np.float32), "official") == 1
    assert wrong(np.array([1.0, 1.0], np.float32), np.array([1.0, np.inf], np.float32), "official") == 1


def test_bfloat16_is_right_within_a_unit_of_the_largest_value() -> None:
    found = np.array([256.0, 1.0], BFLOAT16)
    assert wrong(found, np.array([257.9, 2.9], np.float32)) == 0
    assert wrong(found, np.array([258.1, 1.0], np.float32)) == 1


def test_another_size_is_all_wrong_and_another_shape_only_for_official_tests() -> None:
    found = np.zeros((2, 3), np.float32)
    assert wrong(found, np.zeros(5, np.float32)) == 6
    assert wrong(found, np.zeros(6, np.float32)) == 0
    assert wrong(found, np.zeros(6, np.float32), "official") == 6
    assert wrong(found, np.zeros((2, 3), np.float64), "official") == 6


def test_wide_integers_are_not_compared_as_floats() -> None:
    found = np.array([2**60, 0], np.int64)
    assert wrong(found, np.array([2**60 + 1, 0], np.int64), "official") == 1


def dequantised() -> Graph:
    """An output that leaves the network through a dequantisation with a step of a half."""
    b = Builder()
    step, zero = np.float32(0.5).reshape(()), np.array(0, np.int8)
    whole = b.op("QuantizeLinear", b.input("x", "float32[2]"), np.asarray(step), zero)
    return b.graph(b.op("DequantizeLinear", whole, np.asarray(step), zero))


def test_a_dequantised_result_may_be_one_step_off_what_the_specification_gives() -> None:
    made = compile_model(dequantised(), Options())
    inputs = [np.array([1.0, 2.0], np.float32)]
    right = np.array([1.0, 2.0], np.float32)

    def found(output: Array, expected: Array) -> tuple[int, int]:
        (result,) = compare(made, inputs, [output], [expected])
        return result.wrong, result.overruled

    assert found(np.array([1.5, 2.0], np.float32), right) == (0, 0)
    assert found(np.array([2.0, 2.0], np.float32), right) == (1, 1)
    # What is expected may be further off than the specification, which then decides.
    assert found(right, np.array([3.0, 2.0], np.float32)) == (0, 1)


@pytest.mark.parametrize("expected", [[0.0, 0.0], [7.0, 2.0], [1.0, np.nan], [1.0, 2.0, 3.0]])
def test_what_is_no_result_of_the_network_is_not_overruled(expected: list[float]) -> None:
    made = compile_model(dequantised(), Options())
    right = np.array([1.0, 2.0], np.float32)
    (result,) = compare(made, [right], [right], [np.array(expected, np.float32)])
    assert result.wrong


def test_given_inputs_are_converted_where_their_values_fit() -> None:
    made = compiled("int8", "2,2")
    (fed,) = fit([np.array([1.0, -2.0, 3.0, 127.0])], made.plan.graph)
    assert fed.dtype == np.int8
    assert fed.shape == (2, 2)
    for array in (np.array([1.5, 0, 0, 0]), np.array([128, 0, 0, 0]), np.zeros(3)):
        with pytest.raises(TilewrightError) as caught:
            fit([array], made.plan.graph)
        assert caught.value.code == "wrong-inputs"


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "int8", "uint8", "int64", "bool"])
def test_noise_is_seeded_and_suits_the_type(kind: str) -> None:
    graph = compiled(kind, "64").source
    (first,), (again,), (other,) = noise(graph, 1), noise(graph, 1), noise(graph, 2)
    assert first.dtype.name == kind
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    if kind == "int64":
        assert set(first.tolist()) == {0, 1}, "wide integers are mostly indices"
