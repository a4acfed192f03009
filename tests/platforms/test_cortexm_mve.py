"""Kernels with Helium vectors against the references, on an emulated Cortex-M55; layers of a kernel share a program."""

from __future__ import annotations

from pathlib import Path

import pytest

from passes.build import Builder
from platforms.cortexm import assert_right, conv, convolutions, noise, requantised
from tilewright.core.graph import Graph

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
KERNELS = {"conv2d_s8": CONV2D_S8, "depthwise_s8": DEPTHWISE_S8}


def assert_right_in_vectors(graph: Graph, kernel: str, folder: Path) -> None:
    assert_right(graph, "cortex-m55", kernel, folder, places=("mve",))


@pytest.mark.parametrize("kernel", KERNELS)
def test_convolutions(kernel: str, tmp_path: Path) -> None:
    assert_right_in_vectors(convolutions(KERNELS[kernel]), kernel, tmp_path)


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
