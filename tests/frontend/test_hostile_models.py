"""Whatever a model file holds, it becomes a program or one clear error: never a traceback, a hang or half an output."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from hashlib import sha1
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from command_line import relu
from hostile import shapes, structure, values
from onnx_models import model, node, read, value, write, write_apart
from tilewright.cli.app import run
from tilewright.frontend import limits

REFUSED: dict[str, Any] = {**shapes.BAD, **values.BAD, **structure.BAD}
EITHER: dict[str, Any] = {**shapes.ODD, **values.ODD, **structure.ODD}


def outcome(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """The code of the error that compiling ends in, or nothing where there is a program."""
    output = path.parent / "output"
    status = run(["compile", str(path), "-o", str(output), "--no-report", *options])
    said = capsys.readouterr().err
    assert status in (0, 2), said
    assert (status == 0) == output.exists()
    if status == 0:
        return ""
    assert said.startswith("error["), said
    assert said.count("error[") == 1
    assert "  help: " in said
    return said[len("error[") :].partition("]")[0]


def of_bytes(content: bytes, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    (folder / "m.onnx").write_bytes(content)
    return outcome(folder / "m.onnx", capsys)


@pytest.mark.parametrize("name", shapes.TOO_LARGE)
def test_too_large(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(write(tmp_path / "m.onnx", shapes.TOO_LARGE[name]), capsys, "--max-bytes", "1G") == "too-large"


@pytest.mark.parametrize("name", structure.EXPANDING)
def test_expanding_without_end(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "NODE_LIMIT", 300)
    path = write(tmp_path / "m.onnx", structure.EXPANDING[name])
    assert outcome(path, capsys) in ("too-large", "bad-model")


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(write(tmp_path / "m.onnx", REFUSED[name]), capsys)


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("name", EITHER)
def test_a_program_or_an_error(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome(write(tmp_path / "m.onnx", EITHER[name]), capsys)


def small() -> bytes:
    constants = {"w": np.ones((2, 1, 3, 3), np.float32), "s": np.array([1, -1]), "k": np.ones((18, 4), np.float32)}
    nodes = [node("Conv", "x w", "c"), node("Relu", "c", "r"), node("Reshape", "r s", "f"), node("MatMul", "f k", "y")]
    return model(nodes, [value("x", (1, 1, 5, 5))], ["y"], constants=constants).SerializeToString()


@pytest.mark.parametrize("seed", range(40))
def test_flipped_bits(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(seed)
    content = bytearray(small())
    for position in rng.integers(0, len(content), 1 + seed % 4):
        content[position] ^= 1 << int(rng.integers(0, 8))
    of_bytes(bytes(content), tmp_path, capsys)


def test_cut_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = small()
    for length in range(0, len(content) - 1, 17):
        assert of_bytes(content[:length], tmp_path, capsys) in ("bad-model", "cyclic-graph"), length


@pytest.mark.parametrize(
    "content",
    [
        b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\x08" + b"\xff" * 11,
        b"\x3a\xff\xff\xff\xff\x0f" + bytes(64),
        small().replace(b"Relu", b"R\xfflu"),
        small().replace(b"Reshape", b"\xc3\x28shape"),
        b"\x3a\x02" * 5000,
        b"\x0b" * 5000,
    ],
    ids=[
        "a graph of 2^63 bytes",
        "a varint of 11 bytes",
        "a graph beyond the file",
        "an operator that is no UTF-8",
        "another that is no UTF-8",
        "graphs in graphs",
        "groups without end",
    ],
)
def test_bytes_that_are_no_model(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert of_bytes(content, tmp_path, capsys)


def external(folder: Path, **entries: str) -> Path:
    """A model whose weights are said to lie elsewhere."""
    weights = {"w": np.ones((3, 4), np.float32)}
    built = model([node("MatMul", "x w", "y")], [value("x", (2, 3))], ["y"], constants=weights)
    path = write_apart(folder / "m.onnx", built, "m.data")
    content = read(path)
    stated = {entry.key: entry.value for entry in content.graph.initializer[0].external_data} | entries
    del content.graph.initializer[0].external_data[:]
    for key, text in stated.items():
        content.graph.initializer[0].external_data.add(key=key, value=text)
    return write(path, content)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        *(("offset", text) for text in ("-1", "9" * 30, "9" * 5000, "text", "1.5", "", "٣", str(1 << 62))),
        *(("length", text) for text in ("-1", "1", "49", "text", "9" * 5000)),
        *(("checksum", text) for text in ("", "0" * 40, "text")),
        *(("location", text) for text in ("", ".", "..", "/etc/passwd", "a\0b", "x" * 5000, "no/such")),
    ],
)
def test_external_data(key: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = outcome(external(tmp_path, **{key: text}), capsys)
    assert found in ("bad-model", "missing-external-data")


def test_external_data_have_the_checksum_that_is_stated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right = np.ones((3, 4), np.float32).tobytes()
    path = external(tmp_path, checksum=sha1(right).hexdigest().upper())
    (tmp_path / "m.data").write_bytes(right[:-1] + b"\0")
    assert outcome(path, capsys) == "bad-model"
    (tmp_path / "m.data").write_bytes(right)
    assert outcome(path, capsys) == ""


def test_external_data_elsewhere_where_it_is_allowed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inside, outside = tmp_path / "model", tmp_path / "data"
    inside.mkdir()
    outside.mkdir()
    path = external(inside, location="../data/m.data")
    (inside / "m.data").rename(outside / "m.data")
    assert outcome(path, capsys) == "bad-model"
    assert outcome(path, capsys, "--external-data", str(inside)) == "bad-model"
    assert outcome(path, capsys, "--external-data", str(outside)) == ""


def test_a_link_to_external_data_is_where_it_leads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inside = tmp_path / "model"
    inside.mkdir()
    path = external(inside)
    (inside / "m.data").rename(tmp_path / "m.data")
    (inside / "m.data").symlink_to("../m.data")
    assert outcome(path, capsys) == "bad-model"


def test_external_data_beyond_max_bytes_are_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file with a hole: it has a length, and takes no room on the disk."""
    path = external(tmp_path, length=str(1 << 33))
    with (tmp_path / "m.data").open("r+b") as file:
        file.truncate(1 << 33)
    content = read(path)
    content.graph.initializer[0].dims[:] = [1 << 31]
    write(path, content)
    tracemalloc.start()
    try:
        assert outcome(path, capsys, "--max-bytes", "1G") == "too-large"
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [_pipe, _loop, _device, Path.mkdir, Path.touch])
def test_what_is_no_file_of_data(
    make: Callable[[Path], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "odd")
    found = outcome(external(tmp_path, location="odd"), capsys)
    assert found in ("bad-model", "missing-external-data")


def test_external_data_of_huge_tensors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = external(tmp_path)
    content = read(path)
    for dims in ([1 << 62], [1 << 32, 1 << 32], [-1, 3], [1] * 70, [3, 5]):
        del content.graph.initializer[0].dims[:]
        content.graph.initializer[0].dims.extend(dims)
        assert outcome(write(path, content), capsys), dims


def test_by_the_command(tmp_path: Path) -> None:
    """The same in processes of their own, as users see it."""
    content = relu(tmp_path).read_bytes()
    models = [
        content[: len(content) // 2],
        shapes.TOO_LARGE["input of 2^62"].SerializeToString(),
        structure.BAD["two inputs of one name"].SerializeToString(),
    ]
    for index, content in enumerate(models):
        path, output = tmp_path / f"{index}.onnx", tmp_path / "output"
        path.write_bytes(content)
        command = [sys.executable, "-m", "tilewright", "compile", str(path), "-o", str(output)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr.startswith("error[")
        assert not output.exists()


def test_all_names_differ() -> None:
    sources = (shapes, values, structure)
    tables = [table for each in sources for table in (each.BAD, each.ODD)]
    assert len(REFUSED) + len(EITHER) == sum(len(table) for table in tables)
    assert all(isinstance(built, onnx.ModelProto) for table in tables for built in table.values())
