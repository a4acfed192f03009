"""Brings nodes of old opsets into the newest form, and dissolves operators whose result the types alone determine.

Each function takes a node in an old form and the context it stands in, and gives the nodes that replace it. A table
says up to which opset a form is old.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Protocol

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tilewright.core.graph import Array, TensorType
from tilewright.errors import TilewrightError
from tilewright.frontend.proto import CODE_OF_DTYPE
from tilewright.frontend.raw import NEWEST, RawAttr, RawNode, Unsupported
from tilewright.ops.rules import ELEMENT_TYPES


class Context(Protocol):
    """What an upgrade may know and make. Tensor names are those of the graph being built."""

    def type(self, name: str) -> TensorType: ...
    def value(self, name: str) -> Array | None: ...
    def constant(self, hint: str, array: Array) -> str: ...
    def fresh(self, hint: str) -> str: ...
    def declared_rank(self, name: str) -> int | None: ...


Upgrade = Callable[[RawNode, Context], Sequence[RawNode]]


class Old(Struct, frozen=True):
    """The form older than opset `before`. Some exporters write it later too: then the attribute `sign` shows it."""

    before: int
    function: Upgrade
    sign: str = ""


def upgrade(node: RawNode, context: Context) -> Sequence[RawNode]:
    """The node in the newest form."""
    if node.op in _DISSOLVE and not node.domain:
        return _DISSOLVE[node.op](node, context)
    foreign = _FOREIGN.get((node.domain, node.op))
    if foreign is not None:
        return foreign(node, context)
    old = _OLD.get(node.op)
    if old is not None and not node.domain and (node.version < old.before or (old.sign and old.sign in node.attrs)):
        return old.function(node, context)
    return (replace(node, version=NEWEST),)


def is_known(node: RawNode) -> bool:
    """Whether something here takes the operator, whatever its operands are."""
    return node.op in _DISSOLVE or node.op in ("Upsample", "Scatter") or (node.domain, node.op) in _FOREIGN


def _new(node: RawNode, **changes: object) -> RawNode:
    return replace(node, version=NEWEST, **changes)  # pyright: ignore[reportArgumentType]


def _without(node: RawNode, *names: str) -> dict[str, RawAttr]:
    return {key: value for key, value in node.attrs.items() if key not in names}


def _integers(values: object) -> Array:
    return np.asarray(values, np.int64).reshape(-1)


def _tuple(node: RawNode, name: str) -> tuple[int, ...] | None:
    value = node.attrs.get(name)
    if value is None:
        return None
    return tuple(int(v) for v in np.asarray(value).reshape(-1))


def _number(node: RawNode, name: str, default: float) -> float:
    value = node.attrs.get(name, default)
    return float(value) if isinstance(value, (int, float)) else default


def _axes_to_input(node: RawNode, context: Context) -> Sequence[RawNode]:
    axes = _tuple(node, "axes")
    extra = () if axes is None else (context.constant(f"{node.label}_axes", _integers(axes)),)
    return (_new(node, inputs=(*node.inputs[:1], *extra), attrs=_without(node, "axes")),)


def _split(node: RawNode, context: Context) -> Sequence[RawNode]:
    sizes = _tuple(node, "split")
    if sizes is not None:
        inputs = (node.inputs[0], context.constant(f"{node.label}_split", _integers(sizes)))
        return (_new(node, inputs=inputs, attrs=_without(node, "split")),)
    if len(node.inputs) > 1 and node.inputs[1]:
        return (_new(node),)
    return (_new(node, attrs={**node.attrs, "num_outputs": len(node.outputs)}),)


def _scalar(node: RawNode, name: str, context: Context) -> str:
    """A number of an attribute as a constant of the first input's type, or float32 where that type cannot hold it."""
    number = _number(node, name, 0.0)
    dtype = context.type(node.inputs[0]).dtype
    fits = dtype.is_float or (float(number).is_integer() and dtype.lo <= number <= dtype.hi)
    return context.constant(f"{node.label}_{name}", np.asarray(number, dtype.numpy if fits else np.float32))


