"""Rules that many operators share: broadcasting, element-wise declarations, same-type results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isinf, isnan, prod
from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import BOOL, DTYPES, DType
from tilewright.core import domain as dom
from tilewright.core.domain import Domain
from tilewright.core.graph import Array, Attr, TensorType
from tilewright.core.op import Body, Call, Example, Operator, declare

TypeRule = Callable[[Call], tuple[TensorType, ...]]

ELEMENT_TYPES: Mapping[int, DType] = MappingProxyType(
    {
        code: DTYPES[name]
        for code, name in enumerate(
            [
                "float32",
                "uint8",
                "int8",
                "uint16",
                "int16",
                "int32",
                "int64",
                "-",
                "bool",
                "float16",
                "float64",
                "uint32",
                "uint64",
                "-",
                "-",
                "bfloat16",
            ],
            start=1,
        )
        if name in DTYPES
    }
)
"""Element types by the numbers that attributes such as Cast's `to` use."""


def element_type(call: Call, attribute: str) -> DType:
    """The element type that an attribute names by its number."""
    code = call.int(attribute)
    if code not in ELEMENT_TYPES:
        raise call.error(
            "unsupported-type",
            f"{attribute}={code} is an element type that is not supported",
            help=f"supported: {', '.join(map(str, ELEMENT_TYPES.values()))}",
        )
    return ELEMENT_TYPES[code]


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


def float_type(call: Call) -> tuple[TensorType, ...]:
    """One output like the first input, which must hold floating-point numbers."""
    (kind,) = same_type(call)
    if not kind.dtype.is_float:
        raise call.error("type-mismatch", f"input '{call.operands[0]}' must be floating point, found {kind}")
    return (kind,)


def signed_type(call: Call) -> tuple[TensorType, ...]:
    """One output like the first input, which must hold signed numbers."""
    (kind,) = same_type(call)
    if kind.dtype.kind not in ("float", "int"):
        raise call.error("type-mismatch", f"input '{call.operands[0]}' must be signed, found {kind}")
    return (kind,)


def integer_type(call: Call) -> tuple[TensorType, ...]:
    """One integer output of the inputs' common element type and broadcast shape."""
    (kind,) = broadcast_type(call)
    if not kind.dtype.is_integer:
        raise call.error("type-mismatch", f"inputs must be integers, found {kind.dtype}")
    return (kind,)


def logical_type(call: Call) -> tuple[TensorType, ...]:
    """One boolean output of the broadcast shape of boolean inputs."""
    (kind,) = broadcast_type(call)
    if kind.dtype != BOOL:
        raise call.error("type-mismatch", f"inputs must be bool, found {kind.dtype}")
    return (kind,)


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
    output: str = "Y",
    doc: str = "",
    limit: Callable[[Call, Mapping[str, int]], int] | None = None,
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
            output,
            infer,
            elementwise_domain,
            reference,
            examples,
            MappingProxyType(dict(attrs or {})),
            "elementwise",
            body,
            doc=doc,
            limit=limit,
        )
    )


def number(value: float, kind: DType) -> str:
    """A C literal of a number in the compute type of an element type."""
    if not kind.is_float:
        return _integer_literal(int(value), kind)
    suffix = "f" if kind.compute == "float" else ""
    # The same number in the compute type: a value that only float64 holds would be rounded by the C compiler anyway.
    rounded = float(np.float32(value)) if suffix else float(value)
    if isnan(rounded):
        return f'nan{suffix}("")'
    if isinf(rounded):
        return "INFINITY" if rounded > 0 else "-INFINITY"
    return f"{np.float32(rounded) if suffix else rounded}{suffix}"


def _integer_literal(value: int, kind: DType) -> str:
    if kind.kind == "bool":
        return "true" if value else "false"
    if kind.kind == "int" and value == kind.lo:
        return f"INT{kind.bits}_MIN"  # the digits alone would be a positive literal of a wider type, negated
    if kind.bits < 32:
        return str(value)
    return f"{'' if kind.kind == 'int' else 'U'}INT{kind.bits}_C({value})"


def lowest(kind: DType) -> str:
    """The C literal of the smallest value of a type, minus infinity for floats."""
    return "-INFINITY" if kind.is_float else number(kind.lo, kind)


def highest(kind: DType) -> str:
    """The C literal of the largest value of a type, infinity for floats."""
    return "INFINITY" if kind.is_float else number(kind.hi, kind)


def truncated(name: str, source: DType, target: DType) -> str:
    """The C expression that converts a floating-point variable to an integer type: toward zero, saturating, NaN to 0.

    A plain cast of a number the integer type does not hold would be undefined."""
    # The bounds are where truncation still fits; the upper one of wide types is the power of two that no longer does.
    top = number(float(target.hi), source)
    bottom = number(float(target.lo), source)
    return (
        f"({name} >= {top} ? {number(target.hi, target)} : {name} <= {bottom} ? {number(target.lo, target)}"
        f" : {name} == {name} ? ({target.ctype}){name} : 0)"
    )


def truncate(array: Array, target: DType) -> Array:
    """`truncated` in numpy."""
    wide = np.nan_to_num(np.asarray(array, np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
    inside = (wide > float(target.lo)) & (wide < float(target.hi))
    kept = np.where(inside, wide, 0.0).astype(target.numpy)
    top, bottom = np.array(target.hi, target.numpy), np.array(target.lo, target.numpy)
    return np.where(inside, kept, np.where(wide >= float(target.hi), top, bottom))


def plain(function: Callable[..., Array]) -> Callable[..., Array]:
    """A reference from a numpy function of the arrays alone."""

    def reference(_call: Call, *arrays: Array) -> Array:
        return function(*arrays)

    return reference


def real(function: Callable[..., Array]) -> Callable[..., Array]:
    """A reference from a numpy function of floating-point arrays, computed in float64."""

    def reference(_call: Call, *arrays: Array) -> Array:
        return function(*(array.astype(np.float64) for array in arrays))

    return reference


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
        MappingProxyType(dict.fromkeys((*operands, *outputs), access)),
        MappingProxyType({operand: call.shape(operand) for operand in (*operands, *outputs)}),
        outputs,
        frozenset({"AXIS"}),
        MappingProxyType(products),
    )


def size(shape: tuple[int, ...]) -> int:
    return prod(shape)
