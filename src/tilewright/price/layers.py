"""Networks as layers of array machines: every operator costs reads, writes and operations, by its access maps alone.

An operator with two inputs is one layer. One with more is a chain of them, joined in pairs as far as later inputs and
the output need (attention: scores, then their product with the values). What depends on a whole axis (softmax, norms)
is summed up along it first and applied after that. Vectors along the output (biases, scales) are loaded once. Views
cost nothing, as no byte moves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import prod
from types import MappingProxyType

from msgspec import Struct, field
from msgspec.structs import replace

from tilewright.core.domain import Affine, Domain
from tilewright.core.graph import Graph, Node
from tilewright.core.op import Call, call_node
from tilewright.core.workload import Layer, Operand, Sum, Workload
from tilewright.machine.array import ArrayEngine
from tilewright.machine.array_file import FINAL
from tilewright.price.sparsity import packed
from tilewright.price.touched import Touched, touched

SUM_BITS = 32
"""Of sums, at least."""
OUTPUT, ACTIVATION, CONSTANT = "O", "I1", "I2"
"""The slots of operands in the machine's memories."""


class NodeLayers(Struct, frozen=True):
    """A node of the network and the layers that it is; none where it is a view or empty."""

    name: str
    op: str
    layers: tuple[str, ...]


class NetworkLayers(Struct, frozen=True):
    """The layers of a network, and which node each belongs to."""

    workload: Workload
    nodes: tuple[NodeLayers, ...]


class _Tensor(Struct, frozen=True):
    """An operand on its way into layers."""

    name: str
    touched: Touched
    bits: int
    constant: bool = False
    sources: tuple[str, ...] = ()


class _Maker(Struct):
    """Makes the layers of one node."""

    name: str
    kind: str
    sizes: dict[str, int]
    apart: Collection[str] = ()
    """Loops that are not merged with others."""
    layers: list[Layer] = field(default_factory=list[Layer])

    def add(self, inputs: Sequence[_Tensor], output: _Tensor, loops: Iterable[str], suffix: str = "") -> str:
        """A layer over some loops; returns its name."""
        name = f"{self.name} {suffix}" if suffix else self.name
        wanted = frozenset(loops)
        dims = {d: size for d, size in self.sizes.items() if d in wanted}
        self.layers.append(_layer(name, self.kind, dims, inputs, output, self.apart))
        return name


def network_layers(graph: Graph) -> NetworkLayers:
    """The layers of a network without fused steps, as it is after import."""
    made: dict[str, tuple[str, ...]] = {}
    """By tensor: the layers that write it."""
    constant = set(graph.constants)
    taken: dict[str, int] = {}
    nodes: list[NodeLayers] = []
    layers: list[Layer] = []
    for node in graph.nodes:
        call = call_node(graph, node)
        if call.op.kind == "view":
            made[node.outputs[0]] = made.get(node.inputs[0], ())
            constant |= set(node.made) if node.inputs[0] in constant else set()
            nodes.append(NodeLayers(call.name, node.op, ()))
            continue
        maker = _Maker(_unique(call.name, taken), node.op, {d: s for d, s in call.domain().dims.items() if s > 1})
        if all(prod(kind.shape) for kind in call.outputs):
            inputs = _inputs(call, node, maker.sizes, made, constant)
            bits = {name: call.type(name).dtype.bits for name in call.domain().outputs}
            _node(maker, call.domain(), inputs, bits, copies=call.op.kind == "move")
        layers += maker.layers
        nodes.append(NodeLayers(maker.name, node.op, tuple(layer.name for layer in maker.layers)))
        made |= dict.fromkeys(node.made, (maker.layers[-1].name,) if maker.layers else ())
    return NetworkLayers(Workload(graph.name, tuple(layers)), tuple(nodes))


def tile_layers(
    name: str,
    kind: str,
    domain: Domain,
    sizes: Mapping[str, int],
    reads: Mapping[str, tuple[int, bool]],
    writes: Mapping[str, int],
    *,
    copies: bool = False,
    apart: Collection[str] = (),
) -> tuple[Layer, ...]:
    """The layers of a part of an operator, whose loops have the given sizes. By operand: bits of an element that is
    read, and whether it is constant; bits of one that is written. `copies` says that bytes are only moved; loops of the
    names in `apart` are not merged with others."""
    maker = _Maker(name, kind, {d: size for d, size in sizes.items() if size > 1}, apart)
    found: list[_Tensor] = []
    for operand, (bits, constant) in reads.items():
        _add_input(found, domain, _Tensor(operand, touched(domain, operand, maker.sizes), bits, constant))
    _node(maker, domain, found, writes, copies=copies)
    return tuple(maker.layers)


def _unique(name: str, taken: dict[str, int]) -> str:
    taken[name] = taken.get(name, 0) + 1
    return name if taken[name] == 1 else f"{name} #{taken[name]}"


