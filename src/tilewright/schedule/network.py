"""Networks as the scheduler sees them: operations with loop domains, and the tensors between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from types import MappingProxyType

from msgspec import Struct

from tilewright.core.domain import Affine, Axis, Domain, dim, domain
from tilewright.core.equation import LayerText, parse_equation, parse_relation
from tilewright.core.graph import Graph, TensorType
from tilewright.core.op import call_node
from tilewright.errors import TilewrightError

GROUPS, CHANNELS = "G", ("K", "C")
"""Indices of equations that are one axis of channels where the second follows the first."""


class Tensor(Struct, frozen=True):
    """What one operation writes and others read."""

    name: str
    shape: tuple[int, ...]
    bits: int
    """Of an element."""
    maker: str = ""
    """The operation that writes it; none of constants and of what comes from outside."""
    result: bool = False
    """Whether it leaves the machine."""


class Access(Struct, frozen=True):
    """An operand of an operation and the tensor that it is."""

    operand: str
    tensor: str
    slot: str
    """What memories call it."""


class Operation(Struct, frozen=True):
    """A loop nest over tensors. It may see a tensor under another shape with as many elements."""

    name: str
    kind: str
    domain: Domain
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    copies: bool = False
    """Whether bytes are only moved."""


class OperationGraph(Struct, frozen=True):
    """Operations in an order in which they can run."""

    name: str
    operations: tuple[Operation, ...]
    tensors: Mapping[str, Tensor]

    def operation(self, name: str) -> Operation:
        return next(operation for operation in self.operations if operation.name == name)


def network_of_graph(graph: Graph, most_bits: int | None = None) -> OperationGraph:
    """The operations of a network; views are none, and elements that are known when it is compiled are not read.

    With `most_bits`, no element is wider: as if the network were quantised.
    """
    base: dict[str, str] = {}
    """By tensor that a view makes: the one whose bytes it is."""
    tensors: dict[str, Tensor] = {}
    operations: list[Operation] = []
    taken: dict[str, int] = {}
    for node in graph.nodes:
        call = call_node(graph, node)
        if call.op.kind == "view":
            base[node.outputs[0]] = base.get(node.inputs[0], node.inputs[0])
            continue
        space = call.domain()
        name = _unique(call.name or node.op, taken)
        reads: list[Access] = []
        for operand, tensor, kind in zip(call.operands, node.inputs, call.inputs, strict=True):
            if kind is None or operand not in space.access or operand in call.op.compile_time:
                continue
            root = base.get(tensor, tensor)
            known = tensor in graph.constants or root in graph.constants
            if known and kind.size <= 1:
                continue
            found = graph.types[root]
            tensors.setdefault(root, Tensor(root, found.shape, _bits(found, most_bits)))
            reads.append(Access(operand, root, "I2" if known or any(r.slot == "I1" for r in reads) else "I1"))
        writes: list[Access] = []
        for operand, tensor, kind in zip(space.outputs, node.outputs, call.outputs, strict=False):
            if tensor:
                tensors[tensor] = Tensor(tensor, kind.shape, _bits(kind, most_bits), name, tensor in graph.outputs)
                writes.append(Access(operand, tensor, "O"))
        moves = call.op.kind == "move"
        operations.append(Operation(name, node.op, space, tuple(reads), tuple(writes), moves))
    for output in graph.outputs:
        root = base.get(output, output)
        if root in tensors and not tensors[root].result:
            tensors[root] = _leaving(tensors[root])
    return OperationGraph(graph.name, tuple(operations), MappingProxyType(tensors))


def _bits(kind: TensorType, most: int | None) -> int:
    return kind.dtype.bits if most is None else min(kind.dtype.bits, most)


def _leaving(tensor: Tensor) -> Tensor:
    return Tensor(tensor.name, tensor.shape, tensor.bits, tensor.maker, result=True)


def _unique(name: str, taken: dict[str, int]) -> str:
    taken[name] = taken.get(name, 0) + 1
    return name if taken[name] == 1 else f"{name} #{taken[name]}"


def network_of_equations(name: str, layers: Sequence[LayerText]) -> OperationGraph:
    """The operations of layers that are written as equations.

    An operand is seen in the shape of what makes it; where that has another rank, in its own shape, if it has as many
    elements. Results that nothing reads leave the machine.
    """
    tensors: dict[str, Tensor] = {}
    operations: list[Operation] = []
    read = {source for layer in layers for sources in layer.sources.values() for source in sources}
    for layer in layers:
        output, inputs = parse_equation(layer.equation)
        relations = {name: (first, second) for name, first, second in map(parse_relation, layer.relations)}
        access = {operand: _axes(layer, indices, relations) for operand, indices in (output, *inputs)}
        shapes = {
            operand: tuple(
                _extent(axis, layer.dims) - layer.padding.get(index, (0, 0))[1]
                for axis, index in zip(access[operand], _indices(indices), strict=True)
            )
            for operand, indices in (output, *inputs)
        }
        reads: list[Access] = []
        slots = _slots(layer, [operand for operand, _ in inputs])
        for operand, _ in inputs:
            slot = slots[operand]
            for source in layer.sources.get(operand, ()):
                if source not in tensors:
                    raise TilewrightError(
                        "cyclic-order",
                        f"layer '{layer.name}' reads what '{source}' makes, which is not before it",
                        help="put layers into an order in which each comes behind those that it reads",
                    )
                made = tensors[source]
                shapes[operand] = _seen(layer, operand, shapes[operand], made)
                reads.append(Access(operand, source, slot))
            if not layer.sources.get(operand):
                tensor = f"{layer.name}.{operand}"
                tensors[tensor] = Tensor(tensor, shapes[operand], layer.bits.get(operand, 8))
                reads.append(Access(operand, tensor, slot))
        bits = layer.bits.get(output[0], 8)
        final = layer.bits.get(f"{output[0]}_final", bits)
        tensors[layer.name] = Tensor(layer.name, shapes[output[0]], final, layer.name, layer.name not in read)
        space = domain(layer.dims, access, shapes, output[0])
        written = (Access(output[0], layer.name, layer.slots.get(output[0], "O")),)
        operations.append(Operation(layer.name, layer.kind, space, tuple(reads), written))
    return OperationGraph(name, tuple(operations), MappingProxyType(tensors))


def _slots(layer: LayerText, inputs: Sequence[str]) -> dict[str, str]:
    """As the layer has them; other operands take those that are left, constants the one of weights."""
    found = {operand: layer.slots[operand] for operand in inputs if operand in layer.slots}
    for operand in sorted((each for each in inputs if each not in found), key=lambda each: not layer.sources.get(each)):
        found[operand] = next((slot for slot in ("I1", "I2") if slot not in found.values()), "I2")
    return found


def _axes(
    layer: LayerText, indices: Iterable[str], relations: Mapping[str, tuple[tuple[str, int], tuple[str, int]]]
) -> list[Axis]:
    found: list[Axis] = []
    for index in _indices(indices):
        if index in relations:
            (first, first_scale), (second, second_scale) = relations[index]
            before = layer.padding.get(index, (0, 0))[0]
            found.append(dim(first) * first_scale + dim(second) * second_scale - before)
        elif index.startswith(f"{GROUPS} "):
            found.append(dim(GROUPS) * layer.dims[index[2:]] + dim(index[2:]))
        else:
            found.append(dim(index))
    return found


def _indices(indices: Iterable[str]) -> list[str]:
    """With groups and their channels as one axis."""
    found: list[str] = []
    for index in indices:
        if found and found[-1] == GROUPS and index in CHANNELS:
            found[-1] = f"{GROUPS} {index}"
        else:
            found.append(index)
    return found


def _extent(axis: Axis, dims: Mapping[str, int]) -> int:
    assert isinstance(axis, Affine)
    _, last = axis.bounds({name: (0, size) for name, size in dims.items()})
    return last + 1


def _seen(layer: LayerText, operand: str, shape: tuple[int, ...], made: Tensor) -> tuple[int, ...]:
    if len(shape) == len(made.shape):
        return made.shape
    if prod(shape) == prod(made.shape):
        return shape
    raise TilewrightError(
        "bad-workload",
        f"layer '{layer.name}': {operand} is {list(shape)}, but '{made.name}' makes {list(made.shape)}",
        help="it may see it under another shape with as many elements",
    )
