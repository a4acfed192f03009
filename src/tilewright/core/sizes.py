"""Sizes that are known when a network runs: how far each tensor reaches then, and each loop.

The types of a graph say the largest extents, for which everything is planned. Which axes may be shorter follows from
the access maps: an axis that a loop dimension walks one to one makes that dimension as long as the axis, and with it
the axes of the result. Anything else that would read such an axis is refused, so that nothing is read beyond its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import prod

from tilewright.core.domain import Affine, dim
from tilewright.core.expr import Expr, Size, Var, bounds_of, plain, value_of
from tilewright.core.graph import Bound, Graph, Node, TensorType
from tilewright.core.op import REGISTRY, Call, call_node, call_of
from tilewright.errors import TilewrightError

Extents = Mapping[str, tuple[Size, ...]]
"""By tensor, those of which some axis depends on a size."""


class _Same:
    """A graph as a key: graphs are values, but too large to compare."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def __hash__(self) -> int:
        return id(self.graph)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.graph is self.graph


def size_of(bound: Bound) -> Expr:
    """A size as a variable of expressions."""
    return Expr(((Var(bound.variable, bound.low, bound.high), 1),))


def extents(graph: Graph) -> Extents:
    """How far tensors reach when the network runs."""
    return _extents(_Same(graph)) if graph.bounds else {}


def ranges_of(graph: Graph, node: Node) -> dict[str, tuple[Size, Size]]:
    """Start and stop of the loop dimensions of a node that do not run over all of their extent."""
    if not graph.bounds or _is_view(node):
        return {}
    found, call = extents(graph), call_node(graph, node)
    if not call.op.appends:
        return {name: (0, size) for name, size in _dims(call, node, found).items()}
    axis = call.axis("axis", call.outputs[0].rank)
    stop, name = found[node.outputs[0]][axis], list(call.domain().dims)[axis]
    # In place all other rows stay as they are.
    in_place = graph.updates.get(node.inputs[0]) == node.outputs[0]
    return {name: (plain(stop - call.shape("R")[axis]) if in_place else 0, stop)}


def leading(shape: Sequence[Size]) -> bool:
    """Whether a tensor that is shorter than it may be is a part of the largest one in memory, without gaps."""
    open_axes = [axis for axis, extent in enumerate(shape) if isinstance(extent, Expr)]
    return not open_axes or (len(open_axes) == 1 and all(extent == 1 for extent in shape[: open_axes[0]]))


def samples(graph: Graph) -> Iterator[dict[str, int]]:
    """Values of all sizes near both ends of what they may be: enough to see what depends on them."""
    near = 17
    for step in range(near):
        yield {b.variable: min(b.low + step, b.high) for b in graph.bounds}
        yield {b.variable: max(b.high - step, b.low) for b in graph.bounds}


def call_at(graph: Graph, node: Node, at: Mapping[str, int]) -> Call:
    """The call that a node makes where sizes have some values."""
    found = extents(graph)

    def type_at(name: str) -> TensorType | None:
        return type_of(graph, found, name, at) if name else None

    return call_of(
        REGISTRY[node.op],
        [type_at(name) for name in node.inputs],
        node.attrs,
        values=[graph.constants.get(name) for name in node.inputs],
        name=node.label,
        wanted=len(node.outputs),
    )


def type_of(graph: Graph, found: Extents, name: str, at: Mapping[str, int]) -> TensorType:
    """The type of a tensor where sizes have some values."""
    kind = graph.types[name]
    return kind.with_shape(value_of(extent, at) for extent in found[name]) if name in found else kind


def _is_view(node: Node) -> bool:
    return REGISTRY[node.op].kind == "view" and not node.epilogue


@lru_cache(maxsize=8)
def _extents(key: _Same) -> Extents:
    graph = key.graph
    found: dict[str, tuple[Size, ...]] = {}
    sizes = {bound.name: size_of(bound) for bound in graph.bounds}
    for name, axes in graph.open.items():
        shape: list[Size] = list(graph.types[name].shape)
        for axis, bound, more in axes:
            shape[axis] = sizes[bound] + more
        found[name] = tuple(shape)
    for node in graph.nodes:
        touched = [name for name in node.reads if name in found]
        if not touched:
            continue
        if _is_view(node):
            found[node.outputs[0]] = _viewed(graph, node, found[node.inputs[0]])
        else:
            found |= _results(graph, node, found)
    return found


