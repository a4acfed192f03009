"""error[bad-kernel]: a kernel file whose header or prototype cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused, relu

HEADER = "/* ---\nop: Relu\ntypes: {X: float32, Y: float32}\n--- */\n"
PROTOTYPE = "static void relu(const float *X, float *Y, int SIZE) {}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PROTOTYPE, "does not begin with"),
        (HEADER.replace("{X", "{{X") + PROTOTYPE, "not YAML"),
        (HEADER.replace("op:", "colour: 1\nop:") + PROTOTYPE, "unknown header key colour"),
        (HEADER.replace("Y: float32", "Y: T") + PROTOTYPE, "'T' is neither an element type nor a variable"),
        (HEADER.replace("op:", "accumulate: [K]\nop:") + PROTOTYPE, "added up by its epilogue"),
        (HEADER, "no 'static void name(...) {' function"),
        (HEADER + PROTOTYPE.replace("int SIZE", "int WEIGHT"), "'WEIGHT' is no operand, size or attribute of Relu"),
        (HEADER.replace("op:", 'cycles: "SIZE*"\nop:') + PROTOTYPE, "cycles: 'SIZE*' is not an arithmetic formula"),
        (HEADER.replace("op:", 'cycles: "SIZE.x"\nop:') + PROTOTYPE, "cycles: 'SIZE.x' is not an arithmetic formula"),
        (
            HEADER.replace("op:", 'cycles: "(SIZE > 0 or SIZE.x)*2"\nop:') + PROTOTYPE,
            "cycles: 'SIZE.x' is not an arithmetic formula",
        ),
        (
            HEADER.replace("op:", 'when: {SIZE: "= 1"}\nop:') + PROTOTYPE,
            "when: 'SIZE = 1' is not an arithmetic formula",
        ),
        (
            HEADER.replace("op:", 'scratch: "WEIGHT"\nop:') + PROTOTYPE,
            "scratch: 'WEIGHT' is no size, stride or attribute",
        ),
    ],
)
def test_bad_kernel(text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "relu.c").write_text(text)
    printed = refused("bad-kernel", capsys, "compile", relu(tmp_path), "--kernels", tmp_path, "-o", tmp_path / "c")
    assert "relu.c'" in printed
    assert said in printed
    assert "help: " in printed
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("key", ["cycles", "path"])
def test_unknown_names_where_layers_are_priced(key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "relu.c").write_text(HEADER.replace("op:", f'{key}: "WEIGHT"\nop:') + PROTOTYPE)
    arguments = ["--kernels", tmp_path, "--platform", "siracusa", "-o", tmp_path / "c"]
    printed = refused("bad-kernel", capsys, "compile", relu(tmp_path), *arguments)
    assert f"relu.c': {key}: 'WEIGHT' is no size, stride or attribute of Relu" in printed
    assert not (tmp_path / "c").exists()
