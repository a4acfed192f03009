"""Kernels of Siracusa for small layers against the references, on the simulated chip with its checks."""

from __future__ import annotations

import numpy as np
import pytest

from passes.build import Builder
from platforms.test_siracusa_kernels import assert_right, random, requantised
from tilewright.api import Options, run_model
from tilewright.core.graph import Array
from tilewright.core.interpret import interpret
from tilewright.machine.target import Sizes

pytestmark = pytest.mark.usefixtures("only_kernels")


def test_sums_of_windows() -> None:
    b = Builder()
    outputs: list[str] = []
    # Whole images, whose channels are shared; windows that step, overlap or leave pixels out; channels of no words.
    given = [
        ("int8[1,8,8,64]", (8, 8), (1, 1), (1, 1)),
        ("uint8[2,17,18,19]", (3, 2), (2, 3), (2, 1)),
        ("int8[1,6,5,3]", (6, 5), (1, 1), (1, 1)),
        ("uint8[1,9,9,10]", (3, 3), (1, 2), (1, 1)),
        ("int8[1,4,7,6]", (2, 1), (2, 1), (1, 1)),
    ]
    for number, (shape, kernel, strides, dilations) in enumerate(given):
        x = b.input(f"x{number}", shape)
        sums = b.op("AveragePool", x, channels_last=1, sum=1, kernel_shape=kernel, strides=strides, dilations=dilations)
        outputs += [requantised(b, sums), sums] if number == 1 else [requantised(b, sums)]
    assert_right(b.graph(*outputs), "sumpool_s8")


@pytest.mark.parametrize("kind", ["int8", "uint8", "float32"])
def test_maxima_of_windows(kind: str) -> None:
    b = Builder()
    outputs: list[str] = []
    # Whole images; windows that step, overlap, reach over edges or leave pixels out; channels by eights, fours, ones.
    given = [
        ("1,8,8,64", (8, 8), (1, 1), (0, 0, 0, 0), (1, 1)),
        ("2,17,18,19", (3, 2), (2, 3), (1, 0, 0, 1), (2, 1)),
        ("1,6,5,3", (2, 2), (2, 2), (0, 0, 0, 0), (1, 1)),
        ("1,9,9,12", (3, 3), (1, 2), (1, 1, 1, 1), (1, 1)),
        ("1,7,9,1", (3, 3), (2, 2), (2, 0, 0, 2), (1, 2)),
    ]
    for number, (shape, kernel, strides, pads, dilations) in enumerate(given):
        x = b.input(f"x{number}", f"{kind}[{shape}]")
        attributes = {"kernel_shape": kernel, "strides": strides, "pads": pads, "dilations": dilations}
        largest = b.op("MaxPool", x, channels_last=1, name="", **attributes)
        outputs += [largest, b.op("Relu", largest)] if kind == "float32" and number == 1 else [largest]
    assert_right(b.graph(*outputs), "maxpool_f32" if kind == "float32" else "maxpool_s8")


def near_halves(scale: float) -> Array:
    """Numbers whose quotients by a scale are next to where rounding changes, and what has no quotient."""
    found = ((np.arange(-300, 300) + 0.5) * scale).astype(np.float32)
    above, below = np.nextafter(found, np.float32(np.inf)), np.nextafter(found, np.float32(-np.inf))
    special = np.asarray([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-44, 3e38, -3e38, 1.0], np.float32)
    return np.concatenate([found, above, below, np.nextafter(above, np.float32(np.inf)), special])


