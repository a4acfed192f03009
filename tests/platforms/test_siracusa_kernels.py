"""Kernels of Siracusa for integer networks against the references, on the simulated chip with all its checks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from passes.build import Builder
from tilewright.api import Options, run_model
from tilewright.core.graph import Array, Graph
from tilewright.core.interpret import interpret
from tilewright.machine.target import Sizes

WIDE = 1 << 27
"""A weight whose products do not fit 32 bits."""


def random(kind: str, *shape: int, seed: int = 0) -> Array:
    if kind == "float32":
        return np.random.default_rng(seed).normal(size=shape).astype(kind)
    limits = np.iinfo(kind)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(kind)


def requantised(b: Builder, x: str, mul: int = 9) -> str:
    return b.op("RequantShift", x, np.asarray(mul, np.int32), np.asarray(-5000, np.int32), div=1 << 14)


def assert_right(graph: Graph, *kernels: str, l1: int = 24_000, own: tuple[Path, ...] = ()) -> str:
    """The chip computes what the references do, and with these kernels. Returns the program's text.

    Folders of `own` kernels come before those of the platform.
    """
    fed = [random(graph.types[n].dtype.name, *graph.types[n].shape, seed=i) for i, n in enumerate(graph.inputs)]
    options = Options(platform="siracusa", kernels=own, sizes=Sizes({"L1": l1}, without=("neureka",)))
    ran = run_model(graph, options, inputs=fed)
    for name, found, wanted in zip(graph.outputs, ran.outputs, interpret(graph, fed), strict=True):
        np.testing.assert_array_equal(found, wanted, err_msg=name)
    used = {choice.kernel.function for choice in ran.compiled.plan.choices if choice.kernel is not None}
    assert used.issuperset(kernels), used
    return ran.compiled.files["network.c"].decode()


def test_products_with_weights() -> None:
    b = Builder()
    outputs: list[str] = []
    # Rows by K by N: whole words and others, one row, few rows, ragged ends; large enough to be cut.
    shapes = [(1, 64, 40), (7, 35, 21), (2, 3, 5), (9, 20, 64), (64, 64, 96)]
    for number, (rows, length, columns) in enumerate(shapes):
        x = b.input(f"x{number}", f"{'uint8' if number % 2 else 'int8'}[{rows},{length}]")
        product = b.op("MatMul", x, random("int8", length, columns))
        outputs += [requantised(b, product), product] if number == 1 else [requantised(b, product)]
    assert_right(b.graph(*outputs), "matmul_packed_s8")


def test_products_of_activations() -> None:
    b = Builder()
    outputs: list[str] = []
    # Scores of short heads, their products with values, lengths that are no words, zero points.
    # A, B, whether B is transposed, zero points.
    plain = [
        ("int8[4,18,4]", "int8[4,17,4]", 1, 0, 0),
        ("uint8[2,13,24]", "int8[2,24,8]", 0, 0, 0),
        ("int8[3,5,9]", "int8[3,9,6]", 0, 0, 0),
        ("int8[2,6,12]", "int8[2,16,12]", 1, 3, 0),
        ("uint8[2,5,10]", "uint8[2,10,20]", 0, 101, 77),
        ("int8[2,4,8]", "uint8[2,8,4]", 0, 0, 0),
    ]
    for number, (left, right, turned, a_zero, b_zero) in enumerate(plain):
        operands = b.input(f"a{number}", left), b.input(f"b{number}", right)
        product = b.op("MatMul", *operands, transB=turned, a_zero_point=a_zero, b_zero_point=b_zero)
        outputs.append(requantised(b, product))
    assert_right(b.graph(*outputs), "matmul_s8")


def test_products_of_single_words() -> None:
    b = Builder()
    outputs: list[str] = []
    for number, (left, right) in enumerate([("int8[16,4]", "int8[4,4]"), ("uint8[3,5,4]", "int8[3,4,12]")]):
        product = b.op("MatMul", b.input(f"a{number}", left), b.input(f"b{number}", right))
        outputs += [requantised(b, product), product] if number else [requantised(b, product)]
    assert_right(b.graph(*outputs), "matmul_words_s8")


def test_products_with_columns_one_behind_another() -> None:
    b = Builder()
    outputs: list[str] = []
    shapes = [("int8[6,1,4]", "int8[6,129,4]"), ("uint8[3,2,16]", "int8[3,7,16]"), ("int8[1,8]", "int8[4,8]")]
    for number, (left, right) in enumerate(shapes):
        product = b.op("MatMul", b.input(f"a{number}", left), b.input(f"b{number}", right), transB=1)
        outputs += [requantised(b, product), product] if number else [requantised(b, product)]
    assert_right(b.graph(*outputs), "matmul_along_s8")


def test_the_last_core_gets_as_many_columns_as_the_kernel_wants() -> None:
    """Fewer than four would begin with columns of the core before it: a race that the checks tell."""
    b = Builder()
    product = b.op("MatMul", b.input("a", "int8[2,1,112]"), b.input("b", "int8[2,242,112]"), transB=1)
    assert_right(b.graph(requantised(b, product)), "matmul_along_s8", l1=229_376)


def test_products_of_one_row() -> None:
    b = Builder()
    outputs: list[str] = []
    shapes = [("int8[6,1,129]", "int8[6,129,4]"), ("uint8[1,34]", "int8[34,12]"), ("int8[2,1,3]", "int8[1,3,8]")]
    for number, (left, right) in enumerate(shapes):
        product = b.op("MatMul", b.input(f"a{number}", left), b.input(f"b{number}", right))
        outputs += [requantised(b, product), product] if number else [requantised(b, product)]
    assert_right(b.graph(*outputs), "matmul_flat_s8")


def test_softmax() -> None:
    b = Builder()
    outputs: list[str] = []
    # Short reaches and long ones; sums near a power of two; sums of zero; powers of more than 16 bits; many rows, for
    # which results are tabulated; few powers that differ; powers that rise again with the distance.
    given = [(1, 5, 13, 4), (1, 173, 15599, 127), (1, 64, 2136, 47), (1, 0, 0, 1), (0, 3, 1, 2), (3, 16, 128, 12)]
    given += [(20, 60, 5000, 90), (1, 80, 300, 58), (0, 0, 0, 300), (1, 85, 3778, 63), (1, 4, 8, 3)]
    given += [(27, 3, 10, 20)]
    for number, (a, b_, c, log2) in enumerate(given):
        rows = 96 if number > 6 else 3 + number
        x = b.input(f"x{number}", f"{'uint8' if number % 2 else 'int8'}[{rows},{(64, 17, 65)[number % 3]}]")
        y = b.op("iSoftmax", x, coeffA=a, coeffB=b_, coeffC=c, log2=log2, n_levels=256)
        outputs += [y] if number % 2 else [requantised(b, y, 1 << 14)]
    assert_right(b.graph(*outputs), "isoftmax")


@pytest.mark.parametrize("op", ["iRMSNorm", "iLayerNorm"])
def test_normalisation(op: str) -> None:
    b = Builder()
    outputs: list[str] = []
    for number, largest in enumerate((1 << 12, WIDE)):
        weight = (random("int16", 33, seed=number).astype(np.int64) * largest >> 15).astype(np.int32)
        operands = (weight,) if op == "iRMSNorm" else (weight, weight[::-1].copy())
        x = b.input(f"x{number}", f"{'uint8' if number else 'int8'}[10,33]")
        y = b.op(op, x, *operands, D=1 << (7 + 15 * number))
        outputs += [y] if number else [requantised(b, y, 1 << 14)]
    # One row, of which each core has some columns.
    x = b.input("row", "int8[1,45]")
    weights = [random("int16", 45, seed=n).astype(np.int32) for n in range(1 if op == "iRMSNorm" else 2)]
    outputs.append(requantised(b, b.op(op, x, *weights, D=1 << 10), 1 << 14))
    assert_right(b.graph(*outputs), op.lower())


def test_chains_behind_products() -> None:
    b = Builder()
    x, y, mask = b.input("x", "int8[4,20,8]"), b.input("y", "int8[4,24,8]"), b.input("mask", "int8[20,24]")
    scores = requantised(b, b.op("MatMul", x, y, transB=1))
    masked = b.op("Add", requantised(b, b.op("Mul", scores, np.asarray(8191, np.int32), widen=1), 4), mask, widen=1)
    same = b.op("RequantShift", masked, np.asarray(1 << 16, np.int32), np.asarray(0, np.int32), div=1 << 16)
    wide = b.op("RequantShift", b.op("MatMul", x, y, transB=1), random("int32", 24) >> 1, np.asarray(7), div=1 << 40)
    swish = b.op("iHardswish", scores, one_over_six=42, three=168, six=337)
    assert_right(b.graph(same, wide, requantised(b, swish), requantised(b, b.op("iGELU", scores, b=-40, one=1743))))


def test_concatenations() -> None:
    b = Builder()
    outputs: list[str] = []
    for number, (kind, shape, axis) in enumerate(
        [("int8", (16, 33, 4), 1), ("int32", (3, 5, 2), 1), ("uint8", (7, 3), 1)]
    ):
        first = b.input(f"x{number}", f"{kind}[{','.join(map(str, shape))}]")
        next_one = b.input(f"y{number}", f"{kind}[{','.join(str(1 if i == axis else n) for i, n in enumerate(shape))}]")
        outputs.append(b.op("Concat", first, next_one, axis=axis))
        if kind != "uint8":
            # What is loaded is not copied: these are, and one of them alone.
            made = b.op("Neg", next_one)
            outputs += [b.op("Concat", b.op("Neg", first), made, axis=axis), b.op("Concat", first, made, axis=axis)]
    assert_right(b.graph(*outputs), "concat")


def convolved(b: Builder, number: int, x: str, weights: tuple[int, ...], *, group: int = 1) -> str:
    """A convolution whose sums become bytes: by integers for each channel or all, or as floats do it."""
    features, size = weights[0], weights[-1]
    bias = [random("int16", features, seed=number).astype(np.int32)] if number % 2 else []
    given = random("int8", *weights, seed=number)
    sums = b.op("Conv", x, given, *bias, pads=(size // 2,) * 4, kernel_shape=(size, size), group=group)
    signed = int(number % 5 > 1)
    if number % 3 == 2:
        factor, nothing = np.asarray(9_999_999 + 2 * number, np.int32), np.asarray(0, np.int32)
        return b.op(
            "RequantShift",
            *(sums, factor, nothing),
            div=1 << 32,
            signed=signed,
            half_to_even=1,
            zero_point=number - 7,
            x_limit=1 << 22,
        )
    channels = (features, 1, 1) if number % 3 else (1,)
    factors = (3 + np.arange(np.prod(channels)).reshape(channels) % 50).astype(np.int32)
    return b.op("RequantShift", sums, factors, -700 * factors, div=1 << 12, signed=signed)


def test_convolutions_to_bytes() -> None:
    b = Builder()
    outputs: list[str] = []
    # Channels, features, height, width, filter: more channels than a table has, runs of one word, ragged blocks, edges.
    shapes = [
        (16, 132, 4, 9, 1),
        (4, 8, 5, 5, 1),
        (20, 10, 6, 7, 3),
        (3, 8, 7, 5, 3),
        (8, 4, 1, 3, 1),
        (64, 16, 8, 8, 3),
    ]
    for number in range(2 * len(shapes)):
        channels, features, height, width, size = shapes[number % len(shapes)]
        x = b.input(f"x{number}", f"{'uint8' if number % 4 > 1 else 'int8'}[1,{channels},{height},{width}]")
        outputs.append(convolved(b, number, x, (features, channels, size, size)))
    text = assert_right(b.graph(*outputs), "conv2d_s8")
    assert "#define STORE_SHIFTS 1" in text
    assert "#define STORE_SCALES 1" in text


def test_depthwise_layers_to_bytes() -> None:
    b = Builder()
    outputs: list[str] = []
    # Pairs of lines and one alone, odd and even numbers of pixels, one more than are computed at a time.
    for number, (channels, height, width) in enumerate([(8, 4, 7), (5, 3, 6), (4, 2, 65), (7, 9, 3), (12, 2, 2)] * 2):
        x = b.input(f"x{number}", f"{'uint8' if number % 4 > 1 else 'int8'}[1,{channels},{height},{width}]")
        outputs.append(convolved(b, number, x, (channels, 1, 3, 3), group=channels))
    text = assert_right(b.graph(*outputs), "depthwise_3x3_s8")
    assert "#define STORE_SHIFTS 1" in text
    assert "#define STORE_SCALES 1" in text