def _clip(node: RawNode, context: Context) -> Sequence[RawNode]:
    bounds = [_scalar(node, name, context) if name in node.attrs else "" for name in ("min", "max")]
    return (_new(node, inputs=(node.inputs[0], *bounds), attrs={}),)


def _pad(node: RawNode, context: Context) -> Sequence[RawNode]:
    pads = context.constant(f"{node.label}_pads", _integers(_tuple(node, "pads") or ()))
    inputs = (node.inputs[0], pads, _scalar(node, "value", context))
    return (_new(node, inputs=inputs, attrs=_without(node, "pads", "value")),)


def _slice(node: RawNode, context: Context) -> Sequence[RawNode]:
    starts = _integers(_tuple(node, "starts") or ())
    given = _tuple(node, "axes")
    axes = _integers(range(len(starts)) if given is None else given)
    parts = (("starts", starts), ("ends", _integers(_tuple(node, "ends") or ())), ("axes", axes))
    extra = tuple(context.constant(f"{node.label}_{name}", array) for name, array in parts)
    return (_new(node, inputs=(node.inputs[0], *extra), attrs={}),)


def _top_k(node: RawNode, context: Context) -> Sequence[RawNode]:
    k = context.constant(f"{node.label}_k", _integers(int(_number(node, "k", 1))))
    return (_new(node, inputs=(node.inputs[0], k), attrs=_without(node, "k")),)


def _upsample(node: RawNode, context: Context) -> Sequence[RawNode]:
    if "scales" in node.attrs:
        array = np.asarray(node.attrs["scales"], np.float32).reshape(-1)
        scales = context.constant(f"{node.label}_scales", array)
    else:
        scales = node.inputs[1]
    return (_asymmetric_resize(node, scales, "floor"),)


def _resize_10(node: RawNode, context: Context) -> Sequence[RawNode]:
    """Axes that shrink take the next element, those that grow the one before."""
    known = context.value(node.inputs[1])
    if known is None or node.attrs.get("mode", "nearest") != "nearest" or not np.any(known < 1):
        return (_asymmetric_resize(node, node.inputs[1], "floor"),)
    if not np.any(known > 1):
        return (_asymmetric_resize(node, node.inputs[1], "ceil"),)
    smaller, larger = (
        context.constant(f"{node.label}_{name}", scales)
        for name, scales in (("smaller", np.minimum(known, 1)), ("larger", np.maximum(known, 1)))
    )
    between = context.fresh(f"{node.label}_shrunk")
    shrinking = _asymmetric_resize(replace(node, outputs=(between,)), smaller, "ceil")
    return (shrinking, _asymmetric_resize(replace(node, inputs=(between,)), larger, "floor"))


def _asymmetric_resize(node: RawNode, scales: str, nearest: str) -> RawNode:
    attrs: dict[str, RawAttr] = {
        "mode": node.attrs.get("mode", "nearest"),
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": nearest,
    }
    return _new(node, op="Resize", inputs=(node.inputs[0], "", scales), attrs=attrs)


def _flattening(node: RawNode, context: Context) -> Sequence[RawNode]:
    """Softmax and its kin used to see a matrix: all axes from `axis` on are normalised together."""
    shape = context.type(node.inputs[0]).shape
    axis = int(_number(node, "axis", 1)) % max(1, len(shape))
    if axis == len(shape) - 1:
        return (_new(node, attrs={"axis": axis}),)
    matrix, result = context.fresh(f"{node.label}_matrix"), context.fresh(f"{node.label}_result")
    flat = context.constant(f"{node.label}_flat", _integers((prod(shape[:axis]), prod(shape[axis:]))))
    back = context.constant(f"{node.label}_shape", _integers(shape))
    return (
        RawNode("Reshape", (node.inputs[0], flat), (matrix,), {"allowzero": 1}, f"{node.label}_flatten"),
        _new(node, inputs=(matrix,), outputs=(result,), attrs={"axis": 1}),
        RawNode("Reshape", (result, back), node.outputs, {"allowzero": 1}, f"{node.label}_restore"),
    )


def _instance_norm(node: RawNode, context: Context) -> Sequence[RawNode]:
    """Each channel is a group."""
    shape = context.type(node.inputs[0]).shape
    return (_new(node, op="GroupNormalization", attrs={**node.attrs, "num_groups": shape[1] if len(shape) > 1 else 0}),)


