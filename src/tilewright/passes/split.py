"""Operators as an engine takes them (`takes` of the machine): what it cannot do becomes a node behind it.

There are several ways. The engine may scale its sums back to 8 bits by itself; it gives 32-bit sums to a node that does
the rest; and where it knows no strides it computes every pixel, of which the next node takes those that are wanted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from tilewright.core.graph import Array, FreshNames, Graph, Node, Result, Step, TensorType, attrs
from tilewright.core.op import REGISTRY, Call, call_node, call_steps
from tilewright.machine.parts import Offload
from tilewright.ops.integer_rules import limits, power_of_two
from tilewright.ops.requant_shift import broadcastable, levels_of

REQUANTISE, ADD = "RequantShift", "Add"


class Split(Struct, frozen=True):
    """One way to compute a node: the first node is for the engine."""

    nodes: tuple[Node, ...]
    types: Mapping[str, TensorType] = field(default_factory=lambda: MappingProxyType({}))
    """Of tensors that are new."""
    constants: Mapping[str, Array] = field(default_factory=lambda: MappingProxyType({}))


def splits(graph: Graph, node: Node, names: FreshNames, offload: Offload) -> Iterator[Split]:
    """The ways to compute a node with an engine that takes its operator so."""
    if len(node.outputs) != 1 or (offload.channels_last and not node.attrs.get("channels_last")):
        return
    node = _with_planes(graph, node, offload)
    for make in (_requantised, _read_by_first_step, _summed):
        way = make(graph, node, names, offload)
        if way is not None:
            yield way
            if _strided(way.nodes[0]):
                yield _every_pixel(graph, way, node, names)


def operand(node: Node, name: str) -> str:
    """The tensor that a node has for an operand; "" where it has none."""
    names = REGISTRY[node.op].operand_names(len(node.inputs))
    return node.inputs[names.index(name)] if name in names else ""


def _before(node: Node, name: str) -> tuple[str, ...]:
    """The inputs of a node that come before an operand."""
    names = REGISTRY[node.op].operand_names(len(node.inputs))
    return node.inputs[: names.index(name)] if name in names else node.inputs


def _with_planes(graph: Graph, node: Node, offload: Offload) -> Node:
    """A node that says how many bits its weights need."""
    weights = graph.constants.get(operand(node, offload.weights))
    if not offload.bits or weights is None or not weights.size or weights.dtype.kind != "i":
        return node
    # Zero is among them: it is the weight of what a kernel fills up.
    low, high = min(int(weights.min()), 0), max(int(weights.max()), 0)
    planes = max((high - low).bit_length(), offload.bits)
    return replace(node, attrs=attrs(**{**node.attrs, "weight_low": low, "weight_planes": planes}))


def _read_by_first_step(graph: Graph, node: Node, names: FreshNames, offload: Offload) -> Split | None:
    """Sums, and the first step behind them as a node that does the rest; None where there is a bias or no such step."""
    if operand(node, offload.added) or not node.epilogue or node.epilogue[0].op not in (ADD, REQUANTISE):
        return None
    sums = names.fresh(f"{node.outputs[0]}_sums")
    types = MappingProxyType({sums: call_node(graph, node).outputs[0]})
    return Split((replace(node, outputs=(sums,), epilogue=()), _behind(node, sums, node.epilogue)), types)


def _summed(graph: Graph, node: Node, names: FreshNames, offload: Offload) -> Split | None:
    """Sums, and a node that adds the bias and does the rest; None where the first step adds something already."""
    kind = call_node(graph, node).outputs[0]
    bias = operand(node, offload.added)
    if not bias and not node.epilogue:
        return Split((node,))
    if not bias and node.epilogue[0].op == ADD:
        return None
    sums = names.fresh(f"{node.outputs[0]}_sums")
    first = replace(node, inputs=_before(node, offload.added), outputs=(sums,), epilogue=())
    types = MappingProxyType({sums: kind})
    constants: dict[str, Array] = {}
    if not bias:
        bias = names.fresh(f"{node.outputs[0]}_nothing")
        constants = {bias: np.zeros(kind.shape[-1:], kind.dtype.numpy)}
    rest = Node(ADD, (sums, bias), node.outputs, name=node.name, epilogue=node.epilogue)
    return Split((first, rest), types, MappingProxyType(constants))


# Pixels that nobody wants


def _strided(node: Node) -> bool:
    strides = node.attrs.get("strides")
    return isinstance(strides, tuple) and any(stride != 1 for stride in strides)


def _every_pixel(graph: Graph, way: Split, node: Node, names: FreshNames) -> Split:
    """The same without strides: a node behind takes every so-manieth pixel, and does the rest."""
    first, *others = way.nodes
    known = replace(graph, states=(), bounds=(), open={}).with_nodes(
        way.nodes, types=way.types, constants=way.constants, outputs=node.outputs
    )
    kind = known.types[first.outputs[0]]
    every = names.fresh(f"{node.outputs[0]}_every")
    strides = first.attrs["strides"]
    assert isinstance(strides, tuple)
    dense = replace(first, outputs=(every,), attrs=attrs(**{**first.attrs, "strides": (1,) * len(strides)}))
    types = {**way.types, every: call_node(known, dense).outputs[0]}
    places: dict[str, Array] = {
        "starts": np.zeros(len(strides), np.int64),
        "ends": np.asarray(kind.shape[1:-1], np.int64) * np.asarray(strides, np.int64),
        "axes": np.arange(1, len(strides) + 1, dtype=np.int64),
        "steps": np.asarray(strides, np.int64),
    }
    taken = {names.fresh(f"{node.outputs[0]}_{name}"): array for name, array in places.items()}
    steps: tuple[Step, ...] = ()
    if others:
        # The node behind becomes the first step of the one that offload pixels.
        rest = others[0]
        own = call_node(known, rest).outputs[0]
        inputs = tuple(Result(0) if name == first.outputs[0] else name for name in rest.inputs)
        steps = (Step(rest.op, inputs, own, rest.attrs), *(step.moved(1) for step in rest.epilogue))
        del types[first.outputs[0]]
    pick = Node("Slice", (every, *taken), node.outputs, name=node.name, epilogue=steps)
    return Split((dense, pick), MappingProxyType(types), MappingProxyType({**way.constants, **taken}))


def _behind(node: Node, made: str, steps: Sequence[Step]) -> Node:
    """A node that computes the steps behind a contraction: the first is its operator."""
    step, *others = steps
    inputs = tuple(made if isinstance(name, Result) else name for name in step.inputs)
    # What the contraction made is a tensor now, and the first step the node itself.
    stored = (replace(s, inputs=tuple(made if i == Result(0) else i for i in s.inputs)) for s in others)
    return Node(step.op, inputs, node.outputs, step.attrs, node.name, tuple(s.moved(-1) for s in stored))


# Scaled sums


def _requantised(graph: Graph, node: Node, names: FreshNames, offload: Offload) -> Split | None:
    """A node with the requantisation behind it, where there is an operator that is both.

    None where that needs more than 32 bits or other rounding.
    """
    op = f"Requant{node.op}"
    if op not in REGISTRY or not node.epilogue or node.epilogue[0].op != REQUANTISE:
        return None
    call, step = call_node(graph, node), node.epilogue[0]
    scaling = call_steps(graph, node)[0]
    lanes = _lanes(graph, operand(node, offload.added), call, scaling)
    plain = not any(call.attrs.get(f"{operand}_zero_point") for operand in "ab")
    if lanes is None or not plain or any(call.attrs.get(name) for name in ("transA", "transB")):
        return None
    mul, add = (names.fresh(f"{node.outputs[0]}_{what}") for what in ("mul", "add"))
    given = {name: value for name, value in node.attrs.items() if name in REGISTRY[op].attrs}
    attributes = attrs(**{**given, "shift": power_of_two(scaling, "div"), "signed": int(scaling.int("signed") != 0)})
    inputs = (*_before(node, offload.added), mul, add)
    constants = MappingProxyType({mul: lanes[0], add: lanes[1]})
    later = node.epilogue[1:]
    if not later:
        return Split((Node(op, inputs, node.outputs, attributes, node.name),), constants=constants)
    if any(name == Result(0) for other in later for name in other.inputs):
        # They ask for the sums as they were before.
        return None
    scaled = names.fresh(f"{node.outputs[0]}_scaled")
    first = Node(op, inputs, (scaled,), attributes, node.name)
    moved = [s.moved(-1) for s in later]
    return Split((first, _behind(node, scaled, moved)), MappingProxyType({scaled: step.type}), constants)


def _lanes(graph: Graph, bias_name: str, call: Call, scaling: Call) -> tuple[Array, Array] | None:
    """`mul` and `add` for each channel, with bias and rounding in them; None where 32 bits are not enough."""
    mul, add = (scaling.known(name) for name in ("mul", "add"))
    signed = scaling.int("signed") != 0
    bias = graph.constants.get(bias_name) if bias_name else np.zeros(1, np.int64)
    if mul is None or add is None or bias is None or limits(levels_of(scaling), signed) != limits(256, signed):
        return None
    if scaling.int("half_to_even") or scaling.int("zero_point") or mul.size == 0:
        return None
    channels = call.outputs[0].shape[-1] if call.attrs.get("channels_last", 1) else 0
    wide = [broadcastable(scaling, name, array) for name, array in (("mul", mul), ("add", add))]
    if not channels or any(
        array.size not in (1, channels) or array.shape[-1:] not in ((), (1,), (channels,)) for array in wide
    ):
        return None
    scale, offset, added = (np.broadcast_to(array.reshape(-1), (channels,)) for array in (*wide, bias.astype(np.int64)))
    half = (1 << power_of_two(scaling, "div")) >> 1
    total = added * scale + offset + half
    most = scaling.int("x_limit") or 1 << 31
    if (scale < 0).any() or ((most + np.abs(added)) * scale + np.abs(total) >= 1 << 31).any():
        return None
    return scale.astype(np.int32), total.astype(np.int32)
