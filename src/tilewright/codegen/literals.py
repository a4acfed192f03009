"""Numbers as C text."""

from __future__ import annotations

import math

import numpy as np

from tilewright.base.dtype import DType
from tilewright.core.graph import Array


def number(ctype: str, value: float) -> str:
    """A literal of a C type."""
    if ctype == "bool":
        return "true" if value else "false"
    if ctype in ("float", "double"):
        return _real(float(value), "f" if ctype == "float" else "")
    whole = int(value)
    if ctype in ("int64_t", "uint64_t"):
        if whole == -(1 << 63):
            return "INT64_MIN"
        return f"{'U' if ctype[0] == 'u' else ''}INT64_C({whole})"
    if whole == -(1 << 31):
        return "INT32_MIN"
    return f"{whole}u" if ctype == "uint32_t" else str(whole)


def _real(value: float, suffix: str) -> str:
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    text = f"{value:.9g}" if suffix else f"{value:.17g}"
    if not any(mark in text for mark in ".en"):
        text += ".0"
    return text + suffix


def elements(dtype: DType, array: Array) -> list[str]:
    """Every element of a constant as a literal of its storage type."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if dtype.store:
        return [f"{int(v)}" for v in flat.view(np.uint16)]
    if dtype.is_integer and dtype.bits < 32:
        return [str(v) for v in flat.tolist()]
    return [number(dtype.ctype, v) for v in flat.tolist()]
