"""Kernels of Siracusa for convolutional and float networks against the references, on the simulated chip.

Integer results have to be equal, floats within the tolerances of networks. Layers of one kernel share a program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from tilewright.api import Options, compile_model, run_model
from tilewright.core.graph import Array, Attr, Graph, Node, TensorType, attrs, type_of_array
from tilewright.core.interpret import interpret
from tilewright.core.op import REGISTRY, call_of
from tilewright.core.plan import Plan
from tilewright.machine.target import PLATFORMS, Sizes
from tilewright.plan import PlanOptions

pytestmark = pytest.mark.usefixtures("only_kernels")

OWN = PLATFORMS / "siracusa" / "kernels"
L1 = 24_000
"""Few enough bytes for the larger layers to be cut into tiles."""


@dataclass(frozen=True)
class Layer:
    """An operator on noise, with constants behind its input."""

    op: str
    shape: tuple[int, ...]
    dtype: str
    constants: tuple[tuple[tuple[int, ...], str], ...]
    attributes: tuple[tuple[str, Attr], ...]


def layer(op: str, shape: Sequence[int], dtype: str, *constants: tuple[tuple[int, ...], str], **given: Attr) -> Layer:
    return Layer(op, tuple(shape), dtype, constants, tuple(given.items()))


def conv(shape: Sequence[int], features: int, kernel: Sequence[int], dtype: str = "int8", **given: Attr) -> Layer:
    """A convolution with a bias; `group` divides the channels."""
    group = given.get("group", 1)
    assert isinstance(group, int)
    weights = ((features, shape[1] // group, *kernel), "float32" if dtype == "float32" else "int8")
    return layer("Conv", shape, dtype, weights, ((features,), "float32" if dtype == "float32" else "int32"), **given)


def noise(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> Array:
    if dtype == "float32":
        return rng.normal(size=shape).astype(np.float32)
    limits = np.iinfo(dtype)
    return rng.integers(max(limits.min, -1000), min(limits.max, 1000) + 1, shape).astype(dtype)


def network(given: Sequence[Layer]) -> tuple[Graph, list[Array]]:
    """All layers beside each other, and what they are fed."""
    rng = np.random.default_rng(0)
    types: dict[str, TensorType] = {}
    constants: dict[str, Array] = {}
    fed: dict[str, Array] = {}
    nodes: list[Node] = []
    for number, one in enumerate(given):
        fed[f"x{number}"] = noise(one.shape, one.dtype, rng)
        own = {f"c{number}_{i}": noise(*constant, rng) for i, constant in enumerate(one.constants)}
        constants |= own
        types |= {name: type_of_array(array) for name, array in (fed | own).items()}
        inputs, chosen = (f"x{number}", *own), attrs(**dict(one.attributes))
        call = call_of(REGISTRY[one.op], [types[name] for name in inputs], chosen, values=[None, *own.values()])
        types[f"y{number}"] = call.outputs[0]
        nodes.append(Node(one.op, inputs, (f"y{number}",), chosen, f"layer_{number}"))
    outputs = tuple(node.outputs[0] for node in nodes)
    graph = Graph("layers", tuple(fed), outputs, tuple(nodes), MappingProxyType(types), MappingProxyType(constants))
    return graph, list(fed.values())


def kernel_files(plan: Plan, op: str) -> list[Path]:
    """Of all nodes of an operator."""
    pairs = zip(plan.graph.nodes, plan.choices, strict=True)
    return [choice.kernel.path for node, choice in pairs if node.op == op and choice.kernel is not None]


CONV2D_S8 = [
    conv((1, 8, 6, 6), 8, (3, 3), pads=(1, 1, 1, 1)),
    conv((1, 64, 3, 5), 20, (1, 1)),
    conv((2, 12, 5, 7), 16, (1, 1)),
    conv((1, 3, 9, 9), 5, (3, 3), strides=(2, 2), pads=(1, 1, 1, 1), x_zero_point=5),
    conv((1, 5, 7, 8), 6, (2, 3), dilations=(2, 2), pads=(2, 0, 1, 3)),
    conv((2, 6, 5, 5), 9, (3, 2), group=3, pads=(0, 1, 2, 0)),
    conv((1, 7, 5, 3), 4, (1, 1), "uint8", strides=(2, 1)),
    conv((1, 16, 12, 20), 32, (3, 3), "uint8", pads=(1, 1, 1, 1)),
    conv((1, 4, 1, 30), 4, (1, 9), pads=(0, 8, 0, 0)),
    conv((1, 1, 2, 2), 2, (2, 2), x_zero_point=-7, pads=(1, 1, 0, 0)),
    conv((1, 2, 3, 3), 3, (5, 5), pads=(2, 2, 2, 2)),
    # Few pixels and many channels, which cores share; columns, where there are more of them than rows.
    conv((1, 16, 3, 3), 64, (3, 3), pads=(1, 1, 1, 1)),
    conv((1, 32, 5, 5), 72, (1, 1)),
    conv((1, 8, 2, 33), 4, (3, 3), pads=(1, 1, 1, 1)),
]

DEPTHWISE_3X3_S8 = [
    conv((1, 16, 6, 17), 16, (3, 3), group=16, pads=(1, 1, 1, 1)),
    conv((1, 36, 9, 9), 36, (3, 3), "uint8", group=36, strides=(2, 2), pads=(1, 1, 1, 1)),
    conv((2, 7, 5, 6), 7, (3, 3), group=7, pads=(0, 1, 1, 0), x_zero_point=-9),
    conv((1, 12, 3, 19), 12, (3, 3), group=12, strides=(1, 3)),
    # Lines along the rows: more than are done at once, an odd number, far apart, at strides.
    conv((1, 16, 70, 5), 16, (3, 3), group=16, pads=(1, 1, 1, 1)),
    conv((1, 9, 21, 4), 9, (3, 3), "uint8", group=9, strides=(2, 1), pads=(1, 1, 0, 1), x_zero_point=3),
    conv((1, 6, 11, 7), 6, (3, 3), group=6, dilations=(2, 1), pads=(2, 1, 2, 1)),
    conv((1, 64, 2, 2), 64, (3, 3), group=64, pads=(1, 1, 1, 1)),
]
DEPTHWISE_S8 = [
    conv((1, 8, 12, 5), 8, (10, 4), group=8, pads=(4, 1, 5, 2)),
    conv((1, 4, 9, 9), 4, (4, 3), "uint8", group=4, dilations=(2, 2), x_zero_point=200, pads=(3, 2, 2, 2)),
    conv((1, 5, 2, 40), 5, (1, 3), group=5, pads=(0, 1, 0, 1)),
    conv((1, 20, 3, 3), 20, (5, 5), group=20, pads=(2, 2, 2, 2)),
]
CONV2D_F32 = [
    conv((1, 8, 6, 6), 8, (3, 3), "float32", pads=(1, 1, 1, 1)),
    conv((1, 33, 3, 5), 20, (1, 1), "float32"),
    conv((1, 3, 9, 9), 5, (3, 3), "float32", strides=(2, 2), pads=(1, 1, 1, 1)),
    conv((1, 5, 7, 8), 6, (2, 3), "float32", dilations=(2, 2), pads=(2, 0, 1, 3)),
    conv((2, 6, 5, 5), 9, (3, 2), "float32", group=3, pads=(0, 1, 2, 0)),
    conv((1, 8, 3, 3), 40, (3, 3), "float32", pads=(1, 1, 1, 1)),
    # Columns at the sides have fours of their own; next to all, or all, of the filter lies outside for some pixels.
    conv((1, 5, 32, 9), 6, (3, 3), "float32", pads=(1, 1, 1, 1)),
    conv((2, 4, 4, 12), 21, (5, 5), "float32", pads=(2, 2, 2, 2)),
    conv((1, 3, 8, 8), 5, (3, 4), "float32", pads=(4, 5, 4, 5)),
    conv((1, 6, 16, 7), 9, (5, 3), "float32", strides=(2, 3), dilations=(3, 1), pads=(6, 2, 5, 1)),
    # Lines of single pixels that lie end to end.
    conv((2, 9, 5, 5), 33, (1, 1), "float32"),
]
DEPTHWISE_3X3_F32 = [
    conv((1, 16, 6, 17), 16, (3, 3), "float32", group=16, pads=(1, 1, 1, 1)),
    conv((2, 7, 5, 6), 7, (3, 3), "float32", group=7, pads=(0, 1, 1, 0)),
    conv((1, 12, 70, 5), 12, (3, 3), "float32", group=12, strides=(1, 2), pads=(1, 1, 1, 1)),
    conv((1, 6, 11, 7), 6, (3, 3), "float32", group=6, dilations=(2, 1), strides=(2, 1), pads=(2, 1, 2, 1)),
    conv((1, 40, 2, 2), 40, (3, 3), "float32", group=40, pads=(1, 1, 1, 1)),
]
# Large enough that no other kernel is cheaper; rows that are left, with odd and even numbers of inputs, and one.
MATMUL_PACKED_F32 = [
    layer("MatMul", (65, 7), "float32", ((7, 67), "float32")),
    layer("MatMul", (67, 1), "float32", ((1, 64), "float32")),
    layer("MatMul", (66, 2), "float32", ((2, 61), "float32")),
]
KERNELS = {
    "conv2d_s8": CONV2D_S8,
    "depthwise_3x3_s8": DEPTHWISE_3X3_S8,
    "depthwise_s8": DEPTHWISE_S8,
    "conv2d_f32": CONV2D_F32,
    "depthwise_3x3_f32": DEPTHWISE_3X3_F32,
    "matmul_packed_f32": MATMUL_PACKED_F32,
}


@pytest.mark.parametrize(("kernel", "given"), [(f"{k}.c", v) for k, v in KERNELS.items()], ids=list(KERNELS))
def test_kernels_are_right_on_the_chip(kernel: str, given: list[Layer]) -> None:
    graph, fed = network(given)
    sizes = Sizes({"L1": L1}, without=("neureka",))
    options = Options(platform="siracusa", sizes=sizes, planning=PlanOptions(seconds=0.0))
    ran = run_model(graph, options, inputs=fed, expected=interpret(graph, fed))
    assert kernel_files(ran.compiled.plan, given[0].op) == [OWN / kernel] * len(given)
    assert [c for c in ran.comparisons if c.wrong] == []


FEW_ROWS = [
    layer("MatMul", (2, 35, 40), "float32", ((40, 48), "float32")),
    layer("MatMul", (1, 64), "float32", ((64, 33), "float32")),
    layer("MatMul", (1, 7), "float32", ((7, 5), "float32")),
    layer("MatMul", (2, 1, 40), "float32", ((40, 24), "float32")),
    layer("MatMul", (3, 1), "float32", ((1, 19), "float32")),
]


def test_packed_products_of_few_rows_are_right_on_the_chip(tmp_path: Path) -> None:
    """Whichever kernel is predicted to be faster for them: the other one is replaced by one that is for nothing."""
    text = (OWN / "matmul_f32.c").read_text()
    (tmp_path / "matmul_f32.c").write_text(text.replace("when: {", 'when: {K: "== 0", '))
    graph, fed = network(FEW_ROWS)
    sizes = Sizes({"L1": L1}, without=("neureka",))
    options = Options(platform="siracusa", kernels=(tmp_path,), sizes=sizes, planning=PlanOptions(seconds=0.0))
    ran = run_model(graph, options, inputs=fed, expected=interpret(graph, fed))
    assert kernel_files(ran.compiled.plan, "MatMul") == [OWN / "matmul_packed_f32.c"] * len(FEW_ROWS)
    assert [c for c in ran.comparisons if c.wrong] == []


@pytest.mark.parametrize(("cores", "kernel"), [(1, "depthwise_f32.c"), (8, "depthwise_3x3_f32.c")])
def test_kernels_are_chosen_by_what_all_cores_take(cores: int, kernel: str) -> None:
    """One kernel is faster on a core, but its blocks of channels cannot be shared by many."""
    given = conv((1, 48, 2, 2), 48, (3, 3), "float32", group=48, pads=(1, 1, 1, 1))
    graph, _ = network([given])
    options = Options(platform="siracusa", sizes=Sizes({"L1": L1}, cores=cores, without=("neureka",)))
    assert [path.name for path in kernel_files(compile_model(graph, options).plan, given.op)] == [kernel]


@pytest.mark.parametrize("transposed", [False, True])
def test_products_of_two_inputs_are_right_on_the_chip(*, transposed: bool) -> None:
    rng = np.random.default_rng(1)
    fed = {name: noise(shape, "float32", rng) for name, shape in (("a", (2, 6, 16)), ("b", (2, 16, 11)))}
    nodes = [Node("MatMul", ("a", "b"), ("y",), attrs(), "product")]
    types = {name: type_of_array(array) for name, array in fed.items()}
    types["y"] = call_of(REGISTRY["MatMul"], [types["a"], types["b"]], attrs()).outputs[0]
    if transposed:
        types["bt"], fed["b"] = types["b"], fed["b"].transpose(0, 2, 1).copy()
        types["b"] = type_of_array(fed["b"])
        nodes = [
            Node("Transpose", ("b",), ("bt",), attrs(perm=(0, 2, 1)), "turned"),
            Node("MatMul", ("a", "bt"), ("y",), attrs(), "product"),
        ]
    graph = Graph("product", ("a", "b"), ("y",), tuple(nodes), MappingProxyType(types), MappingProxyType({}))
    sizes = Sizes({"L1": L1}, without=("neureka",))
    options = Options(platform="siracusa", sizes=sizes, planning=PlanOptions(seconds=0.0))
    ran = run_model(graph, options, inputs=list(fed.values()), expected=interpret(graph, list(fed.values())))
    assert kernel_files(ran.compiled.plan, "MatMul") == [OWN / "matmul_f32.c"]
    assert ran.right
