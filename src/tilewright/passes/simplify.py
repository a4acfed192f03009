"""Removes operators that change nothing and merges those that say the same twice."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilewright.core.domain import Affine, Axis
from tilewright.core.graph import Array, Graph, Node
from tilewright.core.op import REGISTRY
from tilewright.machine.target import Target
from tilewright.ops.integer_division import true_divide_factor
from tilewright.passes.edit import Edit, Rule, rewrite

SAMPLE = 64
"""Elements of a constant that are compared before all of them are."""


def simplify(graph: Graph, platform: Target) -> Graph:
    """The graph without operators that do nothing, chains of views and repeated nodes."""
    del platform
    return _without_repetition(rewrite(_without_equal_constants(graph), RULES))


def _keep_input(edit: Edit, node: Node) -> bool:
    """Readers of the node read its first input, if that has the same type."""
    source, output = node.inputs[0], node.outputs[0]
    return edit.types[source] == edit.types[output] and edit.alias(output, source)


def _same_or_kept(edit: Edit, node: Node) -> bool:
    return len(node.outputs) == 1 and _keep_input(edit, node)


def _view(edit: Edit, node: Node) -> bool:
    """A view of the same shape goes, a view of a view is one; every view is a Reshape."""
    output = node.outputs[0]
    if _keep_input(edit, node):
        return True
    source = node.inputs[0]
    above = edit.producer(source)
    if above is not None and REGISTRY[above.op].kind == "view":
        source = above.inputs[0]
        if edit.types[source] == edit.types[output] and edit.alias(output, source):
            return True
    elif node.op == "Reshape" and edit.ints(node.inputs[1]) == edit.shape(output):
        return False
    if node.op == "Identity" and source == node.inputs[0]:
        return False
    edit.reshape(source, edit.shape(output), output)
    return True


def _single_input(edit: Edit, node: Node) -> bool:
    return len(node.inputs) == 1 and _keep_input(edit, node)


def _unmoved(edit: Edit, node: Node) -> bool:
    """A move that reads each element from where it writes it."""
    if len(node.outputs) != 1 or edit.types[node.inputs[0]] != edit.types[node.outputs[0]]:
        return False
    call = edit.call(node)
    access = call.domain().access
    pairs = zip(access[call.operands[0]], access[call.op.output_names(1)[0]], edit.shape(node.outputs[0]), strict=True)
    same = all(_in_place(read, written, extent) for read, written, extent in pairs)
    return same and _keep_input(edit, node)


def _in_place(read: Axis, written: Axis, extent: int) -> bool:
    """Whether an axis is read where it is written; the only element of an axis may have been padded away."""
    if extent == 1:
        return isinstance(read, Affine) and read.constant == 0
    return isinstance(read, Affine) and read == written


def _all_padding(edit: Edit, node: Node) -> bool:
    """A padding that crops everything there was is its fill, repeated."""
    call = edit.call(node)
    domain = call.domain()
    ranges = {name: (0, size) for name, size in domain.dims.items()}
    reached = zip(domain.access[call.operands[0]], edit.shape(node.inputs[0]), strict=True)
    ends = [(axis.bounds(ranges), extent) for axis, extent in reached if isinstance(axis, Affine)]
    kind = edit.types[node.outputs[0]]
    if call.text("mode") != "constant" or all(hi >= 0 and lo < extent and extent for (lo, hi), extent in ends):
        return False
    given = node.inputs[2] if len(node.inputs) > 2 else ""
    fill = given or edit.constant(np.zeros((), kind.dtype.numpy), f"{node.outputs[0]}_fill")
    scalar = edit.reshape(fill, ()) if edit.shape(fill) else fill
    edit.emit("Expand", (scalar, edit.constant(np.asarray(kind.shape, np.int64), "shape")), node.outputs[0])
    return True


def _transpose(edit: Edit, node: Node) -> bool:
    perm = edit.call(node).ints("perm")
    return perm == tuple(range(len(perm))) and bool(perm) and _keep_input(edit, node)


def _neutral(index: int, number: float, *, negative_zero: bool = False) -> Rule:
    """A rule for a binary operator whose operand `index` changes nothing where it is `number`."""

    def rule(edit: Edit, node: Node) -> bool:
        value = edit.uniform(node.inputs[index])
        if value is None or value != number:
            return False
        other, output = node.inputs[1 - index], node.outputs[0]
        if negative_zero and edit.types[other].dtype.is_float and not np.signbit(value):
            return False  # -0.0 + 0.0 is 0.0
        return edit.types[other] == edit.types[output] and edit.alias(output, other)

    return rule


def _exact_reciprocal(edit: Edit, node: Node) -> bool:
    """A division by a power of two is a product, which costs less."""
    value = edit.uniform(node.inputs[1])
    kind = edit.types[node.outputs[0]].dtype
    if not value or not kind.is_float or abs(np.frexp(value)[0]) != 0.5 or not 2.0**-14 <= abs(value) <= 2.0**14:
        return False
    number = edit.constant(np.full(edit.shape(node.inputs[1]), 1 / value, kind.numpy), f"{node.inputs[1]}_inverse")
    edit.emit("Mul", (node.inputs[0], number), node.outputs[0])
    return True


def _either(*rules: Rule) -> Rule:
    return lambda edit, node: any(rule(edit, node) for rule in rules)


def _requantised_by_one(edit: Edit, node: Node) -> bool:
    """A requantisation that multiplies by one, adds nothing and has the limits of its type."""
    call = edit.call(node)
    mul, add = (edit.uniform(name) for name in node.inputs[1:3])
    kind = edit.types[node.outputs[0]].dtype
    levels = call.int("n_levels") if call.attrs.get("n_levels_out") is None else call.int("n_levels_out")
    plain = mul == call.float("div") and add == 0 and not call.int("zero_point") and levels == kind.hi - kind.lo + 1
    return plain and _keep_input(edit, node)


def _divided_before(edit: Edit, node: Node) -> bool:
    """A requantisation of a division by a constant, which is a product, multiplies by both factors."""
    above = edit.producer(node.inputs[0], "TrueIntegerDiv")
    mul = edit.uniform(node.inputs[1])
    if above is None or mul is None or not edit.single(node.inputs[0]):
        return False
    factor, kind = true_divide_factor(edit.call(above)), edit.types[above.inputs[0]].dtype
    product = int(mul) * factor
    if max(abs(factor), abs(product)) * max(-kind.lo, kind.hi) >= 1 << 31:
        return False
    given = {name: value for name, value in node.attrs.items() if name not in ("x_limit", "total_limit")}
    both = edit.constant(np.full(edit.shape(node.inputs[1]), product, np.int32), f"{node.inputs[1]}_divided")
    edit.emit_all("RequantShift", (above.inputs[0], both, *node.inputs[2:]), node.outputs, given)
    return True


def _without_empty(edit: Edit, node: Node) -> bool:
    """Inputs of a concatenation that hold nothing go."""
    full = [name for name in node.inputs if edit.types[name].bytes]
    if not full or len(full) == len(node.inputs):
        return False
    if len(full) == 1 and edit.alias(node.outputs[0], full[0]):
        return True
    edit.emit_all("Concat", full, node.outputs, node.attrs)
    return True


def _no_bounds(edit: Edit, node: Node) -> bool:
    return not any(node.inputs[1:]) and _keep_input(edit, node)


RULES: Mapping[str, Rule] = {
    "Identity": _view,
    "Reshape": _view,
    "Flatten": _view,
    "Squeeze": _view,
    "Unsqueeze": _view,
    "Cast": _same_or_kept,
    "CastLike": _same_or_kept,
    "Sum": _single_input,
    "Max": _single_input,
    "Min": _single_input,
    "Mean": _single_input,
    "Clip": _no_bounds,
    "RequantShift": _either(_requantised_by_one, _divided_before),
    "Transpose": _transpose,
    "Slice": _unmoved,
    "Pad": _either(_unmoved, _all_padding),
    "Expand": _unmoved,
    "Tile": _unmoved,
    "Concat": _either(_unmoved, _without_empty),
    "Split": _unmoved,
    "Mul": _either(_neutral(0, 1.0), _neutral(1, 1.0)),
    "Div": _either(_neutral(1, 1.0), _exact_reciprocal),
    "Pow": _neutral(1, 1.0),
    "Add": _either(_neutral(0, 0.0, negative_zero=True), _neutral(1, 0.0, negative_zero=True)),
    "Sub": _neutral(1, 0.0),
}


def _without_equal_constants(graph: Graph) -> Graph:
    """Each value once: constants that hold the same bytes are one."""
    firsts: dict[object, list[str]] = {}
    renamed: dict[str, str] = {}
    for name, array in graph.constants.items():
        if name in graph.outputs:
            continue
        flat = array.reshape(-1)
        key = (array.dtype.name, array.shape, flat[:: max(1, array.size // SAMPLE)].tobytes())
        group = firsts.setdefault(key, [])
        equal = next((other for other in group if _same_bytes(graph.constants[other], array)), None)
        if equal is None:
            group.append(name)
        else:
            renamed[name] = equal
    if not renamed:
        return graph
    return graph.with_nodes(
        [node if renamed.keys().isdisjoint(node.reads) else node.rename(renamed) for node in graph.nodes]
    )


def _same_bytes(left: Array, right: Array) -> bool:
    return left.size <= SAMPLE or left.tobytes() == right.tobytes()


def _without_repetition(graph: Graph) -> Graph:
    """The graph with equal nodes on equal inputs computed once."""
    seen: dict[object, Node] = {}
    renamed: dict[str, str] = {}
    kept: list[Node] = []
    for original in graph.nodes:
        node = original if renamed.keys().isdisjoint(original.reads) else original.rename(renamed)
        if node.epilogue or not node.inputs or any(output in graph.outputs for output in node.outputs):
            kept.append(node)
            continue
        key = (node.op, node.inputs, tuple(sorted(node.attrs.items())), tuple(map(bool, node.outputs)))
        first = seen.setdefault(key, node)
        if first is node:
            kept.append(node)
        else:
            renamed |= {ours: theirs for ours, theirs in zip(node.outputs, first.outputs, strict=True) if ours}
    return graph.with_nodes(kept) if renamed else graph
