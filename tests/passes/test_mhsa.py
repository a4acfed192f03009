"""MHSA taken apart: the same numbers in C, on a plain machine and on one with tiles."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest

import tilewright
from tilewright.core.graph import Graph, Node, type_of_array
from tilewright.core.op import REGISTRY, arrays_of, call_example, evaluate
from tilewright.ops import operators


@pytest.mark.parametrize(("platform", "index"), [("generic", 0), ("generic", 1), ("scratchpad", 0)])
def test_the_pass_keeps_the_numbers(platform: str, index: int) -> None:
    assert "MHSA" in operators()
    spec = REGISTRY["MHSA"].examples[index]
    arrays = [array for array in arrays_of(spec) if array is not None]
    call = call_example(REGISTRY["MHSA"], spec, arrays)
    wanted = evaluate(call, arrays)[0]
    given = dict(zip(call.operands, arrays, strict=True))
    types = {name: type_of_array(array) for name, array in (*given.items(), ("y", wanted))}
    graph = Graph(
        "heads",
        call.operands[:3],
        ("y",),
        (Node("MHSA", call.operands, ("y",), spec.attrs, "heads"),),
        MappingProxyType(types),
        MappingProxyType({name: given[name] for name in call.operands[3:]}),
    )
    ran = tilewright.run(graph, tilewright.Options(platform=platform), inputs=arrays[:3], expected=[wanted])
    assert not any(node.op == "MHSA" for node in ran.compiled.plan.graph.nodes)
    assert ran.right
    assert len(np.unique(wanted)) > 10, "results that tell something"
