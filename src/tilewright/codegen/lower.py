"""Plan -> Program: every node becomes a call of a kernel instance or of a printed loop nest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from tilewright.codegen.instances import epilogue_fields, instance_text, row_axes
from tilewright.codegen.literals import number
from tilewright.codegen.loopnest import Nest, print_nest
from tilewright.codegen.pack import pack
from tilewright.codegen.steps import Operand, StepCode, epilogue_steps, reads
from tilewright.core.graph import Array, Node
from tilewright.core.kernel import Kernel, Number, Parameter
from tilewright.core.matching import binding_names
from tilewright.core.op import REGISTRY, Call, call_node
from tilewright.core.plan import Choice, Place, Plan
from tilewright.core.program import Argument, Constant, Function, Invoke, Literal, Pointer, Port, Program, Struct
from tilewright.errors import TilewrightError

ALIGNMENT = 16


def lower(plan: Plan, name: str = "network") -> Program:
    """The program of a plan."""
    return _Lowering(plan, name).program()


class _Lowering:
    def __init__(self, plan: Plan, name: str) -> None:
        self._plan, self._name = plan, name
        self._graph = plan.graph
        self._functions: dict[str, Function] = {}
        self._names: set[str] = set()
        self._constants: dict[tuple[str, str], Constant] = {}
        self._constant_bytes = 0

    def program(self) -> Program:
        calls = [
            invoke
            for step, node in enumerate(self._graph.nodes)
            if not self._is_view(node)
            for invoke in [self._node(step, node, self._plan.choices[step])]
        ]
        types = self._graph.types
        return Program(
            self._name,
            tuple(Port(n, types[n]) for n in self._graph.inputs),
            tuple(Port(n, types[n]) for n in self._graph.outputs),
            tuple(self._functions.values()),
            tuple(calls),
            tuple(self._constants.values()),
            self._constant_bytes,
            self._plan.arena_bytes,
            tuple((path.name, path.read_text()) for path in self._plan.platform.headers),
        )

    def _is_view(self, node: Node) -> bool:
        return REGISTRY[node.op].kind == "view" and not node.epilogue

    def _node(self, step: int, node: Node, choice: Choice) -> Invoke:
        call = call_node(self._graph, node)
        steps = epilogue_steps(self._graph, node, call.outputs[0])
        comment = f"{node.op} {node.name or node.outputs[0]}".replace("*/", "* /")
        if choice.kernel is None:
            return self._nest(node, call, steps, comment)
        return self._kernel(step, node, call, steps, choice, comment)

    # Loop nests

    def _nest(self, node: Node, call: Call, steps: tuple[StepCode, ...], comment: str) -> Invoke:
        if call.op.body is None:
            raise TilewrightError(
                "no-kernel", f"{node.op} '{call.name}' has no code", help="add a kernel file with --kernels DIR"
            )
        domain, body = call.domain(), call.op.body(call)
        pointers: dict[Place | str, tuple[str, Pointer]] = {}
        operands: dict[str, Operand] = {}
        outputs = call.op.output_names(len(node.outputs))
        for operand, tensor in zip(outputs, node.outputs, strict=False):
            if tensor:
                operands[operand] = self._operand(operand, tensor, pointers, const=False)
        for operand, tensor in zip(call.operands, node.inputs, strict=True):
            if tensor and operand not in call.op.compile_time and reads(body, operand):
                operands[operand] = self._operand(operand, tensor, pointers, const=True)
        extra = {
            tensor: self._operand(f"{tensor_step}_{operand}", tensor, pointers, const=True)
            for tensor_step, code in enumerate(steps)
            for operand, tensor in zip(code.call.operands, code.inputs, strict=True)
            if tensor and not tensor.startswith("@") and reads(code.body, operand)
        }
        parameters = ", ".join(
            f"{'const ' if pointer.const else ''}{pointer.ctype} *{'restrict ' if len(pointers) > 1 else ''}{param}"
            for param, pointer in pointers.values()
        )
        nest = Nest(call, domain, body, steps, MappingProxyType(operands), MappingProxyType(extra))
        text = print_nest("%NAME%", nest, parameters)
        function = self._shared(f"{_identifier(node.op)}_nest", text)
        # An empty tensor has no address of its own, and one that it shared would break `restrict`.
        empty = {key for key in pointers if isinstance(key, str) and not self._graph.types[key].bytes}
        arguments = tuple(Literal("NULL") if key in empty else p for key, (_, p) in pointers.items())
        return Invoke(function, arguments, comment)

    def _operand(
        self, hint: str, tensor: str, pointers: dict[Place | str, tuple[str, Pointer]], *, const: bool
    ) -> Operand:
        """The pointer parameter of a tensor; tensors that share their bytes share the parameter."""
        kind = self._graph.types[tensor]
        place = self._plan.places[tensor]
        key: Place | str = tensor if place.space == "constant" or not kind.bytes else place
        if key not in pointers:
            located = self._located(tensor) if kind.bytes else place
            pointers[key] = (f"p_{hint}", Pointer(located, kind.dtype.ctype, const))
        return Operand(pointers[key][0], kind, tensor)

    # Kernels

    def _kernel(
        self, step: int, node: Node, call: Call, steps: tuple[StepCode, ...], choice: Choice, comment: str
    ) -> Invoke:
        kernel = choice.kernel
        assert kernel is not None
        output = self._graph.types[node.outputs[0]] if node.outputs[0] else call.outputs[0]
        replaced = self._replaced(node)
        domain = call.domain()
        text = instance_text(kernel, choice.variables, "%NAME%", output, steps, replaced, row_axes(domain))
        function = self._shared(kernel.function, text)
        tensors = dict(zip(call.operands, node.inputs, strict=True))
        tensors |= dict(zip(call.op.output_names(len(node.outputs)), node.outputs, strict=False))
        names = binding_names(call, domain)
        arguments: list[Argument] = []
        for parameter in kernel.parameters:
            if parameter.name == "epilogue":
                arguments.append(self._epilogue(function, steps, replaced))
            elif parameter.name == "scratch":
                offset = self._plan.scratch.get(step, 0)
                arguments.append(Pointer(Place("arena", offset), "void", False) if choice.scratch else Literal("NULL"))
            elif parameter.pointer:
                tensor = tensors.get(parameter.name, "")
                arguments.append(self._pointer(tensor, parameter, kernel, names))
            elif parameter.name in names:
                arguments.append(Literal(number(parameter.ctype, names[parameter.name])))
            else:
                raise TilewrightError(
                    "bad-kernel",
                    f"kernel '{kernel.where}': '{parameter.name}' is no operand, size or attribute of {node.op}",
                    help=f"known here: {', '.join(sorted([*tensors, *names]))}",
                )
        return Invoke(function, tuple(arguments), comment)

    def _pointer(self, tensor: str, parameter: Parameter, kernel: Kernel, names: Mapping[str, Number]) -> Argument:
        if not tensor:
            return Literal("NULL")
        kind, place = self._graph.types[tensor], self._plan.places[tensor]
        spec = kernel.pack.get(parameter.name, "")
        if place.space == "constant":
            array = self._graph.constants[tensor]
            place = self._constant(tensor, spec, pack(array, spec, names, kernel) if spec else array)
        return Pointer(place, kind.dtype.ctype, parameter.const)

    def _replaced(self, node: Node) -> frozenset[str]:
        """Tensors of the epilogue whose bytes the output takes."""
        target = self._plan.places.get(node.outputs[0])
        mine = [n for n in node.reads if n not in node.inputs and self._graph.types[n].bytes]
        return frozenset(n for n in mine if self._plan.places[n] == target)

    def _epilogue(self, function: str, steps: tuple[StepCode, ...], replaced: frozenset[str]) -> Argument:
        fields = epilogue_fields(steps, replaced)
        if not fields:
            return Literal("NULL")
        return Struct(
            f"struct {function}_epilogue",
            tuple(Pointer(self._located(f.tensor), f.ctype, True) if f.tensor else Literal(f.literal) for f in fields),
        )

    # Shared pieces

    def _shared(self, hint: str, text: str) -> str:
        """The name of the function with this text, which uses %NAME% for its own name."""
        if text not in self._functions:
            name, count = hint, 2
            while name in self._names:
                name, count = f"{hint}_{count}", count + 1
            self._names.add(name)
            self._functions[text] = Function(name, text.replace("%NAME%", name))
        return self._functions[text].name

    def _located(self, tensor: str) -> Place:
        place = self._plan.places[tensor]
        return self._constant(tensor, "", self._graph.constants[tensor]) if place.space == "constant" else place

    def _constant(self, tensor: str, spec: str, array: Array) -> Place:
        key = (tensor, f"{spec}{array.shape}")
        if key not in self._constants:
            offset = -(-self._constant_bytes // ALIGNMENT) * ALIGNMENT
            self._constants[key] = Constant(tensor, offset, np.ascontiguousarray(array))
            self._constant_bytes = offset + max(array.nbytes, 1)
        return Place("constant", self._constants[key].offset)


def _identifier(text: str) -> str:
    return re.sub(r"\W+", "_", text).lower()
