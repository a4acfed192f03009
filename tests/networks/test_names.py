"""Names from files mean nothing: whatever tensors, nodes and graphs are called, results are the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnx_models import model, node, onnxruntime_results, value, write
from onnx_networks import Model, Network, qdq_cnn, recurrent
from tilewright.api import Options, compile_model, run_model
from tilewright.codegen.build import STRICT
from tilewright.core.graph import Array
from tilewright.core.text import print_graph
from tilewright.report import layers, render_report

HOSTILE = (
    *("@", "@1", "@2", "@bias", "@0", "%NAME%", "%PARAMETERS%", "a??/", "??=", "??/", "*/", "/*", "//", "\\", "a\\"),
    *('"', "'", "\n", "\t", "\r\n", "\0", "\x1b[31m", "s0_B", "s1_mul", "v0", "v1", "p_A", "i0", "D0", "int", "main"),
    *("NULL", "Y", "A", "X", "Result(0)", "None", "-", "@NAME@", "$(shell false)", "#", "&lt;", "<b>", "{x}", "%s"),
    *("größe", "重み", "\N{ZERO WIDTH JOINER}", "x" * 5000, "arena", "constant", "input", "output", "w_", "w__"),
    *("group 0", "tensor x", "scratch of @", "memory", "inputs", "network_run", "[/]", "=", ",", "a b", " ", "n0"),
)
PLATFORMS = ("generic", "scratchpad", "siracusa")


def fused() -> Network:
    """A product with operands of all kinds fused behind it."""
    m = Model()
    x = m.input("x", m.noise(4, 4))
    bias, scale = m.input("bias", m.noise(4)), m.input("scale", m.noise(4, 4))
    total = m.op("Add", m.op("MatMul", x, m.noise(4, 4)), bias)
    return m.network(m.op("Relu", m.op("Mul", total, scale)), m.op("Sub", m.op("Sigmoid", x), scale))


def ports(count: int) -> Network:
    """So many inputs, each added behind the same product, and as many outputs."""
    m = Model()
    product = m.op("MatMul", m.noise(4, 4), x := m.input("x", m.noise(4, 4)))
    others = [m.input(f"x{i}", m.noise(4, 4)) for i in range(1, count)]
    sums = [m.op("Add", m.op("MatMul", x, m.noise(4, 4)), other) for other in others]
    return m.network(product, *sums)


NETWORKS = (fused, qdq_cnn, recurrent)


def tensors(graph: onnx.GraphProto) -> list[str]:
    """All names of tensors, those of inputs and outputs first."""
    ports = [port.name for field in (graph.input, graph.output) for port in field]
    inner = [name for each in graph.node for field in (each.input, each.output) for name in field]
    return [name for name in dict.fromkeys([*ports, *inner]) if name]


def renamed(content: onnx.ModelProto, names: Mapping[str, str], others: Iterator[str]) -> onnx.ModelProto:
    """The model with other names for its tensors, its nodes and itself."""
    made = onnx.ModelProto()
    made.CopyFrom(content)
    graph = made.graph
    graph.name = next(others)
    for port in (*graph.input, *graph.output, *graph.initializer):
        port.name = names[port.name]
    for each in graph.node:
        each.name = next(others)
        each.input[:] = [names.get(name, "") for name in each.input]
        each.output[:] = [names.get(name, "") for name in each.output]
    return made


def rotated(content: onnx.ModelProto, start: int) -> onnx.ModelProto:
    """The model with hostile names from one of them on: its ports have the first."""
    turned = [*HOSTILE[start:], *HOSTILE[:start]]
    found = tensors(content.graph)
    names = {name: turned[i] if i < len(turned) else f"{turned[i % len(turned)]}{i}" for i, name in enumerate(found)}
    return renamed(content, names, iter(turned * (1 + len(content.graph.node) // len(turned))))


def assert_same(content: onnx.ModelProto, inputs: Sequence[Array], platform: str, folder: Path) -> None:
    """Fails unless a network runs as the one with plain names does."""
    names = {name: f"t{i}" for i, name in enumerate(tensors(content.graph))}
    harmless = renamed(content, names, iter(f"n{i}" for i in range(len(content.graph.node) + 1)))
    fed = {port.name: array for port, array in zip(harmless.graph.input, inputs, strict=True)}
    expected = onnxruntime_results(harmless, fed)
    path = write(folder / "network.onnx", content)
    ran = run_model(path, Options(platform=platform), inputs=inputs, expected=expected, flags=STRICT)
    assert ran.right, ran.comparisons
    assert print_graph(ran.compiled.plan.graph)
    assert layers(ran.compiled.plan)
    assert render_report(ran.compiled.plan, ran.compiled.program, title=HOSTILE[0])


@pytest.mark.sample(every=3, by=("platform",))
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("build", NETWORKS, ids=lambda build: build.__name__)
def test_all_at_once(build: type, platform: str, tmp_path: Path) -> None:
    content, inputs = build()
    assert_same(rotated(content, 0), inputs, platform, tmp_path)


@pytest.mark.parametrize("start", [0, len(HOSTILE) // 2])
def test_each_as_input_and_output(start: int, tmp_path: Path) -> None:
    content, inputs = ports(len(HOSTILE) // 2)
    assert_same(rotated(content, start), inputs, "generic", tmp_path)


def test_names_in_generated_code_are_those_of_the_file(tmp_path: Path) -> None:
    """The descriptors of a program say in C what the file says, byte for byte."""
    content = model([node("Relu", "a??/", "重み")], [value("a??/", [2])], ["重み"])
    text = compile_model(write(tmp_path / "network.onnx", content)).files["network.c"].decode()
    assert '{"a\\077\\077/", "float32", 1, {2}, 8}' in text
    assert '{"\\351\\207\\215\\343\\201\\277", "float32", 1, {2}, 8}' in text
    assert "/* Relu ___ */" not in text
    assert text.isascii()


@pytest.mark.parametrize("platform", [*PLATFORMS, "cortex-m4"])
def test_any_name_leaves_all_files_but_the_sources_alone(
    tmp_path_factory: pytest.TempPathFactory, platform: str
) -> None:
    """Makefiles, linker scripts and drivers hold no name of a network, and its sources hold plain letters alone."""
    content, _ = ports(2)
    folder = tmp_path_factory.mktemp("names")
    options = Options(platform=platform)
    plain = compile_model(write(folder / "network.onnx", content), options).files

    @settings(max_examples=12, deadline=None, derandomize=True, database=None)
    @given(st.lists(st.text(min_size=1, max_size=40), min_size=12, max_size=12, unique=True))
    def judged(names: list[str]) -> None:
        found = dict(zip(tensors(content.graph), names, strict=False))
        changed = renamed(content, found, iter([*names, *names]))
        files = compile_model(write(folder / "network.onnx", changed), options).files
        assert files.keys() == plain.keys()
        for name, data in files.items():
            if Path(name).name in ("network.c", "network.h"):
                text = data.decode("ascii")
                assert all(letter.isprintable() or letter == "\n" for letter in text)
                assert "??" not in text
                assert text.count("/*") == text.count("*/")
            else:
                assert data == plain[name], name

    judged()


@pytest.mark.parametrize("name", ["network", "w", "w_x", "weights"])
def test_constants_have_names_of_their_own(name: str, tmp_path: Path) -> None:
    """A network may be called as the beginning of the names of constants."""
    x = np.arange(4, dtype=np.float32)
    known = {"inputs": x, "x_inputs": x + 1, "run": x + 2, "größe": x + 3, "gr__e": x + 4}
    operands = ["x", *known]
    nodes = [node("Add", f"{a} {b}", f"y{i}") for i, (a, b) in enumerate(pairwise(operands))]
    content = model(nodes, [value("x", [4])], [f"y{i}" for i in range(len(nodes))], constants=known)
    outputs = onnxruntime_results(content, {"x": x})
    ran = run_model(write(tmp_path / "a.onnx", content), Options(name=name), inputs=[x], expected=outputs, flags=STRICT)
    assert ran.right


def test_tensors_called_as_conversions_are(tmp_path: Path) -> None:
    """An input that is converted, beside one that has the name its converted form would have."""
    content = model([node("Sub", "x x_float32", "y")], [value("x", [3]), value("x_float32", [3])], ["y"])
    inputs = [np.array([4, 5, 6], np.float32), np.array([1, 7, 2], np.float32)]
    options = Options(input_types={"x": "float16"})
    ran = run_model(write(tmp_path / "a.onnx", content), options, inputs=inputs, expected=[inputs[0] - inputs[1]])
    assert ran.right


def test_tensors_called_as_scratch_is(tmp_path: Path) -> None:
    """A kernel that needs room of its own, behind a tensor that is called as that room would be."""
    nodes = [node("Exp", "x", "t"), node("Softmax", "t", "y"), node("Add", "y t", "z")]
    content = model(nodes, [value("x", [16, 64])], ["z"])
    x = np.random.default_rng(0).normal(size=(16, 64)).astype(np.float32)
    expected = onnxruntime_results(content, {"x": x})
    for each in nodes:
        each.name = ""
    changed = renamed(content, {"x": "x", "t": "scratch of z", "y": "y", "z": "z"}, iter(["network", "", "", ""]))
    assert run_model(write(tmp_path / "a.onnx", changed), inputs=[x], expected=expected).right
