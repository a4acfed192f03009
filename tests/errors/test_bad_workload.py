"""error[bad-workload]: a file of layers that says something wrong, with the path of the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused

GOOD = """\
layers:
  - name: first
    equation: "O[m][n] += A[m][k] * B[k][n]"
    sizes: {M: 8, N: 8, K: 8}
    constants: [B]
    from: {A: first}
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("K: 8", "K: 0", "layers[0].sizes.K: must be at least 1, found 0"),
        ("    sizes: {M: 8, N: 8, K: 8}\n", "", "layers[0].sizes: is missing"),
        ("constants: [B]", "constants: [W]", "the equation has no input 'W' (inputs: A, B)"),
        ("from: {A: first}", "from: {A: zeroth}", "layers[0].from.A: there is no layer 'zeroth'"),
        ("from: {A: first}", "from: {X: first}", "layers[0].from.X: the equation has no such input"),
        (
            "constants: [B]",
            "density: {W: 0.5}",
            "layers[0].density.W: the equation has no such operand (it has O, A, B)",
        ),
        ("constants: [B]", "density: {B: 2}", "layers[0].density.B: must be between 0 and 1, found 2"),
        ("constants:", "konstants:", "layers[0].konstants: is not a known key"),
        ("layers:", "layers: [", "is not YAML"),
    ],
)
def test_bad_workload(old: str, new: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "layers.yaml"
    assert old in GOOD
    path.write_text(GOOD.replace(old, new, 1), encoding="utf-8")
    assert expected in refused("bad-workload", capsys, "cost", path, "--machine", "tpu-like")
