"""What normalisations share: the domain whose trailing axes are whole, and checks of scales."""

from __future__ import annotations

from math import prod

from tilewright.base.dtype import FLOAT32, DType
from tilewright.core.domain import Axis, Domain, at, axis_names, dim, domain
from tilewright.core.graph import TensorType
from tilewright.core.op import Call


def normalized_axis(call: Call, operand: str) -> int:
    """The first normalised axis; all behind it are normalised together."""
    return call.axis("axis", call.type(operand).rank)


def check_float(call: Call, operand: str) -> TensorType:
    kind = call.type(operand)
    if not kind.dtype.is_float:
        raise call.error("type-mismatch", f"'{operand}' must be floating point, found {kind}", help="insert a Cast")
    return kind


def check_scale(call: Call, operand: str, wanted: tuple[int, ...]) -> None:
    """A scale or bias has one value per normalised element; leading axes of extent 1 do no harm."""
    if not call.has(operand):
        return
    shape = call.shape(operand)
    if prod(shape) != prod(wanted) or shape[max(0, len(shape) - len(wanted)) :] != wanted[-len(shape) :]:
        raise call.error(
            "shape-mismatch",
            f"{operand} {call.type(operand)} needs the shape {list(wanted)} of what is normalised",
            help="expand it with an Expand node",
        )


def statistics_type(kind: DType) -> DType:
    """The type of means and deviations: at least float32."""
    return kind if kind.bits > 32 else FLOAT32


def trailing_domain(
    call: Call, axis: int, full: tuple[str, ...], scales: tuple[str, ...], statistics: tuple[str, ...]
) -> Domain:
    """The domain of a normalisation over the axes from `axis` on.

    `full` operands have the first one's shape, `scales` only the normalised axes, `statistics` one value per row.
    Kernels see OUTER rows of AXIS elements; INNER is 1.
    """
    shape = call.shape(full[0])
    names = list(axis_names(len(shape)))
    if axis == len(shape) - 1:
        names[axis] = "AXIS"
    inner = names[axis:]
    every: list[Axis] = [dim(name) for name in names]
    outputs = call.op.output_names(len(call.outputs))
    access: dict[str, list[Axis]] = {}
    for operand in (*full, *scales, *statistics):
        if operand not in outputs and not call.has(operand):
            continue
        if operand in full:
            access[operand] = every
        elif operand in scales:
            lead = len(call.shape(operand)) - len(inner)
            access[operand] = [at(0)] * lead + every[axis:] if lead >= 0 else every[axis - lead :]
        else:
            access[operand] = [*every[:axis], *(at(0) for _ in range(len(call.shape(operand)) - axis))]
    shapes = {operand: call.shape(operand) for operand in access}
    products: dict[str, list[str]] = {"OUTER": names[:axis], "INNER": []}
    if "AXIS" not in names:
        products["AXIS"] = inner
    sizes = dict(zip(names, shape, strict=True))
    return domain(sizes, access, shapes, " ".join(outputs), whole=" ".join(inner), products=products)
