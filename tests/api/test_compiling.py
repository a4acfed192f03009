"""Compiling by the Python interface: stages, options, and what comes back."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from onnx_models import check, write
from onnx_networks import FLOAT_NETWORKS
from passes.build import Builder
from tilewright.api import Options, compile_model, compiling, plan_model
from tilewright.core.graph import Graph
from tilewright.core.plan import Plan
from tilewright.errors import TilewrightError
from tilewright.machine.target import Sizes, Target
from tilewright.passes import PIPELINE
from tilewright.plan import PlanError, PlanOptions


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "network.onnx"
    write(path, FLOAT_NETWORKS["qdq_cnn"]()[0])
    return path


def test_every_stage_is_told_and_written_as_a_valid_model(model: Path, tmp_path: Path) -> None:
    told: list[str] = []
    compile_model(model, Options(dump_stages=tmp_path / "stages"), progress=told.append)
    passes = [step.__name__ for step in PIPELINE]
    assert told == ["import", "integers", *passes, "plan", "generate"]
    written = sorted((tmp_path / "stages").iterdir())
    assert [path.stem[3:] for path in written] == ["import", "integers", *passes]
    for path in written:
        check(path)


def test_a_compilation_holds_everything_it_made(model: Path) -> None:
    made = compile_model(model, Options(name="mine"))
    assert made.source.inputs == made.plan.graph.inputs
    assert made.program.name == "mine"
    assert {"mine.c", "mine.h", "main.c", "Makefile", "CMakeLists.txt"} <= set(made.files)
    assert made.program.arena_bytes == made.plan.arena_bytes >= made.plan.lower_bound


def test_a_graph_can_be_compiled_without_a_file(model: Path) -> None:
    made = compile_model(model)
    assert compile_model(made.source).files == made.files


def test_a_wrong_plan_never_becomes_code(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = compiling.plan

    def short(graph: Graph, platform: Target, options: PlanOptions) -> Plan:
        return replace(right(graph, platform, options), arena_bytes=1)

    monkeypatch.setattr(compiling, "plan", short)
    with pytest.raises(PlanError, match="outside its 1 bytes"):
        compile_model(model)


def large() -> Graph:
    b = Builder()
    x = b.input("x", "float32[1,96,300]")
    return b.graph(b.op("Softmax", b.op("MatMul", x, b.weights(300, 600)), name="y"))


def test_a_size_of_the_whole_memory_means_what_is_free() -> None:
    whole = compile_model(large(), Options("siracusa", sizes=Sizes({"L1": 262_144})))
    free = compile_model(large(), Options("siracusa", sizes=Sizes({"L1": 229_376})))
    assert whole.files == free.files


def test_no_program_for_a_memory_that_the_machine_does_not_have() -> None:
    b = Builder()
    between = b.op("MatMul", b.input("x", "float32[1,96,300]"), b.weights(300, 600))
    graph = b.graph(b.op("MatMul", between, b.weights(600, 300), name="y"))  # stays in L1 where it has the bytes
    plan_model(graph, Options("siracusa", sizes=Sizes({"L1": 2_000_000})))
    with pytest.raises(TilewrightError, match=r"bytes of L1, 'siracusa' has 229376"):
        compile_model(graph, Options("siracusa", sizes=Sizes({"L1": 2_000_000})))
