"""Batch normalisation folded."""

from __future__ import annotations

import numpy as np
import pytest

from passes.build import Builder, applied, ops, text
from support import Golden
from tilewright.passes.batch_norm import batch_norm


def _normalised(b: Builder, x: str, channels: int) -> str:
    spread = np.abs(b.weights(channels)) + np.float32(0.5)
    return b.op(
        "BatchNormalization", x, b.weights(channels), b.weights(channels), b.weights(channels), spread, name="y"
    )


def test_batch_norm(golden: Golden) -> None:
    b = Builder()
    conv = b.op("Conv", b.input("x", "float32[1,2,5,5]"), b.weights(4, 2, 3, 3), b.weights(4), pads=(1, 1, 1, 1))
    golden("passes/batch_norm.txt", text(b.graph(_normalised(b, conv, 4)), batch_norm))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("group", [1, 2])
def test_transposed_convolutions(bias: bool, group: int) -> None:
    b = Builder()
    operands = [b.weights(4, 3, 3, 3), *([b.weights(3 * group)] if bias else [])]
    conv = b.op("ConvTranspose", b.input("x", "float32[1,4,5,5]"), *operands, group=group, strides=(2, 2))
    assert ops(applied(b.graph(_normalised(b, conv, 3 * group)), batch_norm)) == ["ConvTranspose"]


@pytest.mark.parametrize("turned", [0, 1])
def test_products(turned: int) -> None:
    b = Builder()
    matrix = b.weights(4, 5) if turned else b.weights(5, 4)
    product = b.op("MatMul", b.input("x", "float32[3,5]"), matrix, transB=turned)
    assert ops(applied(b.graph(_normalised(b, product, 4)), batch_norm)) == ["MatMul", "Add"]
    b = Builder()
    product = b.op("MatMul", b.input("x", "float32[3,5]"), b.weights(5, 4))
    assert ops(applied(b.graph(_normalised(b, b.op("Add", product, b.weights(4)), 4)), batch_norm)) == ["MatMul", "Add"]


def test_alone_it_is_a_product_and_a_sum() -> None:
    b = Builder()
    x = b.input("x", "float32[2,4,5,5]")
    assert ops(applied(b.graph(_normalised(b, x, 4)), batch_norm)) == ["Mul", "Add"]


def test_a_convolution_that_others_read_is_left() -> None:
    b = Builder()
    conv = b.op("Conv", b.input("x", "float32[1,2,5,5]"), b.weights(4, 2, 3, 3))
    assert ops(applied(b.graph(_normalised(b, conv, 4), conv), batch_norm)) == ["Conv", "Mul", "Add"]
