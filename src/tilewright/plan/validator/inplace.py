"""When a result may take the bytes of an operand, seen by the validator."""

from __future__ import annotations

from tilewright.core.graph import Node
from tilewright.core.op import REGISTRY, call_node, call_steps
from tilewright.core.plan import Choice, Plan


def replaceable(plan: Plan, node: Node, choice: Choice, name: str) -> bool:
    """Whether a step reads each element of a tensor only for the result at the same place, everywhere it uses it."""
    kind, result = plan.graph.types[name], plan.graph.types[node.outputs[0]]
    if kind.shape != result.shape or kind.dtype.ctype != result.dtype.ctype:
        return False
    fused = [number for number, step in enumerate(node.epilogue) if name in step.inputs]
    if choice.kernel is None:
        own = REGISTRY[node.op].kind == "elementwise" and (name not in node.inputs or _aligned_node(plan, node, name))
        return own and all(_aligned_step(plan, node, number, name) for number in fused)
    if name not in node.inputs:
        return choice.kernel.epilogue and all(_aligned_step(plan, node, number, name) for number in fused)
    operands = zip(REGISTRY[node.op].operand_names(len(node.inputs)), node.inputs, strict=True)
    return not fused and {operand for operand, tensor in operands if tensor == name} == {choice.kernel.inplace}


def _aligned_node(plan: Plan, node: Node, name: str) -> bool:
    """Whether a node's own operator reads a tensor at the indices of the result only."""
    call = call_node(plan.graph, node)
    domain = call.domain()
    result = domain.access[domain.outputs[0]]
    used = [o for o, n in zip(call.operands, node.inputs, strict=True) if n == name and o not in call.op.compile_time]
    return all(domain.access[operand] == result for operand in used)


def _aligned_step(plan: Plan, node: Node, number: int, name: str) -> bool:
    """The same for an epilogue step."""
    inputs = node.epilogue[number].inputs
    call = call_steps(plan.graph, node)[number]
    domain = call.domain()
    result = domain.access[domain.outputs[0]]
    return all(domain.access[o] == result for o, n in zip(call.operands, inputs, strict=True) if n == name)
