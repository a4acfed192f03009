"""error[cannot-write]: the output cannot be written, and nothing is left half-written."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused, relu

MANY_CORE = Path(__file__).parents[2] / "examples" / "many_core"


def test_a_file_in_the_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").write_text("mine")
    text = refused("cannot-write", capsys, "compile", relu(tmp_path), "-o", tmp_path / "taken")
    assert "taken" in text
    assert "help: " in text
    assert (tmp_path / "taken").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["relu.onnx", "taken"]


def test_a_folder_in_the_place_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network, folder = relu(tmp_path), tmp_path / "c"
    (folder / "network.h").mkdir(parents=True)
    (folder / "network.c").write_text("mine")
    text = refused("cannot-write", capsys, "compile", network, "-o", folder)
    assert "network.h" in text
    assert sorted(path.name for path in folder.iterdir()) == ["network.c", "network.h"]
    assert (folder / "network.c").read_text() == "mine"


def test_outputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").write_text("mine")
    network, folder = relu(tmp_path), tmp_path / "c"
    for place in (tmp_path / "taken" / "outputs.npz", tmp_path):
        refused("cannot-write", capsys, "run", network, "--outputs", place, "-o", folder)
        assert not folder.exists()


@pytest.mark.parametrize(
    ("command", "options", "work"),
    [
        ("cost", ["--machine", "tpu-like", "--html"], "costing.cost"),
        ("map", ["--machine", "tpu-like", "--export"], "costing.search_each"),
        ("schedule", ["--platform", str(MANY_CORE / "quad.yaml"), "--trace"], "scheduling.schedule_network"),
    ],
)
def test_places_are_looked_at_before_work_begins(
    command: str,
    options: list[str],
    work: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = MANY_CORE / "four_layers.yaml" if command == "schedule" else relu(tmp_path)

    def begun(*_: object, **__: object) -> None:
        pytest.fail("it has begun")

    monkeypatch.setattr(f"tilewright.cli.{work}", begun)
    (tmp_path / "taken.json").mkdir()
    refused("cannot-write", capsys, command, network, *options, tmp_path / "taken.json")


def test_stages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").write_text("mine")
    network = relu(tmp_path)
    refused("cannot-write", capsys, "compile", network, "--dump-stages", tmp_path / "taken", "-o", tmp_path / "c")
    assert not (tmp_path / "c").exists()
