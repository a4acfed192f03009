"""Compile-time reordering of weights, described by the kernel: `"F,C,KH,KW -> F/8,KH,KW,C,F%8"`."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from tilewright.core.graph import Array
from tilewright.errors import TilewrightError

_PART = re.compile(r"^(\w+)(?:([/%])(\d+))?$")


def pack(array: Array, spec: str, where: Path) -> Array:
    """Reorders a constant. `F/8` and `F%8` split an axis into blocks; a ragged end is filled with zeros."""
    left, arrow, right = spec.partition("->")
    names = [n.strip() for n in left.split(",")]
    if not arrow or len(names) != array.ndim:
        raise _bad(where, spec, f"the constant has {array.ndim} axes")
    parts = [_PART.match(p.strip()) for p in right.split(",")]
    blocks: dict[str, int] = {}
    for part in parts:
        if part is None or part.group(1) not in names:
            raise _bad(where, spec, "an axis on the right is unknown")
        if part.group(3):
            blocks[part.group(1)] = int(part.group(3))
    widths = [(0, -array.shape[i] % blocks.get(name, 1)) for i, name in enumerate(names)]
    padded = np.pad(array, widths)
    shape: list[int] = []
    axes: dict[str, int] = {}
    for name, extent in zip(names, padded.shape, strict=True):
        if name in blocks:
            axes[f"{name}/"] = len(shape)
            axes[f"{name}%"] = len(shape) + 1
            shape += [extent // blocks[name], blocks[name]]
        else:
            axes[name] = len(shape)
            shape.append(extent)
    order = [axes[p.group(1) + (p.group(2) or "")] for p in parts if p is not None]
    if sorted(order) != list(range(len(shape))):
        raise _bad(where, spec, "every axis must occur once on the right")
    return np.ascontiguousarray(padded.reshape(shape).transpose(order))


def _bad(where: Path, spec: str, why: str) -> TilewrightError:
    return TilewrightError("bad-kernel", f"kernel '{where.name}': pack '{spec}': {why}", help="see docs/add_a_kernel.md")
