"""Networks on emulated Cortex-M boards: right, counted, and built with strict flags."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from onnx_models import write
from onnx_networks import FLOAT_NETWORKS, integer_cnn
from tilewright.api import Options, compile_model, load_case, run_model
from tilewright.cli.app import run
from tilewright.codegen.build import STRICT
from tilewright.core.interpret import interpret
from tilewright.machine.target import Sizes, load_platform

VARIANTS = ("cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55", "cortex-m0plus")
MODELS = Path(__file__).parents[2] / "examples" / "models"


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("variant", VARIANTS)
def test_an_integer_network_is_exact(variant: str, tmp_path: Path) -> None:
    model, inputs = integer_cnn()
    path = write(tmp_path / "network.onnx", model)
    ran = run_model(path, Options(platform=variant), inputs=inputs, flags=STRICT)
    for found, wanted in zip(ran.outputs, interpret(ran.compiled.source, inputs), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_float_network_is_right(variant: str, tmp_path: Path) -> None:
    model, inputs = FLOAT_NETWORKS["float_cnn"]()
    path = write(tmp_path / "network.onnx", model)
    expected = interpret(compile_model(path).source, inputs)
    ran = run_model(path, Options(platform=variant), inputs=inputs, expected=expected, flags=STRICT)
    assert ran.right


def test_several_inputs_and_outputs(tmp_path: Path) -> None:
    model, inputs = FLOAT_NETWORKS["many_outputs"]()
    path = write(tmp_path / "network.onnx", model)
    expected = interpret(compile_model(path).source, inputs)
    assert run_model(path, Options(platform="cortex-m4"), inputs=inputs, expected=expected).right


def test_instructions_of_layers_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    model = str(MODELS / "tiny_cnn_int8.onnx")
    assert run(["run", model, "--platform", "cortex-m4", "--profile", "layers", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "cycles" not in found
    instructions = found["instructions"]
    each = load_platform("cortex-m4").estimate
    assert each is not None
    assert found["estimated_cycles"] == pytest.approx(instructions * each.each, abs=1)
    layers = found["profile"]["layers"]
    assert len(layers) >= 4
    assert instructions * 0.99 <= sum(layer["time"] for layer in layers) <= instructions
    assert all(layer["time"] >= 0 for layer in layers)


def test_counts_repeat() -> None:
    counts = {run_model(MODELS / "tiny_cnn_int8.onnx", Options(platform="cortex-m4")).cycles for _ in range(2)}
    assert len(counts) == 1


def test_tables_say_what_they_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(MODELS / "tiny_cnn_int8.onnx")
    folder = str(tmp_path / "c")
    assert run(["run", model, "--platform", "cortex-m7", "--profile", "layers", "--output", folder]) == 0
    text = capsys.readouterr().out
    assert "instructions counted by QEMU, about" in text
    assert "cycles (an estimate)" in text
    assert "Layers, counted: instructions" in text
    page = (tmp_path / "c" / "report.html").read_text()
    assert "Instructions of each layer, counted by an emulator. Cycles are an estimate" in page


def test_only_layers_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    model = str(MODELS / "tiny_cnn_int8.onnx")
    assert run(["run", model, "--platform", "cortex-m4", "--profile", "tiles"]) == 2
    assert "QEMU counts no tiles" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        (["--repeat", "3"], "each run takes the same time"),
        (["--dma", "random"], "for machines emulated on this computer"),
        (["--cores", "2"], "has 1 core, not 2"),
    ],
)
def test_options_without_a_meaning(option: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", str(MODELS / "tiny_cnn_int8.onnx"), "--platform", "cortex-m4", *option]) == 2
    assert reason in " ".join(capsys.readouterr().err.split())


def test_a_program_runs_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its inputs are zeros then."""
    model = str(MODELS / "tiny_cnn_int8.onnx")
    assert run(["run", model, "--platform", "cortex-m4", "--output", str(tmp_path)]) == 0
    capsys.readouterr()
    assert run(["sim", str(tmp_path / "network"), "--platform", "cortex-m4"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("variant", ["cortex-m4", "cortex-m55"])
def test_layers_are_fused_where_ram_is_short(variant: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The smallest number of bytes that the error names works, and one unit less does not."""
    model, arrays = str(MODELS / "tiny_cnn_int8.onnx"), str(MODELS / "tiny_cnn_int8.npz")
    command = ["run", model, "--platform", variant, "--inputs", arrays, "--expected", arrays, "--json"]
    assert run(command) == 0
    usual = json.loads(capsys.readouterr().out)
    assert run([*command, "--ram", "1000"]) == 2
    found = re.search(r"needs at least (\d+) bytes of RAM, 1000 given", capsys.readouterr().err)
    assert found is not None
    least = int(found[1])
    assert least < usual["arena_bytes"]
    assert run([*command, "--ram", str(least)]) == 0
    fused = json.loads(capsys.readouterr().out)
    assert fused["right"]
    assert fused["arena_bytes"] == least
    assert run([*command, "--ram", str(least - 16)]) == 2


def test_flash_is_for_weights(capsys: pytest.CaptureFixture[str]) -> None:
    model = str(MODELS / "tiny_cnn_int8.onnx")
    assert run(["plan", model, "--platform", "cortex-m4", "--flash", "1000"]) == 2
    found = re.search(r"need at least (\d+) bytes of FLASH, 1000 given", capsys.readouterr().err)
    assert found is not None
    assert run(["plan", model, "--platform", "cortex-m4", "--flash", found[1]]) == 0
    assert run(["plan", model, "--platform", "cortex-m4", "--flash", str(int(found[1]) - 1)]) == 2


def test_weights_are_brought_into_ram(capsys: pytest.CaptureFixture[str]) -> None:
    """Where none are to be read in place, because flash is slow."""
    model, arrays = str(MODELS / "tiny_cnn_int8.onnx"), str(MODELS / "tiny_cnn_int8.npz")
    command = ["run", model, "--platform", "cortex-m7", "--inputs", arrays, "--expected", arrays, "--json"]
    assert run([*command, "--weight-memory", "0"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["right"]
    assert found["memories"].get("FLASH", 0) == 0
    assert found["arena_bytes"] > found["weight_bytes"]


@pytest.mark.sample(every=2)
@pytest.mark.cases
@pytest.mark.parametrize(("name", "ram"), [("ae640_int8", 96_000), ("dscnn_int8", 32_000)])
def test_weights_are_brought_into_tightly_coupled_memory(name: str, ram: int, cases: Path) -> None:
    """Many weights as well as few, at little more than the instructions of the core that reads them in place."""
    case = load_case(name, cases / "standard_networks" / f"{name}.onnx")
    counts: list[int] = []
    for sizes in ({}, {"FLASH": 0, "RAM": ram}):
        options = Options(platform="cortex-m7", sizes=Sizes(sizes))
        ran = run_model(case.model, options, inputs=case.inputs, expected=case.expected)
        assert ran.right
        assert ran.compiled.program.arena_bytes <= ram
        counts.append(ran.cycles or 0)
    assert counts[1] <= 1.15 * counts[0]


@pytest.mark.cases
def test_mobilenet_with_less_ram(cases: Path) -> None:
    """Fused, it needs at most 40 % of the RAM and 1.15 times the instructions."""
    model = cases / "standard_networks" / "mbv1_025_int8.onnx"
    with np.load(model.with_suffix(".npz")) as data:
        inputs, expected = [data["input_0"]], [data["output_0"]]
    ran = [
        run_model(model, Options(platform="cortex-m4", sizes=Sizes(sizes)), inputs=inputs, expected=expected)
        for sizes in ({}, {"RAM": 21_700})
    ]
    assert all(run.right for run in ran)
    usual, fused = (run.compiled.program.arena_bytes + (run.footprint.stack if run.footprint else 0) for run in ran)
    assert usual <= 60_000
    assert fused <= 0.4 * usual
    assert (ran[1].cycles or 0) <= 1.15 * (ran[0].cycles or 0)
