"""What the data-movement operators share: compile-time integers, axes, wrapped indices, tables in C."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tilewright.core.domain import Affine, Axis, at, axis_names, dim
from tilewright.core.graph import Array
from tilewright.core.op import Call


def integers(call: Call, operand: str) -> tuple[int, ...]:
    """The values of a compile-time integer operand, flat."""
    return tuple(int(v) for v in call.value(operand).reshape(-1))


def scalar(call: Call, operand: str) -> int:
    """The value of a compile-time operand that holds one integer."""
    values = integers(call, operand)
    if len(values) != 1:
        raise call.error("shape-mismatch", f"input '{operand}' must hold one number, found {len(values)}")
    return values[0]


def resolved_axes(call: Call, axes: Iterable[int], rank: int) -> tuple[int, ...]:
    """Possibly negative axes, checked against a rank and against repetition."""
    found = tuple(axes)
    for axis in found:
        if not -rank <= axis < rank:
            raise call.error("bad-axis", f"axis {axis} is outside a tensor of rank {rank}")
    result = tuple(axis % rank for axis in found)
    if len(set(result)) < len(result):
        raise call.error("bad-axis", f"axes {list(found)} name an axis twice")
    return result


def optional_axes(call: Call, rank: int, operand: str = "axes") -> tuple[int, ...]:
    """The axes an optional operand names; all of them where it is absent."""
    return resolved_axes(call, integers(call, operand), rank) if call.has(operand) else tuple(range(rank))


def grid(shape: Sequence[int], prefix: str = "D") -> tuple[dict[str, int], list[Affine]]:
    """One loop dimension per axis of a shape: their sizes and the access map that runs over the whole shape."""
    names = [f"{prefix}{name[1:]}" for name in axis_names(len(shape))]
    return dict(zip(names, shape, strict=True)), [dim(name) for name in names]


def minor_dims(access: Iterable[Axis]) -> list[str]:
    """Of the loops that share an output axis, all but the outermost: a tile that split them would leave holes."""
    result: list[str] = []
    for axis in access:
        if isinstance(axis, Affine):
            result += [name for name, _ in sorted(axis.terms, key=lambda term: -term[1])[1:]]
    return result


def first(shape: Sequence[int]) -> list[Axis]:
    """The access map of an operand that holds one element, whatever its rank."""
    return [at(0)] * len(shape)


def wrapped_indices(indices: Array, extent: int) -> Array:
    """Indices into an axis: negative ones count from the end, and none leaves the axis."""
    wide = indices.astype(np.int64)
    return np.clip(np.where(wide < 0, wide + extent, wide), 0, max(extent - 1, 0))


def wrap_statement(target: str, source: str, extent: int) -> str:
    """C that sets `target` to an index as `wrapped_indices` does."""
    last = max(extent - 1, 0)
    return (
        f"{target} = {source} < 0 ? {source} + {extent} : {source}; "
        f"{target} = {target} < 0 ? 0 : {target} > {last} ? {last} : {target};"
    )


def c_float(value: float, compute: str) -> str:
    """A floating-point literal of C; infinities and NaN by their macros."""
    if np.isnan(value):
        return f"({compute})NAN"
    if np.isinf(value):
        return f"({compute})INFINITY" if value > 0 else f"-({compute})INFINITY"
    text = repr(float(np.float32(value)) if compute == "float" else float(value))
    return f"{text}f" if compute == "float" else text


def c_table(compute: str, name: str, values: Array) -> tuple[str, str, str]:
    """A constant array of a Body."""
    bounds = "".join(f"[{extent}]" for extent in values.shape)
    return compute, f"{name}{bounds}", _braced(values, compute)


def _braced(values: Array, compute: str) -> str:
    if values.ndim > 1:
        inner = ", ".join(_braced(row, compute) for row in values)
    elif compute in ("float", "double"):
        inner = ", ".join(c_float(float(v), compute) for v in values)
    else:
        inner = ", ".join(str(int(v)) for v in values)
    return f"{{{inner}}}"
