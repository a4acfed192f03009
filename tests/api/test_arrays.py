"""Arrays from files: the same for every command, and nothing believed that a file only promises."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_line import refused
from onnx_models import model, node, value, write
from tilewright.api.arrays import read_arrays
from tilewright.api.cases import load_case
from tilewright.api.compiling import compile_model
from tilewright.api.feeding import fit
from tilewright.cli.app import run
from tilewright.errors import TilewrightError

Array = np.ndarray[Any, Any]
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def npy(array: Array) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=array.dtype.hasobject)
    return buffer.getvalue()


def npz(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def claiming(shape: str, kind: str = "<f4") -> bytes:
    """An array of six numbers whose header says something else."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + X.tobytes()


def foreign() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("x.npy", npy(X))
        archive.writestr("notes.txt", "hello")
    return buffer.getvalue()


def twice() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("x.npy", npy(X))
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("x.npy", npy(X))
    return buffer.getvalue()


def encrypted() -> bytes:
    content = bytearray(npz(x=npy(X)))
    for header, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(header) + flags] |= 1
    return bytes(content)


BAD: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "text": lambda: b"no arrays",
    "cut archive": lambda: npz(x=npy(X))[:-30],
    "cut member": lambda: npz(x=npy(X)[:-1]),
    "cut array": lambda: npy(X)[:-1],
    "long member": lambda: npz(x=npy(X) + b"more"),
    "long array": lambda: npy(X) + b"more",
    "empty member": lambda: npz(x=b""),
    "foreign member": foreign,
    "member that is no array": lambda: npz(x=b"hello"),
    "same name twice": twice,
    "encrypted": encrypted,
    "objects": lambda: npz(x=npy(np.array([print], dtype=object))),
    "object": lambda: npy(np.array([print], dtype=object)),
    "complex": lambda: npz(x=npy(X.astype(np.complex64))),
    "text elements": lambda: npz(x=npy(np.array(["a"]))),
    "dates": lambda: npz(x=npy(np.array(["2001-01-01"], dtype="datetime64[D]"))),
    "records": lambda: npz(x=npy(np.zeros(2, dtype=[("a", "f4"), ("b", "i4")]))),
    "too many elements": lambda: npz(x=claiming("(1000000000000,)")),
    "far too many elements": lambda: claiming("(1000000000000, 1000000000000)"),
    "negative shape": lambda: npz(x=claiming("(-2, -3)")),
    "shape that is none": lambda: npz(x=claiming("'x'")),
    "shape without an end": lambda: npz(x=claiming("(((((")),
    "type that is none": lambda: npz(x=claiming("(2, 3)", "<q9")),
    "header that runs": lambda: npz(x=claiming("(__import__('os').getpid(),)")),
    "unknown version": lambda: npz(x=b"\x93NUMPY\x09\x00" + npy(X)[8:]),
    "hole in numbers": lambda: npz(input_0=npy(X), input_2=npy(X)),
}


@pytest.mark.parametrize("what", list(BAD))
def test_bad_files(what: str, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(BAD[what]())
    with pytest.raises(TilewrightError) as caught:
        read_arrays(path, "input")
    assert caught.value.code == "bad-argument"
    assert caught.value.help
    assert caught.value.reasons


def test_places_that_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "absent", tmp_path / "pipe", Path("/dev/zero"), Path("/proc/self/mem")):
        with pytest.raises(TilewrightError, match=r"is not an [.]npz or [.]npy file"):
            read_arrays(path)


@pytest.mark.parametrize(
    "array",
    [X, X.astype(">f4"), np.asfortranarray(X), X.astype(np.int64), X.astype(">u2"), X > 2, X[:0], np.float64(3)],
    ids=str,
)
def test_good_arrays(array: Array, tmp_path: Path) -> None:
    for name, content in (("x.npz", npz(x=npy(array))), ("x.npy", npy(array))):
        (tmp_path / name).write_bytes(content)
        (found,) = read_arrays(tmp_path / name, "input")
        assert found.dtype == np.asarray(array).dtype.newbyteorder("=")
        assert found.dtype.isnative
        np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize(
    ("names", "inputs", "outputs"),
    [
        (["input_1", "input_0", "output_0"], ["input_0", "input_1"], ["output_0"]),
        (["input_A", "input_B"], ["input_A", "input_B"], ["input_A", "input_B"]),
        (["input_ids", "mask"], ["input_ids", "mask"], ["input_ids", "mask"]),
        (["input_x", "output_y"], ["input_x"], ["output_y"]),
        (["b", "a"], ["b", "a"], ["b", "a"]),
        (["output_0"], [], ["output_0"]),
        ([f"input_{i}" for i in range(11)], [f"input_{i}" for i in range(11)], []),
    ],
)
def test_names(names: list[str], inputs: list[str], outputs: list[str], tmp_path: Path) -> None:
    given: dict[str, Any] = {name: np.array([index]) for index, name in enumerate(names)}
    np.savez(tmp_path / "x.npz", **given)
    for role, expected in (("input", inputs), ("output", outputs)):
        found = read_arrays(tmp_path / "x.npz", "input" if role == "input" else "output")
        assert [names[int(array[0])] for array in found] == expected


def test_run_and_test_read_the_same(tmp_path: Path) -> None:
    path = write(
        tmp_path / "network.onnx", model([node("Sub", "a b", "y")], [value("a", (2, 3)), value("b", (2, 3))], ["y"])
    )
    np.savez(tmp_path / "inputs.npz", input_A=X, input_B=X * 2)
    np.savez(tmp_path / "outputs.npz", output=-X)
    arguments = ["--inputs", tmp_path / "inputs.npz", "--expected", tmp_path / "outputs.npz"]
    assert run(["run", str(path), *map(str, arguments)]) == 0
    case = load_case("case", path)
    np.testing.assert_array_equal(case.inputs, (X, X * 2))
    np.testing.assert_array_equal(case.expected, (-X,))


def test_complex_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "m.onnx", model([node("Relu", "x", "y")], [value("x", (2, 3))], ["y"]))
    np.save(tmp_path / "x.npy", X.astype(np.complex64))
    assert "not real numbers" in refused("bad-argument", capsys, "run", path, "--inputs", tmp_path / "x.npy")
    with pytest.raises(TilewrightError, match="complex"):
        fit([X.astype(np.complex64)], compile_model(path).plan.graph)
