"""Recognises attention: `softmax(scale * Q @ K^T + mask) @ V` as one operator, which keeps one row of scores at a time.

Heads that were split off by a Reshape and a Transpose stay packed, `[batch, position, head * size]`, as the operator
reads and writes them so.
"""

from __future__ import annotations

from math import prod

from msgspec import Struct

from tilewright.core.domain import Affine, Domain
from tilewright.core.graph import Graph, Node, attrs
from tilewright.core.matching import binding_names, why_not
from tilewright.core.op import REGISTRY, Call, call_of
from tilewright.machine.kernel import Kernel, formula
from tilewright.machine.target import Target
from tilewright.passes.edit import Edit, rewrite
from tilewright.passes.match import operands, scaled
from tilewright.passes.turned import perm_of

SPLIT_HEADS = (0, 2, 1, 3)
"""From `[batch, position, head, size]` to `[batch, head, position, size]`, and back."""


def attention(graph: Graph, platform: Target) -> Graph:
    """The graph with each attention as one operator, where the platform has a kernel that makes it faster."""
    if graph.bounds or not any(node.op == "Softmax" for node in graph.nodes):
        return graph
    return rewrite(graph, {"MatMul": lambda edit, node: _rule(edit, node, platform)})


class _Parts(Struct, frozen=True):
    q: str
    k: str
    v: str
    mask: str
    scale: float
    steps: tuple[Node, ...]
    """The nodes that would go."""


def _rule(edit: Edit, node: Node, platform: Target) -> bool:
    parts = _parts(edit, node)
    if parts is None:
        return False
    output = node.outputs[0]
    mask = _mask(edit, parts, edit.shape(output))
    if mask is None or not _pays(edit, parts, mask, platform):
        return False
    shape = edit.shape(output)
    inner = [_packed(edit, name) for name in (parts.q, parts.k, parts.v)]
    names = [name for name in inner if name]
    if len(names) == 3 and _is_merged(edit, output):
        heads = shape[1]
        result = edit.emit("Attention", (*names, *mask), scale=parts.scale, q_num_heads=heads, kv_num_heads=heads)
        split = edit.reshape(result, (shape[0], shape[2], heads, shape[3]))
        edit.transpose(split, SPLIT_HEADS, output)
        return True
    full = [_four_axes(edit, name) for name in (parts.q, parts.k, parts.v)]
    if len(shape) == 4:
        edit.emit("Attention", (*full, *mask), output, scale=parts.scale)
    else:
        edit.reshape(edit.emit("Attention", (*full, *mask), scale=parts.scale), shape, output)
    return True


def _parts(edit: Edit, node: Node) -> _Parts | None:
    weights, v = node.inputs
    kind = edit.types[v]
    if edit.call(node).int("transB") or kind.rank not in (3, 4) or kind.dtype.name not in ("float32", "float64"):
        return None
    softmax = edit.producer(weights, "Softmax")
    if softmax is None or not edit.single(weights) or edit.call(softmax).axis("axis", kind.rank) != kind.rank - 1:
        return None
    for scores, mask in _masked(edit, softmax.inputs[0]):
        raw, scale = scaled(edit, scores)
        product = edit.producer(raw, "MatMul")
        if product is None or not edit.call(product).int("transB"):
            continue
        q, k = product.inputs
        batches = {edit.shape(name)[:-2] for name in (q, k, v)}
        same = {(edit.types[name].dtype, edit.types[name].rank) for name in (q, k, v)}
        if len(batches) == 1 and len(same) == 1 and edit.single(raw):
            return _Parts(q, k, v, mask, scale, (product, softmax, node))
    return None


def _pays(edit: Edit, parts: _Parts, mask: tuple[str, ...], platform: Target) -> bool:
    """Whether the fastest kernel for all takes fewer cycles than those for the steps."""
    types = [edit.types[name] for name in (parts.q, parts.k, parts.v)]
    batched = [kind.with_shape((*(1,) * (4 - kind.rank), *kind.shape)) for kind in types]
    whole = call_of(REGISTRY["Attention"], [*batched, *(edit.types[name] for name in mask)], attrs(scale=parts.scale))
    together = _cycles(edit, whole, Node("Attention", (), ()), platform)
    apart = [_cycles(edit, edit.call(step), step, platform) for step in parts.steps]
    return together is not None and (None in apart or together <= sum(cost or 0 for cost in apart))


