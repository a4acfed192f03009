"""Kernels with Helium vectors against the references, on an emulated Cortex-M55; layers of a kernel share a program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from passes.build import Builder
from platforms.cortexm import assert_right, conv, convolutions, noise, requantised
from tilewright.core.graph import Attr, Graph

CONV2D_S8 = [
    conv((1, 8, 6, 6), 8, (3, 3), pads=(1, 1, 1, 1)),
    conv((1, 64, 3, 5), 20, (1, 1)),
    conv((2, 12, 5, 7), 16, (1, 1)),
    conv((1, 3, 9, 9), 5, (3, 3), strides=(2, 2), pads=(1, 1, 1, 1), x_zero_point=5),
    conv((1, 5, 7, 8), 6, (2, 3), dilations=(2, 2), pads=(2, 0, 1, 3)),
    conv((2, 6, 5, 5), 9, (3, 2), group=3, pads=(0, 1, 2, 0)),
    conv((1, 7, 5, 3), 4, (1, 1), "uint8", strides=(2, 1)),
    conv((1, 16, 6, 10), 33, (3, 3), "uint8", pads=(1, 1, 1, 1)),
    conv((1, 4, 1, 30), 4, (1, 9), pads=(0, 8, 0, 0)),
    conv((1, 1, 2, 2), 2, (2, 2), x_zero_point=-7, pads=(1, 1, 0, 0)),
    conv((1, 2, 3, 3), 3, (5, 5), pads=(2, 2, 2, 2)),
    conv((1, 1, 13, 10), 17, (10, 4), strides=(2, 2), pads=(4, 1, 5, 2), x_zero_point=-21),
    conv((1, 24, 1, 1), 7, (1, 1)),
    conv((1, 12, 4, 5), 9, (3, 3), "uint8", group=3, dilations=(1, 2), pads=(1, 2, 1, 2), x_zero_point=9),
    conv((1, 12, 4, 5), 2, (3, 3), strides=(2, 3)),
    conv((1, 3, 7, 7), 8, (3, 3), "uint8", strides=(2, 2), pads=(0, 0, 1, 1), x_zero_point=128),
    # More pixels than are done at once, an odd number of them, long rows of taps, pads around single pixels.
    conv((1, 17, 3, 21), 4, (3, 3), pads=(1, 1, 1, 1), x_zero_point=17),
    conv((1, 80, 2, 37), 24, (1, 1), "uint8"),
    conv((1, 40, 3, 3), 264, (3, 3), pads=(1, 1, 1, 1)),
    conv((1, 20, 4, 4), 6, (1, 1), pads=(1, 2, 0, 1), x_zero_point=-3),
    conv((1, 2, 6, 19), 3, (2, 3), dilations=(1, 3), strides=(1, 2), pads=(0, 3, 1, 3)),
]
DEPTHWISE_S8 = [
    conv((1, 8, 12, 5), 8, (8, 4), group=8, pads=(4, 1, 3, 2)),
    conv((1, 4, 9, 9), 4, (4, 3), "uint8", group=4, dilations=(2, 2), x_zero_point=200, pads=(3, 2, 2, 2)),
    conv((1, 5, 2, 40), 5, (1, 3), group=5, pads=(0, 1, 0, 1)),
    conv((2, 7, 5, 6), 7, (3, 3), group=7, pads=(0, 1, 1, 0), x_zero_point=-9),
    conv((1, 12, 3, 19), 12, (3, 3), group=12, strides=(1, 3)),
    conv((1, 20, 3, 3), 20, (5, 5), group=20, pads=(2, 2, 2, 2)),
    conv((1, 38, 5, 7), 38, (1, 1), "uint8", group=38),
    conv((1, 16, 6, 17), 16, (3, 3), group=16, pads=(1, 1, 1, 1)),
    conv((1, 36, 9, 9), 36, (3, 3), "uint8", group=36, strides=(2, 2), pads=(1, 1, 1, 1)),
    # Lines along the rows: more than are done at once, an odd number, far apart, at strides.
    conv((1, 16, 70, 5), 16, (3, 3), group=16, pads=(1, 1, 1, 1)),
    conv((1, 9, 21, 4), 9, (3, 3), "uint8", group=9, strides=(2, 1), pads=(1, 1, 0, 1), x_zero_point=3),
    conv((1, 6, 11, 7), 6, (3, 3), group=6, dilations=(2, 1), pads=(2, 1, 2, 1)),
    conv((1, 64, 2, 2), 64, (3, 3), group=64, pads=(1, 1, 1, 1)),
    conv((2, 4, 3, 131), 4, (3, 3), group=4, strides=(1, 1), pads=(1, 1, 1, 1), x_zero_point=-100),
    conv((1, 3, 14, 6), 3, (4, 4), "uint8", group=3, dilations=(3, 1), pads=(4, 2, 5, 1), x_zero_point=77),
    conv((1, 4, 2, 3), 4, (3, 3), group=4, strides=(1, 2), pads=(3, 4, 3, 4), x_zero_point=-128),
]
CONV2D_F32 = [
    conv((1, 8, 6, 6), 8, (3, 3), "float32", pads=(1, 1, 1, 1)),
    conv((1, 33, 3, 5), 20, (1, 1), "float32"),
    conv((1, 3, 9, 9), 5, (3, 3), "float32", strides=(2, 2), pads=(1, 1, 1, 1)),
    conv((1, 5, 7, 8), 6, (2, 3), "float32", dilations=(2, 2), pads=(2, 0, 1, 3)),
    conv((2, 6, 5, 5), 9, (3, 2), "float32", group=3, pads=(0, 1, 2, 0)),
    conv((1, 8, 3, 3), 40, (3, 3), "float32", pads=(1, 1, 1, 1)),
    conv((1, 16, 1, 27), 16, (1, 1), "float32"),
    conv((1, 1, 13, 10), 17, (10, 4), "float32", strides=(2, 2), pads=(4, 1, 5, 2)),
]
DEPTHWISE_F32 = [
    conv((1, 16, 6, 17), 16, (3, 3), "float32", group=16, pads=(1, 1, 1, 1)),
    conv((2, 7, 5, 6), 7, (3, 3), "float32", group=7, pads=(0, 1, 1, 0)),
    conv((1, 12, 70, 5), 12, (3, 3), "float32", group=12, strides=(1, 2), pads=(1, 1, 1, 1)),
    conv((1, 8, 19, 21), 8, (3, 3), "float32", group=8, strides=(2, 2), pads=(1, 1, 1, 1)),
    conv((1, 6, 11, 7), 6, (3, 3), "float32", group=6, dilations=(2, 1), strides=(2, 1), pads=(2, 1, 2, 1)),
    conv((1, 40, 2, 2), 40, (3, 3), "float32", group=40, pads=(1, 1, 1, 1)),
    conv((1, 8, 9, 4), 8, (5, 4), "float32", group=8, pads=(2, 2, 2, 1)),
]
KINDS = (("int8", "int8"), ("uint8", "int8"), ("int8", "uint8"), ("uint8", "uint8"))
KERNELS = {
    "conv2d_s8": CONV2D_S8,
    "depthwise_s8": DEPTHWISE_S8,
    "conv2d_f32": CONV2D_F32,
    "depthwise_f32": DEPTHWISE_F32,
}


def assert_right_in_vectors(graph: Graph, kernel: str, folder: Path, optimise: str = "-O2") -> None:
    assert_right(graph, "cortex-m55", kernel, folder, places=("mve",), optimise=optimise)


@pytest.mark.parametrize("kernel", KERNELS)
def test_convolutions(kernel: str, tmp_path: Path) -> None:
    assert_right_in_vectors(convolutions(KERNELS[kernel]), kernel, tmp_path)


def test_small_code(tmp_path: Path) -> None:
    """Functions then begin at any halfword, and loops are entered in the middle by addresses."""
    assert_right_in_vectors(convolutions(CONV2D_S8[:4]), "conv2d_s8", tmp_path, "-Os")


def test_products_with_weights(tmp_path: Path) -> None:
    b = Builder()
    outputs: list[str] = []
    shapes = [(1, 64, 40), (7, 35, 21), (2, 3, 5), (9, 20, 64), (1, 1, 1), (3, 64, 96), (1, 30, 10), (5, 2, 17)]
    shapes += [(1, 640, 9), (4, 81, 12), (1, 16, 3), (1, 272, 8)]
    for number, (rows, length, columns) in enumerate(shapes):
        x = b.input(f"x{number}", f"{'uint8' if number % 2 else 'int8'}[{rows},{length}]")
        product = b.op("MatMul", x, noise("int8", (length, columns), number))
        outputs.append(requantised(b, product, number) if number % 2 else product)
    assert_right_in_vectors(b.graph(*outputs), "matmul_packed_s8", tmp_path)


def test_products_of_activations(tmp_path: Path) -> None:
    b = Builder()
    outputs: list[str] = []
    # A, B, whether B is transposed, zero points.
    given = [
        ("int8[4,18,4]", "int8[4,17,4]", 1, 0, 0),
        ("uint8[2,13,24]", "int8[2,24,8]", 0, 0, 0),
        ("int8[3,5,9]", "int8[3,9,6]", 0, 0, 0),
        ("int8[2,6,14]", "int8[2,16,14]", 1, 3, 0),
        ("uint8[2,5,10]", "uint8[2,10,20]", 0, 101, 77),
        ("int8[2,1,8]", "uint8[2,8,5]", 0, 0, 0),
        ("int8[1,7]", "uint8[19,7]", 1, -5, 128),
        ("int8[1,37,40]", "int8[1,40,70]", 0, 0, -3),
        ("uint8[2,18,33]", "int8[2,35,33]", 1, 7, 0),
        ("int8[5,1]", "int8[1,9]", 0, 0, 0),
    ]
    for number, (left, right, turned, a_zero, b_zero) in enumerate(given):
        operands = b.input(f"a{number}", left), b.input(f"b{number}", right)
        product = b.op("MatMul", *operands, transB=turned, a_zero_point=a_zero, b_zero_point=b_zero)
        outputs.append(requantised(b, product, number) if number % 2 else product)
    assert_right_in_vectors(b.graph(*outputs), "matmul_s8", tmp_path)


@pytest.mark.parametrize("op", ["Add", "Mul"])
def test_bytes_of_two_tensors(op: str, tmp_path: Path) -> None:
    b = Builder()
    outputs: list[str] = []
    for number, shape in enumerate(["3,7", "1,16,5", "2,64", "9", "1,3,3,20"]):
        operands = [
            b.input(f"{name}{number}", f"{kind}[{shape}]") for name, kind in zip("ab", KINDS[number % 4], strict=True)
        ]
        outputs.append(requantised(b, b.op(op, *operands, widen=1), number))
    assert_right_in_vectors(b.graph(*outputs), f"{op.lower()}_bytes", tmp_path)


def test_bytes_scaled(tmp_path: Path) -> None:
    b = Builder()
    outputs: list[str] = []
    for number, shape in enumerate(["3,7", "1,16,5", "2,64", "9"]):
        x = b.input(f"x{number}", f"{('int8', 'uint8', 'int32')[number % 3]}[{shape}]")
        operands = np.asarray(97 + number, np.int32), np.asarray(number * -300, np.int32)
        given: dict[str, Attr] = {"div": 1 << (6 + number), "signed": number % 2, "x_limit": 5000}
        outputs.append(b.op("RequantShift", x, *operands, name="", **given))
    assert_right_in_vectors(b.graph(*outputs), "requant_bytes", tmp_path)


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_pools(kind: str, tmp_path: Path) -> None:
    sums, most = Builder(), Builder()
    outputs: dict[Builder, list[str]] = {sums: [], most: []}
    for number, (shape, size, strides) in enumerate(
        [((1, 20, 5, 6), (2, 3), (2, 2)), ((2, 8, 4, 4), (4, 4), (1, 1)), ((1, 33, 7, 3), (3, 3), (2, 1))]
    ):
        text = f"{kind}[{','.join(map(str, shape))}]"
        window: dict[str, Attr] = {"kernel_shape": size, "strides": strides}
        y = sums.op("AveragePool", sums.input(f"x{number}", text), name="", sum=1, **window)
        outputs[sums].append(requantised(sums, y, number))
        pads = (0, 0, 0, 0) if number == 1 else (1, 1, 1, 0)
        outputs[most].append(most.op("MaxPool", most.input(f"x{number}", text), name="", pads=pads, **window))
    x = sums.input("wide", f"{kind}[1,12,23,30]")
    outputs[sums].append(sums.op("AveragePool", x, sum=1, kernel_shape=(23, 30)))
    assert_right_in_vectors(sums.graph(*outputs[sums]), "sumpool_s8", tmp_path)
    assert_right_in_vectors(most.graph(*outputs[most]), "maxpool_s8", tmp_path)


def test_tables(tmp_path: Path) -> None:
    b = Builder()
    outputs = [
        b.op("Lookup", b.input(f"x{number}", f"{kinds[0]}[{size}]"), noise(kinds[1], (256,), number))
        for number, (size, kinds) in enumerate(zip((5, 16, 77, 32), KINDS, strict=True))
    ]
    assert_right_in_vectors(b.graph(*outputs), "lookup_s8", tmp_path)


@pytest.mark.parametrize(
    ("kernel", "shapes", "perm"),
    [
        ("transpose_planes", [(1, 3, 5, 7), (2, 12, 4, 16), (1, 17, 1, 33)], (0, 2, 3, 1)),
        ("transpose_pixels", [(1, 5, 7, 3), (2, 4, 16, 12), (3, 1, 33, 16)], (0, 3, 1, 2)),
    ],
)
def test_transposes(kernel: str, shapes: list[tuple[int, ...]], perm: tuple[int, ...], tmp_path: Path) -> None:
    b = Builder()
    outputs = [
        b.op("Transpose", b.input(f"x{number}", f"int8[{','.join(map(str, shape))}]"), perm=perm)
        for number, shape in enumerate(shapes)
    ]
    assert_right_in_vectors(b.graph(*outputs), kernel, tmp_path)


def test_quantisation(tmp_path: Path) -> None:
    b = Builder()
    outputs: list[str] = []
    for number, scale in enumerate([0.0173, 1 / 3, 0.25, 1.9999999, 0.0078125]):
        kind = "uint8" if number % 2 else "int8"
        x = b.input(f"x{number}", f"float32[{301 + number}]")
        zero = np.asarray(77 if number % 2 else -9, kind)
        outputs.append(b.op("QuantizeLinear", x, np.asarray(scale, np.float32), zero))
    assert_right_in_vectors(b.graph(*outputs), "quantize_f32", tmp_path)


def test_chains_behind_convolutions(tmp_path: Path) -> None:
    """Scales of channels, residuals, sums that become floats, and steps that have no text in vectors."""
    b = Builder()
    x, other = b.input("x", "int8[1,6,5,7]"), b.input("other", "int8[1,12,5,7]")
    y = b.op("Conv", x, noise("int8", (12, 6, 3, 3), 1), noise("int32", (12,), 2), pads=(1, 1, 1, 1))
    each = noise("int32", (1, 12, 1, 1), 3) + np.int32(9 << 20)
    given: dict[str, Attr] = {"half_to_even": 1, "x_limit": 1 << 23, "div": 1 << 33}
    scaled = b.op("RequantShift", y, each, np.asarray(0, np.int32), zero_point=3, name="", **given)
    one = b.op("RequantShift", y, np.asarray(9 << 20, np.int32), np.asarray(0, np.int32), name="", **given)
    terms = [b.op("Mul", t, np.asarray(m, np.int32), widen=1) for t, m in ((one, 77_001), (other, 55_000))]
    total, zero = b.op("Add", *terms), np.asarray(0, np.int32)
    small: dict[str, Attr] = {"half_to_even": 1, "x_limit": 1 << 25}
    ends = [
        b.op("RequantShift", total, np.asarray(1, np.int32), zero, div=1 << 17, zero_point=p, name="", **small)
        for p in (0, 5)
    ]
    real = b.op("DequantizeLinear", scaled, np.asarray(0.25, np.float32), np.asarray(3, np.int8))
    swish = b.op("iHardswish", one, one_over_six=42, three=168, six=337)
    wide = b.op("RequantShift", y, noise("int32", (1, 12, 1, 1), 5), np.asarray(7, np.int32), div=1 << 24)
    assert_right_in_vectors(b.graph(*ends, real, swish, wide), "conv2d_s8", tmp_path)


def test_products_of_floats_with_weights(tmp_path: Path) -> None:
    b = Builder()
    outputs: list[str] = []
    for number, (rows, length, columns) in enumerate([(9, 7, 19), (1, 64, 33), (6, 5, 4), (1, 3, 8), (2, 16, 24)]):
        x = b.input(f"x{number}", f"float32[{rows},{length}]")
        product = b.op("MatMul", x, noise("float32", (length, columns), number))
        outputs.append(b.op("Relu", b.op("Add", product, noise("float32", (columns,), 9))) if number % 2 else product)
    assert_right_in_vectors(b.graph(*outputs), "matmul_packed_f32", tmp_path)


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_softmax_and_norm_of_bytes(kind: str, tmp_path: Path) -> None:
    """As floats, quantised, and through a table."""
    soft, norm = Builder(), Builder()
    outputs: dict[Builder, list[str]] = {soft: [], norm: []}
    for number, (rows, length) in enumerate([(3, 10), (4, 64), (2, 37), (1, 3)]):
        text = f"{kind}[{rows},{length}]"
        y = soft.op("Softmax", soft.input(f"x{number}", text), axis=-1, x_scale=0.03)
        z = norm.op(
            "LayerNormalization", norm.input(f"x{number}", text), *(noise("float32", (length,), i) for i in (1, 2))
        )
        outputs[soft] += [y, _quantised(soft, y, 1 / 256, kind)]
        outputs[norm] += [z, _quantised(norm, z, 0.03, kind)]
    assert_right_in_vectors(soft.graph(*outputs[soft]), "softmax_s8", tmp_path)
    assert_right_in_vectors(norm.graph(*outputs[norm]), "layernorm_s8", tmp_path)


def _quantised(b: Builder, x: str, scale: float, kind: str) -> str:
    """And back to floats: results may be a step apart."""
    operands = np.asarray(scale, np.float32), np.asarray(3, kind)
    return b.op("DequantizeLinear", b.op("QuantizeLinear", x, *operands), *operands)


def test_integer_softmax(tmp_path: Path) -> None:
    b = Builder()
    outputs: list[str] = []
    # Short reaches and long ones; sums near a power of two; sums of zero; powers of more than 16 bits.
    given = [(1, 5, 13, 4), (1, 173, 15599, 127), (1, 64, 2136, 47), (1, 0, 0, 1), (0, 3, 1, 2), (3, 16, 128, 12)]
    for number, (a, b_, c, log2) in enumerate(given):
        x = b.input(f"x{number}", f"{'uint8' if number % 2 else 'int8'}[{3 + number},{(64, 17, 3)[number % 3]}]")
        y = b.op("iSoftmax", x, coeffA=a, coeffB=b_, coeffC=c, log2=log2, n_levels=256)
        shifted = b.op("RequantShift", y, np.asarray(1 << 14, np.int32), np.asarray(-5000, np.int32), div=1 << 15)
        outputs.append(shifted if number % 2 else y)
    assert_right_in_vectors(b.graph(*outputs), "isoftmax", tmp_path)


@pytest.mark.parametrize("op", ["iRMSNorm", "iLayerNorm"])
def test_integer_norms(op: str, tmp_path: Path) -> None:
    b = Builder()
    outputs: list[str] = []
    for number, largest in enumerate((1 << 12, 1 << 27, 1 << 21)):
        length = (33, 33, 16)[number]
        weight = (noise("int16", (length,), number).astype(np.int64) * largest >> 10).astype(np.int32)
        operands = (weight,) if op == "iRMSNorm" else (weight, weight[::-1].copy())
        x = b.input(f"x{number}", f"{'uint8' if number == 1 else 'int8'}[10,{length}]")
        y = b.op(op, x, *operands, D=1 << (7 + 7 * number))
        shifted = b.op("RequantShift", y, np.asarray(1 << 14, np.int32), np.asarray(-5000, np.int32), div=1 << 15)
        outputs += [y] if number else [y, shifted]
    assert_right_in_vectors(b.graph(*outputs), op.lower(), tmp_path)
