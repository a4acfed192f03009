"""What the validator asks of every plan, tiled or not: nodes in order, choices that suit them, ports in place."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.core.graph import Node, TensorType
from tilewright.core.op import REGISTRY, call_node, is_view
from tilewright.core.plan import Choice, Place, Plan


def label(step: int, node: Node) -> str:
    return f"step {step}, {node.op} '{node.label}'"


def nodes(plan: Plan) -> Iterator[str]:
    """Every node has a choice that suits it, every tensor one producer that comes before its readers."""
    graph = plan.graph
    if len(plan.choices) != len(graph.nodes):
        yield f"{len(graph.nodes)} nodes, but {len(plan.choices)} choices"
        return
    made = {*graph.inputs, *graph.constants}
    for step, (node, choice) in enumerate(zip(graph.nodes, plan.choices, strict=True)):
        where = label(step, node)
        for name in node.reads:
            if name not in made:
                yield f"{where}: reads '{name}' before anything makes it"
        for name in filter(None, node.outputs):
            if name in made:
                yield f"{where}: makes '{name}', which is there already"
            made.add(name)
        yield from (f"{where}: {reason}" for reason in _wrong_choice(plan, node, choice))
    for name in graph.outputs:
        if name not in made:
            yield f"output '{name}' is never made"


def _wrong_choice(plan: Plan, node: Node, choice: Choice) -> Iterator[str]:
    op = REGISTRY[node.op]
    kernel = choice.kernel
    if is_view(node):
        if kernel is not None:
            yield f"is a view, but kernel {kernel.where} is chosen"
        return
    if choice.engine not in plan.platform.engines:
        yield f"engine '{choice.engine}' is none of '{plan.platform.name}'"
    if kernel is None:
        if op.body is None:
            yield "has neither a kernel nor a loop nest"
        return
    if kernel.op != node.op:
        yield f"kernel {kernel.where} computes {kernel.op}"
        return
    if node.epilogue and not kernel.epilogue:
        yield f"kernel {kernel.where} has no epilogue, needs {', '.join(s.op for s in node.epilogue)}"
    for operand, name in zip(op.operand_names(len(node.inputs)), node.inputs, strict=True):
        if operand in kernel.pack and name and name not in plan.graph.constants:
            yield f"kernel {kernel.where} packs {operand}, but '{name}' is no constant"
    for operand, kind in _operand_types(plan, node).items():
        allowed = [choice.variables.get(name, name) for name in kernel.types.get(operand, ())]
        if operand not in op.compile_time and kind.dtype.name not in allowed:
            yield f"kernel {kernel.where} takes {operand}: {' or '.join(allowed) or 'nothing'}, found {kind.dtype}"


def _operand_types(plan: Plan, node: Node) -> dict[str, TensorType]:
    """Types of a node's own operands; its result is the one before the epilogue."""
    op, types = REGISTRY[node.op], plan.graph.types
    found = {o: types[n] for o, n in zip(op.operand_names(len(node.inputs)), node.inputs, strict=True) if n}
    results = call_node(plan.graph, node).outputs if node.epilogue else [types[n] if n else None for n in node.outputs]
    for operand, kind in zip(op.output_names(len(node.outputs)), results, strict=False):
        if kind is not None:
            found[operand] = kind
    return found


def ports(plan: Plan) -> Iterator[str]:
    """Inputs, constants and outputs are where callers expect them, and nothing else claims to be there."""
    graph = plan.graph
    for index, name in enumerate(graph.fed):
        if name in plan.places and plan.places[name] != Place("input", 0, index):
            yield f"input '{name}' is at {plan.places[name]}"
    for index, name in enumerate(graph.given):
        if graph.types[name].bytes and plan.places.get(name) != Place("output", 0, index):
            yield f"output {index} '{name}' is at {plan.places.get(name)}"
    for name, place in plan.places.items():
        if (place.space == "constant") != (name in graph.constants):
            yield f"'{name}' is {'no' if place.space == 'constant' else 'a'} constant, but at {place}"


def states(plan: Plan) -> Iterator[str]:
    """Old and new values of a state have the same bytes, apart from all others, and nothing else is there."""
    graph, taken = plan.graph, list[tuple[int, int, str]]()
    known = {name for pair in graph.updates.items() for name in pair}
    for old, new in graph.updates.items():
        place, size = plan.places.get(old, plan.places.get(new)), graph.types[old].bytes
        if graph.types[old] != graph.types[new]:
            yield f"state '{old}' is {graph.types[old]}, its new value '{new}' {graph.types[new]}"
        if place is None or place.space != "state" or place != plan.places.get(new):
            yield f"state '{old}' is at {plan.places.get(old)}, its new value '{new}' at {plan.places.get(new)}"
            continue
        if place.offset < 0 or place.offset % plan.platform.alignment or place.offset + size > plan.state_bytes:
            yield f"state '{old}' is at {place}, of {plan.state_bytes} bytes"
        for start, end, other in taken:
            if start < place.offset + size and place.offset < end:
                yield f"states '{old}' and '{other}' share bytes"
        taken.append((place.offset, place.offset + size, old))
    for node in graph.nodes:
        if is_view(node) and node.inputs[0] in known:
            known.add(node.outputs[0])
    for node in reversed(graph.nodes):
        if is_view(node) and node.outputs[0] in known:
            known.add(node.inputs[0])
    for name, place in plan.places.items():
        if place.space == "state" and name not in known:
            yield f"'{name}' is at {place}, but is no state"