def _refused(node: Node, why: str) -> TilewrightError:
    return TilewrightError(
        "bad-size",
        f"{node.op} '{node.label}' cannot have a size that is known only when the network runs",
        reasons=[why],
        help="fix the dimension with --dim NAME=N, or export the network with that axis apart",
    )


def _viewed(graph: Graph, node: Node, shape: Sequence[Size]) -> tuple[Size, ...]:
    """The extents of a view: an axis with the same number of elements before and behind it goes through."""
    before, after = graph.types[node.inputs[0]].shape, graph.types[node.outputs[0]].shape
    result: list[Size] = list(after)
    for axis, extent in enumerate(shape):
        if not isinstance(extent, Expr):
            continue
        same = [
            other
            for other, size in enumerate(after)
            if (size, prod(after[:other]), prod(after[other + 1 :]))
            == (before[axis], prod(before[:axis]), prod(before[axis + 1 :]))
        ]
        if not same:
            raise _refused(node, f"it joins or splits axis {axis}, which is {extent}")
        result[same[0]] = extent
    return tuple(result)


def _dims(call: Call, node: Node, found: Extents) -> dict[str, Size]:
    """The loop dimensions of a node that are shorter than their extent, with their length."""
    domain = call.domain()
    lengths: dict[str, Size] = {}
    fixed: set[str] = set()
    for operand, tensor in zip(call.operands, node.inputs, strict=True):
        if not tensor or operand not in domain.access:
            continue
        shape: Sequence[Size] = found.get(tensor, domain.shapes[operand])
        for axis, extent in zip(domain.access[operand], shape, strict=True):
            single = isinstance(axis, Affine) and len(axis.dims) == 1 and axis == dim(axis.dims[0])
            if isinstance(extent, Expr):
                if not single or not isinstance(axis, Affine) or domain.dims[axis.dims[0]] < bounds_of(extent)[1]:
                    raise _refused(node, f"it reads {operand} at {axis}, of an axis that is {extent}")
                if bounds_of(extent)[0] < 1 and not call.op.may_be_empty:
                    raise _refused(node, f"'{tensor}' may be empty: an axis of it is {extent}")
                if lengths.setdefault(axis.dims[0], extent) != extent:
                    raise _refused(node, f"one loop is {lengths[axis.dims[0]]} and {extent} long")
            elif isinstance(axis, Affine):
                fixed.update(axis.dims)
    for name in lengths:
        if name in fixed:
            raise _refused(node, f"it also reads something of fixed extent along {name}")
        if name not in domain.parallel and not call.op.any_length:
            raise _refused(node, f"its result depends on all of {name} in a way that needs to know how much that is")
    return lengths


def _results(graph: Graph, node: Node, found: Extents) -> dict[str, tuple[Size, ...]]:
    call = call_node(graph, node)
    domain = call.domain()
    if call.op.appends:
        return {node.outputs[0]: _appended(call, node, found)}
    lengths = _dims(call, node, found)
    results: dict[str, tuple[Size, ...]] = {}
    for operand, tensor in zip(call.op.output_names(len(node.outputs)), node.outputs, strict=False):
        shape: list[Size] = list(domain.shapes[operand])
        for number, axis in enumerate(domain.access[operand]):
            names = [name for name in lengths if isinstance(axis, Affine) and name in axis.dims]
            if names and axis != dim(names[0]):
                raise _refused(node, f"it writes {operand} at {axis}")
            shape[number] = lengths[names[0]] if names else shape[number]
        if tensor and any(isinstance(extent, Expr) for extent in shape):
            results[tensor] = tuple(shape)
    return results


def _appended(call: Call, node: Node, found: Extents) -> tuple[Size, ...]:
    """What rows are appended to reaches as far as before, and the new rows further."""
    axis, shape = call.axis("axis", call.outputs[0].rank), list[Size](call.outputs[0].shape)
    old = found.get(node.inputs[0])
    if old is None:
        raise _refused(node, "nothing says how many rows there are")
    if any(isinstance(extent, Expr) for number, extent in enumerate(old) if number != axis) or node.inputs[1] in found:
        raise _refused(node, f"another axis than {axis} has such a size")
    shape[axis] = old[axis] + call.shape("R")[axis]
    return tuple(shape)
