"""How operators compute on inputs whose axes are in another order: the rules that `transposes` applies.

For a node that reads `Transpose(x, perm)`, a rule gives inputs and attributes so that the node on x, transposed by the
rule's own permutation, has the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from msgspec import Struct

from tilewright.core.domain import Axis, Whole, at, axis_names, dim
from tilewright.core.graph import Attrs, Node
from tilewright.core.op import REGISTRY, Call
from tilewright.passes.edit import Edit
from tilewright.passes.permutation import Perm, inverse, is_identity, moves_units_only, permuted, without


class Turned(Struct, frozen=True):
    """A node on untransposed inputs; its results are transposed by `perm`."""

    inputs: tuple[str, ...]
    attrs: Attrs
    perm: Perm


Turn = Callable[[Edit, Node, Perm], Turned | None]


def perm_of(edit: Edit, node: Node) -> Perm:
    """The permutation of a Transpose."""
    perm = node.attrs.get("perm")
    if isinstance(perm, tuple) and perm:
        return tuple(int(axis) for axis in perm)
    return tuple(reversed(range(len(edit.shape(node.inputs[0])))))


def operands_with_axes(edit: Edit, node: Node) -> tuple[str, ...]:
    """The inputs of a node whose axes are those of its result: all of an element-wise node, else the first or all."""
    if node.op in ALL_OPERANDS or REGISTRY[node.op].kind == "elementwise":
        rank = len(edit.shape(node.outputs[0]))
        return tuple(name for name in node.inputs if name and len(edit.shape(name)) == rank)
    if node.op == "MatMul" and len(edit.shape(node.inputs[1])) != 2:
        return ()
    return node.inputs[:1]


def untransposed(edit: Edit, name: str, perm: Perm) -> str:
    """A tensor that, transposed by `perm`, broadcasts like `name`."""
    shape = edit.shape(name)
    lead = len(perm) - len(shape)
    if prod(shape) == 1 or is_identity(tuple(axis - lead for axis in perm[lead:])):
        return name  # it has no axis that moves
    above = edit.producer(name, "Transpose")
    if above is not None and perm_of(edit, above) == perm:
        return above.inputs[0]
    full = (*(1,) * lead, *shape)
    back = inverse(perm)
    if moves_units_only(full, back):
        return edit.reshape(name, permuted(full, back))
    return edit.transpose(edit.reshape(name, full) if lead else name, back)


def _elementwise(edit: Edit, node: Node, perm: Perm) -> Turned | None:
    call = edit.call(node)
    access = call.domain().access
    rank = len(edit.shape(node.outputs[0]))
    if rank != len(perm):
        return None
    attributes = dict(node.attrs)
    special: set[int] = set()
    for index, (operand, name) in enumerate(zip(call.operands, node.inputs, strict=True)):
        if not name or edit.types[name].size == 1 or operand not in access:
            special.add(index)
        elif not broadcasts(access[operand], rank):
            if all(isinstance(axis, Whole) for axis in access[operand]):
                special.add(index)  # a table, which has no axes of the result
            elif "axis" in node.attrs or "axis" in call.attrs:
                attributes["axis"] = perm[call.axis("axis", rank)]
                if len(access[operand]) < rank:
                    special.add(index)  # values along that axis; blocks have all axes of the result
            else:
                return None
    if node.op in LAST_AXIS and perm[-1] != rank - 1:
        return None
    inputs = [name if i in special else untransposed(edit, name, perm) for i, name in enumerate(node.inputs)]
    return Turned(tuple(inputs), attributes, perm)


def broadcasts(access: tuple[Axis, ...], rank: int) -> bool:
    """Whether an operand is read as ONNX broadcasts it."""
    if len(access) > rank:
        return False
    names = axis_names(rank)[rank - len(access) :]
    return all(axis in (at(0), dim(name)) for axis, name in zip(access, names, strict=True))


def _requant_shift(edit: Edit, node: Node, perm: Perm) -> Turned | None:
    """Per-channel factors are given the shape that broadcasts, as another axis may have the same extent."""
    call = edit.call(node)
    maps = call.domain().access
    rank = len(perm)
    inputs = [untransposed(edit, node.inputs[0], perm)]
    for operand, name in zip(("mul", "add"), node.inputs[1:], strict=True):
        access = maps[operand]
        if edit.types[name].size == 1:
            inputs.append(name if len(edit.shape(name)) <= rank else edit.reshape(name, ()))
        elif broadcasts(access, rank):
            inputs.append(untransposed(edit, name, perm))
        else:
            inputs.append(edit.reshape(name, permuted(channel_shape(call, edit.shape(name)), inverse(perm))))
    return Turned(tuple(inputs), node.attrs, perm)


def channel_shape(call: Call, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape by which values per channel of the attribute `axis` broadcast."""
    rank = call.outputs[0].rank
    channel = call.axis("axis", rank)
    return tuple(prod(shape) if axis == channel else 1 for axis in range(rank))


