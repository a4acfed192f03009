"""error[bad-kernel]: a kernel file whose header or prototype cannot be used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from command_line import refused, relu
from onnx_models import model, node, value, write
from tilewright.api import Options, compile_model
from tilewright.errors import TilewrightError
from tilewright.machine.kernel import formula
from tilewright.machine.target import load_platform
from tilewright.price.device import kernel_cycles

HEADER = "/* ---\nop: Relu\ntypes: {X: float32, Y: float32}\n--- */\n"
PROTOTYPE = "static void relu(const float *X, float *Y, int SIZE) {}\n"


JOB = "height: 1, width: 1, inputs: 1"


def with_lines(lines: str) -> str:
    """A kernel with something more in its header."""
    return HEADER.replace("op:", f"{lines}\nop:") + PROTOTYPE


def with_job(job: str) -> str:
    """One for a device, which has C headers beside it."""
    return with_lines(f"engine: neureka\njobs: [{{{job}}}]").replace("static", '#include "twice.h"\nstatic')


BAD = [
    (PROTOTYPE, "does not begin with"),
    (HEADER.replace("{X", "{{X") + PROTOTYPE, "not YAML"),
    (with_lines("colour: 1"), "unknown header key colour"),
    (HEADER.replace("Y: float32", "Y: T") + PROTOTYPE, "'T' is neither an element type nor a variable"),
    (HEADER.replace("Relu", "{}") + PROTOTYPE, "does not say of which op it is"),
    (with_lines("accumulate: [K]"), "added up by its epilogue"),
    (with_lines("epilogue: rows"), "epilogue: 'rows' is neither row nor lanes"),
    (with_lines('pack: {X: "N -> N/0"}'), "'N -> N/0' has blocks of nothing"),
    (with_lines('scratch: "1/0"'), "scratch: it divides by zero"),
    (HEADER.replace("Relu", "ReLU") + PROTOTYPE, "op: there is no operator 'ReLU'"),
    (with_lines("inplace: A"), "inplace: 'A' is no operand"),
    (with_lines("strided: [X, Q]"), "strided: 'Q' is no operand"),
    (HEADER.replace("X: float32", "A: float32") + PROTOTYPE, "types: nothing is said of X"),
    (HEADER, "no 'static void name(...) {' function"),
    (HEADER + PROTOTYPE.replace("int SIZE", "int WEIGHT"), "'WEIGHT' is no operand, size or attribute of Relu"),
    (with_lines('cycles: "SIZE*"'), "cycles: 'SIZE*' is not an arithmetic formula"),
    (with_lines('cycles: "SIZE.x"'), "cycles: 'SIZE.x' is not an arithmetic formula"),
    (with_lines('cycles: "(SIZE > 0 or SIZE.x)*2"'), "cycles: 'SIZE.x' is not an arithmetic formula"),
    (with_lines('when: {SIZE: "= 1"}'), "when: 'SIZE = 1' is not an arithmetic formula"),
    (with_lines('scratch: "WEIGHT"'), "scratch: 'WEIGHT' is no size, stride or attribute"),
    (with_lines("jobs: [{height: 1}]"), "jobs: each must be a mapping with a mode"),
    (
        with_lines('jobs: [{mode: pointwise, height: "TWICE(1)"}]'),
        "jobs: height: 'TWICE(1)' is not an arithmetic formula",
    ),
    (with_lines("cycles: 1\njobs: [{mode: pointwise}]"), "it says both cycles and jobs"),
    (with_lines("jobs: [{mode: dense}]"), "jobs: engine 'cluster' of 'siracusa' is no simulated device with jobs"),
    (with_job(f"mode: sparse, {JOB}, outputs: 1"), "jobs: mode: 'sparse' is none of pointwise, dense"),
    (with_job(f"mode: dense, {JOB}"), "jobs: outputs is missing"),
    (with_job(f"mode: dense, {JOB}, outputs: 1, depth: 1"), "jobs: there is no field 'depth'"),
    (with_job(f"mode: dense, {JOB}, outputs: WEIGHT"), "'WEIGHT' is no size, stride or attribute"),
    (with_job(f'mode: dense, {JOB}, outputs: "TWICE(1, 2)"'), "'TWICE(1, 2)' needs 1 arguments"),
]
"""Kernels with what is said of them: where they are read, are asked for scratch memory, or are priced."""


@pytest.mark.parametrize(("text", "said"), BAD)
def test_bad_kernel(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "twice.h").write_text("#define TWICE(x) ((x) + \\\n  (x))\n")
    (tmp_path / "relu.c").write_text(text)
    with pytest.raises(TilewrightError) as found:
        ask(tmp_path)
    assert found.value.code == "bad-kernel"
    assert "relu.c'" in found.value.what
    assert said in str(found.value)
    assert found.value.help


def ask(folder: Path) -> None:
    platform = load_platform("siracusa", (folder,))
    kernel = next(kernel for kernel in platform.kernels if kernel.path.name == "relu.c")
    if kernel.jobs:
        kernel_cycles(platform, kernel, lambda text: formula(text, {}))
    compile_model(relu(folder), Options(platform="siracusa", kernels=(folder,)))


def test_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "relu.c").write_text(with_lines("colour: 1"))
    printed = refused("bad-kernel", capsys, "compile", relu(tmp_path), "--kernels", tmp_path, "-o", tmp_path / "c")
    assert "relu.c'" in printed
    assert "unknown header key colour" in printed
    assert "help: " in printed
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("key", ["cycles", "path"])
def test_unknown_names_where_layers_are_priced(key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "relu.c").write_text(with_lines(f'{key}: "WEIGHT"'))
    arguments = ["--kernels", tmp_path, "--platform", "siracusa", "-o", tmp_path / "c"]
    printed = refused("bad-kernel", capsys, "compile", relu(tmp_path), *arguments)
    assert f"relu.c': {key}: 'WEIGHT' is no size, stride or attribute of Relu" in printed
    assert not (tmp_path / "c").exists()


def test_unknown_names_in_what_is_packed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header = '/* ---\nop: MatMul\ntypes: {A: float32, B: float32, Y: float32}\npack: {B: "K,N -> WEIGHT,N"}\n--- */\n'
    (tmp_path / "product.c").write_text(header + "static void product(const float *A, const float *B, float *Y) {}\n")
    weights = {"w": np.ones((8, 4), np.float32)}
    made = model([node("MatMul", "x w", "y")], [value("x", (4, 8))], ["y"], constants=weights)
    network = write(tmp_path / "product.onnx", made)
    arguments = ["--kernels", tmp_path, "--platform", "scratchpad", "-o", tmp_path / "c"]
    printed = refused("bad-kernel", capsys, "compile", network, *arguments)
    assert "product.c': pack: B: 'WEIGHT' is no size, stride or attribute of MatMul" in printed
