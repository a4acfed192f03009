"""Kernels of Cortex-M against the references: emulated, and on this computer with the instructions in plain C.

Integer results have to be equal, floats within the tolerances of networks. Layers of one kernel share a program.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from passes.build import Builder
from platforms.cortexm import Layer, assert_right, conv, convolutions, noise, requantised
from tilewright.api import Options, run_model
from tilewright.codegen.build import STRICT
from tilewright.core.graph import Attr
from tilewright.core.interpret import interpret

MACHINES = ("host", "cortex-m4", "cortex-m55")
"""The host runs those of the Cortex-M4, with sanitizers. Other cores have the same kernels; one of them convolves."""

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
    conv(
        (1, 40, 5, 9),
        40,
        (3, 2),
        "uint8",
        group=40,
        strides=(1, 2),
        dilations=(2, 1),
        pads=(2, 1, 2, 0),
        x_zero_point=99,
    ),
]
DEPTHWISE_3X3_S8 = [
    conv((1, 16, 6, 17), 16, (3, 3), group=16, pads=(1, 1, 1, 1)),
    conv((1, 36, 9, 9), 36, (3, 3), "uint8", group=36, strides=(2, 2), pads=(1, 1, 1, 1)),
    conv((2, 8, 5, 6), 8, (3, 3), group=8, pads=(0, 1, 1, 0), x_zero_point=-9),
    conv((1, 4, 3, 50), 4, (3, 3), "uint8", group=4, pads=(2, 2, 2, 2), x_zero_point=200),
    conv((1, 4, 1, 1), 4, (3, 3), group=4, pads=(1, 1, 1, 1), x_zero_point=3),
    conv((1, 12, 7, 40), 12, (3, 3), group=12, strides=(3, 2)),
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
    conv((1, 40, 2, 2), 40, (5, 3), "float32", group=40, pads=(2, 1, 2, 1)),
]
KERNELS = {
    "conv2d_s8": CONV2D_S8,
    "depthwise_s8": DEPTHWISE_S8,
    "depthwise_3x3_s8": DEPTHWISE_3X3_S8,
    "conv2d_f32": CONV2D_F32,
    "depthwise_f32": DEPTHWISE_F32,
}


@pytest.mark.sample(every=2, by=("kernel",))
@pytest.mark.parametrize("machine", [*MACHINES, "cortex-m33"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_convolutions(kernel: str, machine: str, tmp_path: Path) -> None:
    assert_right(convolutions(KERNELS[kernel]), machine, kernel, tmp_path)


@pytest.mark.parametrize("machine", ["cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("level", ["-Os", "-O3"])
def test_other_levels(level: str, machine: str, tmp_path: Path) -> None:
    """With -Os functions begin at any halfword, and loops are entered in the middle by addresses."""
    assert_right(convolutions(CONV2D_S8[:4]), machine, "conv2d_s8", tmp_path, optimise=level)


@pytest.mark.parametrize("machine", MACHINES)
def test_products_with_weights(machine: str, tmp_path: Path) -> None:
    b = Builder()
    outputs: list[str] = []
    shapes = [(1, 64, 40), (7, 35, 21), (2, 3, 5), (9, 20, 64), (1, 1, 1), (3, 64, 96), (1, 30, 10), (5, 2, 17)]
    shapes += [(1, 640, 9), (4, 81, 12), (1, 16, 3), (1, 272, 8)]
    for number, (rows, length, columns) in enumerate(shapes):
        x = b.input(f"x{number}", f"{'uint8' if number % 2 else 'int8'}[{rows},{length}]")
        product = b.op("MatMul", x, noise("int8", (length, columns), number))
        outputs.append(requantised(b, product, number) if number % 2 else product)
    assert_right(b.graph(*outputs), machine, "matmul_packed_s8", tmp_path)


@pytest.mark.parametrize("machine", MACHINES)
def test_products_of_floats_with_weights(machine: str, tmp_path: Path) -> None:
    b = Builder()
    outputs: list[str] = []
    shapes = [("9,7", 19), ("1,64", 33), ("2,3,5", 4), ("5,2", 3), ("4,6", 16), ("1,3", 8), ("2,16", 24)]
    for number, (shape, columns) in enumerate(shapes):
        x = b.input(f"x{number}", f"float32[{shape}]")
        product = b.op("MatMul", x, noise("float32", (int(shape.split(",")[-1]), columns), number))
        outputs.append(b.op("Relu", b.op("Add", product, noise("float32", (columns,), 9))) if number % 2 else product)
    assert_right(b.graph(*outputs), machine, "matmul_packed_f32", tmp_path)


@pytest.mark.parametrize("machine", MACHINES)
def test_products_of_floats(machine: str, tmp_path: Path) -> None:
    b = Builder()
    outputs: list[str] = []
    for number, (left, right, turned) in enumerate(
        [("2,6,16", "2,16,11", 0), ("3,5,7", "3,9,7", 1), ("1,3", "3,2", 0)]
    ):
        operands = b.input(f"a{number}", f"float32[{left}]"), b.input(f"b{number}", f"float32[{right}]")
        outputs.append(b.op("MatMul", *operands, transB=turned))
    assert_right(b.graph(*outputs), machine, "matmul_f32", tmp_path)


@pytest.mark.parametrize("machine", MACHINES)
def test_products_of_activations(machine: str, tmp_path: Path) -> None:
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
    assert_right(b.graph(*outputs), machine, "matmul_s8", tmp_path)


@pytest.mark.parametrize("machine", MACHINES)
def test_quantisation(machine: str, tmp_path: Path) -> None:
    b = Builder()
    outputs: list[str] = []
    extremes = np.asarray([np.nan, np.inf, -np.inf, 1e30, -1e30, 0.5, 1.5, -0.5, -0.0, 3e9, 126.5, 127.5], np.float32)
    given = [("int8", -14, 0.03), ("uint8", 128, 0.01), ("int8", 127, 1.0), ("int8", -9, 0.0173), ("uint8", 77, 1 / 3)]
    given += [("int8", -9, 0.25), ("uint8", 77, 1.9999999), ("int8", -9, 0.0078125)]
    for number, (kind, zero, scale) in enumerate(given):
        x = b.input(f"x{number}", f"float32[{3 + number},41]")
        outputs.append(b.op("QuantizeLinear", x, np.asarray(scale, np.float32), np.asarray(zero, kind)))
    x = b.input("x", f"float32[{extremes.size}]")
    outputs.append(b.op("QuantizeLinear", x, np.asarray(1.0, np.float32), np.asarray(3, np.int8)))
    assert_right(b.graph(*outputs), machine, "quantize_f32", tmp_path, given={"x": extremes})


@pytest.mark.parametrize("machine", MACHINES)
def test_planes_become_pixels(machine: str, tmp_path: Path) -> None:
    b = Builder()
    shapes = [(1, 3, 5, 8), (2, 3, 3, 7), (1, 3, 1, 2)]
    inputs = [b.input(f"x{number}", f"int8[{','.join(map(str, shape))}]") for number, shape in enumerate(shapes)]
    outputs = [b.op("Transpose", x, perm=(0, 2, 3, 1)) for x in inputs]
    assert_right(b.graph(*outputs), machine, "transpose_planes", tmp_path)


@pytest.mark.parametrize("machine", MACHINES)
def test_largest_bytes(machine: str, tmp_path: Path) -> None:
    b = Builder()
    given: list[tuple[str, dict[str, Attr]]] = [
        ("int8[1,8,9,9]", {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}),
        ("uint8[2,13,5,6]", {"kernel_shape": (2, 3), "strides": (1, 2)}),
        ("int8[1,3,7,7]", {"kernel_shape": (2, 2), "dilations": (2, 3), "pads": (0, 1, 1, 1)}),
        ("uint8[1,16,4,1]", {"kernel_shape": (1, 1)}),
        ("uint8[1,20,5,6]", {"kernel_shape": (2, 3), "strides": (2, 2), "pads": (1, 1, 1, 0)}),
        ("int8[1,33,7,3]", {"kernel_shape": (3, 3), "strides": (2, 1), "pads": (1, 1, 1, 0)}),
    ]
    inputs = [b.input(f"x{number}", kind) for number, (kind, _) in enumerate(given)]
    outputs = [b.op("MaxPool", x, name="", **attributes) for x, (_, attributes) in zip(inputs, given, strict=True)]
    assert_right(b.graph(*outputs), machine, "maxpool_s8", tmp_path)


@pytest.mark.parametrize("layers", [CONV2D_S8, DEPTHWISE_S8])
def test_convolutions_without_such_instructions(layers: list[Layer]) -> None:
    graph = convolutions(layers)
    fed = [noise(graph.types[n].dtype.name, graph.types[n].shape, i) for i, n in enumerate(graph.inputs)]
    ran = run_model(graph, Options(platform="cortex-m0plus"), inputs=fed, flags=STRICT)
    for name, got, expected in zip(graph.outputs, ran.outputs, interpret(graph, fed), strict=True):
        np.testing.assert_array_equal(got, expected, err_msg=name)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("kernel", "order"), [("transpose_to_pixels", (0, 2, 3, 1)), ("transpose_to_planes", (0, 3, 1, 2))]
)
def test_axes_of_bytes(kernel: str, order: tuple[int, ...], machine: str, tmp_path: Path) -> None:
    b = Builder()
    shapes = [(1, 8, 5, 8), (2, 7, 3, 6), (1, 5, 1, 4), (1, 16, 4, 9)]
    inputs = [b.input(f"x{number}", f"int8[{','.join(map(str, shape))}]") for number, shape in enumerate(shapes)]
    assert_right(b.graph(*[b.op("Transpose", x, perm=order) for x in inputs]), machine, kernel, tmp_path)


@pytest.mark.parametrize("machine", ["host", "cortex-m4", "cortex-m0plus"])
def test_runs_of_two_tensors(machine: str, tmp_path: Path) -> None:
    b = Builder()
    outputs: list[str] = []
    for number, (left, right) in enumerate([("int8[3,5,7]", "int8[3,2,7]"), ("float32[2,40]", "float32[2,3]")]):
        operands = b.input(f"a{number}", left), b.input(f"b{number}", right)
        outputs.append(b.op("Concat", *operands, axis=1))
    assert_right(b.graph(*outputs), machine, "concat", tmp_path)
