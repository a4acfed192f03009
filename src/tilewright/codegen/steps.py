"""Bodies as C statements: one point of an operator, and the element-wise steps fused behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec import Struct

from tilewright.base.dtype import DType
from tilewright.codegen.affine import Block, scaled
from tilewright.core.domain import Domain, Whole
from tilewright.core.graph import Graph, Node, Result, TensorType
from tilewright.core.op import Body, Call, call_steps, words


class CArray(Struct, frozen=True):
    """An array that generated code reads or writes: the name of its pointer and its type."""

    pointer: str
    type: TensorType
    tensor: str


def load(operand: CArray, index: str) -> str:
    """An element in the compute type."""
    convert = operand.type.dtype.load
    element = f"{operand.pointer}[{index}]"
    return f"{convert}({element})" if convert else element


def store(operand: CArray, index: str, value: str) -> str:
    """A statement that stores a value of the compute type."""
    return f"{operand.pointer}[{index}] = {converted(operand.type, value)};"


def converted(kind: TensorType, value: str) -> str:
    """A value of the compute type as it is stored."""
    return f"{kind.dtype.store}({value})" if kind.dtype.store else value


def cast(dtype: DType, text: str) -> str:
    """A conversion to the compute type that every warning level accepts."""
    if dtype.kind == "bool":
        return f"(bool)({text})"
    return f"({dtype.compute})({text})"


def rounded(dtype: DType, text: str) -> str:
    """A value of the compute type as it would be read back had it been stored: halves are computed as floats."""
    return f"{dtype.load}({dtype.store}({text}))" if dtype.store else text


def mentions(text: str, name: str) -> bool:
    return name in words(text)


class StepCode(Struct, frozen=True):
    """One epilogue step, ready to print."""

    call: Call
    body: Body
    domain: Domain
    inputs: tuple[str | Result, ...]
    """As the step has them."""


def epilogue_steps(graph: Graph, node: Node) -> tuple[StepCode, ...]:
    """The steps of a node's epilogue with their calls and bodies."""
    steps: list[StepCode] = []
    for step, call in zip(node.epilogue, call_steps(graph, node), strict=True):
        if call.body is None:
            raise ValueError(f"{step.op} has no body and cannot be fused")
        steps.append(StepCode(call, call.body, call.domain(), step.inputs))
    return tuple(steps)


def value_name(result: Result) -> str:
    """The C variable of a result that steps read."""
    return f"v{result.number}"


class StepReader(Protocol):
    """How the tensors of epilogue steps are reached from where the steps are printed."""

    def element(self, index: int, operand: str, tensor: str) -> str:
        """The element that step `index` reads at this point, in the compute type."""
        ...

    def array(self, index: int, operand: str, tensor: str) -> CArray:
        """The whole tensor, for operands indexed by data."""
        ...

    def block(self, index: int, operand: str) -> Block:
        """How that tensor lies in memory."""
        ...


def at_macro(operand: str, array: CArray, block: Block) -> str:
    """`X_at(i0, i1)`: how bodies reach an operand that is indexed by data."""
    names = [f"i{k}" for k in range(len(block.strides))]
    index = " + ".join(scaled(f"(i{k})", s) for k, s in enumerate(block.strides)) or "0"
    if block.origin != 0:
        index = f"{index} - ({block.origin})"
    return f"#define {operand}_at({', '.join(names)}) ({load(array, index)})"


def data_dependent(domain: Domain, operand: str) -> bool:
    return any(isinstance(axis, Whole) for axis in domain.access[operand])


def print_steps(
    steps: tuple[StepCode, ...], reader: StepReader, indent: str, constant: Callable[[int, str], str] | None = None
) -> tuple[list[str], str]:
    """C lines that compute all steps from the value `v0`, and the name of the last value. Each is rounded as a node is.

    `constant(step index, name)` replaces a constant's literal value where constants are passed in from outside.
    """
    lines: list[str] = []
    for index, step in enumerate(steps):
        target = f"v{index + 1}"
        macros: list[str] = []
        kind = step.call.outputs[0].dtype
        lines.append(f"{indent}{kind.compute} {target};")
        lines.append(f"{indent}{{")
        for ctype, name, literal in step.body.constants:
            value = constant(index, name) if constant else literal
            lines.append(f"{indent}    const {ctype} {name} = {value};")
        for operand, tensor, operand_type in zip(step.call.operands, step.inputs, step.call.inputs, strict=True):
            if operand_type is None or not step.body.reads(operand):
                continue
            if isinstance(tensor, Result):
                # Values of steps are rounded where they are made, that of the node itself is not.
                value = value_name(tensor) if tensor.number else rounded(operand_type.dtype, value_name(tensor))
            elif data_dependent(step.domain, operand):
                lines.append(at_macro(operand, reader.array(index, operand, tensor), reader.block(index, operand)))
                macros.append(operand)
                continue
            else:
                value = reader.element(index, operand, tensor)
            lines.append(f"{indent}    const {operand_type.dtype.compute} {operand} = {value};")
        lines += [f"{indent}    {ctype} {name} = {init};" for ctype, name, init in step.body.state]
        lines += [f"{indent}    {line}" for line in step.body.update.splitlines()]
        result = next(iter(step.body.result.values()))
        # The last value is rounded where it is stored.
        made = cast(kind, result) if index == len(steps) - 1 else rounded(kind, cast(kind, result))
        lines.append(f"{indent}    {target} = {made};")
        lines.append(f"{indent}}}")
        lines += [f"#undef {operand}_at" for operand in macros]
    return lines, f"v{len(steps)}"


def used_dims(body: Body, names: Mapping[str, int]) -> frozenset[str]:
    """Loop dimensions that a body's text uses as indices."""
    return body.words & {*names}