def _inputs(
    call: Call, node: Node, sizes: dict[str, int], made: Mapping[str, tuple[str, ...]], constant: set[str]
) -> list[_Tensor]:
    """The inputs that are read while the node runs; single numbers are part of its instructions."""
    domain = call.domain()
    found: list[_Tensor] = []
    for operand, tensor, kind in zip(call.operands, node.inputs, call.inputs, strict=True):
        if kind is None or operand in call.op.compile_time or operand not in domain.access or kind.size <= 1:
            continue
        seen = touched(domain, operand, sizes)
        _add_input(found, domain, _Tensor(operand, seen, kind.dtype.bits, tensor in constant, made.get(tensor, ())))
    return found


def _add_input(found: list[_Tensor], domain: Domain, item: _Tensor) -> None:
    """Of several that make up a whole, the first is all of it."""
    if not _is_part(domain, item.name) or not any(item.touched.all == other.touched.all for other in found):
        found.append(item)


def _is_part(domain: Domain, operand: str) -> bool:
    """Whether an operand is shorter than the loops along it: one of several that make up a whole."""
    axes = zip(domain.access[operand], domain.footprint(operand, {}), strict=True)
    return any(isinstance(axis, Affine) and len(axis.dims) == 1 and span.before + span.after for axis, span in axes)


def _node(maker: _Maker, domain: Domain, inputs: list[_Tensor], bits: Mapping[str, int], *, copies: bool) -> None:
    results = [_Tensor(name, touched(domain, name, maker.sizes), bits[name]) for name in domain.outputs]
    if not domain.dims:
        _unordered(maker, inputs, results)
        return
    output = results[0]
    vectors = [t for t in inputs if _begins(t, inputs, output)]
    rest = [t for t in inputs if t not in vectors]
    if not rest:
        rest, vectors = vectors, []
    normalised = _normalised(domain, rest, output)
    if len(rest) == 1 and vectors and not normalised:
        rest.append(vectors.pop(0))
    _chain(maker, domain, rest, output, normalised)
    for vector in vectors:
        maker.add([vector], replace(vector, name=f"{vector.name}_loaded", sources=()), vector.touched.all, vector.name)
    if not copies:
        for extra in results[1:]:
            maker.add(rest[:1], extra, extra.touched.all, extra.name)


def _begins(item: _Tensor, inputs: Sequence[_Tensor], output: _Tensor) -> bool:
    """Whether an input is a vector along the output, or what its sums begin with: it is loaded once."""
    if item.touched.sums:
        return False
    adds = any(not other.touched.all <= output.touched.all for other in inputs)
    return item.touched.all < output.touched.all or (adds and item.touched.all == output.touched.all)


def _normalised(domain: Domain, inputs: Sequence[_Tensor], output: _Tensor) -> frozenset[str]:
    """The axes along which each result depends on all of its input."""
    if not inputs or inputs[0].touched != output.touched:
        return frozenset()
    return domain.whole & output.touched.all


def _chain(
    maker: _Maker, domain: Domain, inputs: Sequence[_Tensor], output: _Tensor, normalised: frozenset[str]
) -> None:
    """Joins the inputs in pairs; what later inputs and the output do not need is summed up on the way."""
    loops = frozenset(maker.sizes)
    left = list(inputs)
    current = left.pop(0) if left else None
    while current is not None and left:
        other = next((t for t in left if t.touched.all <= current.touched.all), left[0])
        left.remove(other)
        if current not in inputs and not other.touched.all <= current.touched.all:
            current = _applied(maker, current, domain.whole - output.touched.all)
        if not left and not normalised:
            maker.add([current, other], output, loops)
            return
        mine = current.touched.all | other.touched.all
        later = output.touched.all.union(*(t.touched.all for t in left))
        loops -= mine - later
        current = _joined(maker, [current, other], mine, mine & later)
    if current is not None and normalised:
        total = _joined(maker, [current], current.touched.all, current.touched.all - normalised)
        maker.add([current, total], output, loops)
        return
    maker.add([current] if current else [], output, loops)


def _joined(maker: _Maker, inputs: Sequence[_Tensor], loops: Iterable[str], left: Iterable[str]) -> _Tensor:
    """A layer whose result is not the node's."""
    name = f"T{len(maker.layers) + 1}"
    made = _Tensor(name, Touched(tuple(d for d in maker.sizes if d in frozenset(left))), SUM_BITS)
    return replace(made, sources=(maker.add(inputs, made, loops, name),))


def _applied(maker: _Maker, current: _Tensor, axes: frozenset[str]) -> _Tensor:
    """An intermediate result that is normalised along some of its axes: sums along them, and itself with those."""
    mine = current.touched.all
    if not mine & axes:
        return current
    total = _joined(maker, [current], mine, mine - axes)
    return _joined(maker, [current, total], mine, mine)


