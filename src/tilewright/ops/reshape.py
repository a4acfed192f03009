"""The reshape family: views of the same bytes under another shape."""

from __future__ import annotations

from math import prod
from types import MappingProxyType

from tilewright.core.domain import WHOLE, Domain, axis_names, dim, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Call, Operator, declare, example


def _infer(call: Call) -> tuple[TensorType, ...]:
    data = call.type("data")
    wanted = [int(extent) for extent in call.value("shape").reshape(-1)]
    if not call.int("allowzero"):
        if any(e == 0 and i >= data.rank for i, e in enumerate(wanted)):
            raise call.error("shape-mismatch", f"shape {wanted} copies an axis that {data} does not have")
        wanted = [data.shape[i] if extent == 0 else extent for i, extent in enumerate(wanted)]
    if wanted.count(-1) > 1:
        raise call.error("shape-mismatch", f"shape {wanted} leaves more than one extent open")
    if -1 in wanted:
        rest = prod(extent for extent in wanted if extent != -1)
        wanted[wanted.index(-1)] = data.size // rest if rest else 0
    if prod(wanted) != data.size:
        raise call.error("shape-mismatch", f"{data} with {data.size} elements cannot take the shape {wanted}")
    return (data.with_shape(wanted),)


def view_domain(call: Call) -> Domain:
    """A view has no loops of its own: every output axis may come from anywhere in the input."""
    operand, output = call.operands[0], call.op.output_names(1)[0]
    shape, result = call.shape(operand), call.shape(output)
    if shape == result:
        names = axis_names(len(shape))
        access = tuple(dim(n) for n in names)
        return domain(dict(zip(names, shape, strict=True)), {operand: access, output: access}, {operand: shape, output: result}, output)
    return domain({}, {operand: [WHOLE] * len(shape), output: [WHOLE] * len(result)}, {operand: shape, output: result}, output)


def _reference(call: Call, data: Array, _shape: Array) -> Array:
    return data.reshape(call.outputs[0].shape)


declare(
    Operator(
        "Reshape",
        "data shape",
        "reshaped",
        _infer,
        view_domain,
        _reference,
        (
            example("float32[2,3,4]", [4, 6]),
            example("float32[2,3,4]", [0, -1]),
            example("int8[6]", [1, 6]),
        ),
        MappingProxyType({"allowzero": 0}),
        "view",
        compile_time=frozenset({"shape"}),
        doc=__doc__ or "",
    )
)