def _rms_norm(node: RawNode, _context: Context) -> Sequence[RawNode]:
    """A name of quantisers; exporters that leave eps out mean next to nothing."""
    attrs = {**_without(node, "eps"), "axis": -1, "epsilon": _number(node, "eps", 1e-12)}
    return (_new(node, op="RMSNormalization", attrs=attrs),)


def _whole_scales(node: RawNode, context: Context) -> Sequence[RawNode]:
    """Scales and shifts may broadcast to the part that is normalised; behind this they have its shape."""
    shape = context.type(node.inputs[0]).shape
    part = shape[int(_number(node, "axis", -1)) % max(1, len(shape)) :]
    nodes: list[RawNode] = []
    operands = [node.inputs[0]]
    for name in node.inputs[1:]:
        if name and _spreads(context.type(name).shape, part):
            wide = context.fresh(f"{name}_wide")
            nodes.append(RawNode("Expand", (name, context.constant(f"{name}_part", _integers(part))), (wide,)))
            name = wide
        operands.append(name)
    return (*nodes, _new(node, inputs=tuple(operands)))


def _spreads(shape: tuple[int, ...], part: tuple[int, ...]) -> bool:
    """Whether what has a shape is to be repeated to fill a part."""
    return (
        prod(shape) < prod(part)
        and len(shape) <= len(part)
        and all(own in (1, extent) for own, extent in zip(reversed(shape), reversed(part), strict=False))
    )


