"""`python -m benchmarks real_models`, on a wheel that is made here."""

from __future__ import annotations

import importlib
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from onnx_models import model, node, value

TOP = Path(__file__).resolve().parent.parent
GIB = 1 << 30


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script, with all that its parts offer."""
    monkeypatch.setattr(sys, "path", [str(TOP), *sys.path])
    return importlib.import_module("benchmarks.real_models")


@pytest.fixture
def packages(real: Any) -> Any:
    return importlib.import_module(type(real.PACKAGES[0]).__module__)


def fine() -> onnx.ModelProto:
    nodes = [node("Mul", "x factor", "m"), node("MatMul", "m w", "y")]
    w = np.eye(4, dtype=np.float32)
    return model(nodes, [value("x", ("n", 4)), value("factor", ())], ["y"], constants={"w": w})


def refused() -> onnx.ModelProto:
    return model([node("Unheard", "x", "y", domain="nobody")], [value("x", (2,))], ["y"], domains=["nobody"])


@pytest.fixture
def models(real: Any, packages: Any, tmp_path: Path) -> list[Any]:
    """The distinct files of a wheel that is there already."""
    place = tmp_path / "wheels" / "own-models-1.2"
    place.mkdir(parents=True)
    with zipfile.ZipFile(place / "own_models-1.2-py3-none-any.whl", "w") as wheel:
        for name, made in (("fine", fine()), ("same", fine()), ("refused", refused())):
            wheel.writestr(f"own_models/{name}.onnx", made.SerializeToString())
        wheel.writestr("own_models/__init__.py", "raise SystemExit('nothing of a package is executed')")
    files = {"*fine.onnx": packages.Setting({"n": 3}, {"factor": 2.0}, {"x": (1, 5)})}
    package = packages.Package("own-models", "1.2", files)
    return list(real.distinct(real.unpack(package, real.download(package, tmp_path), tmp_path)))


def test_files_of_a_wheel(models: list[Any], tmp_path: Path) -> None:
    assert [m.name for m in models] == ["own_models/fine.onnx", "own_models/refused.onnx"]
    assert all(m.path.is_file() and m.path.is_relative_to(tmp_path) for m in models)


def test_right_and_refused(real: Any, models: list[Any]) -> None:
    right, other = (real.judged(m, seconds=300, most_bytes=8 * GIB) for m in models)
    assert (right.verdict.status, right.nodes, right.operators) == ("right", 2, 2)
    assert right.verdict.error < 1e-6
    assert min(right.verdict.ours, right.verdict.theirs) > 0
    assert (other.verdict.status, other.verdict.detail[:22]) == ("refused", "unsupported-operator: ")
    table = real.markdown([right, other])
    assert table.count("\n") == 4
    assert "| own-models 1.2 | fine.onnx |" in table
    assert real.summary([right, other]).startswith("2 models: 1 right, 1 refused, 0 neither")


def test_limits_of_time_and_memory(real: Any, models: list[Any]) -> None:
    assert real.judged(models[0], seconds=0.01, most_bytes=8 * GIB).verdict.status == "hang"
    assert not real.judged(models[0], seconds=300, most_bytes=1 << 20).verdict.fine


def test_a_wrong_model_counts(real: Any) -> None:
    row = real.Row("p", "1", "m.onnx", 10, 1, 1, real.Verdict("wrong", "y: 1 of 1 wrong, worst 1"))
    assert not row.verdict.fine
    assert "1 neither" in real.summary([row])
    assert "wrong: y: 1 of 1 wrong" in real.markdown([row])


def test_versions_are_pinned_and_settings_found(packages: Any) -> None:
    assert len({package.name for package in packages.PACKAGES}) == len(packages.PACKAGES)
    assert all(package.version[0].isdigit() for package in packages.PACKAGES)
    silero = next(package for package in packages.PACKAGES if package.name == "silero-vad")
    assert silero.setting("silero_vad/data/silero_vad.onnx").constants == {"sr": 16000}
    assert silero.setting("silero_vad/data/other.onnx") == packages.Setting()
