"""error[too-many-orders]: a strategy that tries every order is given too many loops."""

from __future__ import annotations

import pytest

from command_line import refused


def test_too_many_orders(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = "M=720720,N=720720,K=720720"
    arguments = ["map", "O[m][n] += A[m][k] * B[k][n]", "--sizes", sizes, "--machine", "tpu-like"]
    text = refused("too-many-orders", capsys, *arguments, "--strategy", "loma", "--factors", "40")
    assert "orders of" in text
