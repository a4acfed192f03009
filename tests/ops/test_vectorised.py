"""Loop nests built for processors with wide vectors: gcc 12 has vectorised loads under a condition wrongly."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

import x86
from ops.test_generated_c import DYNAMIC, GENERIC, Sample, assert_close, network, operator_samples, sample
from tilewright.codegen import build, lower, project_files, write_project
from tilewright.codegen.affine import address
from tilewright.codegen.build import STRICT
from tilewright.core.interpret import interpret
from tilewright.core.op import REGISTRY, call_node, example
from tilewright.errors import TilewrightError
from tilewright.ops import operators
from tilewright.passes.halves import halves
from tilewright.plan import PlanOptions, plan
from tilewright.sim import run_on_host

BARE = replace(GENERIC, kernels=())
NAMES = [name for name in operators() if name not in DYNAMIC and REGISTRY[name].kind != "view" and REGISTRY[name].body]
SEAMS = (
    # Two guarded loads with an innermost loop of two elements, as they stood in a network for pitch detection.
    ("Concat", example("float32[4,36,2]", "float32[4,36,2]", axis=1)),
    ("Concat", example("int8[3,17]", "int8[3,1]", "int8[3,46]", axis=1)),
    ("Pad", example("float32[3,33,2]", [0, 3, 0, 0, 4, 0])),
    ("Pad", example("int16[2,9,4]", [1, 2, 0, 0, 5, 3], np.array(-7, np.int16))),
    ("Pad", example("float32[6,20]", [-2, 3, 1, -4])),
    ("CenterCropPad", example("float32[7,40,2]", [9, 21], axes=(0, 1))),
    ("Split", example("float32[4,36,2]", [11, 25], wanted=2, axis=1)),
)
LOAD = re.compile(r"\bp_\w+\[|\b\w+_at\(")


def leaves(s: Sample) -> bool:
    """Whether a node is a loop nest of which some access may leave its tensor, or is decided by data."""
    call = call_node(s.graph(), s.node)
    try:
        body = call.op.body(call) if call.op.body is not None else None
    except TilewrightError:
        # Some forms of an operator are kernels only.
        return False
    domain = call.domain()
    guarded = any(address(domain, operand).guards for operand in domain.access)
    return body is not None and (guarded or any(f"{operand}_at" in body.words for operand in call.operands))


def samples_with_seams() -> list[Sample]:
    own = [sample(op, spec, index, f"seam_{index}") for index, (op, spec) in enumerate(SEAMS)]
    return own + [s for s in operator_samples(NAMES) if leaves(s)]


def guarded_loads(text: str) -> list[str]:
    """Lines of C that load under a condition: behind `?` and before the index's own choice, or behind `if`."""
    found: list[str] = []
    for line in text.splitlines():
        statement = line.strip()
        if statement.startswith("#"):
            continue
        # A choice inside of brackets is one of indices; what is left of `?` is the condition.
        flat = re.sub(r"\[[^\[\]]*\]", "[]", statement)
        chosen = flat.partition("?")[2] if "?" in re.sub(r"\([^()]*\)", "", flat) else ""
        conditional = flat.partition(")")[2] if flat.startswith("if (") else ""
        if LOAD.search(chosen) or LOAD.search(conditional):
            found.append(statement)
    return found


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    return samples_with_seams()


def test_no_nest_loads_under_a_condition(samples: list[Sample]) -> None:
    planned = plan(halves(network(samples), BARE), BARE, PlanOptions(seconds=0.0))
    found = [line for function in lower(planned).functions for line in guarded_loads(function.text)]
    assert not found


def test_what_a_guarded_load_is() -> None:
    assert guarded_loads("const float u = k < 36 ? p_a[k * 2] : 0.0f;")
    assert guarded_loads("if (k < 36) acc += p_a[k];")
    assert not guarded_loads("const float u = p_a[k < 36 ? k * 2 : 0];")
    assert not guarded_loads("const float u = k < 36 ? u_near : 0.0f;")


def test_nests_are_right_with_wide_vectors(samples: list[Sample], tmp_path: Path) -> None:
    x86.need_x86()
    graph = halves(network(samples), BARE)
    write_project(project_files([lower(plan(graph, BARE, PlanOptions(seconds=0.0)))], BARE), tmp_path)
    built = build(tmp_path, BARE, compiler=x86.COMPILER, flags=(*STRICT, *x86.FLAGS))
    fed = [array for s in samples for array in s.fed.values()]
    nodes = {output: s.node for s in samples for output in s.node.outputs}
    run = run_on_host(x86.runnable(built.executable), fed, [graph.types[name] for name in graph.outputs])
    for output, found, wanted in zip(graph.outputs, run.outputs, interpret(network(samples), fed), strict=True):
        assert_close(found, wanted, f"{nodes[output].op} {output} {dict(nodes[output].attrs)}")
