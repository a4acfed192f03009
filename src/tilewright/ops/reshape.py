"""The reshape family: views of the same bytes under another shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from math import prod
from types import MappingProxyType

from tilewright.core.domain import WHOLE, Affine, Axis, Domain, dim, domain
from tilewright.core.graph import Array, Attr, TensorType
from tilewright.core.op import Call, Example, Operator, declare, example
from tilewright.ops.indexing import integers, minor_dims, resolved_axes
from tilewright.ops.rules import same_type


def view_domain(call: Call) -> Domain:
    """The loops both shapes are products of: `[6,4]` as `[2,3,4]` runs over 2, 3 and 4, and both sides stay affine.

    Axes whose extents do not divide each other (`[4,6]` as `[6,4]`) are taken whole on both sides.
    """
    operand, output = call.operands[0], call.op.output_names(1)[0]
    shapes = {operand: call.shape(operand), output: call.shape(output)}
    factors = _factors(shapes[operand], shapes[output])
    names = {stride: f"D{i}" for i, stride in enumerate(sorted(factors, reverse=True))}
    sizes = {names[stride]: factors[stride] for stride in names}
    access = {name: _view_access(shape, factors, names) for name, shape in shapes.items()}
    return domain(sizes, access, shapes, output, whole=" ".join(minor_dims(access[output])))


def _strides(shape: tuple[int, ...]) -> list[int]:
    """The element stride of each axis, and the number of elements as the last."""
    return [*(prod(shape[i + 1 :]) for i in range(len(shape))), prod(shape)]


def _factors(left: tuple[int, ...], right: tuple[int, ...]) -> dict[int, int]:
    """Loop sizes by their stride in elements, where the strides of both shapes divide each other."""
    if 0 in left:
        return {}
    own, other = set(_strides(left)), set(_strides(right))
    factors: dict[int, int] = {}
    for low, high in pairwise(sorted(own & other)):
        chain = sorted(stride for stride in own | other if low <= stride <= high)
        if all(b % a == 0 for a, b in pairwise(chain)):
            factors.update({a: b // a for a, b in pairwise(chain)})
    return factors


def _view_access(shape: tuple[int, ...], factors: Mapping[int, int], names: Mapping[int, str]) -> list[Axis]:
    if 0 in shape:
        return [WHOLE] * len(shape)
    axes: list[Axis] = []
    for extent, stride in zip(shape, _strides(shape)[:-1], strict=True):
        parts = [s for s in factors if stride <= s < stride * extent]
        if extent > 1 and not parts:
            axes.append(WHOLE)
        else:
            axes.append(sum((dim(names[s]) * (s // stride) for s in sorted(parts, reverse=True)), Affine()))
    return axes


def _reference(call: Call, data: Array, *_: Array | None) -> Array:
    return data.reshape(call.outputs[0].shape)


def _view(
    name: str,
    inputs: str,
    output: str,
    infer: Callable[[Call], tuple[TensorType, ...]],
    examples: tuple[Example, ...],
    attrs: Mapping[str, Attr] = MappingProxyType({}),
) -> None:
    operands = [operand.removesuffix("?") for operand in inputs.split()[1:]]
    declare(
        Operator(
            name,
            inputs,
            output,
            infer,
            view_domain,
            _reference,
            examples,
            attrs,
            "view",
            compile_time=frozenset(operands),
        )
    )


def _infer_reshape(call: Call) -> tuple[TensorType, ...]:
    data = call.type("data")
    wanted = list(integers(call, "shape"))
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


def _infer_flatten(call: Call) -> tuple[TensorType, ...]:
    data = call.type("input")
    axis = call.int("axis")
    if not -data.rank <= axis <= data.rank:
        raise call.error("bad-attribute", f"axis={axis} is outside a tensor of rank {data.rank}")
    split = axis + data.rank if axis < 0 else axis
    return (data.with_shape((prod(data.shape[:split]), prod(data.shape[split:]))),)


def _infer_squeeze(call: Call) -> tuple[TensorType, ...]:
    data = call.type("data")
    if call.has("axes"):
        axes = resolved_axes(call, integers(call, "axes"), data.rank)
    else:
        axes = tuple(i for i, extent in enumerate(data.shape) if extent == 1)
    thick = [axis for axis in axes if data.shape[axis] != 1]
    if thick:
        raise call.error("shape-mismatch", f"axes {thick} of {data} have an extent other than 1")
    return (data.with_shape(extent for i, extent in enumerate(data.shape) if i not in axes),)


def _infer_unsqueeze(call: Call) -> tuple[TensorType, ...]:
    data = call.type("data")
    wanted = integers(call, "axes")
    rank = data.rank + len(wanted)
    axes = resolved_axes(call, wanted, rank)
    extents = iter(data.shape)
    return (data.with_shape(1 if i in axes else next(extents) for i in range(rank)),)


_view(
    "Reshape",
    "data shape",
    "reshaped",
    _infer_reshape,
    (
        example("float32[2,3,4]", [4, 6]),
        example("float32[2,3,4]", [0, -1]),
        example("float32[6,4,1]", [2, 3, 1, 4]),
        example("float32[4,6,5]", [6, 4, 5]),
        example("int8[6]", [1, 6]),
    ),
    MappingProxyType({"allowzero": 0}),
)
_view(
    "Flatten",
    "input",
    "output",
    _infer_flatten,
    (example("float32[2,3,4]"), example("int8[2,3,4]", axis=-1), example("float32[2,3]", axis=0)),
    MappingProxyType({"axis": 1}),
)
_view(
    "Squeeze",
    "data axes?",
    "squeezed",
    _infer_squeeze,
    (example("float32[1,3,1,4]", [0, -2]), example("int8[1,3,1]"), example("float32[1,1]")),
)
_view(
    "Unsqueeze",
    "data axes",
    "expanded",
    _infer_unsqueeze,
    (example("float32[3,4]", [0, -1]), example("int8[3]", [1]), example("float32[]", [0])),
)
_view("Identity", "input", "output", same_type, (example("float32[2,3]"), example("int64[]")))
