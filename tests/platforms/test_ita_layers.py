"""Linear layers that a network says in ITA's arithmetic, on a cluster with ITA: exact, on the engine, and how fast."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

import tilewright
from platforms.ita_cluster import ita_cluster
from tilewright.base.dtype import INT8
from tilewright.core.graph import Array, Attr, Graph, Node, TensorType, type_of_array
from tilewright.core.interpret import interpret
from tilewright.core.op import call_node
from tilewright.ops import operators

GELU: dict[str, Attr] = {"b": -80, "c": -7091, "mult": 74, "shift": 20}


def network(rows: int, widths: tuple[int, ...], seed: int = 0) -> Graph:
    """Linear layers of those widths, with a GELU behind all but the last."""
    operators()
    rng = np.random.default_rng(seed)
    constants: dict[str, Array] = {}
    types = {"x": TensorType(INT8, (1, rows, widths[0]))}
    nodes: list[Node] = []

    def add(op: str, inputs: tuple[str, ...], output: str, **attributes: Attr) -> str:
        nodes.append(Node(op, inputs, (output,), MappingProxyType(attributes), output))
        graph = Graph("g", ("x",), (output,), tuple(nodes), MappingProxyType(types), MappingProxyType(constants))
        types[output] = call_node(graph, nodes[-1]).outputs[0]
        return output

    def constant(name: str, array: Array) -> str:
        constants[name], types[name] = array, type_of_array(array)
        return name

    last = "x"
    for number, (inner, width) in enumerate(zip(widths, widths[1:], strict=False)):
        weights = constant(f"w{number}", rng.integers(-128, 128, (inner, width)).astype(np.int8))
        bias = constant(f"b{number}", rng.integers(-40000, 40000, width).astype(np.int32))
        mul = constant(f"m{number}", np.array([99], np.int32))
        offset = constant(f"o{number}", np.array([(number - 1) << 20], np.int32))
        sums = add("Add", (add("MatMul", (last, weights), f"p{number}"), bias), f"s{number}")
        last = add("RequantShift", (sums, mul, offset), f"r{number}", div=1 << 20, n_levels=256, signed=1)
        if number + 2 < len(widths):
            last = add("ITAGelu", (last,), f"g{number}", **GELU)
    return Graph("layers", ("x",), (last,), tuple(nodes), MappingProxyType(types), MappingProxyType(constants))


@pytest.mark.parametrize(("rows", "widths"), [(128, (64, 192, 64)), (100, (96, 130))], ids=["whole", "padded"])
def test_layers_run_on_the_engine(tmp_path: Path, rows: int, widths: tuple[int, ...]) -> None:
    graph = network(rows, widths)
    fed = [np.random.default_rng(1).integers(-128, 128, graph.types["x"].shape).astype(np.int8)]
    wanted = interpret(graph, fed)
    ran = tilewright.run(graph, tilewright.Options(platform=str(ita_cluster(tmp_path))), inputs=fed, expected=wanted)
    assert ran.right
    engines = [choice.engine for choice in ran.compiled.plan.choices]
    assert engines.count("ita") == len(widths) - 1