def _cycles(edit: Edit, call: Call, node: Node, platform: Target) -> float | None:
    """The cycles of the fastest kernel that fits, shared by the cores; None where there is none."""
    domain = call.domain()
    names = binding_names(call)
    memory = platform.memories.get(platform.cores.memory)
    room = memory.bytes if memory is not None and memory.bytes else float("inf")
    return min(
        (
            float(formula(kernel.cycles, names)) * _share(kernel, domain, platform.cores.count)
            for kernel in platform.kernels_of(call.op.name)
            if kernel.engine == platform.cores.name
            if not why_not(kernel, call, node, edit.graph, names, {})
            if _smallest(kernel, call, domain) + formula(kernel.scratch, names) <= room
        ),
        default=None,
    )


def _smallest(kernel: Kernel, call: Call, domain: Domain) -> float:
    """Bytes of all operands where dimensions that can be divided are single elements: planners need no fewer."""
    free = {name for name in domain.parallel if name not in kernel.whole}
    types = [*zip(call.operands, call.inputs, strict=True), *zip(domain.outputs, call.outputs, strict=True)]
    total = 0.0
    for key, kind in types:
        if kind is not None and key in domain.access:
            axes = [axis for axis in domain.access[key] if isinstance(axis, Affine)]
            cut = {name for axis in axes for name, _ in axis.terms} & free
            total += kind.bytes / prod(max(domain.dims[name], 1) for name in cut)
    return total


def _share(kernel: Kernel, domain: Domain, cores: int) -> float:
    """The largest part of one core, where a dimension can be divided among them."""
    longest = max((domain.dims[name] for name in domain.parallel if name not in kernel.whole), default=1)
    return -(-longest // cores) / max(longest, 1)


def _masked(edit: Edit, name: str) -> list[tuple[str, str]]:
    """Readings of scores as scores plus a mask, or without one."""
    add = edit.producer(name, "Add")
    masked = [pair for pair in operands(add) if edit.types[pair[0]] == edit.types[name]] if add else []
    return [*masked, (name, "")]


def _mask(edit: Edit, parts: _Parts, shape: tuple[int, ...]) -> tuple[str, ...] | None:
    """The mask in a shape that attention takes; nothing without one, None where it does not fit."""
    if not parts.mask:
        return ()
    own = edit.shape(parts.mask)
    if not own or own[-1] != edit.shape(parts.k)[-2] or len(own) > len(shape):
        return None
    if len(own) == 1:
        return (edit.reshape(parts.mask, (1, *own)),)
    # Without a batch axis, heads lie on the first axis; attention takes a mask of three axes as one per head.
    return (parts.mask,)


def _packed(edit: Edit, name: str) -> str | None:
    """`[batch, position, head * size]` before heads were split off it."""
    above = edit.producer(name, "Transpose")
    if above is None or perm_of(edit, above) != SPLIT_HEADS:
        return None
    batch, length, heads, size = edit.shape(above.inputs[0])
    view = edit.producer(above.inputs[0], "Reshape")
    if view is not None and edit.shape(view.inputs[0]) == (batch, length, heads * size):
        return view.inputs[0]
    return edit.reshape(above.inputs[0], (batch, length, heads * size))


def _is_merged(edit: Edit, name: str) -> bool:
    """Whether heads are put together again behind the node."""
    readers = edit.readers(name)
    return (
        bool(readers)
        and not edit.is_result(name)
        and all(reader.op == "Transpose" and perm_of(edit, reader) == SPLIT_HEADS for reader in readers)
    )


def _four_axes(edit: Edit, name: str) -> str:
    shape = edit.shape(name)
    return name if len(shape) == 4 else edit.reshape(name, (1, *shape))
