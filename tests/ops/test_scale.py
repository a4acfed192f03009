"""`tw_scale` of the kernel header: the same integers by every way to compute them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from tilewright.codegen.project import find_compiler
from tilewright.machine.target import PLATFORMS, load_platform

PROGRAM = """
#define TW_GENERATED
#include "tilewright_kernel.h"
#include <stdio.h>

int main(void) {
    int x, mul, shift;
    while (scanf("%d %d %d", &x, &mul, &shift) == 3)
        printf("%d\\n", (int)SCALE(x, mul, shift, 7) - 7);
    return 0;
}
"""
NOT_FUSED = ("-U__FP_FAST_FMAF", "-U__ARM_FEATURE_FMA", "-U__FMA__")
WAYS = {"native": ("-O2",), "double": (*NOT_FUSED, "-D__SSE2__"), "integer": (*NOT_FUSED, "-U__SSE2__")}


def _cases() -> list[tuple[int, int, int]]:
    """Random products, products that are exact halves, and the largest ones."""
    rng = np.random.default_rng(0)
    found = [
        (1 << 24, 1 << 24, 27),
        (-(1 << 24), (1 << 24) - 1, 27),
        (0, 5, 1),
        (1, 1, 1),
        (3, 1, 1),
        (-1, 1, 1),
        (-3, 1, 1),
    ]
    for _ in range(2000):
        x, mul = (int(v) for v in rng.integers(-(1 << 24), (1 << 24) + 1, size=2))
        found.append((x, mul, int(rng.integers(27, 50))))
        odd, shift = 2 * int(rng.integers(-(1 << 20), 1 << 20)) + 1, int(rng.integers(1, 24))
        found.append((odd, 1 << (shift - 1), shift))
    return found


@pytest.mark.parametrize("flags", WAYS.values(), ids=WAYS.keys())
def test_scale_rounds_half_to_even(flags: tuple[str, ...], tmp_path: Path) -> None:
    _check(("-DSCALE=tw_scale", *flags), _cases(), tmp_path)


@pytest.mark.parametrize("core", sorted(path.parent for path in PLATFORMS.glob("*/kernels/tilewright_arm.h")))
def test_scale_without_halves(core: Path, tmp_path: Path) -> None:
    flags = (f"-I{core}", "-DSCALE=tw_scale_untied")
    _check(flags, [case for case in _cases() if _has_no_half(*case)], tmp_path)


def _has_no_half(x: int, mul: int, shift: int) -> bool:
    largest_quotient = 1 << 22
    tied = x * mul % (1 << shift) == 1 << shift - 1
    return not tied and 26 <= shift < 47 and abs(mul) < 1 << 24 and abs(x * mul) >> shift < largest_quotient


def _check(flags: tuple[str, ...], cases: list[tuple[int, int, int]], tmp_path: Path) -> None:
    compiler = find_compiler("cc")
    headers = load_platform("generic").headers[0].parent
    (tmp_path / "scale.c").write_text(PROGRAM)
    command = [compiler, "-std=c11", "-Wall", "-Werror", *flags, f"-I{headers}", "-o", "scale", "scale.c", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    text = "\n".join(f"{x} {mul} {shift}" for x, mul, shift in cases)
    done = subprocess.run([str(tmp_path / "scale")], input=text, capture_output=True, text=True, check=True)
    wrong = [
        (case, got)
        for case, got in zip(cases, map(int, done.stdout.split()), strict=True)
        if got != _rounded(case[0] * case[1], case[2])
    ]
    assert not wrong


def _rounded(total: int, shift: int) -> int:
    low, rest = total >> shift, total & ((1 << shift) - 1)
    half = (1 << shift) >> 1
    return low + int(rest > half or (rest == half and low % 2 == 1))