def test_quantisation_of_floats() -> None:
    b = Builder()
    outputs: list[str] = []
    fed: list[Array] = []
    # The last two do not suit the kernel: one has only ones for digits, the other is too small.
    scales = (0.029255813, 1 / 3, 0.5, 1234.567, 3.3e-20, 2 - 2**-23, 1e-38)
    for number, scale in enumerate(scales):
        zero = np.asarray((-14, 131)[number % 2], ("int8", "uint8")[number % 2])
        fed.append(near_halves(float(np.float32(scale))))
        x = b.input(f"x{number}", f"float32[{fed[-1].size}]")
        outputs.append(b.op("QuantizeLinear", x, np.asarray(scale, np.float32), zero))
    graph = b.graph(*outputs)
    ran = run_model(graph, Options(platform="siracusa"), inputs=fed)
    with np.errstate(all="ignore"):
        expected = interpret(graph, fed)
    for found, wanted in zip(ran.outputs, expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    used = [choice.kernel is not None for choice in ran.compiled.plan.choices]
    assert used == [True] * 5 + [False] * 2


def test_sigmoids_are_made_of_products() -> None:
    """And of divisions, where a reciprocal is too small to be: far below zero."""
    b = Builder()
    graph = b.graph(b.op("Sigmoid", b.input("x", "float32[2005]")))
    ends = np.array([-np.inf, np.inf, np.nan, 0.0, -0.0])
    fed = [np.concatenate([np.linspace(-110.0, 110.0, 2000), ends]).astype(np.float32)]
    (found,) = run_model(graph, Options(platform="siracusa"), inputs=fed).outputs
    with np.errstate(over="ignore"):
        wanted = 1 / (1 + np.exp(-fed[0].astype(np.float64)))
    np.testing.assert_allclose(found, wanted, rtol=4e-7, atol=1e-38)
    assert found[-5] == 0
    assert found[-2] == 0.5


def test_softmax_of_bytes() -> None:
    b = Builder()
    outputs: list[str] = []
    # Fewer values than distances, more of them, and what comes behind the last layer.
    for number, shape in enumerate(("int8[1,10]", "uint8[3,85]", "int8[2,300]")):
        powers = b.op("Softmax", b.input(f"x{number}", shape), x_scale=0.05)
        scheme = np.asarray(1 / 256, np.float32), np.asarray(-128, np.int8)
        outputs += [powers, b.op("DequantizeLinear", b.op("QuantizeLinear", powers, *scheme), *scheme)]
    graph = b.graph(*outputs)
    fed = [random(graph.types[n].dtype.name, *graph.types[n].shape, seed=i) for i, n in enumerate(graph.inputs)]
    ran = run_model(graph, Options(platform="siracusa"), inputs=fed)
    for number, (found, wanted) in enumerate(zip(ran.outputs, interpret(graph, fed), strict=True)):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1 / 256 if number % 2 else 1e-9)


def test_sums_scaled_back() -> None:
    b = Builder()
    outputs: list[str] = []
    # One factor or one for each channel, zero points of both kinds, columns that are no fours, halves.
    given = [
        ((1, 6, 5, 16), np.asarray(12345678), 1 << 36, -128, 1),
        ((1, 9, 3, 22), np.arange(22) * 700_001 - 5_000_000, 1 << 36, 3, 1),
        ((2, 4, 4, 8), np.asarray(1 << 20), 1 << 36, 131, 0),
        ((1, 3, 3, 3), np.asarray(-(1 << 22)), 1 << 37, 0, 0),
    ]
    fed: list[Array] = []
    for number, (shape, factors, divisor, zero, signed) in enumerate(given):
        fed.append(np.random.default_rng(number).integers(-(1 << 23), 1 << 23, shape).astype(np.int32) & ~np.int32(1))
        x = b.input(f"x{number}", f"int32[{','.join(str(extent) for extent in shape)}]")
        total = b.op("Add", x, (random("int32", shape[-1], seed=number) >> 12) & ~np.int32(1))
        scaled = total, factors.astype(np.int32), np.asarray(0, np.int32)
        outputs.append(
            b.op(
                "RequantShift",
                *scaled,
                div=divisor,
                half_to_even=1,
                zero_point=zero,
                signed=signed,
                axis=3,
                x_limit=1 << 24,
            )
        )
    # Every other pixel of an image.
    fed.append(np.random.default_rng(9).integers(-(1 << 20), 1 << 20, (1, 11, 14, 20)).astype(np.int32))
    cut = (np.asarray(values) for values in ([0, 1], [11, 14], [1, 2], [2, 2]))
    total = b.op("Add", b.op("Slice", b.input("image", "int32[1,11,14,20]"), *cut), random("int32", 20) >> 12)
    scaled = total, random("int32", 20, seed=1) >> 8, np.asarray(0, np.int32)
    outputs.append(b.op("RequantShift", *scaled, div=1 << 36, half_to_even=1, zero_point=5, axis=3, x_limit=1 << 21))
    graph = b.graph(*outputs)
    ran = run_model(graph, Options(platform="siracusa"), inputs=fed)
    for found, wanted in zip(ran.outputs, interpret(graph, fed), strict=True):
        np.testing.assert_array_equal(found, wanted)
    used = [choice.kernel.function for choice in ran.compiled.plan.choices if choice.kernel is not None]
    assert used == ["add_sums"] * 4 + ["slice_pixels"]
    assert ran.compiled.files["network.c"].count(b"#define STORE_SCALES 1") >= 4


