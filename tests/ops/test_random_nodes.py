"""Random models of one node, of all operators of the standard, against its evaluator and onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

from batches import Batch, Member
from random_nodes import OPERATORS
from samples import differences, node_sample
from sampling import Sampler
from tilewright.api import Options, compile_model
from tilewright.api.feeding import fit
from tilewright.codegen.build import SANITIZE, STRICT
from tilewright.core.interpret import interpret
from tilewright.ops import operators

SEED = 4
NOT_DRAWN = {"LinearAttention"}
"""No oracle has it."""


def test_every_operator_of_the_standard_is_drawn() -> None:
    standard = {schema.name for schema in onnx.defs.get_all_schemas() if not schema.domain}
    assert set(operators()) & standard - NOT_DRAWN <= set(OPERATORS)


def test_nodes_repeat() -> None:
    for index in range(0, len(OPERATORS), 40):
        one, other = node_sample(SEED, index), node_sample(SEED, index)
        assert one.model.SerializeToString() == other.model.SerializeToString()
        for left, right in zip(one.inputs, other.inputs, strict=True):
            np.testing.assert_array_equal(left, right)


def test_nodes_compute_what_the_standard_says(tmp_path: Path, sampler: Sampler) -> None:
    made = [node_sample(SEED, index) for index in sampler(range(len(OPERATORS)), every=6, family="nodes")]
    compiled = [compile_model(each.write(tmp_path), Options(name=f"n{at}")) for at, each in enumerate(made)]
    members = [Member(c, fit(each.inputs, c.plan.graph)) for c, each in zip(compiled, made, strict=True)]
    batch = Batch(members, tmp_path)
    batch.build("cc", ("-O0", *STRICT, *SANITIZE))
    for at, (each, member) in enumerate(zip(made, members, strict=True)):
        for outputs in (batch.run(at), interpret(member.compiled.plan.graph, member.inputs)):
            wrong = differences(each, member.compiled, outputs, each.expected)
            assert not wrong, f"{each.name}: {wrong}"
