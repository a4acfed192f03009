"""error[bad-checkpoint]: a file is not a language model that can be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import command_line
from language_models import written


def refused(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    return command_line.refused("bad-checkpoint", capsys, "generate", path, "--prompt", "the")


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ("{", "its 'config' is not JSON"),
        ("[]", "its 'config' is not a JSON object"),
        ("{}", "'dim' of its 'config' is None, not a whole number"),
        (
            '{"dim": 30, "layers": 2, "heads": 4, "ffn": 48, "vocab": 64, "context": 24}',
            "30 elements are not 4 heads of an even size",
        ),
        (
            '{"dim": 0, "layers": 2, "heads": 4, "ffn": 48, "vocab": 64, "context": 24}',
            "'dim' of its 'config' is 0, out of range",
        ),
        (
            '{"dim": 32, "layers": 3, "heads": 4, "ffn": 48, "vocab": 64, "context": 24}',
            "it has no weights '2.wq'",
        ),
        (
            '{"dim": 32, "layers": 2, "heads": 4, "ffn": 44, "vocab": 64, "context": 24}',
            "'0.gate' is [48, 32], and 'config' says [44, 32]",
        ),
    ],
)
def test_sizes(config: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert why in refused(written(tmp_path, changes={"config": np.asarray(config)}), capsys)


def test_values_that_are_not_finite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = np.full((32, 32), np.inf, np.float16)
    assert "'1.wo' has values that are not finite" in refused(written(tmp_path, changes={"1.wo": bad}), capsys)


def test_scales_of_another_shape(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scale = {"0.wq.scale": np.ones(3, np.float32)}
    assert "'0.wq.scale' is [3], not one number for each row" in refused(written(tmp_path, changes=scale), capsys)


def test_a_damaged_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    assert "is not an .npz file of arrays" in refused(path, capsys)


def test_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no such file" in refused(tmp_path / "none.npz", capsys)


def test_no_config(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "other.npz", weights=np.ones(3))
    assert "it has no 'config'" in refused(tmp_path / "other.npz", capsys)
