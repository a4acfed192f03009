"""Calibration from a kernel file to predictions, with a made-up kernel that is measured in seconds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from onnx_models import model, node, value, write
from tilewright.api import calibrating, sampled_layers
from tilewright.api.calibrating import calibrate, kernels_with_terms, outdated
from tilewright.cli.app import run
from tilewright.core.graph import Array
from tilewright.core.op import REGISTRY, call_node, parse_type
from tilewright.errors import TilewrightError
from tilewright.machine.calibration import FILE
from tilewright.machine.kernel import Kernel
from tilewright.machine.staleness import stale, warnings
from tilewright.machine.target import load_platform
from tilewright.ops import operators
from tilewright.ops.sampling import resized_window
from tilewright.price.terms import Observation

PLATFORM = "siracusa"
KERNEL = """/* ---
op: Softsign
types: {X: float32, Y: float32}
cycles:
  # Four at a time, then what is left.
  blocks: whole_fours(SIZE)
  single: left_of_fours(SIZE)
  # All cores have one divider.
  waits: SIZE * OTHERS
  call: some(SIZE)
--- */
static void softsign(const float *X, float *Y, int SIZE) {
    int i = 0;
    for (; i + 4 <= SIZE; i += 4)
        for (int j = i; j < i + 4; j++)
            Y[j] = X[j] / (1 + (X[j] < 0 ? -X[j] : X[j]));
    for (; i < SIZE; i++)
        Y[i] = X[i] / (1 + (X[i] < 0 ? -X[i] : X[i]));
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's kernel, calibrated with few layers."""
    place = tmp_path_factory.mktemp("kernels")
    (place / "softsign.c").write_text(KERNEL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibrating, "LEAST_LAYERS", 40)
        patch.setattr(calibrating, "LAYERS_PER_PAIR", 1)
        (result,) = calibrate(PLATFORM, kernels=(place,))
    assert result.name == "softsign.c"
    return place


def kernel_of(folder: Path) -> Kernel:
    (found,) = (k for k in load_platform(PLATFORM, (folder,)).kernels if k.path.name == "softsign.c")
    return found


def test_coefficients_are_measured(folder: Path) -> None:
    found = json.loads((folder / FILE).read_text())[PLATFORM]["softsign.c"]
    # A division takes 15 cycles, of which each element has one.
    assert 4 * 15 < found["terms"]["blocks"] < 160
    assert 0 < found["terms"]["waits"] < 15
    assert found["shapes"] >= 40
    assert found["held_out"]["median"] < 0.1
    assert load_platform(PLATFORM, (folder,)).operations["begin softsign.c"] == found["begin"]


def test_cycles_are_those_of_the_file(folder: Path) -> None:
    terms = json.loads((folder / FILE).read_text())[PLATFORM]["softsign.c"]["terms"]
    assert f"{terms['blocks']:g}*(SIZE // 4)" in kernel_of(folder).cycles


def test_nothing_is_out_of_date_until_something_changes(folder: Path, tmp_path: Path) -> None:
    assert outdated(PLATFORM, (folder,)) == []
    (tmp_path / FILE).write_bytes((folder / FILE).read_bytes())

    def reasons(text: str) -> tuple[str, ...]:
        (tmp_path / "softsign.c").write_text(text)
        return stale(load_platform(PLATFORM, (tmp_path,)), kernel_of(tmp_path))

    assert reasons(KERNEL.replace("Four at a time", "By fours")) == ()
    assert reasons(KERNEL.replace("int i = 0;", "int i = 0; /* begin */")) == ()
    assert reasons(KERNEL.replace("i += 4", "i += 2 + 2")) == ("its sources changed",)
    assert reasons(KERNEL.replace("single:", "rest:")) == ("its sources changed", "its terms have other names")
    ((name, why),) = outdated(PLATFORM, (tmp_path,))
    assert (name, why[0]) == ("softsign.c", "its sources changed")


def test_plans_warn(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network = write(tmp_path / "n.onnx", model([node("Softsign", "x", "y")], [value("x", (2, 300))], ["y"]))
    assert run(["plan", str(network), "--platform", PLATFORM, "--kernels", str(folder)]) == 0
    assert "warning" not in capsys.readouterr().err
    (tmp_path / "softsign.c").write_text(KERNEL)
    assert run(["plan", str(network), "--platform", PLATFORM, "--kernels", str(tmp_path)]) == 0
    said = capsys.readouterr().err
    assert "warning: predicted cycles of softsign.c are not to be relied on: it was never calibrated" in said
    assert "tilewright calibrate --platform siracusa --kernel softsign.c" in said


def test_machines_without_a_simulator_do_not_warn(folder: Path) -> None:
    platform = load_platform("generic", (folder,))
    assert warnings(platform, platform.kernels) == ()


def test_check_lists_kernels(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["calibrate", "--platform", PLATFORM, "--check", "--kernels"]
    assert run([*asked, str(folder)]) == 0
    assert "0 calibrations are out of date" in capsys.readouterr().out
    (tmp_path / "softsign.c").write_text(KERNEL)
    assert run([*asked, str(tmp_path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "outdated": [{"kernel": "softsign.c", "reasons": ["it was never calibrated"]}]
    }


def test_unknown_kernels_are_refused(folder: Path) -> None:
    with pytest.raises(TilewrightError, match=r"'sofsign\.c' is no kernel of 'siracusa'"):
        kernels_with_terms(load_platform(PLATFORM, (folder,)), ["sofsign"])


def test_terms_of_units_that_cores_share_are_not_waited_for_where_each_core_has_its_own() -> None:
    left_out: dict[str, list[str]] = {}
    for name in ("siracusa", "snitch"):
        platform = load_platform(name)
        (kernel,) = kernels_with_terms(platform, ["softmax_f32"])
        known = calibrating.possible(platform, kernel)
        left_out[name] = [term for number, term in enumerate(kernel.terms) if number not in known]
    assert left_out == {"siracusa": [], "snitch": ["meetings"]}


def test_samples_fit_the_kernel() -> None:
    platform = load_platform(PLATFORM)
    (kernel,) = kernels_with_terms(platform, ["matmul_packed_s8"])
    random = np.random.default_rng(0)
    sizes: set[tuple[int, ...]] = set()
    steps: set[str] = set()
    for _ in range(20):
        layers = sampled_layers.draw_layers(kernel, 2, random)
        assert len(layers) == 2
        for layer in layers:
            graph = sampled_layers.network([layer])
            sizes.add(tuple(call_node(graph, layer.nodes[0]).domain().dims.values()))
            assert str(graph.types[layer.nodes[0].inputs[1]].dtype) == "int8"
        assert len(layers[0].nodes) == len(layers[1].nodes)
        steps.add(" ".join(n.op for n in layers[0].nodes))
    assert len(sizes) > 35
    assert steps == {"MatMul", "MatMul RequantShift"}


@pytest.mark.parametrize(
    "name", ["topk", "scatter_elements", "scatter_nd", "gru", "attention_f32", "layer_normalization"]
)
def test_samples_of_operators_with_values_and_several_results(name: str) -> None:
    platform = load_platform(PLATFORM)
    (kernel,) = kernels_with_terms(platform, [name])
    random = np.random.default_rng(0)
    sizes: set[tuple[int, ...]] = set()
    for _ in range(6):
        (layer,) = sampled_layers.draw_layers(kernel, 1, random, platform.kernels)
        graph = sampled_layers.network([layer])
        call = call_node(graph, layer.nodes[0])
        sizes.add(tuple(call.domain().dims.values()))
        assert len(graph.outputs) == len(call.outputs)
        if "indices" in call.operands:
            indices = layer.constants[layer.nodes[0].inputs[1]]
            assert indices.min() >= 0
            assert indices.max() < max(call.shape("data"))
    assert len(sizes) > 3


@dataclass(frozen=True)
class Ran:
    """A layer of some elements, each of which took so many cycles."""

    elements: int
    each: int

    def rows(self, coefficients: Array) -> tuple[tuple[Array, float], ...]:
        return ((np.eye(1, len(coefficients))[0] * self.elements, float(self.elements * self.each)),)

    def error(self, coefficients: Array) -> float:
        return float(coefficients[0]) / self.each - 1


def test_half_of_windows_are_those_of_networks_for_small_machines() -> None:
    operators()
    example, random, usual = REGISTRY["Conv"].examples[0], np.random.default_rng(1), 0
    for _ in range(200):
        drawn = resized_window(example, random)
        image, weights = (parse_type(str(text)).shape for text in drawn.inputs[:2])
        square = weights[2:] in ((1, 1), (3, 3)) and drawn.attrs["pads"] == (weights[2] // 2,) * 4
        blocks = all(channels % 8 == 0 or channels < 16 for channels in weights[:2])
        usual += square and blocks and image[2] == image[3]
    assert 80 <= usual <= 130


def test_errors_are_those_of_layers_held_out() -> None:
    (kernel,) = kernels_with_terms(load_platform(PLATFORM), ["dynamic_quantize"])
    ran = [Ran(1000, 10), Ran(2000, 10), Ran(3000, 10), Ran(4000, 10), Ran(5000, 20)]
    errors = calibrating.held_out_errors(kernel, [[cast("Observation", one)] for one in ran])
    assert errors[4] == pytest.approx(-0.5)
    # The others are solved with the last, which is odd and counts little.
    assert errors[:4] == pytest.approx([0.0] * 4, abs=0.1)
