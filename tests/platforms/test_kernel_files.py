"""Kernels of a platform are parsed when an operator asks for them; all of them are the same as when parsed at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.errors import TilewrightError
from tilewright.machine import kernel_files
from tilewright.machine.kernel import Kernel
from tilewright.machine.target import load_platform, platform_names

HEADER = "/* ---\nop: Relu\ntypes: {X: float32, Y: float32}\n--- */\n"
PROTOTYPE = "static void relu(const float *X, float *Y) {}\n"


def test_files_are_parsed_for_operators_that_they_are_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    real = kernel_files.parse_kernels

    def seen(path: Path, text: str | None = None) -> tuple[Kernel, ...]:
        parsed.append(path.name)
        return real(path, text)

    monkeypatch.setattr(kernel_files, "parse_kernels", seen)
    # With another folder of kernels it is not one that was read before.
    platform = load_platform("siracusa", (tmp_path,))
    assert len(parsed) <= 1, "a file for several operators is parsed to know them"
    parsed.clear()
    assert {kernel.op for kernel in platform.kernels_of("Softmax")} == {"Softmax"}
    assert 0 < len(parsed) < 10
    assert platform.kernels_of("Softmax") == platform.kernels_of("Softmax")
    assert len(parsed) == len({*parsed})


@pytest.mark.parametrize("name", ["generic", "siracusa", "cortex-m4"])
def test_what_is_told_of_files_is_what_their_headers_say(name: str) -> None:
    platform = load_platform(name)
    every = tuple(platform.kernels)
    assert len(platform.kernels) == len(every)
    for op in {kernel.op for kernel in every}:
        assert [*platform.kernels_of(op)] == [kernel for kernel in every if kernel.op == op]
    for kernel in every:
        assert kernel_files.KernelFile(kernel.path).has_terms == bool(kernel.terms), kernel.path.name


def test_a_mistake_in_a_kernel_of_a_user_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "relu.c").write_text(HEADER.replace("types:", "typs:") + PROTOTYPE)
    with pytest.raises(TilewrightError, match="unknown header key typs"):
        load_platform("generic", (tmp_path,))


@pytest.mark.parametrize("name", platform_names())
def test_headers_of_a_platform_come_before_those_of_others(name: str) -> None:
    headers = load_platform(name).headers
    assert len({path.name for path in headers}) == len(headers)
    first = {path.name: path for path in headers}
    if name == "snitch":
        assert first["tilewright_half.h"].parent.parent.name == "snitch"
