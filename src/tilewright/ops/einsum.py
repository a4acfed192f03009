"""Einsum: a sum of products over named indices; the equation is the domain."""

from __future__ import annotations

import re
from types import MappingProxyType

import numpy as np
from msgspec import Struct

from tilewright.core.domain import Axis, Domain, at, dim, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import REQUIRED, Body, Call, Operator, declare, example
from tilewright.ops.rules import one_dtype

_TERM = re.compile(r"^([A-Za-z]*)(\.\.\.)?([A-Za-z]*)$")


class Equation(Struct, frozen=True):
    """An equation over the shapes of a call: the loop names of every operand's axes, and the size of each loop.

    The loop of index `i` is called `Li`; the axes behind an ellipsis are `E0`, `E1`, ... counted from the last."""

    inputs: tuple[tuple[str, ...], ...]
    output: tuple[str, ...]
    sizes: dict[str, int]


def _parse(call: Call) -> Equation:
    left, arrow, right = call.text("equation").replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(call.inputs):
        raise call.error(
            "bad-attribute", f"equation '{call.text('equation')}' has {len(terms)} terms for {len(call.inputs)} inputs"
        )
    shapes = [call.shape(operand) for operand in call.operands]
    inputs = tuple(_names(call, term, len(shape)) for term, shape in zip(terms, shapes, strict=True))
    sizes: dict[str, int] = {}
    for names, shape in zip(inputs, shapes, strict=True):
        for name, extent in zip(names, shape, strict=True):
            # An extent of 1 broadcasts.
            if sizes.setdefault(name, extent) == 1:
                sizes[name] = extent
            if extent not in (1, sizes[name]):
                raise call.error("shape-mismatch", f"index '{name[1:]}' is both {sizes[name]} and {extent}")
    ellipsis = sorted((name for name in sizes if name[0] == "E"), key=lambda name: -int(name[1:]))
    if arrow:
        output = _names(call, right, len(right.replace("...", "")) + (len(ellipsis) if "..." in right else 0))
    else:
        letters = sorted(set(left) - set(",."))
        output = (*ellipsis, *(f"L{letter}" for letter in letters if left.count(letter) == 1))
    unknown = [name for name in output if name not in sizes or output.count(name) > 1]
    if unknown:
        raise call.error(
            "bad-attribute",
            f"index '{unknown[0][1:]}' of the result of '{call.text('equation')}' is repeated or unknown",
        )
    return Equation(inputs, output, sizes)


def _names(call: Call, term: str, rank: int) -> tuple[str, ...]:
    """The loop names of the axes of one term."""
    found = _TERM.match(term)
    if not found:
        raise call.error(
            "bad-attribute", f"'{term}' is not a term of an equation", help="use letters and at most one '...'"
        )
    before, dots, after = found.groups()
    hidden = rank - len(before) - len(after)
    if hidden < 0 or (hidden and not dots):
        raise call.error("shape-mismatch", f"term '{term}' does not fit an operand of rank {rank}")
    return (*(f"L{x}" for x in before), *(f"E{i}" for i in reversed(range(hidden))), *(f"L{x}" for x in after))


def _infer(call: Call) -> tuple[TensorType, ...]:
    equation = _parse(call)
    return (TensorType(one_dtype(call, call.operands), tuple(equation.sizes[name] for name in equation.output)),)


def _domain(call: Call) -> Domain:
    equation = _parse(call)
    summed = [name for name in equation.sizes if name not in equation.output]
    access: dict[str, list[Axis]] = {"Output": [dim(name) for name in equation.output]}
    for operand, names in zip(call.operands, equation.inputs, strict=True):
        shape = call.shape(operand)
        access[operand] = [
            dim(name) if extent == equation.sizes[name] else at(0) for name, extent in zip(names, shape, strict=True)
        ]
    shapes = {operand: call.shape(operand) for operand in (*call.operands, "Output")}
    sizes = {name: equation.sizes[name] for name in (*equation.output, *summed)}
    return domain(sizes, access, shapes, "Output")


def _reference(call: Call, *arrays: Array) -> Array:
    """Every operand is stretched over all loops, multiplied and summed."""
    equation = _parse(call)
    order = list(dict.fromkeys((*equation.output, *equation.sizes)))
    wide = np.float64 if call.outputs[0].dtype.is_float else arrays[0].dtype
    product = np.ones([equation.sizes[name] for name in order], wide)
    for names, array in zip(equation.inputs, arrays, strict=True):
        grid = np.ix_(*(range(equation.sizes[name]) for name in order))
        index = tuple(
            grid[order.index(name)] if extent == equation.sizes[name] else 0
            for name, extent in zip(names, array.shape, strict=True)
        )
        product = product * array.astype(wide)[index]
    return np.sum(product, axis=tuple(range(len(equation.output), len(order))), dtype=wide)


def _body(call: Call) -> Body:
    kind = call.outputs[0].dtype
    # Unsigned arithmetic wraps; signed overflow would be undefined.
    accumulator = kind.compute if kind.is_float else f"uint{max(32, kind.bits)}_t"
    factors = " * ".join(f"({accumulator}){operand}" for operand in call.operands)
    return Body(
        MappingProxyType({"Output": "acc"}),
        ((accumulator, "acc", "0"),),
        f"const {accumulator} product = {factors};\nacc += product;",
    )


declare(
    Operator(
        "Einsum",
        "Inputs*",
        "Output",
        _infer,
        _domain,
        _reference,
        (
            example("float32[3,4]", equation="ij->ji"),
            example("float32[3,4]", equation="ij->i"),
            example("float32[3,4]", equation="ij->"),
            example("float32[4]", "float32[4]", equation="i,i"),
            example("float32[2,3,4]", "float32[2,4,5]", equation="bij, bjk -> bik"),
            example("float32[2,3,4]", "float32[2,5,4]", equation="bij,bkj->bki"),
            example("float32[3,5,5]", equation="...ii->...i"),
            example("float32[5,5]", equation="ii"),
            example("float32[2,3,4]", "float32[4,5]", equation="...ij,jk->...ik"),
            example("float32[2,1,3,4]", "float32[6,4,5]", equation="...ij,...jk->...ik"),
            example("float32[3,4]", "float32[4,5]", "float32[5,2]", equation="ij,jk,kl->il"),
            example("float32[3,4]", "float32[4,5]", equation="ij,jk"),
            example("float32[]", equation="->"),
            example("float32[2]", "float32[3]", equation="a,A->aA"),
            example("float64[3,4]", "float64[4]", equation="ij,j->i"),
            example("float16[3,4]", "float16[4]", equation="ij,j->i"),
            example("int32[3,4]", "int32[4]", equation="ij,j->i"),
            example("int64[3,4]", equation="ij->j"),
            example("int8[3,4]", equation="ij->j"),
        ),
        MappingProxyType({"equation": REQUIRED}),
        "reduce",
        _body,
    )
)
