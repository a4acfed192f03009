"""Kernels that only the Cortex-M55 has, with Helium vectors, against the references; layers of one share a program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from passes.build import Builder
from platforms.cortexm import assert_right, noise, requantised
from tilewright.core.graph import Attr, Graph

KINDS = (("int8", "int8"), ("uint8", "int8"), ("int8", "uint8"), ("uint8", "uint8"))


def assert_right_in_vectors(graph: Graph, kernel: str, folder: Path) -> None:
    assert_right(graph, "cortex-m55", kernel, folder)


@pytest.mark.parametrize("op", ["Add", "Mul"])
def test_bytes_of_two_tensors(op: str, tmp_path: Path) -> None:
    b = Builder()
    outputs: list[str] = []
    for number, shape in enumerate(["3,7", "1,16,5", "2,64", "9", "1,3,3,20"]):
        operands = [
            b.input(f"{name}{number}", f"{kind}[{shape}]") for name, kind in zip("ab", KINDS[number % 4], strict=True)
        ]
        outputs.append(requantised(b, b.op(op, *operands, widen=1), number))
    assert_right_in_vectors(b.graph(*outputs), "add_mul_bytes", tmp_path)


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
def test_sums_of_bytes(kind: str, tmp_path: Path) -> None:
    b = Builder()
    outputs: list[str] = []
    for number, (shape, size, strides) in enumerate(
        [("1,20,5,6", (2, 3), (2, 2)), ("2,8,4,4", (4, 4), (1, 1)), ("1,33,7,3", (3, 3), (2, 1))]
    ):
        y = b.op("AveragePool", b.input(f"x{number}", f"{kind}[{shape}]"), sum=1, kernel_shape=size, strides=strides)
        outputs.append(requantised(b, y, number))
    outputs.append(b.op("AveragePool", b.input("wide", f"{kind}[1,12,23,30]"), sum=1, kernel_shape=(23, 30)))
    assert_right_in_vectors(b.graph(*outputs), "sumpool_s8", tmp_path)


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
    # Short reaches and long ones; sums near a power of two; sums of zero; powers of more than 16 bits, and
    # such that rise again with the distance.
    given = [(1, 5, 13, 4), (1, 173, 15599, 127), (1, 64, 2136, 47), (1, 0, 0, 1), (0, 3, 1, 2), (3, 16, 128, 12)]
    given += [(27, 3, 10, 20)]
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
