"""Fine-tuning to weights of few bits: what comes of it is a checkpoint of whole numbers that loses less."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from language_models import ROOT, script, written
from tilewright.language.checkpoint import checkpoint_of
from tilewright.language.quantised import quantised
from tilewright.language.ranges import own_texts, watched

pytest.importorskip("torch")
FOLDER = ROOT / "examples" / "language_model"
FEW = ["--texts", "24", "--steps", "60", "--batch", "8", "--rate", "1e-2", "--threads", "1"]


@pytest.fixture
def tune(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script, to be called with its arguments."""
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    module = script("examples/language_model/tune.py")

    def called(*arguments: object) -> None:
        monkeypatch.setattr("sys.argv", ["tune.py", *map(str, arguments)])
        module.main()

    return called


def test_weights_are_whole_and_lose_less(tune: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given, made = written(tmp_path), tmp_path / "tuned.npz"
    np.savez(tmp_path / "more.npz", ids=np.arange(100) % 64)
    tune(given, "-o", made, "--weight-bits", 3, "--text", tmp_path / "more.npz", *FEW)
    lost = [float(found) for found in re.findall(r"loses ([\d.]+)%", capsys.readouterr().out)]
    assert lost[-1] < 0.7 * lost[0]
    arrays = dict(np.load(made))
    model = checkpoint_of(arrays, "tuned")
    assert model.steps.keys() == model.weights.keys()
    assert {arrays[name].dtype for name in model.weights} == {np.dtype(np.int8)}
    assert all(arrays[name].min() >= -4 and arrays[name].max() <= 3 for name in model.weights)
    whole = quantised(model, watched(model, own_texts(model, 2)))
    assert (arrays["emb"] == whole.head.weights.T).all()
    assert (arrays["1.down"] == whole.layers[1].down.weights.T).all()
    # The same seed gives the same weights.
    tune(given, "-o", tmp_path / "again.npz", "--weight-bits", 3, "--text", tmp_path / "more.npz", *FEW)
    assert all((np.load(tmp_path / "again.npz")[name] == arrays[name]).all() for name in arrays)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"config": np.asarray("{}")}, "not a checkpoint"),
        ({"0.wq": np.zeros((3, 4))}, r"'0\.wq' is no \[32, 32\]"),
        ({"1.down": np.full((32, 48), np.nan)}, "finite"),
    ],
)
def test_what_is_no_checkpoint_is_refused(
    tune: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        tune(written(tmp_path, changes=changes), "-o", tmp_path / "tuned.npz", *FEW)
    assert ended.value.code == 2
    found = capsys.readouterr().err
    assert re.search(said, found)
    assert "help: " in found
    assert not (tmp_path / "tuned.npz").exists()


def test_other_mistakes_are_refused(tune: Any, tmp_path: Path) -> None:
    given = written(tmp_path)
    (tmp_path / "text.npz").write_text("no archive")
    np.savez(tmp_path / "large.npz", ids=np.full(100, 64))
    np.savez(tmp_path / "short.npz", ids=np.zeros(3, int))
    texts = [("--text", tmp_path / name) for name in ("text.npz", "large.npz", "short.npz", "none.npz")]
    wrong = [("--steps", "0"), ("--weight-bits", "9"), ("-o", tmp_path / "none" / "tuned.npz")]
    for more in (*texts, *wrong):
        with pytest.raises(SystemExit) as ended:
            tune(given, "-o", tmp_path / "tuned.npz", *FEW, *more)
        assert ended.value.code == 2
    assert not (tmp_path / "tuned.npz").exists()
