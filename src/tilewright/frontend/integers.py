"""Types of integer networks: files declare float32 throughout although every tensor holds integers.

Tensors that the file calls float but that hold integers are `narrow` here. Types follow from the inputs and from the
ranges that operators declare, in topological order; float constants that meet narrow tensors become integers where
their values are. Where an operator has no integer meaning, or a constant is no integer, narrow operands are cast to
float32 first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from msgspec.structs import replace

from tilewright.base.dtype import FLOAT32, INT8, INT16, INT32, INT64, UINT8, DType, smallest_integer
from tilewright.core.graph import Array, Attr, Attrs, Node
from tilewright.core.op import REGISTRY
from tilewright.errors import TilewrightError
from tilewright.frontend.builder import Builder
from tilewright.frontend.inputs import is_integral
from tilewright.frontend.raw import RawModel

DIALECT = frozenset(
    [
        "RequantShift",
        "iSoftmax",
        "ITAMax",
        "ITAPartialMax",
        "ITASoftmax",
        "ITAGelu",
        "MHSA",
        "iGELU",
        "iHardswish",
        "iLeakyReLU",
        "iLayerNorm",
        "iRMSNorm",
        "iNoNorm",
        "IntegerDiv",
        "TrueIntegerDiv",
        "IntegerMean",
    ]
)
"""Operators that exist on integers only; a network that has one is an integer network."""

_DIVIDES_INTEGERS = "Delta"
"""The attribute that tells a division of integers from one of floats; on float operands it is a leftover."""

WEIGHTS = (INT8, UINT8, INT16, INT32)
SUMS = (INT32, INT64)


def is_integer_network(model: RawModel, pinned: Iterable[DType], samples: Mapping[str, Array]) -> bool:
    """Whether float-declared tensors of this network hold integers."""
    if model.exact_types:
        return False
    bodies = (nodes.nodes for nodes in model.functions.values())
    if any(node.op in DIALECT for nodes in (model.nodes, *bodies) for node in nodes):
        return True
    floats = [declared.name for declared in model.inputs if declared.dtype == FLOAT32]
    sampled = any(samples[name].dtype.kind in "iu" for name in floats if name in samples)
    return sampled or any(dtype.is_integer for dtype in pinned)


def stays_float(model: RawModel, name: str) -> bool:
    """Whether an input goes straight into a quantisation, so that it holds no integers yet."""
    users = [node for node in model.nodes if name in node.inputs]
    return any(
        node.op == "QuantizeLinear" or (node.op == "Div" and _DIVIDES_INTEGERS not in node.attrs) for node in users
    )


class IntegerTypes:
    """Adapts each node to the integer types of its operands, as the graph is built."""

    def __init__(self, narrow: Iterable[str]) -> None:
        self._narrow = set(narrow)

    def adapt(self, builder: Builder, node: Node) -> Node:
        if node.op in DIALECT:
            return self._dialect(builder, node)
        if not any(name in self._narrow for name in node.inputs):
            return node
        if node.op == "Div" and _DIVIDES_INTEGERS in node.attrs:
            return self._dialect(builder, replace(node, op="IntegerDiv"))
        rule = _RULES.get(node.op)
        if rule is None and REGISTRY[node.op].kind in ("view", "move"):
            rule = _keep
        adapted = rule(self, builder, node) if rule is not None else None
        if adapted is None:
            return self._as_float(builder, node)
        if node.op not in _INDEX_RESULT:
            # Moves have the same elements in all results, other operators in the first.
            self._narrow.update(node.made if REGISTRY[node.op].kind == "move" else filter(None, node.outputs[:1]))
        return adapted

    def _dialect(self, builder: Builder, node: Node) -> Node:
        """Operators on integers only: constants become integers; other floats hold integers by meaning."""
        names = REGISTRY[node.op].operand_names(len(node.inputs))
        inputs: list[str] = []
        for operand, name in zip(names, node.inputs, strict=True):
            if not name or builder.type(name).dtype.is_integer:
                inputs.append(name)
                continue
            wanted = WEIGHTS if (node.op, operand) in _NARROW_WEIGHTS else SUMS
            found = as_integer(builder, name, wanted) if builder.value(name) is not None else builder.cast(name, INT32)
            if found is None:
                raise TilewrightError(
                    "type-mismatch",
                    f"input '{operand}' of {node.op} '{node.label}' must hold integers",
                )
            inputs.append(found)
        self._narrow.add(node.outputs[0])
        return replace(node, inputs=tuple(inputs), attrs=_whole(node.attrs))

    def _as_float(self, builder: Builder, node: Node) -> Node:
        inputs = tuple(builder.cast(name, FLOAT32) if name in self._narrow else name for name in node.inputs)
        return replace(node, inputs=inputs)

    def data(self, builder: Builder, node: Node) -> list[str] | None:
        """The operands that the file calls float; None where a float that is no constant is among them."""
        operator = REGISTRY[node.op]
        names = operator.operand_names(len(node.inputs))
        found: list[str] = []
        for operand, name in zip(names, node.inputs, strict=True):
            if not name or operand in operator.compile_time:
                continue
            if name in self._narrow:
                found.append(name)
            elif builder.type(name).dtype.is_float:
                if builder.value(name) is None:
                    return None
                found.append(name)
        return found


Rule = Callable[[IntegerTypes, Builder, Node], Node | None]
"""Gives the node on integers, or None where it must be computed in floating point."""


def as_integer(builder: Builder, name: str, types: Sequence[DType]) -> str | None:
    """A constant in the first of `types` that holds all its values; None where none does."""
    if builder.type(name).dtype.is_integer:
        return name
    array = builder.value(name)
    if array is None or not is_integral(array):
        return None
    lo, hi = _range(array)
    dtype = next((t for t in types if t.lo <= lo and hi <= t.hi), None)
    return None if dtype is None else builder.cast(name, dtype)


def _range(array: Array) -> tuple[int, int]:
    return (int(array.min()), int(array.max())) if array.size else (0, 0)


def _whole(attrs: Attrs) -> Attrs:
    """Attributes with whole floats as ints."""
    return MappingProxyType({key: _whole_number(value) for key, value in attrs.items()})


def _whole_number(value: Attr) -> Attr:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, tuple) and all(isinstance(v, float) and v.is_integer() for v in value):
        return tuple(int(v) for v in value)
    return value


def _contract(types: IntegerTypes, builder: Builder, node: Node) -> Node | None:
    """Contractions accumulate in int32, so a bias is int32."""
    if types.data(builder, node) is None:
        return None
    if any(
        isinstance(node.attrs.get(key), float) and not float(str(node.attrs[key])).is_integer()
        for key in ("alpha", "beta")
    ):
        return None
    factors = [as_integer(builder, name, WEIGHTS) for name in node.inputs[:2]]
    bias = [as_integer(builder, name, (INT32,)) if name else "" for name in node.inputs[2:3]]
    inputs = [name for name in (*factors, *bias) if name is not None]
    if len(inputs) < len(node.inputs):
        return None
    if bias and inputs[2]:
        inputs[2] = builder.cast(inputs[2], INT32)
    return replace(node, inputs=tuple(inputs))


def _widen(types: IntegerTypes, builder: Builder, node: Node) -> Node | None:
    """Arithmetic widens to int32."""
    data = types.data(builder, node)
    converted = {name: as_integer(builder, name, WEIGHTS) for name in data or ()}
    if data is None or None in converted.values():
        return None
    inputs = tuple(converted.get(name) or name for name in node.inputs)
    return replace(node, inputs=inputs, attrs=MappingProxyType({**node.attrs, "widen": 1}))


def _keep(types: IntegerTypes, builder: Builder, node: Node) -> Node | None:
    """Moves and selections keep the type; operands of several types meet in one that holds them all."""
    data = types.data(builder, node)
    if data is None:
        return None
    ranges: list[tuple[int, int]] = []
    for name in data:
        array, dtype = builder.value(name), builder.type(name).dtype
        if dtype.is_integer:
            ranges.append((dtype.lo, dtype.hi))
        elif array is not None and is_integral(array):
            ranges.append(_range(array))
        else:
            return None
    common = smallest_integer(min(lo for lo, _ in ranges), max(hi for _, hi in ranges))
    return replace(node, inputs=tuple(builder.cast(name, common) if name in data else name for name in node.inputs))


def _clip(types: IntegerTypes, builder: Builder, node: Node) -> Node | None:
    """Bounds outside the type bound nothing: they are moved to its ends."""
    dtype = builder.type(node.inputs[0]).dtype
    if types.data(builder, node) is None or not dtype.is_integer:
        return None
    inputs = [node.inputs[0]]
    for name in node.inputs[1:]:
        bound = builder.value(name) if name else None
        if bound is not None:
            limited = np.clip(bound.astype(np.float64), dtype.lo, dtype.hi)
            if not is_integral(limited):
                return None
            name = builder.constant(f"{name}_{dtype}", limited.astype(dtype.numpy))
        inputs.append(name)
    return replace(node, inputs=tuple(inputs))


def _mean(_types: IntegerTypes, builder: Builder, node: Node) -> Node | None:
    """A mean of integers is the rounded one."""
    rank = builder.type(node.inputs[0]).rank
    given = builder.value(node.inputs[1]) if len(node.inputs) > 1 else None
    axes = tuple(range(2, rank)) if node.op == "GlobalAveragePool" else tuple(range(rank))
    if given is not None and given.size:
        axes = tuple(int(axis) for axis in given.reshape(-1))
    elif node.attrs.get("noop_with_empty_axes"):
        return replace(node, op="Identity", inputs=node.inputs[:1], attrs=MappingProxyType({}))
    attrs: dict[str, Attr] = {"axes": axes, "keepdims": node.attrs.get("keepdims", 1)}
    return replace(node, op="IntegerMean", inputs=node.inputs[:1], attrs=MappingProxyType(attrs))


def _rounding(_types: IntegerTypes, _builder: Builder, node: Node) -> Node | None:
    """Integers are round already."""
    return replace(node, op="Identity", attrs=MappingProxyType({}))


_INDEX_RESULT = frozenset({"ArgMax", "ArgMin", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"})
"""Operators whose result is no value of their operands, so that the file types it truthfully."""

_NARROW_WEIGHTS = frozenset({("iNoNorm", "weight"), *(("MHSA", f"w{name}_weight") for name in "qkvo")})

_RULES: dict[str, Rule] = {
    **dict.fromkeys(("Conv", "ConvTranspose", "Gemm", "MatMul"), _contract),
    **dict.fromkeys(("Add", "Sub", "Mul", "ReduceSum"), _widen),
    **dict.fromkeys(("ReduceMean", "GlobalAveragePool"), _mean),
    **dict.fromkeys(("Round", "Floor", "Ceil"), _rounding),
    **dict.fromkeys(
        ("Identity", "Relu", "Max", "Min", "MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin", "Where", "TopK"), _keep
    ),
    **dict.fromkeys(sorted(_INDEX_RESULT), _keep),
    "Clip": _clip,
}