def _unordered(maker: _Maker, inputs: Sequence[_Tensor], results: Sequence[_Tensor]) -> None:
    """An operator without loops of its own: reads all of its inputs, writes all of its outputs."""
    for item in inputs:
        maker.add([item], _Tensor("T", Touched(), SUM_BITS), item.touched.all, item.name)
    for item in results:
        maker.add([], item, item.touched.all, item.name)


def _layer(
    name: str,
    kind: str,
    dims: Mapping[str, int],
    inputs: Sequence[_Tensor],
    output: _Tensor,
    apart: Collection[str],
) -> Layer:
    merged = _merged(dims, [output, *inputs], apart)
    sizes = {joined: prod(dims[d] for d in parts) for joined, parts in merged.items()}
    adds = any(not set(parts) <= output.touched.all for parts in merged.values())
    sums = {s.name: s for tensor in (output, *inputs) for s in tensor.touched.sums}
    slots = _slots(inputs)
    written = _operand(output, OUTPUT, merged, max(output.bits, SUM_BITS) if adds else output.bits)
    read = tuple(_operand(tensor, slot, merged, tensor.bits) for tensor, slot in zip(inputs, slots, strict=True))
    return Layer(
        name=name,
        kind=kind,
        dims=MappingProxyType(sizes or {"ONE": 1}),
        output=written,
        inputs=read,
        sums=MappingProxyType(sums),
        equation=_equation(written, read, sums),
    )


def _merged(dims: Mapping[str, int], tensors: Sequence[_Tensor], apart: Collection[str]) -> dict[str, list[str]]:
    """Loops that index the same operands and nothing together with another one are one loop."""
    groups: dict[tuple[bool, ...] | str, list[str]] = {}
    for d in dims:
        summed = any(d in (s.first, s.second) for tensor in tensors for s in tensor.touched.sums)
        groups.setdefault(d if summed or d in apart else tuple(d in t.touched.dims for t in tensors), []).append(d)
    return {"_".join(parts): parts for parts in groups.values()}


def _slots(inputs: Sequence[_Tensor]) -> list[str]:
    """Constants lie with the weights, the rest with the activations; of two of a kind the first is the activation."""
    if len(inputs) == 1:
        return [CONSTANT if inputs[0].constant else ACTIVATION]
    swapped = len(inputs) == 2 and inputs[0].constant and not inputs[1].constant
    return [CONSTANT, ACTIVATION] if swapped else [ACTIVATION, CONSTANT][: len(inputs)]


def _operand(tensor: _Tensor, slot: str, merged: Mapping[str, list[str]], bits: int) -> Operand:
    return Operand(
        name=tensor.name,
        slot=slot,
        dims=tuple(name for name, parts in merged.items() if parts[0] in tensor.touched.dims),
        sums=tuple(s.name for s in tensor.touched.sums),
        bits=bits,
        final_bits=tensor.bits,
        sources=tensor.sources,
        constant=tensor.constant,
    )


def _equation(output: Operand, inputs: Sequence[Operand], sums: Mapping[str, Sum]) -> str:
    def shown(operand: Operand) -> str:
        pairs = [
            f"{_scaled(s.first_scale, s.first)}+{_scaled(s.second_scale, s.second)}"
            for s in (sums[name] for name in operand.sums)
        ]
        return operand.name + "".join(f"[{index}]" for index in (*operand.dims, *pairs))

    return f"{shown(output)} += {' * '.join(map(shown, inputs)) or '1'}"


def _scaled(scale: int, name: str) -> str:
    return name if scale == 1 else f"{scale}*{name}"


def narrowed(workload: Workload, engine: ArrayEngine) -> Workload:
    """The workload with no operand wider than the machine's units take: what it costs once it is quantised for them."""
    return replace(workload, layers=tuple(narrow(layer, engine.precision) for layer in workload.layers))


def narrow(layer: Layer, bits: Mapping[str, int]) -> Layer:
    """A layer with at most so many bits by slot, and `final` ones of outputs; only sums are ever wider than those."""
    if not bits:
        return layer

    def limited(operand: Operand, final: int) -> Operand:
        most = min(operand.bits, bits.get(operand.slot, operand.bits))
        return replace(operand, bits=most, final_bits=min(operand.final_bits, final))

    inputs = tuple(limited(operand, bits.get(operand.slot, operand.bits)) for operand in layer.inputs)
    slot = layer.output.slot
    output = limited(layer.output, bits.get(FINAL, bits.get(slot, layer.output.bits)))
    if not layer.irrelevant(output) and not output.sums:
        output = replace(output, bits=output.final_bits)
    return replace(layer, output=output, inputs=inputs)


def thinned(layer: Layer, density: Mapping[str, float]) -> Layer:
    """A layer with densities by operand or, where none has that name, by slot; what has zeros is packed then."""

    def thin(operand: Operand) -> Operand:
        return replace(operand, density=density.get(operand.name, density.get(operand.slot, operand.density)))

    return packed(replace(layer, output=thin(layer.output), inputs=tuple(map(thin, layer.inputs))))
