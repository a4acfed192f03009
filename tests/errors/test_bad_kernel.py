"""error[bad-kernel]: a kernel file whose header or prototype cannot be used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from command_line import refused, relu
from onnx_models import model, node, value, write
from tilewright.errors import TilewrightError
from tilewright.machine.kernel import formula
from tilewright.machine.target import Target, load_platform
from tilewright.price.device import kernel_cycles

HEADER = "/* ---\nop: Relu\ntypes: {X: float32, Y: float32}\n--- */\n"
PROTOTYPE = "static void relu(const float *X, float *Y, int SIZE) {}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PROTOTYPE, "does not begin with"),
        (HEADER.replace("{X", "{{X") + PROTOTYPE, "not YAML"),
        (HEADER.replace("op:", "colour: 1\nop:") + PROTOTYPE, "unknown header key colour"),
        (HEADER.replace("Y: float32", "Y: T") + PROTOTYPE, "'T' is neither an element type nor a variable"),
        (HEADER.replace("Relu", "{}") + PROTOTYPE, "does not say of which op it is"),
        (HEADER.replace("op:", "accumulate: [K]\nop:") + PROTOTYPE, "added up by its epilogue"),
        (HEADER.replace("op:", "epilogue: rows\nop:") + PROTOTYPE, "epilogue: 'rows' is neither row nor lanes"),
        (HEADER.replace("op:", 'pack: {X: "N -> N/0"}\nop:') + PROTOTYPE, "'N -> N/0' has blocks of nothing"),
        (HEADER.replace("op:", 'scratch: "1/0"\nop:') + PROTOTYPE, "scratch: it divides by zero"),
        (HEADER.replace("Relu", "ReLU") + PROTOTYPE, "op: there is no operator 'ReLU'"),
        (HEADER.replace("op:", "inplace: A\nop:") + PROTOTYPE, "inplace: 'A' is no operand"),
        (HEADER.replace("op:", "strided: [X, Q]\nop:") + PROTOTYPE, "strided: 'Q' is no operand"),
        (HEADER.replace("X: float32", "A: float32") + PROTOTYPE, "types: nothing is said of X"),
        (HEADER, "no 'static void name(...) {' function"),
        (HEADER + PROTOTYPE.replace("int SIZE", "int WEIGHT"), "'WEIGHT' is no operand, size or attribute of Relu"),
        (HEADER.replace("op:", 'cycles: "SIZE*"\nop:') + PROTOTYPE, "cycles: 'SIZE*' is not an arithmetic formula"),
        (HEADER.replace("op:", 'cycles: "SIZE.x"\nop:') + PROTOTYPE, "cycles: 'SIZE.x' is not an arithmetic formula"),
        (
            HEADER.replace("op:", 'cycles: "(SIZE > 0 or SIZE.x)*2"\nop:') + PROTOTYPE,
            "cycles: 'SIZE.x' is not an arithmetic formula",
        ),
        (
            HEADER.replace("op:", 'when: {SIZE: "= 1"}\nop:') + PROTOTYPE,
            "when: 'SIZE = 1' is not an arithmetic formula",
        ),
        (
            HEADER.replace("op:", 'scratch: "WEIGHT"\nop:') + PROTOTYPE,
            "scratch: 'WEIGHT' is no size, stride or attribute",
        ),
        (HEADER.replace("op:", "jobs: [{height: 1}]\nop:") + PROTOTYPE, "jobs: each must be a mapping with a mode"),
        (
            HEADER.replace("op:", 'jobs: [{mode: pointwise, height: "TWICE(1)"}]\nop:') + PROTOTYPE,
            "jobs: height: 'TWICE(1)' is not an arithmetic formula",
        ),
        (
            HEADER.replace("op:", "cycles: 1\njobs: [{mode: pointwise}]\nop:") + PROTOTYPE,
            "it says both cycles and jobs",
        ),
    ],
)
def test_bad_kernel(text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "relu.c").write_text(text)
    printed = refused("bad-kernel", capsys, "compile", relu(tmp_path), "--kernels", tmp_path, "-o", tmp_path / "c")
    assert "relu.c'" in printed
    assert said in printed
    assert "help: " in printed
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("key", ["cycles", "path"])
def test_unknown_names_where_layers_are_priced(key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "relu.c").write_text(HEADER.replace("op:", f'{key}: "WEIGHT"\nop:') + PROTOTYPE)
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


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ("mode: sparse, height: 1, width: 1, inputs: 1, outputs: 1", "mode: 'sparse' is none of pointwise, dense"),
        ("mode: dense, height: 1, width: 1, inputs: 1", "outputs is missing"),
        ("mode: dense, height: 1, width: 1, inputs: 1, outputs: 1, depth: 1", "there is no field 'depth'"),
        ("mode: dense, height: WEIGHT, width: 1, inputs: 1, outputs: 1", "'WEIGHT' is no size, stride or attribute"),
        ('mode: dense, height: "TWICE(1, 2)", width: 1, inputs: 1, outputs: 1', "'TWICE(1, 2)' needs 1 arguments"),
    ],
)
def test_jobs_of_a_device(job: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "twice.h").write_text("#define TWICE(x) ((x) + \\\n  (x))\n")
    text = HEADER.replace("op:", f"engine: neureka\njobs: [{{{job}}}]\nop:") + '#include "twice.h"\n' + PROTOTYPE
    (tmp_path / "relu.c").write_text(text)
    _refused(tmp_path, said)


def test_jobs_of_cores(tmp_path: Path) -> None:
    (tmp_path / "relu.c").write_text(HEADER.replace("op:", "jobs: [{mode: dense}]\nop:") + PROTOTYPE)
    _refused(tmp_path, "engine 'cluster' of 'siracusa' is no simulated device with jobs")


def _refused(folder: Path, said: str) -> None:
    with pytest.raises(TilewrightError, match="bad-kernel") as found:
        _price(load_platform("siracusa", (folder,)))
    assert "kernel 'relu.c': jobs: " in found.value.what
    assert said in found.value.what


def _price(platform: Target) -> None:
    kernel = next(kernel for kernel in platform.kernels if kernel.path.name == "relu.c")
    kernel_cycles(platform, kernel, lambda text: formula(text, {}))
