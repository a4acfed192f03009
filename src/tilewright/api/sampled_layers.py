"""Layers made at random for one kernel, from what its operator and its header declare."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tilewright.base.dtype import DTYPES
from tilewright.core.graph import Array, Graph, Node, TensorType, type_of_array
from tilewright.core.matching import binding_names, why_not
from tilewright.core.op import REGISTRY, Call, Example, Operator, arrays_of, call_node, call_of, parse_type, words
from tilewright.errors import TilewrightError
from tilewright.machine.kernel import Kernel
from tilewright.ops.sampling import LEAST_POINTS, MOST_POINTS, resized
from tilewright.ops.usual_steps import Behind, usual_steps

Steps = Callable[[TensorType, np.random.Generator], tuple[Behind, ...]]
"""What is behind a result of a type."""
Random = np.random.Generator
MOST_BYTES = 1 << 17
"""Of the operands of a layer."""
TRIES = 500
NEST_TRIES = 20
BEHIND_NEST = 0.25
"""The share of loop nests with steps behind them."""
MOST_STEPS = 3
"""Behind what networks usually have behind a result, where they are various."""
WORD = 32
MOST_NEST_POINTS = 1 << 15


class SampledLayer(Struct, frozen=True):
    """A node, and what is behind it as nodes of their own."""

    nodes: tuple[Node, ...]
    types: Mapping[str, TensorType]
    fed: Mapping[str, Array]
    constants: Mapping[str, Array]


def network(layers: Sequence[SampledLayer]) -> Graph:
    """One graph of all layers, each on its own."""
    return Graph(
        "layers",
        tuple(name for layer in layers for name in layer.fed),
        tuple(name for layer in layers for name in layer.nodes[-1].outputs),
        tuple(node for layer in layers for node in layer.nodes),
        MappingProxyType({name: kind for layer in layers for name, kind in layer.types.items()}),
        MappingProxyType({name: array for layer in layers for name, array in layer.constants.items()}),
    )


def draw_layers(
    kernel: Kernel,
    count: int,
    random: Random,
    others: Sequence[Kernel] = (),
    turn: int = 0,
    steps: Steps = usual_steps,
) -> list[SampledLayer]:
    """Layers that a kernel fits, of the same types and with the same steps behind them; fewer where none is found.

    Types take turns. Those that one of `others` fits whose header has all of its conditions and more are not for it.
    """
    wanted = {*kernel.when.items()}
    special = [k for k in others if k.op == kernel.op and k.engine == kernel.engine and {*k.when.items()} > wanted]
    types: dict[str, str] = {}
    for name, allowed in kernel.variables.items():
        turn, index = divmod(turn, len(allowed))
        types[name] = allowed[index]
    behind = int(random.integers(1 << 30))
    found = (_layer(kernel, special, types, random, behind, steps, f"layer{index}") for index in range(count))
    return [layer for layer in found if layer is not None]


def _layer(
    kernel: Kernel,
    special: Sequence[Kernel],
    types: Mapping[str, str],
    random: Random,
    behind: int,
    steps: Steps,
    name: str,
) -> SampledLayer | None:
    op = REGISTRY[kernel.op]
    specs = [spec for spec in (_retyped(op, example, kernel, types) for example in op.examples) if spec is not None]
    for _ in range(TRIES if specs else 0):
        try:
            spec = resized(op, specs[int(random.integers(len(specs)))], random)
            found = _made(op, spec, kernel, random, name)
        except TilewrightError:
            # Sizes that do not go together.
            continue
        if found is not None and not any(_fits(other, found) for other in special):
            alone = not kernel.epilogue or len(found.nodes[0].outputs) > 1
            return found if alone else _with_steps(found, np.random.default_rng(behind), steps)
    return None


def draw_nest(op: Operator, kernels: Sequence[Kernel], random: Random, name: str) -> SampledLayer | None:
    """A layer of an operator that no kernel fits, maybe with something behind it; None where none is found."""
    mine = [kernel for kernel in kernels if kernel.op == op.name]
    for _ in range(NEST_TRIES if op.examples else 0):
        try:
            spec = resized(op, op.examples[int(random.integers(len(op.examples)))], random)
            found = _made(op, spec, None, random, name)
        except TilewrightError:
            continue
        if found is None or not _computable(found) or any(_fits(kernel, found) for kernel in mine):
            continue
        return _with_steps(found, random) if random.random() < BEHIND_NEST else found
    return None


def any_steps(result: TensorType, random: Random) -> tuple[Behind, ...]:
    """What networks usually have behind a result, and then element-wise operators of any kind."""
    found = list(usual_steps(result, random))
    kind = result
    for step in found:
        kind = _behind(step, kind).outputs[0]
    for _ in range(int(random.integers(MOST_STEPS + 1))):
        drawn = _any_step(kind, random)
        if drawn is None:
            break
        found.append(drawn)
        kind = _behind(drawn, kind).outputs[0]
    return tuple(found)


def _any_step(kind: TensorType, random: Random) -> Behind | None:
    """An operator with the operands of one of its examples, one or as many as there are channels; None where none is
    found."""
    ops = [op for _, op in sorted(REGISTRY.items()) if op.kind == "elementwise" and op.examples and op.body is not None]
    channels = kind.shape[-1] if kind.rank else 1
    for _ in range(TRIES):
        op = ops[int(random.integers(len(ops)))]
        spec = op.examples[int(random.integers(len(op.examples)))]
        arrays = arrays_of(spec, int(random.integers(1 << 30)))
        given = [array for array in arrays if array is not None]
        if len(given) < len(arrays) or not given or type_of_array(given[0]).dtype != kind.dtype:
            continue
        others = tuple(other if other.size == 1 else np.resize(other, channels) for other in given[1:])
        step = (op.name, others, spec.attrs)
        try:
            call = _behind(step, kind)
            body = call.body
        except TilewrightError:
            continue
        result = call.outputs[0]
        same = len(call.outputs) == 1 and result.shape == kind.shape and result.dtype.bits <= WORD
        if same and result.dtype.kind != "bool" and not words(str(body)) & {"double", "for"}:
            return step
    return None


def _behind(step: Behind, kind: TensorType) -> Call:
    """The call of a step behind a result."""
    op, operands, given = step
    types = [kind, *(type_of_array(operand) for operand in operands)]
    return call_of(REGISTRY[op], types, given, values=[None, *operands])


def _computable(layer: SampledLayer) -> bool:
    """Whether a layer that is not long has a body without loops of its own, and types that cores have instructions
    for.
    """
    call = call_node(network([layer]), layer.nodes[0])
    if call.domain().points() > MOST_NEST_POINTS:
        return False
    try:
        body = call.body
    except TilewrightError:
        return False
    long = any(kind.dtype.is_float and kind.dtype.bits > WORD for kind in layer.types.values())
    return body is not None and not long and not words(str(body)) & {"double", "for"}


def _retyped(op: Operator, spec: Example, kernel: Kernel, types: Mapping[str, str]) -> Example | None:
    """An example with the kernel's types of elements; None where it has an operand that the kernel does not take.

    One without elements says nothing about sizes.
    """
    inputs: list[str | Array] = []
    for operand, item in zip(op.operand_names(len(spec.inputs)), spec.inputs, strict=True):
        if isinstance(item, str) and item and not parse_type(item).size:
            return None
        if isinstance(item, str) and not item:
            inputs.append(item)
        elif operand in kernel.types:
            allowed = kernel.types[operand]
            dtype = DTYPES[types.get(allowed[0], allowed[0])]
            inputs.append(
                str(parse_type(item).with_dtype(dtype)) if isinstance(item, str) else item.astype(dtype.numpy)
            )
        elif operand in op.compile_time:
            inputs.append(item)
        else:
            return None
    return replace(spec, inputs=tuple(inputs))


def _made(op: Operator, spec: Example, kernel: Kernel | None, random: Random, name: str) -> SampledLayer | None:
    """The layer of an example; None where the kernel does not fit it, or it is too large."""
    names = op.operand_names(len(spec.inputs))
    kinds = [parse_type(item) if isinstance(item, str) and item else None for item in spec.inputs]
    if sum(kind.bytes for kind in kinds if kind is not None) > MOST_BYTES:
        return None
    fixed = {n for n, item in zip(names[1:], spec.inputs[1:], strict=True) if isinstance(item, np.ndarray)}
    fixed |= {*op.compile_time} & {*names}
    if kernel is not None and kernel.pack:
        # Beside packed weights, only what a layer works on is computed.
        fixed |= {*kernel.pack, *names[1:]}
    fed: dict[str, Array] = {}
    constants: dict[str, Array] = {}
    inputs: list[str] = []
    for operand, array in zip(names, arrays_of(spec, int(random.integers(1 << 30))), strict=True):
        inputs.append("" if array is None else f"{name}_{operand}")
        if array is not None:
            (constants if operand in fixed else fed)[inputs[-1]] = array
    types = {tensor: type_of_array(array) for tensor, array in (*fed.items(), *constants.items())}
    known = [constants.get(tensor) for tensor in inputs]
    call = call_of(op, [types.get(tensor) for tensor in inputs], spec.attrs, values=known, wanted=spec.wanted)
    outputs = tuple(f"{name}_out{index}" for index in range(len(call.outputs)))
    types |= dict(zip(outputs, call.outputs, strict=True))
    node = Node(op.name, tuple(inputs), outputs, spec.attrs, name)
    layer = SampledLayer((node,), types, fed, constants)
    fits = len(outputs) == 1 if kernel is None else _fits(kernel, layer)
    return layer if _usual(call) and fits else None


def _usual(call: Call) -> bool:
    """Whether a layer is neither a trifle nor long."""
    points = call.domain().points()
    return LEAST_POINTS // 4 <= points <= 4 * MOST_POINTS and call.outputs[0].bytes <= MOST_BYTES


def _fits(kernel: Kernel, layer: SampledLayer) -> bool:
    graph, node = network([layer]), layer.nodes[0]
    call = call_node(graph, node)
    return not why_not(kernel, call, node, graph, binding_names(call), {})


def _with_steps(layer: SampledLayer, random: Random, steps: Steps = usual_steps) -> SampledLayer:
    """The same with something behind it; that which networks usually have there."""
    nodes, types, constants = list(layer.nodes), dict(layer.types), dict(layer.constants)
    for number, (op, operands, given) in enumerate(steps(types[nodes[0].outputs[0]], random)):
        last, name = nodes[-1].outputs[0], f"{layer.nodes[0].name}_step{number}"
        names = [f"{name}_{index}" for index in range(len(operands))]
        constants |= dict(zip(names, operands, strict=True))
        types |= {tensor: type_of_array(array) for tensor, array in zip(names, operands, strict=True)}
        inputs = (last, *names)
        call = call_of(REGISTRY[op], [types[n] for n in inputs], given, values=[constants.get(n) for n in inputs])
        types[name] = call.outputs[0]
        nodes.append(Node(op, inputs, (name,), given, name))
    return SampledLayer(tuple(nodes), types, layer.fed, constants)
