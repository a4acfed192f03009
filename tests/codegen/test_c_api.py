"""The generated project as a C programmer meets it: header, arena, weights, build files, names."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from passes.build import Builder, noise
from tilewright.api import Compiled, Options, compile_model, run_model
from tilewright.codegen import printer, write_project
from tilewright.codegen.build import SANITIZE, STRICT
from tilewright.core.graph import Array, Graph
from tilewright.core.interpret import interpret

CHECKED = (*STRICT, *SANITIZE, "-O0")


def network() -> Graph:
    """Needs an arena, weights, two inputs of different types and two outputs."""
    b = Builder()
    x = b.input("x", "float32[2,8]")
    hidden = b.op("Tanh", b.op("MatMul", x, b.weights(8, 16)))
    other = b.op("MatMul", b.op("Softmax", hidden), b.weights(16, 4), name="y")
    return b.graph(other, b.op("Gather", hidden, b.input("i", "int64[1]"), name="z", axis=0))


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return compile_model(network(), Options(name="tiny"))


@pytest.fixture
def folder(compiled: Compiled, tmp_path: Path) -> Path:
    compiled.write(tmp_path / "c")
    return tmp_path / "c"


def sh(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def symbols(path: Path) -> dict[str, str]:
    """Kind of each symbol of an object file: T code, R read-only data, B and D memory, lower case where local."""
    rows = [line.split() for line in sh("nm", str(path), cwd=path.parent).splitlines()]
    return {row[-1]: row[-2] for row in rows}


def fed_by_files(executable: Path, graph: Graph, inputs: Sequence[Array], outputs: int) -> list[Array]:
    """Runs the example program on raw files."""
    for i, array in enumerate(inputs):
        (executable.parent / f"in{i}").write_bytes(array.tobytes())
    names = [*(f"in{i}" for i in range(len(inputs))), *(f"out{i}" for i in range(outputs))]
    sh(str(executable), *names, cwd=executable.parent)
    kinds = [graph.types[name] for name in graph.outputs]
    return [
        np.frombuffer((executable.parent / f"out{i}").read_bytes(), k.dtype.numpy).reshape(k.shape)
        for i, k in enumerate(kinds)
    ]


def assert_right(found: Sequence[Array]) -> None:
    inputs = given()
    for left, right in zip(found, interpret(network(), inputs), strict=True):
        np.testing.assert_allclose(left, right, atol=1e-5)


def given() -> list[Array]:
    return [noise(network())[0], np.array([1], np.int64)]


def test_the_header_tells_sizes_types_and_shapes(compiled: Compiled) -> None:
    header = compiled.files["tiny.h"].decode()
    assert "#define TINY_INPUTS 2" in header
    assert "#define TINY_OUTPUTS 2" in header
    assert f"#define TINY_ARENA_BYTES {compiled.program.arena_bytes}" in header
    assert "/* input 1: i int64[1] */" in header


CPP = """
#include "tiny.h"
#include <cstdio>
#include <cstring>
#include <vector>
int main() {
    std::vector<std::vector<unsigned char>> memory;
    std::vector<const void *> inputs;
    std::vector<void *> outputs;
    for (int i = 0; i < TINY_INPUTS; i++) {
        memory.emplace_back(tiny_inputs[i].bytes);
        inputs.push_back(memory.back().data());
        std::printf("%s %s %d %d\\n", tiny_inputs[i].name, tiny_inputs[i].type, tiny_inputs[i].rank,
                    tiny_inputs[i].shape[0]);
    }
    for (int i = 0; i < TINY_OUTPUTS; i++) {
        memory.emplace_back(tiny_outputs[i].bytes);
        outputs.push_back(memory.back().data());
    }
    alignas(16) static unsigned char arena[TINY_ARENA_BYTES];
    tiny_run_in(arena, inputs.data(), outputs.data());
    float first;
    std::memcpy(&first, outputs[1], sizeof first);
    std::printf("%g\\n", static_cast<double>(first));
}
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_a_c_plus_plus_program_includes_the_header_and_brings_its_own_arena(folder: Path) -> None:
    (folder / "use.cpp").write_text(CPP)
    sh("gcc", *STRICT, "-c", "tiny.c", "-DTINY_EXTERNAL_ARENA", "-o", "tiny.o", cwd=folder)
    sh("g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "use.cpp", "tiny.o", "-lm", "-o", "use", cwd=folder)
    # tanh of nothing is nothing, in every column.
    assert sh("./use", cwd=folder).split() == ["x", "float32", "2", "2", "i", "int64", "1", "1", "0"]


def test_with_an_external_arena_the_network_keeps_no_memory(folder: Path) -> None:
    # Position-independent code would relocate even constants that hold pointers; firmware does not.
    sh("gcc", *STRICT, "-fno-pie", "-c", "tiny.c", "-DTINY_EXTERNAL_ARENA", "-o", "without.o", cwd=folder)
    sh("gcc", *STRICT, "-fno-pie", "-c", "tiny.c", "-o", "with.o", cwd=folder)
    without, inside = symbols(folder / "without.o"), symbols(folder / "with.o")
    assert "tiny_run" not in without
    assert not [name for name, kind in without.items() if kind in "bBdDC"]
    assert [name for name, kind in inside.items() if kind in "bBdDC"] == ["tiny_arena"]


def test_weights_are_constant(folder: Path) -> None:
    sh("gcc", *STRICT, "-c", "tiny.c", "-o", "tiny.o", cwd=folder)
    weights = {name: kind for name, kind in symbols(folder / "tiny.o").items() if name.startswith("w_")}
    assert len(weights) == 2
    assert set(weights.values()) == {"r"}


def test_nothing_but_the_network_is_visible(folder: Path) -> None:
    sh("gcc", *STRICT, "-c", "tiny.c", "-o", "tiny.o", cwd=folder)
    visible = {name for name, kind in symbols(folder / "tiny.o").items() if kind.isupper() and kind != "U"}
    assert visible == {"tiny_run", "tiny_run_in", "tiny_inputs", "tiny_outputs"}


def test_the_makefile_builds_the_example_program(compiled: Compiled, folder: Path) -> None:
    sh("make", "-s", "CFLAGS=-std=c11 -O0", cwd=folder)
    assert_right(fed_by_files(folder / "tiny", compiled.plan.graph, given(), 2))
    sh("make", "-s", "clean", cwd=folder)
    assert not (folder / "tiny").exists()


@pytest.mark.parametrize("binary", [False, True])
def test_cmake_builds_a_library_and_the_example_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, binary: bool
) -> None:
    if binary:
        monkeypatch.setattr(printer, "BINARY_WEIGHTS_FROM", 1)
    made = compile_model(network(), Options(name="tiny"))
    made.write(tmp_path / "c")
    sh("cmake", "-S", "c", "-B", "b", "-DCMAKE_BUILD_TYPE=Debug", cwd=tmp_path)
    sh("cmake", "--build", "b", cwd=tmp_path)
    assert_right(fed_by_files(tmp_path / "b" / "tiny_main", made.plan.graph, given(), 2))


