"""Whole networks, compiled, built under all warnings and both sanitizers, run, and compared.

The own ones are small and of every kind; another runtime says what is right, or, where it cannot run them, the
references. The external cases say it themselves, and are also compiled by clang.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
import pytest

from onnx_models import write
from onnx_networks import FLOAT_NETWORKS, Network, integer_cnn
from support import Case, every_case
from tilewright.api import Options, compile_model, load_case, run_case, run_model
from tilewright.codegen.build import SANITIZE, STRICT
from tilewright.core.graph import Array
from tilewright.core.interpret import interpret

CHECKED = (*STRICT, *SANITIZE, "-O0")
"""Without optimisation, because optimised code with sanitizers takes ten times as long to build; see `OPTIMISED`."""
OPTIMISED = (*STRICT, "-O1")


def saved(network: Network, folder: Path) -> tuple[Path, list[Array]]:
    model, inputs = network
    path = folder / "network.onnx"
    write(path, model)
    return path, inputs


def by_onnxruntime(path: Path, inputs: list[Array]) -> list[Array] | None:
    """The results of another runtime, or None where it does not run the network."""
    runtime: Any = onnxruntime
    options = runtime.SessionOptions()
    # The meaning of the file, not of what an optimiser makes of it.
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except runtime.capi.onnxruntime_pybind11_state.NotImplemented:
        return None
    names = [port.name for port in session.get_inputs()]
    return [np.asarray(result) for result in session.run(None, dict(zip(names, inputs, strict=True)))]


@pytest.mark.parametrize("name", FLOAT_NETWORKS)
def test_own_networks_agree_with_another_runtime(name: str, tmp_path: Path) -> None:
    path, inputs = saved(FLOAT_NETWORKS[name](), tmp_path)
    expected = by_onnxruntime(path, inputs) or interpret(compile_model(path).source, inputs)
    ran = run_model(path, inputs=inputs, flags=CHECKED)
    steps = {"qdq_cnn": 0.05, "float16": 2e-3, "bfloat16": 2e-2}
    for found, wanted in zip(ran.outputs, expected, strict=True):
        assert found.shape == wanted.shape
        assert found.dtype == wanted.dtype
        if found.dtype.kind in "iub":
            np.testing.assert_array_equal(found, wanted)
        else:
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=steps.get(name, 1e-5))


def test_an_integer_network_is_exact(tmp_path: Path) -> None:
    path, inputs = saved(integer_cnn(), tmp_path)
    ran = run_model(path, inputs=inputs, flags=CHECKED)
    source = ran.compiled.source
    assert all(source.types[name].dtype.is_integer for name in (*source.inputs, *source.outputs))
    for found, wanted in zip(ran.outputs, interpret(source, inputs), strict=True):
        np.testing.assert_array_equal(found, wanted)
        assert len(np.unique(found)) > 20, "a network that saturates says little"


def test_bfloat16_is_a_type_of_the_network(tmp_path: Path) -> None:
    path, inputs = saved(FLOAT_NETWORKS["bfloat16"](), tmp_path)
    graph = compile_model(path, samples=inputs).source
    assert any(kind.dtype.numpy == np.dtype(ml_dtypes.bfloat16) for kind in graph.types.values())


COMPILE = """
import hashlib, sys
from pathlib import Path
from tilewright.api import Options, compile_model, load_case
for place in sys.argv[1:]:
    case = load_case("case", Path(place))
    files = compile_model(case.model, Options(), samples=case.inputs).files
    for name in sorted(files):
        print(name, hashlib.sha256(files[name]).hexdigest())
"""


def printed(models: list[Path], seed: str) -> str:
    """Names and hashes of all files, by a fresh process."""
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", COMPILE, *map(str, models)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_compiling_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    models: list[Path] = []
    for name in ("float_cnn", "qdq_cnn", "attention", "many_outputs"):
        folder = tmp_path / name
        folder.mkdir()
        path, inputs = saved(FLOAT_NETWORKS[name](), folder)
        np.savez(folder / "inputs.npz", *inputs)
        np.savez(folder / "outputs.npz")
        models.append(path)
    first = printed(models, "1")
    assert first == printed(models, "2")
    assert first.count("network.c ") == len(models)


# External cases


@every_case
@pytest.mark.cases("deeploy", "standard_networks")
def test_external_cases_are_right(case: Case) -> None:
    result = run_case(case.name, case.network, Options(), flags=CHECKED)
    assert result.status == "pass", result.detail


@every_case
@pytest.mark.cases("deeploy", "standard_networks")
def test_external_cases_compile_without_a_warning(case: Case, tmp_path: Path) -> None:
    """By gcc, which finds more when it optimises, and by clang."""
    made = load_case(case.name, case.network)
    compile_model(made.model, Options(), samples=made.inputs).write(tmp_path)
    compilers: list[tuple[str, tuple[str, ...]]] = [("gcc", (*OPTIMISED, "-c", "-o", "network.o"))]
    if shutil.which("clang"):
        compilers.append(("clang", (*STRICT, "-fsyntax-only")))
    for compiler, flags in compilers:
        command = [compiler, *flags, "network.c"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.cases
def test_compiling_external_cases_twice_gives_the_same_bytes(cases: Path) -> None:
    networks = cases / "standard_networks"
    models = [networks / f"{name}.onnx" for name in ("dscnn_int8", "llama_fp32", "resnet8_fp32", "tblock_int8")]
    assert printed(models, "0") == printed(models, "77")
