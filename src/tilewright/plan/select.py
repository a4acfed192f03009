"""Kernel selection: every kernel of the platform is tried on a node, and a rejection keeps its reason."""

from __future__ import annotations

from itertools import pairwise
from types import MappingProxyType

from tilewright.core.domain import Affine, Domain
from tilewright.core.graph import Graph, Node, TensorType
from tilewright.core.kernel import Kernel, Number, formula, holds
from tilewright.core.op import Call, call_node
from tilewright.core.plan import Choice, Rejection
from tilewright.core.platform import Platform
from tilewright.errors import TilewrightError


def select(graph: Graph, node: Node, platform: Platform) -> Choice:
    """The cheapest kernel that fits a node, else the loop nest; an error that quotes every rejection if neither does."""
    call = call_node(graph, node)
    if call.op.kind == "view" and not node.epilogue:
        return Choice("", None)
    names = binding_names(call, call.domain())
    rejected: list[Rejection] = []
    fitting: list[tuple[float, int, Kernel, dict[str, str]]] = []
    for index, kernel in enumerate(k for k in platform.kernels if k.op == node.op):
        variables: dict[str, str] = {}
        reason = _why_not(kernel, call, node, graph, names, variables)
        if reason:
            rejected.append(Rejection(kernel.where, reason))
        else:
            # A type variable of operands that are all absent may stand for anything.
            chosen = {**{name: allowed[0] for name, allowed in kernel.variables.items()}, **variables}
            fitting.append((float(formula(kernel.cycles, names)), index, kernel, chosen))
    if fitting:
        _, _, kernel, variables = min(fitting, key=lambda item: item[:2])
        scratch = int(formula(kernel.scratch, names))
        return Choice(kernel.engine, kernel, MappingProxyType(variables), scratch, tuple(rejected))
    if call.op.body is not None:
        return Choice(next(iter(platform.engines)), None, rejected=tuple(rejected))
    raise TilewrightError(
        "no-kernel",
        f"{node.op} '{call.name}' has no kernel on '{platform.name}'",
        reasons=[f"{r.kernel:<28} {r.reason}" for r in rejected] or [f"no kernel file declares op: {node.op}"],
        help="cast the tensors to a type a kernel takes, or add a kernel file with --kernels DIR (docs/add_a_kernel.md)",
    )


def binding_names(call: Call, domain: Domain) -> dict[str, Number]:
    """Every number a kernel may ask for by name: sizes, extents and strides of operands, attributes."""
    names: dict[str, Number] = {}
    for key, value in call.attrs.items():
        if isinstance(value, (int, float)):
            names[key] = value
        elif isinstance(value, tuple):
            names.update({f"{key}_{i}": v for i, v in enumerate(value) if isinstance(v, (int, float))})
    for operand, shape in domain.shapes.items():
        stride = 1
        for axis in reversed(range(len(shape))):
            names[f"{operand}_n{axis}"] = shape[axis]
            names[f"{operand}_s{axis}"] = stride
            stride *= shape[axis]
    names.update(domain.sizes())
    if call.op.numbers is not None:
        names.update(call.op.numbers(call))
    return names


def operand_types(call: Call) -> dict[str, TensorType]:
    """Types of the operands that are there, inputs and outputs."""
    inputs = {n: t for n, t in zip(call.operands, call.inputs, strict=True) if t is not None}
    return {**inputs, **dict(zip(call.op.output_names(len(call.outputs)), call.outputs, strict=True))}


def _why_not(
    kernel: Kernel, call: Call, node: Node, graph: Graph, names: dict[str, Number], variables: dict[str, str]
) -> str:
    """Empty where the kernel fits; fills in `variables`."""
    present = operand_types(call)
    for operand, allowed in kernel.types.items():
        if operand not in present:
            continue
        found = present[operand].dtype.name
        variable = next((a for a in allowed if a in kernel.variables), None)
        if variable is None:
            if found not in allowed:
                return f"needs types {operand}: {' or '.join(allowed)}, found {found}"
        elif variables.setdefault(variable, found) != found:
            return f"needs {operand} of the same type as others of {variable} ({variables[variable]}), found {found}"
        elif found not in kernel.variables[variable]:
            return f"needs types {operand}: {' or '.join(kernel.variables[variable])}, found {found}"
    for operand in present:
        if operand not in kernel.types and operand not in call.op.compile_time:
            return f"does not take the operand {operand}"
    for name, condition in kernel.when.items():
        if name not in names:
            return f"needs {name} {condition}, which this call does not have"
        if not holds(name, condition, names):
            return f"needs {name} {condition}, found {names[name]}"
    for operand in kernel.pack:
        tensor = node.inputs[call.operands.index(operand)] if operand in call.operands else ""
        if tensor and tensor not in graph.constants:
            return f"needs a constant {operand}"
    if node.epilogue and not kernel.epilogue:
        return f"has no epilogue, needs {', '.join(step.op for step in node.epilogue)}"
    return ""