def test_weights_in_a_binary_beside_the_c_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = run_model(network(), inputs=given(), flags=CHECKED)
    monkeypatch.setattr(printer, "BINARY_WEIGHTS_FROM", 1)
    beside = run_model(network(), inputs=given(), flags=CHECKED, folder=tmp_path / "c")
    assert {"network_weights.bin", "network_weights.S"} <= {path.name for path in (tmp_path / "c").iterdir()}
    assert "network_weights" not in inside.compiled.files
    for left, right in zip(inside.outputs, beside.outputs, strict=True):
        np.testing.assert_array_equal(left, right)


def odd_names() -> Graph:
    b = Builder()
    x = b.input('in "put" \\ */ // ü\n?', "float32[2,2]")
    return b.graph(b.op("MatMul", b.op("Tanh", x, name="int"), b.weights(2, 2), name="a/b:0*/"))


def no_inputs() -> Graph:
    b = Builder()
    return b.graph(b.op("Exp", np.array([0.0, 1.0], np.float32), name="y"))


def scalars() -> Graph:
    b = Builder()
    x = b.input("x", "float32[]")
    return b.graph(b.op("Add", x, 1.5), b.op("Exp", x), b.op("Reshape", x, [1, 1]))


def nothing() -> Graph:
    """Tensors without elements, read, made and concatenated."""
    b = Builder()
    cache, x = b.input("cache", "float32[1,0,4]"), b.input("x", "float32[1,2,4]")
    return b.graph(b.op("Concat", cache, x, axis=1), b.op("Exp", cache), b.op("ReduceSum", cache, [1]))


def copies() -> Graph:
    """Outputs that are an input, a view of it, the same twice, and a constant."""
    b = Builder()
    x = b.input("x", "int8[2,3]")
    constant = b.op("Identity", np.arange(3, dtype=np.int16), name="c")
    y = b.op("Neg", x)
    return b.graph(x, b.op("Reshape", x, [3, 2]), y, y, constant)


@pytest.mark.parametrize("build", [odd_names, no_inputs, scalars, nothing, copies])
def test_unusual_networks_are_right_under_all_warnings_and_sanitizers(build: object) -> None:
    assert callable(build)
    graph = build()
    assert isinstance(graph, Graph)
    inputs = noise(graph)
    ran = run_model(graph, inputs=inputs, flags=CHECKED)
    for found, expected in zip(ran.outputs, interpret(graph, inputs), strict=True):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_two_networks_live_in_one_program(tmp_path: Path) -> None:
    for name in ("first", "second"):
        compile_model(network(), Options(name=name)).write(tmp_path / name)
        sh("gcc", *STRICT, "-c", f"{name}.c", "-o", f"../{name}.o", cwd=tmp_path / name)
    (tmp_path / "use.c").write_text(
        '#include "first/first.h"\n#include "second/second.h"\n'
        "int main(void) { return first_inputs[0].bytes != second_inputs[0].bytes || first_run == second_run; }\n"
    )
    sh("gcc", *STRICT, "use.c", "first.o", "second.o", "-lm", "-o", "use", cwd=tmp_path)
    sh("./use", cwd=tmp_path)


def test_a_failed_write_leaves_the_folder_as_it_was(compiled: Compiled, tmp_path: Path) -> None:
    target = tmp_path / "c"
    target.mkdir()
    (target / "tiny.c").write_text("mine")
    broken = dict(compiled.files) | {"x" * 300 + ".c": b""}
    with pytest.raises(Exception, match="cannot write"):
        write_project(broken, target)
    assert {p.name: p.read_text() for p in target.iterdir()} == {"tiny.c": "mine"}
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
