"""Rules that many operators share: broadcasting, element-wise declarations, same-type results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from types import MappingProxyType

from tilewright.core import domain as dom
from tilewright.core.domain import Domain
from tilewright.core.dtype import BOOL, DType
from tilewright.core.graph import Array, Attr, TensorType
from tilewright.core.op import Body, Call, Example, Operator, declare

TypeRule = Callable[[Call], tuple[TensorType, ...]]


def broadcast(call: Call, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that all `shapes` broadcast to."""
    rank = max((len(s) for s in shapes), default=0)
    result: list[int] = []
    for axis in range(rank):
        extents = {s[axis - (rank - len(s))] for s in shapes if axis >= rank - len(s)} - {1}
        if len(extents) > 1:
            shown = " and ".join(str(list(s)) for s in shapes)
            raise call.error("shape-mismatch", f"shapes {shown} do not broadcast together")
        result.append(extents.pop() if extents else 1)
    return tuple(result)


def present(call: Call) -> dict[str, TensorType]:
    """The inputs that are there, by name."""
    return {name: kind for name, kind in zip(call.operands, call.inputs, strict=True) if kind is not None}


def same_type(call: Call) -> tuple[TensorType, ...]:
    """One output, typed and shaped like the first input."""
    first = call.inputs[0]
    if first is None:
        raise call.error("missing-input", "the first input is required")
    return (first,)


def one_dtype(call: Call, operands: tuple[str, ...]) -> DType:
    """The element type that several operands must share."""
    found = {name: call.type(name).dtype for name in operands}
    if len(set(found.values())) > 1:
        listed = ", ".join(f"{name}: {kind}" for name, kind in found.items())
        raise call.error(
            "type-mismatch",
            f"inputs must have one element type, found {listed}",
            help="insert a Cast, or pin the type of a graph input with --input-type NAME=TYPE",
        )
    return next(iter(found.values()))


def broadcast_type(call: Call) -> tuple[TensorType, ...]:
    """One output of the inputs' common element type and broadcast shape."""
    inputs = present(call)
    return (TensorType(one_dtype(call, tuple(inputs)), broadcast(call, *(t.shape for t in inputs.values()))),)


def predicate_type(call: Call) -> tuple[TensorType, ...]:
    """One boolean output of the broadcast shape."""
    return (broadcast_type(call)[0].with_dtype(BOOL),)


def elementwise_domain(call: Call) -> Domain:
    return dom.elementwise(
        call.outputs[0].shape,
        {name: kind.shape for name, kind in present(call).items()},
        call.op.output_names(1)[0],
    )


def expression(call: Call, text: str) -> str:
    """Fills in `{f}` (the suffix of math functions) and `{T}` (the compute type), from the first output."""
    kind = call.outputs[0].dtype
    return text.replace("{f}", "f" if kind.compute == "float" else "").replace("{T}", kind.compute)


def elementwise(
    name: str,
    inputs: str,
    reference: Callable[..., Array],
    c: str | Callable[[Call], str | Body],
    *,
    infer: TypeRule = broadcast_type,
    attrs: Mapping[str, Attr] | None = None,
    examples: tuple[Example, ...],
    doc: str = "",
) -> Operator:
    """Declares an element-wise operator. `reference` takes the Call, then arrays; `c` is the C expression of the result
    over the operand names, or a function of the Call that gives it (or a whole Body, where constants are needed)."""

    def body(call: Call) -> Body:
        text = c(call) if callable(c) else c
        if isinstance(text, Body):
            return text
        return Body(MappingProxyType({call.op.output_names(1)[0]: expression(call, text)}))

    return declare(
        Operator(
            name,
            inputs,
            "Y",
            infer,
            elementwise_domain,
            reference,
            examples,
            MappingProxyType(dict(attrs or {})),
            "elementwise",
            body,
            doc=doc,
        )
    )


def wrapping(call: Call, operator: str, left: str = "A", right: str = "B") -> str:
    """`A operator B` on integers as ONNX means it: modulo the width, never an overflow in C."""
    kind = call.outputs[0].dtype
    if kind.is_float or kind.bits < 32:
        # Narrow integers are computed as int, which cannot overflow except in a product of two uint16.
        text = f"{left} {operator} {right}"
        return text if kind.is_float or operator != "*" else f"(uint32_t){left} * (uint32_t){right}"
    unsigned = f"uint{kind.bits}_t"
    return f"({unsigned}){left} {operator} ({unsigned}){right}"


def split_axis(rank: int, axis: int, name: str = "AXIS") -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Dimension names with the one at `axis` called `name`, and the products OUTER and INNER of those around it."""
    names = list(dom.axis_names(rank))
    names[axis] = name
    return tuple(names), {"OUTER": tuple(names[:axis]), "INNER": tuple(names[axis + 1 :])}


def axis_domain(call: Call, axis: int, operands: tuple[str, ...] = ("X",), outputs: tuple[str, ...] = ("Y",)) -> Domain:
    """The domain of an operator that needs one whole axis (softmax, cumulative sums): AXIS is never split."""
    shape = call.shape(operands[0])
    names, products = split_axis(len(shape), axis)
    access = tuple(dom.dim(n) for n in names)
    return Domain(
        MappingProxyType(dict(zip(names, shape, strict=True))),
        MappingProxyType({operand: access for operand in (*operands, *outputs)}),
        MappingProxyType({operand: call.shape(operand) for operand in (*operands, *outputs)}),
        outputs,
        frozenset({"AXIS"}),
        MappingProxyType(products),
    )


def size(shape: tuple[int, ...]) -> int:
    return prod(shape)