def _axis_attribute(edit: Edit, node: Node, perm: Perm) -> Turned | None:
    """An operator along one axis that keeps all axes."""
    axis = perm[edit.call(node).axis("axis", len(perm))]
    return Turned((untransposed(edit, node.inputs[0], perm), *node.inputs[1:]), {**node.attrs, "axis": axis}, perm)


def _concat(edit: Edit, node: Node, perm: Perm) -> Turned | None:
    axis = perm[edit.call(node).axis("axis", len(perm))]
    inputs: list[str] = []
    for name in node.inputs:
        above = edit.producer(name, "Transpose")
        same = above is not None and perm_of(edit, above) == perm
        inputs.append(above.inputs[0] if above and same else edit.transpose(name, inverse(perm)))
    return Turned(tuple(inputs), {**node.attrs, "axis": axis}, perm)


def _arg_reduce(edit: Edit, node: Node, perm: Perm) -> Turned | None:
    call = edit.call(node)
    axis = call.axis("axis", len(perm))
    result = perm if call.int("keepdims") else without(perm, (axis,))
    return Turned((untransposed(edit, node.inputs[0], perm),), {**node.attrs, "axis": perm[axis]}, result)


def _reduce(edit: Edit, node: Node, perm: Perm) -> Turned | None:
    call = edit.call(node)
    rank = len(perm)
    if call.op.compile_time:
        listed = edit.ints(node.inputs[1]) if call.has("axes") else ()
    else:
        listed = call.ints("axes")
    if not listed:
        return None
    axes = sorted(axis % rank for axis in listed)
    turned = sorted(perm[axis] for axis in axes)
    result = perm if call.int("keepdims") else without(perm, axes)
    source = untransposed(edit, node.inputs[0], perm)
    if not call.op.compile_time:
        return Turned((source,), {**node.attrs, "axes": tuple(turned)}, result)
    return Turned((source, edit.integers(turned, f"{node.outputs[0]}_axes")), node.attrs, result)


def _slice(edit: Edit, node: Node, perm: Perm) -> Turned | None:
    axes = _listed_axes(edit, node, 3, len(perm), edit.shape(node.inputs[1])[0])
    if axes is None:
        return None
    turned = edit.integers((perm[axis] for axis in axes), f"{node.outputs[0]}_axes")
    inputs = (untransposed(edit, node.inputs[0], perm), *node.inputs[1:3], turned, *node.inputs[4:])
    return Turned(inputs, node.attrs, perm)


def _pad(edit: Edit, node: Node, perm: Perm) -> Turned | None:
    axes = _listed_axes(edit, node, 3, len(perm), len(perm))
    if axes is None:
        return None
    turned = edit.integers((perm[axis] for axis in axes), f"{node.outputs[0]}_axes")
    value = "".join(node.inputs[2:3])
    return Turned((untransposed(edit, node.inputs[0], perm), node.inputs[1], value, turned), node.attrs, perm)


