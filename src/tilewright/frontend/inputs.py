"""Types of the graph inputs: declared ones, with open extents, element types and values the user fixes."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from tilewright.base.dtype import DTYPES, FLOAT32, INT8, INT16, INT32, UINT8, DType
from tilewright.core.graph import Array, Bound
from tilewright.errors import TilewrightError
from tilewright.frontend.raw import Declared, RawModel, Unsupported

Dims = Mapping[str, int | tuple[int, int]]
"""Extents by name: a number, or the smallest and largest of one that is known when the network runs."""

MORE = re.compile(r"\s*(.+?)\s*\+\s*(\d+)\s*")
"""A dimension that is so much longer than another."""


def largest(dims: Dims) -> dict[str, int]:
    """The extents that everything is planned for."""
    return {name: extent if isinstance(extent, int) else extent[1] for name, extent in dims.items()}


def sizes(model: RawModel, dims: Dims) -> tuple[tuple[Bound, ...], dict[str, tuple[tuple[int, str, int], ...]]]:
    """Sizes that are known when the network runs, and the axes of inputs that have them."""
    pairs = {name: extent for name, extent in dims.items() if not isinstance(extent, int)}
    for name, (low, high) in pairs.items():
        if not 0 <= low <= high:
            raise TilewrightError(
                "bad-size", f"--dim {name}={low}..{high} is no range of extents", help=f"such as --dim {name}=1..{high}"
            )
    ranges = {name: ends for name, ends in pairs.items() if ends[0] < ends[1]}
    bounds = tuple(Bound(name, *ends, number) for number, (name, ends) in enumerate(ranges.items()))
    axes: dict[str, tuple[tuple[int, str, int], ...]] = {}
    for declared in model.inputs:
        for axis, extent in enumerate(declared.shape or ()):
            named, more = _more(extent if isinstance(extent, str) else "", ranges)
            key = f"{declared.name}:{axis}" if f"{declared.name}:{axis}" in ranges else named
            if not isinstance(extent, int) and key in ranges:
                axes[declared.name] = (*axes.get(declared.name, ()), (axis, key, more))
    return bounds, axes


def _more(extent: str, known: Collection[str]) -> tuple[str, int]:
    """The known dimension that one is made of, and how much longer it is."""
    found = MORE.fullmatch(extent)
    return (found[1], int(found[2])) if extent not in known and found and found[1] in known else (extent, 0)


def check_names(
    model: RawModel, dims: Mapping[str, int], input_types: Mapping[str, str], constants: Iterable[str]
) -> None:
    """Refuses names that the network does not have."""
    names = [declared.name for declared in model.inputs]
    for flag, given in (("--input-type", input_types), ("--constant", constants)):
        for name in given:
            if name not in names:
                raise TilewrightError(
                    "unknown-input",
                    f"{flag} names '{name}', which is no input of the network",
                    help=_suggest(name, names),
                )
    open_dims = [key for declared in model.inputs for key in _dimension_keys(declared)]
    for name, extent in dims.items():
        if name not in open_dims:
            raise TilewrightError(
                "unknown-dimension",
                f"--dim names '{name}', which no input of the network has",
                help=_suggest(name, open_dims),
            )
        if extent < 0:
            raise TilewrightError(
                "unknown-dimension", f"--dim {name}={extent} is negative", help="an extent is at least 0"
            )
    for name, dtype in input_types.items():
        if dtype not in DTYPES:
            raise TilewrightError(
                "unknown-type", f"--input-type {name}={dtype} names no element type", help=_suggest(dtype, list(DTYPES))
            )


def _suggest(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, 1, 0.5)
    listed = ", ".join(dict.fromkeys(known)) or "none"
    return (f"did you mean '{close[0]}'? " if close else "") + f"known: {listed}"


def _dimension_keys(declared: Declared) -> list[str]:
    """How `--dim` may call the open extents of an input: by name, or as INPUT:AXIS."""
    keys: list[str] = []
    for axis, extent in enumerate(declared.shape or ()):
        if not isinstance(extent, int):
            keys += [*([extent] if extent else []), f"{declared.name}:{axis}"]
    return keys


def shapes(model: RawModel, dims: Mapping[str, int], samples: Mapping[str, Array]) -> dict[str, tuple[int, ...]]:
    """Static shapes of all inputs; open extents come from `dims`, else from a sample of that input."""
    found: dict[str, tuple[int, ...]] = {}
    missing: list[str] = []
    flags: dict[str, None] = {}
    for declared in model.inputs:
        sample = samples.get(declared.name)
        if declared.shape is None:
            if sample is None:
                missing.append(f"input '{declared.name}' has no declared rank")
            else:
                found[declared.name] = sample.shape
            continue
        fits = sample is not None and sample.ndim == len(declared.shape)
        extents = [
            _extent(declared.name, axis, extent, dims, sample.shape[axis] if fits and sample is not None else None)
            for axis, extent in enumerate(declared.shape)
        ]
        open_axes = [axis for axis, extent in enumerate(extents) if extent is None]
        if open_axes:
            shown = ", ".join(str(extent or "?") for extent in declared.shape)
            missing.append(f"input '{declared.name}' is [{shown}]")
            flags.update(
                {f"--dim {declared.shape[axis] or f'{declared.name}:{axis}'}=VALUE": None for axis in open_axes}
            )
        found[declared.name] = tuple(extent for extent in extents if extent is not None)
    if missing:
        raise TilewrightError(
            "dynamic-shape",
            "the shape of the network's inputs is not fixed",
            reasons=missing,
            help=f"fix it with {' '.join(flags)}"
            if flags
            else "export the network with a declared shape for this input",
        )
    return found


def _extent(name: str, axis: int, extent: int | str | None, dims: Mapping[str, int], sampled: int | None) -> int | None:
    if isinstance(extent, int):
        return extent
    named, more = _more(extent or "", dims)
    pinned = dims.get(f"{name}:{axis}", dims[named] + more if named in dims else None)
    return sampled if pinned is None else pinned


def unsupported(model: RawModel) -> list[str]:
    """One line per input or initialiser of a type that nothing here can hold."""
    lines = [f"input '{d.name}' has {d.dtype.what}" for d in model.inputs if isinstance(d.dtype, Unsupported)]
    return lines + [f"constant '{n}' has {a.what}" for n, a in model.initialisers.items() if isinstance(a, Unsupported)]


def is_integral(array: Array) -> bool:
    return bool(np.all(np.isfinite(array))) and bool(np.all(array == np.rint(array)))


def integer_type(sample: Array | None) -> DType:
    """The type of a float-declared input of an integer network: int8, wider where a sample does not fit, float32 where
    the sample holds other numbers than integers."""
    if sample is None or not sample.size:
        return INT8
    if not is_integral(sample):
        return FLOAT32
    lo, hi = int(sample.min()), int(sample.max())
    return next((t for t in (INT8, UINT8, INT16) if t.lo <= lo and hi <= t.hi), INT32)
