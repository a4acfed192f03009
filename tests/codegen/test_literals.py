"""Numbers as C text."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from tilewright.base.dtype import dtype_of
from tilewright.codegen.literals import elements, number
from tilewright.core.graph import Array


@pytest.mark.parametrize(
    ("ctype", "value", "text"),
    [
        ("int", 7, "7"),
        ("int32_t", -(1 << 31), "INT32_MIN"),
        ("uint32_t", (1 << 32) - 1, "4294967295u"),
        ("int64_t", -(1 << 63), "INT64_MIN"),
        ("int64_t", 5, "INT64_C(5)"),
        ("uint64_t", 5, "UINT64_C(5)"),
        ("bool", 1, "true"),
        ("bool", 0, "false"),
        ("float", 1, "1.0f"),
        ("float", 1e20, "1.00000002e+20f"),
        ("float", -0.0, "-0.0f"),
        ("double", 0.1, "0.10000000000000001"),
        ("float", math.inf, "INFINITY"),
        ("double", -math.inf, "-INFINITY"),
        ("float", math.nan, "NAN"),
    ],
)
def test_numbers(ctype: str, value: float, text: str) -> None:
    assert number(ctype, float(np.float32(value)) if ctype == "float" else value) == text


@pytest.mark.parametrize(
    ("array", "texts"),
    [
        (np.array([-128, 127], np.int8), ["-128", "127"]),
        (np.array([[True], [False]]), ["true", "false"]),
        (np.array(2.5, np.float32), ["2.5f"]),
        (np.array([1.0], np.float16), ["15360"]),
        (np.array([1.0], ml_dtypes.bfloat16), ["16256"]),
        (np.zeros((0, 3), np.float32), []),
    ],
)
def test_elements(array: Array, texts: list[str]) -> None:
    assert elements(dtype_of(array), array) == texts


def test_floats_survive_the_text() -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(0, 1 << 32, 2000, dtype=np.uint32).view(np.float32)
    for value in values[np.isfinite(values)]:
        assert np.float32(float(number("float", float(value)).removesuffix("f"))) == value
