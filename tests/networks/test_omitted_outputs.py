"""Nodes some of whose outputs are left out, the first included: right, and shown in every report."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from onnx_models import onnxruntime_results, write
from onnx_networks import Model
from tilewright.api import Options, compile_model, run_model
from tilewright.cli.app import run
from tilewright.core.graph import Array
from tilewright.core.interpret import interpret
from tilewright.core.text import print_graph
from tilewright.frontend import load, save
from tilewright.price.layers import network_layers
from tilewright.report import layers, render_report

PLATFORMS = ("generic", "scratchpad", "siracusa")
FLOAT, INT64, BOOL = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL
RECURRENT = {"LSTM": 4, "GRU": 3, "RNN": 1}
"""With how many gates each has."""


class Omitting(Model):
    """Adds each node once for each choice of its outputs; what is chosen is negated, so that something is fused."""

    def __init__(self) -> None:
        super().__init__(opset=20)
        self.results: list[str] = []
        self.kinds: list[int] = []
        self.omitted: set[str] = set()

    def each(self, op: str, *inputs: str | Array, kinds: tuple[int, ...], **attributes: Any) -> None:
        for chosen in product((False, True), repeat=len(kinds)):
            made = self.ops(op, *inputs, outputs=len(kinds), **attributes) if any(chosen) else []
            for name, kind, wanted in zip(made, kinds, chosen, strict=False):
                if not wanted:
                    self.omitted.add(name)
                    continue
                self.results.append(self.op("Neg", name) if kind != BOOL else self.op("Not", name))
                self.kinds.append(kind)


def recurrent() -> Omitting:
    m = Omitting()
    x = m.input("x", m.noise(4, 2, 3))
    for op, gates in RECURRENT.items():
        weights = (m.noise(1, gates * 5, 3), m.noise(1, gates * 5, 5), m.noise(1, 2 * gates * 5))
        m.each(op, x, *weights, kinds=(FLOAT,) * (3 if op == "LSTM" else 2), hidden_size=5)
    both = (m.noise(2, 20, 3), m.noise(2, 20, 5))
    m.each("LSTM", x, *both, kinds=(FLOAT,) * 3, hidden_size=5, direction="bidirectional")
    return m


def others() -> Omitting:
    m = Omitting()
    x = m.input("x", m.noise(2, 4, 6, 6))
    m.each("MaxPool", x, kinds=(FLOAT, INT64), kernel_shape=[2, 2], strides=[2, 2])
    m.each("Dropout", x, kinds=(FLOAT, BOOL))
    m.each("Split", x, np.array([1, 2, 3], np.int64), kinds=(FLOAT,) * 3, axis=3)
    m.each("TopK", x, np.array([2], np.int64), kinds=(FLOAT, INT64), axis=3)
    m.each("LayerNormalization", x, m.noise(6), m.noise(6), kinds=(FLOAT,) * 3)
    channels = (m.noise(4), m.noise(4), m.noise(4), np.abs(m.noise(4)))
    m.each("BatchNormalization", x, *channels, kinds=(FLOAT,) * 3, training_mode=1)
    return m


def halves() -> Omitting:
    """Elements that are computed in another type: nodes are replaced by others."""
    m = Omitting()
    x = m.op("Cast", m.input("x", m.noise(2, 4, 6, 6)), to=onnx.TensorProto.FLOAT16)
    parts = np.array([1, 2, 3], np.int64)
    m.each("Split", x, parts, kinds=(onnx.TensorProto.FLOAT16,) * 3, axis=3)
    m.each("TopK", m.op("Transpose", x, perm=[0, 2, 3, 1]), parts[1:2], kinds=(onnx.TensorProto.FLOAT16, INT64), axis=1)
    return m


def quantised() -> Omitting:
    """The same between quantised tensors."""
    m = Omitting()
    x = m.qdq(m.input("x", m.noise(2, 4, 6, 6)), 0.03, 5)
    m.each("Split", x, np.array([1, 2, 3], np.int64), kinds=(FLOAT,) * 3, axis=3)
    m.each("TopK", x, np.array([2], np.int64), kinds=(FLOAT, INT64), axis=3)
    m.each("MaxPool", x, kinds=(FLOAT, INT64), kernel_shape=[2, 2], strides=[2, 2])
    return m


def without(m: Omitting) -> tuple[onnx.ModelProto, list[Array], list[Array]]:
    """The network with outputs left out, its inputs, and what onnxruntime says of the one that has them all."""
    content, inputs = m.network(*m.results, types=m.kinds)
    expected = onnxruntime_results(content, {content.graph.input[0].name: inputs[0]})
    for each in content.graph.node:
        each.output[:] = ["" if name in m.omitted else name for name in each.output]
    return content, inputs, expected


@pytest.mark.sample(every=2, by=("platform",))
@pytest.mark.parametrize(
    ("build", "platform"),
    [*product((recurrent, others), PLATFORMS), (halves, "generic"), (quantised, "generic")],
    ids=lambda given: given if isinstance(given, str) else given.__name__,
)
def test_results(build: Callable[[], Omitting], platform: str, tmp_path: Path) -> None:
    content, inputs, expected = without(build())
    path = write(tmp_path / "network.onnx", content)
    ran = run_model(path, Options(platform=platform), inputs=inputs, expected=expected)
    assert ran.right, [c for c in ran.comparisons if c.wrong]
    assert layers(ran.compiled.plan)
    assert print_graph(ran.compiled.plan.graph)
    assert render_report(ran.compiled.plan, ran.compiled.program, title="omitted")


@pytest.mark.parametrize("build", [recurrent, others, halves, quantised], ids=lambda build: build.__name__)
def test_stages_can_be_written_and_read(build: Callable[[], Omitting], tmp_path: Path) -> None:
    content, inputs, expected = without(build())
    path, last = write(tmp_path / "network.onnx", content), tmp_path / "last.onnx"
    assert network_layers(load(path)).nodes
    save(compile_model(path).plan.graph, last)
    for found, wanted in zip(interpret(load(last), inputs), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-2, atol=0.05)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_commands_show_them(platform: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    m = Omitting()
    x, weights = m.input("x", m.noise(4, 2, 3)), (m.noise(1, 20, 3), m.noise(1, 20, 5))
    m.results += m.ops("LSTM", x, *weights, outputs=2, hidden_size=5)[1:]
    m.results += m.ops("LSTM", m.op("Exp", x), *weights, outputs=2, hidden_size=5)[1:]
    m.omitted |= {"t0_0", "t2_0"}
    path = str(write(tmp_path / "network.onnx", without(m)[0]))
    profile = ["--profile", "layers"] if platform == "siracusa" else []
    for command in (
        ["plan", path],
        ["compile", path, "-o", str(tmp_path / "out"), "--report"],
        ["run", path, *profile],
    ):
        assert run([*command, "--platform", platform]) == 0, capsys.readouterr().err