def _listed_axes(edit: Edit, node: Node, index: int, rank: int, count: int) -> tuple[int, ...] | None:
    """The axes that an optional input lists; the first `count` where it is absent."""
    if len(node.inputs) <= index or not node.inputs[index]:
        return tuple(range(count))
    listed = edit.ints(node.inputs[index])
    return None if listed is None else tuple(axis % rank for axis in listed)


def _tile(edit: Edit, node: Node, perm: Perm) -> Turned | None:
    repeats = edit.ints(node.inputs[1])
    if repeats is None:
        return None
    turned = edit.integers(permuted(repeats, inverse(perm)), f"{node.outputs[0]}_repeats")
    return Turned((untransposed(edit, node.inputs[0], perm), turned), node.attrs, perm)


def _gather(edit: Edit, node: Node, perm: Perm) -> Turned | None:
    """Indices in a list keep the axis, one index drops it."""
    axis = edit.call(node).axis("axis", len(perm))
    rank = len(edit.shape(node.inputs[1]))
    if rank > 1:
        return None
    result = perm if rank == 1 else without(perm, (axis,))
    return Turned(
        (untransposed(edit, node.inputs[0], perm), node.inputs[1]), {**node.attrs, "axis": perm[axis]}, result
    )


def _trailing(edit: Edit, node: Node, perm: Perm) -> Turned | None:
    """A normalisation of the last axes, which must stay where they are."""
    call = edit.call(node)
    rank = len(perm)
    first = call.axis("axis", rank) if "axis" in call.attrs else rank - 1
    if perm[first:] != tuple(range(first, rank)) or node.outputs[1:]:
        return None
    return Turned((untransposed(edit, node.inputs[0], perm), *node.inputs[1:]), node.attrs, perm)


def _matmul(edit: Edit, node: Node, perm: Perm) -> Turned | None:
    """Rows in any order, multiplied by one matrix."""
    if perm[-1] != len(perm) - 1:
        return None
    return Turned((untransposed(edit, node.inputs[0], perm), node.inputs[1]), node.attrs, perm)


def _resize(edit: Edit, node: Node, perm: Perm) -> Turned | None:
    call = edit.call(node)
    rank = len(perm)
    if call.has("roi") and edit.types[node.inputs[1]].size:
        return None
    axes = tuple(axis % rank for axis in call.ints("axes")) or tuple(range(rank))
    inputs = (untransposed(edit, node.inputs[0], perm), *node.inputs[1:])
    return Turned(inputs, {**node.attrs, "axes": tuple(perm[axis] for axis in axes)}, perm)


ALL_OPERANDS = frozenset({"Concat"})
LAST_AXIS = frozenset({"BiasGelu", "FastGelu", "iNoNorm"})
"""Element-wise operators with operands that belong to the last axes."""
UNTURNED = frozenset({"Append", "BitCast", "CastLike"})
"""Element-wise operators whose operands or results have other axes than the rest, or that change a state in place."""
_SPECIAL: Mapping[str, Turn] = {
    "RequantShift": _requant_shift,
    "Concat": _concat,
    "Slice": _slice,
    "Pad": _pad,
    "Tile": _tile,
    "Gather": _gather,
    "Resize": _resize,
    "MatMul": _matmul,
    "IntegerMean": _reduce,
    **dict.fromkeys(("ArgMax", "ArgMin"), _arg_reduce),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax", "LpNormalization", "Split"), _axis_attribute),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization", "iLayerNorm", "iRMSNorm"), _trailing),
    **dict.fromkeys(("iSoftmax", "ITAMax", "ITAPartialMax"), _trailing),
}


def turn_of(op: str) -> Turn | None:
    """How nodes of an operator are computed in another order of axes; None where they are not."""
    if op in UNTURNED:
        return None
    if op in _SPECIAL:
        return _SPECIAL[op]
    if op.startswith("Reduce"):
        return _reduce
    return _elementwise if REGISTRY[op].kind == "elementwise" else None
