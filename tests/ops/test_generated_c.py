"""Every example of every operator, through the code generator, against its reference: exact on integers."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from tilewright.codegen import build, lower, project_files, write_project
from tilewright.codegen.build import SANITIZE, STRICT
from tilewright.core.graph import Array, Graph, Node, TensorType, type_of_array
from tilewright.core.op import REGISTRY, arrays_of, call_example, evaluate
from tilewright.core.platform import load_platform
from tilewright.ops import operators
from tilewright.plan import plan
from tilewright.sim import run_on_host

DYNAMIC = {"Compress", "NonZero", "Unique", "NonMaxSuppression"}
"""Their output shape depends on data: they only exist as folded constants."""


def network_of(name: str) -> tuple[Graph, list[Array], list[tuple[int, Array]]]:
    """One graph with a node for every example of an operator, its inputs, and what each output should be."""
    op = REGISTRY[name]
    types: dict[str, TensorType] = {}
    constants: dict[str, Array] = {}
    nodes: list[Node] = []
    fed: dict[str, Array] = {}
    expected: list[tuple[int, Array]] = []
    for index, spec in enumerate(op.examples):
        arrays = arrays_of(spec, seed=index)
        call = call_example(op, spec, arrays)
        inputs: list[str] = []
        for operand, array, given in zip(call.operands, arrays, spec.inputs, strict=True):
            tensor = "" if array is None else f"e{index}_{operand}"
            inputs.append(tensor)
            if array is not None:
                types[tensor] = type_of_array(array)
                (constants if isinstance(given, np.ndarray) else fed)[tensor] = array
        outputs = [f"e{index}_out{i}" for i in range(len(call.outputs))]
        types.update(dict(zip(outputs, call.outputs, strict=True)))
        nodes.append(Node(name, tuple(inputs), tuple(outputs), spec.attrs, f"e{index}"))
        expected += [(index, array) for array in evaluate(call, arrays)]
    made = tuple(o for n in nodes for o in n.outputs)
    graph = Graph(name, tuple(fed), made, tuple(nodes), MappingProxyType(types), MappingProxyType(constants))
    return graph, list(fed.values()), expected


def assert_close(found: Array, expected: Array, what: str) -> None:
    if expected.dtype.kind in "iub":
        np.testing.assert_array_equal(found, expected, err_msg=what)
        return
    tolerance = {"float16": 2e-3, "bfloat16": 1.6e-2}.get(expected.dtype.name, 1e-5)
    np.testing.assert_allclose(
        found.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=1e-4 if tolerance == 1e-5 else tolerance, err_msg=what
    )


@pytest.mark.parametrize("name", [n for n in operators() if n not in DYNAMIC and REGISTRY[n].kind != "view"])
def test_generated_code_agrees_with_the_reference(name: str, tmp_path: Path) -> None:
    graph, inputs, expected = network_of(name)
    platform = load_platform("generic")
    files = project_files(lower(plan(graph, platform)), platform)
    write_project(files, tmp_path / "c")
    built = build(tmp_path / "c", platform, flags=(*STRICT, *SANITIZE, "-O1"))
    run = run_on_host(built.executable, inputs, [graph.types[o] for o in graph.outputs])
    for found, (index, array) in zip(run.outputs, expected, strict=True):
        spec = REGISTRY[name].examples[index]
        assert_close(found, array, f"{name} example {index} {spec.inputs} {dict(spec.attrs)}")