def _group_norm(node: RawNode, context: Context) -> Sequence[RawNode]:
    """Scale and bias used to be per group; now they are per channel."""
    channels = context.type(node.inputs[0]).shape[1]
    groups = int(_number(node, "num_groups", 1))
    column = context.constant(f"{node.label}_column", _integers((groups, 1)))
    spread = context.constant(f"{node.label}_spread", _integers((groups, channels // groups)))
    flat = context.constant(f"{node.label}_flat", _integers((channels,)))
    nodes: list[RawNode] = []
    operands = [node.inputs[0]]
    for name in node.inputs[1:3]:
        tall, wide, line = (context.fresh(f"{name}_{part}") for part in ("tall", "wide", "channels"))
        nodes += [
            RawNode("Reshape", (name, column), (tall,)),
            RawNode("Expand", (tall, spread), (wide,)),
            RawNode("Reshape", (wide, flat), (line,)),
        ]
        operands.append(line)
    return (*nodes, _new(node, inputs=tuple(operands)))


def _batch_norm(node: RawNode, _context: Context) -> Sequence[RawNode]:
    """Old forms list running statistics as outputs that only training fills."""
    if any(node.outputs[1:]):
        raise TilewrightError("unsupported-operator", "training mode of an old form")
    attrs = {key: value for key, value in node.attrs.items() if key == "epsilon"}
    return (_new(node, outputs=node.outputs[:1], attrs=attrs),)


def _scatter(node: RawNode, _context: Context) -> Sequence[RawNode]:
    return (_new(node, op="ScatterElements"),)


def _aligned(node: RawNode, context: Context) -> Sequence[RawNode]:
    """The second operand used to be laid along the first from `axis` on, one slope per channel from axis 1 on."""
    first, second = (context.type(name) for name in node.inputs[:2])
    axis = int(_number(node, "axis", 1 if node.op == "PRelu" else first.rank - second.rank)) % max(1, first.rank)
    new = _new(node, attrs={})
    behind = first.rank - axis - second.rank
    if behind <= 0 or second.size == 1:
        return (new,)
    wide = context.fresh(f"{node.inputs[1]}_wide")
    shape = context.constant(f"{node.label}_shape", _integers((*second.shape, *(1 for _ in range(behind)))))
    return (RawNode("Reshape", (node.inputs[1], shape), (wide,)), replace(new, inputs=(node.inputs[0], wide)))


def _roi_align(node: RawNode, _context: Context) -> Sequence[RawNode]:
    """Regions used to be taken as they are, without the shift by half a pixel."""
    return (_new(node, attrs={**node.attrs, "coordinate_transformation_mode": "output_half_pixel"}),)


def _grid_sample(node: RawNode, _context: Context) -> Sequence[RawNode]:
    """Modes had the names of two axes, when there were no more."""
    names: dict[RawAttr, str] = {"bilinear": "linear", "bicubic": "cubic"}
    mode = node.attrs.get("mode", "bilinear")
    return (_new(node, attrs={**node.attrs, "mode": names.get(mode, mode)}),)


def _dft(node: RawNode, context: Context) -> Sequence[RawNode]:
    axis = context.constant(f"{node.label}_axis", np.asarray(int(_number(node, "axis", 1)), np.int64))
    inputs = (*node.inputs, "")[:2]
    return (_new(node, inputs=(*inputs, axis), attrs=_without(node, "axis")),)


def _cross_entropy(node: RawNode, context: Context) -> Sequence[RawNode]:
    """Training exporters list the log-probabilities as the only output; its declared rank shows that."""
    alone = len(node.outputs) == 1 and context.declared_rank(node.outputs[0]) == context.type(node.inputs[0]).rank
    return (_new(node, outputs=("", *node.outputs) if alone else node.outputs),)


def _constant(node: RawNode, context: Context) -> Sequence[RawNode]:
    kinds = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
    for key, value in node.attrs.items():
        if key == "value" and isinstance(value, np.ndarray):
            return _becomes(node, context, value)
        if key in kinds:
            return _becomes(node, context, np.asarray(value, kinds[key]))
        if isinstance(value, Unsupported):
            raise TilewrightError("unsupported-operator", value.what)
        raise TilewrightError("unsupported-operator", f"attribute '{key}'")
    raise TilewrightError("bad-model", f"Constant '{node.label}' has no value")


def _becomes(node: RawNode, context: Context, array: Array) -> Sequence[RawNode]:
    return (_identity(context.constant(f"{node.label}_value", array), node),)


def _identity(source: str, node: RawNode) -> RawNode:
    return RawNode("Identity", (source,), node.outputs[:1], {}, node.name)


def _constant_of_shape(node: RawNode, context: Context) -> Sequence[RawNode]:
    value = node.attrs.get("value")
    if isinstance(value, Unsupported):
        raise TilewrightError("unsupported-operator", value.what)
    scalar = np.asarray(value if isinstance(value, np.ndarray) else np.float32(0)).reshape(())
    return (
        RawNode(
            "Expand", (context.constant(f"{node.label}_value", scalar), node.inputs[0]), node.outputs, {}, node.name
        ),
    )


def _shape(node: RawNode, context: Context) -> Sequence[RawNode]:
    shape = context.type(node.inputs[0]).shape
    start, end = (node.attrs.get(key) for key in ("start", "end"))
    part = shape[start if isinstance(start, int) else None : end if isinstance(end, int) else None]
    return _becomes(node, context, _integers(part))


def _size(node: RawNode, context: Context) -> Sequence[RawNode]:
    return _becomes(node, context, np.asarray(context.type(node.inputs[0]).size, np.int64))


def _dropout(node: RawNode, context: Context) -> Sequence[RawNode]:
    source, ratio_name, mode = (*node.inputs, "", "")[:3]
    ratio = context.value(ratio_name) if ratio_name else None
    training = context.value(mode) if mode else np.asarray(False)
    if training is None or (training.any() and (ratio is None or ratio.any())):
        raise TilewrightError("unsupported-operator", "training mode")
    nodes = [_identity(source, node)]
    if len(node.outputs) > 1 and node.outputs[1]:
        data = context.type(source)
        one = np.asarray(1, np.bool_ if node.version >= 10 else data.dtype.numpy)
        inputs = (
            context.constant(f"{node.label}_one", one),
            context.constant(f"{node.label}_shape", _integers(data.shape)),
        )
        nodes.append(RawNode("Expand", inputs, node.outputs[1:2], {}, f"{node.label}_mask"))
    return nodes


def _eye_like(node: RawNode, context: Context) -> Sequence[RawNode]:
    kind = context.type(node.inputs[0])
    if kind.rank != 2:
        raise TilewrightError("shape-mismatch", f"EyeLike '{node.label}' needs a matrix, found {kind}")
    code = node.attrs.get("dtype")
    dtype = kind.dtype if code is None else ELEMENT_TYPES.get(int(_number(node, "dtype", 0)))
    if dtype is None:
        raise TilewrightError("unsupported-operator", f"element type {code}")
    return _becomes(node, context, np.eye(*kind.shape, k=int(_number(node, "k", 0)), dtype=dtype.numpy))


def _cast_like(node: RawNode, context: Context) -> Sequence[RawNode]:
    code = CODE_OF_DTYPE[context.type(node.inputs[1]).dtype]
    return (_new(node, op="Cast", inputs=node.inputs[:1], attrs={**node.attrs, "to": code}),)


def _rotary(node: RawNode, _context: Context) -> Sequence[RawNode]:
    """The contributed form has the positions before the caches."""
    data, positions, cosines, sines = node.inputs
    attrs = {
        key: value for key, value in node.attrs.items() if key in ("interleaved", "num_heads", "rotary_embedding_dim")
    }
    return (_new(node, inputs=(data, cosines, sines, positions), attrs=attrs),)


def _foreign_attention(_node: RawNode, _context: Context) -> Sequence[RawNode]:
    raise TilewrightError("unsupported-operator", "the form with packed projection weights")


_REDUCE_18 = tuple(
    f"Reduce{kind}" for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")
)

_BINARY = ("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Less", "Greater", "PRelu")

_OLD: dict[str, Old] = {
    **{name: Old(13, _axes_to_input, "axes") for name in ("Squeeze", "Unsqueeze", "ReduceSum")},
    **{name: Old(18, _axes_to_input, "axes") for name in _REDUCE_18},
    **{name: Old(13, _flattening) for name in ("Softmax", "LogSoftmax", "Hardmax")},
    "Split": Old(18, _split, "split"),
    "Clip": Old(11, _clip),
    "Pad": Old(11, _pad, "pads"),
    "Slice": Old(10, _slice, "starts"),
    "TopK": Old(10, _top_k, "k"),
    "Upsample": Old(NEWEST, _upsample),
    "Resize": Old(11, _resize_10),
    "GroupNormalization": Old(21, _group_norm),
    "BatchNormalization": Old(14, _batch_norm),
    "Scatter": Old(NEWEST, _scatter),
    **{name: Old(7, _aligned) for name in _BINARY},
    "DFT": Old(20, _dft, "axis"),
    "GridSample": Old(20, _grid_sample),
    "RoiAlign": Old(16, _roi_align),
    "SoftmaxCrossEntropyLoss": Old(NEWEST, _cross_entropy),
}

_DISSOLVE: dict[str, Upgrade] = {
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Shape": _shape,
    "Size": _size,
    "Dropout": _dropout,
    "EyeLike": _eye_like,
    "CastLike": _cast_like,
    "InstanceNormalization": _instance_norm,
    "RMSNorm": _rms_norm,
    "LayerNormalization": _whole_scales,
    "RMSNormalization": _whole_scales,
    "SimplifiedLayerNormalization": _whole_scales,
}
"""Operators that become others, or constants, whatever the opset."""


def _one_tensor_each(node: RawNode, _context: Context) -> Sequence[RawNode]:
    """A training step of several tensors as one per tensor; each kind of operand and of result lists all tensors."""
    common, operands = node.inputs[:2], node.inputs[2:]
    kinds = {"Adagrad": 3, "Momentum": 3, "Adam": 4}[node.op]
    count = max(1, len(operands) // kinds)
    return [_new(node, inputs=(*common, *operands[i::count]), outputs=node.outputs[i::count]) for i in range(count)]


_TRAINING = "ai.onnx.preview.training"
_FOREIGN: dict[tuple[str, str], Upgrade] = {
    (_TRAINING, "Adagrad"): _one_tensor_each,
    (_TRAINING, "Momentum"): _one_tensor_each,
    (_TRAINING, "Adam"): _one_tensor_each,
    ("com.microsoft", "RotaryEmbedding"): _rotary,
    ("com.microsoft", "Attention"): _foreign_attention,
}
"""Operators of other domains that are other forms of declared ones."""