def test_axes_in_another_order() -> None:
    b = Builder()
    # Planes that become pixels, and axes of any distance; cut and shared along several of them.
    given = [
        ("int8[1,3,32,32]", (0, 2, 3, 1)),
        ("uint8[2,3,7,9]", (0, 2, 3, 1)),
        ("int8[1,16,12,37]", (0, 3, 1, 2)),
        ("float32[64,33]", (1, 0)),
        ("int8[16,8,25]", (1, 0, 2)),
        ("int32[4,9,7]", (2, 0, 1)),
        ("uint8[2,5,64,16]", (0, 2, 1, 3)),
    ]
    outputs = [b.op("Transpose", b.input(f"x{i}", shape), perm=order) for i, (shape, order) in enumerate(given)]
    graph = b.graph(*outputs)
    kinds = [graph.types[name] for name in graph.inputs]
    fed = [random("int8", *kind.shape, seed=i).astype(kind.dtype.numpy) for i, kind in enumerate(kinds)]
    ran = run_model(graph, Options(platform="siracusa", sizes=Sizes({"L1": 6000})), inputs=fed)
    for found, wanted in zip(ran.outputs, interpret(graph, fed), strict=True):
        np.testing.assert_array_equal(found, wanted)
    used = {choice.kernel.function for choice in ran.compiled.plan.choices if choice.kernel is not None}
    assert used == {"transpose_planes", "transpose"}


def test_bytes_element_by_element() -> None:
    b = Builder()
    outputs: list[str] = []
    # Rows of any length, the same row again and again, factors of channels behind them, chains of requantisations.
    for number, (left, right) in enumerate(
        (("int8[5,7,33]",) * 2, ("uint8[3,4,64]", "int8[64]"), ("int8[90,20]",) * 2)
    ):
        x, y = b.input(f"x{number}", left), b.input(f"y{number}", right)
        channels = random("int32", int(left[:-1].rpartition(",")[2]), seed=number) >> 22
        for op in ("Add", "Mul"):
            result = b.op(op, x, y, widen=1)
            outputs += [requantised(b, result, 300), result]
            outputs.append(b.op("RequantShift", result, channels, np.asarray(0, np.int32), div=1 << 12, axis=-1))
        if left == right:
            total = b.op("Add", requantised(b, x, 15000), requantised(b, y, 16000), widen=1)
            outputs += [requantised(b, total, 9000), requantised(b, b.input(f"z{number}", left), -20000)]
    wanted = {"add_mul_bytes", "requant_bytes"}
    assert_right(b.graph(*outputs), *wanted)


def test_parts_are_added_up_beside_a_resident_result() -> None:
    b = Builder()
    x = b.op("MaxPool", b.input("x", "float32[1,32,8,8]"), kernel_shape=(2, 2), strides=(2, 2))
    weights, rows = random("float32", 16, 32, 3, 3, seed=1), random("float32", 256, 36, seed=2)
    made = b.op("Relu", b.op("Conv", x, weights, random("float32", 16, seed=3), pads=(1, 1, 1, 1)))
    graph = b.graph(b.op("MatMul", b.op("Flatten", made), rows))
    # Neither all filters nor all their channels fit, and the result may stay in L1 for the product behind it.
    fed = [random("float32", *graph.types[name].shape, seed=4) for name in graph.inputs]
    ran = run_model(graph, Options(platform="siracusa", sizes=Sizes({"L1": 16_384})), inputs=fed)
    schedule = ran.compiled.plan.schedule
    assert schedule is not None
    assert any(work.sums for group in schedule.groups for work in group.works)
    for found, wanted in zip(ran.outputs, interpret(graph, fed), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("signed", [0, 1])
def test_columns_whose_sums_take_64_bits(signed: int) -> None:
    b = Builder()
    outputs: list[str] = []
    # Whole fours of columns and others; all of 32 bits, and quotients up to the last that fit 32.
    for number, (rows, columns, div) in enumerate(
        [(9, 24, 1 << 30), (5, 7, 1 << 31), (1, 30, 1 << 30), (3, 2, 1 << 31)]
    ):
        x, mul = b.input(f"x{number}", f"int32[{rows},{columns}]"), random("int32", columns, seed=number) >> 2
        add = random("int32", columns, seed=number + 4)
        outputs.append(b.op("RequantShift", x, mul, add, div=div, signed=signed, axis=-1))
    assert_right(b.graph(*outputs), "requant_wide")
