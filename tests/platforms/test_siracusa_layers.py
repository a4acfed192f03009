"""Kernels of Siracusa for the small layers of networks against the references, on the simulated chip with its checks."""

from __future__ import annotations

import numpy as np

from passes.build import Builder
from platforms.test_siracusa_kernels import assert_right, requantised


def test_sums_of_windows() -> None:
    b = Builder()
    outputs: list[str] = []
    # Whole images, whose channels are shared; windows that step, overlap or leave pixels out; channels that are no words.
    given = [
        ("int8[1,8,8,64]", (8, 8), (1, 1), (1, 1)),
        ("uint8[2,17,18,19]", (3, 2), (2, 3), (2, 1)),
        ("int8[1,6,5,3]", (6, 5), (1, 1), (1, 1)),
        ("uint8[1,9,9,10]", (3, 3), (1, 2), (1, 1)),
        ("int8[1,4,7,6]", (2, 1), (2, 1), (1, 1)),
    ]
    for number, (shape, kernel, strides, dilations) in enumerate(given):
        x = b.input(f"x{number}", shape)
        attributes = {"kernel_shape": kernel, "strides": strides, "dilations": dilations}
        sums = b.op("AveragePool", x, channels_last=1, sum=1, **attributes)
        outputs += [requantised(b, sums), sums] if number == 1 else [requantised(b, sums)]
    assert_right(b.graph(*outputs), "sumpool_s8")
