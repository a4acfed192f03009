"""Builds the Graph node by node: newest forms, function bodies inlined, constants folded, types known throughout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tilewright import ops
from tilewright.base.dtype import DType
from tilewright.core.graph import Array, Attr, Graph, Node, TensorType, type_of_array
from tilewright.core.op import Call, Operator, call_of, evaluate
from tilewright.errors import TilewrightError
from tilewright.frontend import functions
from tilewright.frontend.limits import DAMAGE, Budget, senseless
from tilewright.frontend.loops import unroll
from tilewright.frontend.proto import CODE_OF_DTYPE
from tilewright.frontend.raw import Function, RawAttr, RawNode, Subgraph, Unsupported, alive, ordered
from tilewright.frontend.upgrade import is_known, upgrade

FOLD_LIMIT = 64 << 20
"""A folded constant larger than this, and than what it is made of, would only bloat the weights."""

NESTING_LIMIT = 40

Env = dict[str, str]
"""Names of one scope of the file, and what they are called in the graph; absent optional ones are empty."""

Adapt = Callable[["Builder", Node], Node]


class NeedsValues(Exception):
    """Values of these graph inputs are needed at compile time."""

    def __init__(self, names: tuple[str, ...], error: TilewrightError) -> None:
        super().__init__(error.what)
        self.names = names
        self.error = error


class Builder:
    """The graph so far. Also the context that upgrades and type adaptation work in."""

    def __init__(
        self,
        inputs: Mapping[str, TensorType],
        initialisers: Mapping[str, Array],
        local: Mapping[tuple[str, str], Function],
        ranks: Mapping[str, int],
        reserved: Iterable[str],
        adapt: Adapt | None,
        budget: Budget,
    ) -> None:
        self.nodes: list[Node] = []
        constants = {n: type_of_array(a) for n, a in initialisers.items()}
        for check, kinds in ((budget.tensor, inputs), (budget.constant, constants)):
            for name, kind in kinds.items():
                check(name, kind)
        self.types: dict[str, TensorType] = {**inputs, **constants}
        self.constants: dict[str, Array] = dict(initialisers)
        self.problems: dict[str, None] = {}
        self._inputs = tuple(inputs)
        self._registry = ops.operators()
        self._local = local
        self._ranks = ranks
        self._taken = {*reserved, *self.types}
        self._tried: dict[str, int] = {}
        self._casts: dict[tuple[str, DType], str] = {}
        self._unknown: set[str] = set()
        self._adapt = adapt
        self.budget = budget

    # What upgrades and type adaptation ask for.

    def type(self, name: str) -> TensorType:
        return self.types[name]

    def value(self, name: str) -> Array | None:
        return self.constants.get(name)

    def fresh(self, hint: str) -> str:
        # Starting where the last search for this hint ended keeps long unrolled loops from taking quadratic time.
        name, count = hint, self._tried.get(hint, 1)
        while name in self._taken:
            name, count = f"{hint}_{count}", count + 1
        self._taken.add(name)
        self._tried[hint] = count
        return name

    def declared_rank(self, name: str) -> int | None:
        """The rank that the file states for a tensor, which is not always the one the operators give."""
        return self._ranks.get(name)

    def constant(self, hint: str, array: Array) -> str:
        name = self.fresh(hint)
        kind = type_of_array(array)
        self.budget.constant(name, kind)
        self.constants[name] = array
        self.types[name] = kind
        return name

    def cast(self, name: str, dtype: DType) -> str:
        """The tensor in another element type: a converted constant, or a Cast."""
        if self.types[name].dtype == dtype:
            return name
        if (name, dtype) in self._casts:
            return self._casts[name, dtype]
        known = self.constants.get(name)
        if known is not None:
            result = self.constant(f"{name}_{dtype}", known.astype(dtype.numpy))
        else:
            result = self.fresh(f"{name}_{dtype}")
            self._append(Node("Cast", (name,), (result,), MappingProxyType({"to": CODE_OF_DTYPE[dtype]}), result))
        self._casts[name, dtype] = result
        return result

    # Walking the file.

    def run(self, nodes: Sequence[RawNode], env: Env, bound: Mapping[str, str], origin: tuple[str, ...] = ()) -> None:
        """Builds the nodes of one scope. `bound` says what outputs of the scope are called in the graph."""
        if len(origin) > NESTING_LIMIT:
            raise TilewrightError(
                "bad-model",
                f"functions and inner graphs lie more than {NESTING_LIMIT} deep in each other, from {origin[0]}",
                help="a function must not call itself, directly or by others",
            )
        for node in ordered(nodes, env):
            inputs = tuple(self._resolve(node, name, env) for name in node.inputs)
            outputs: list[str] = []
            for output in node.outputs:
                prefix = f"{origin[-1].partition(' ')[2]}/" if origin else ""
                made = bound.get(output) or (self.fresh(f"{prefix}{output}") if origin and output else output)
                outputs.append(made)
                env[output] = made
            name = node.name if not origin else f"{origin[0].partition(' ')[2]}/{node.label}"
            self.process(replace(node, inputs=inputs, outputs=tuple(outputs), name=name), env, origin)

    def _resolve(self, node: RawNode, name: str, env: Env) -> str:
        if not name:
            return ""
        if name not in env:
            raise TilewrightError(
                "bad-model",
                f"{node.op} '{node.label}' reads '{name}', which nothing makes",
                help="check that the file is complete",
            )
        return env[name]

    def process(self, node: RawNode, env: Env, origin: tuple[str, ...]) -> None:
        """Builds one node, whose tensors have the names of the graph."""
        if origin:
            self.budget.node()
        try:
            if any(name in self._unknown for name in node.inputs):
                self._check_known(node, origin)
                self._give_up(node)
            elif (node.domain, node.op) in self._local:
                self._inline(self._local[node.domain, node.op], node, origin)
            elif node.op == "If" and not node.domain:
                self._branch(node, env, origin)
            elif node.op in ("Loop", "Scan") and not node.domain:
                unroll(node, _Scope(self, node, env, origin))
            else:
                for new in upgrade(node, self):
                    self._place(new, origin)
        except TilewrightError as error:
            # A shape that depends on data is as much beyond a static network as an operator that nobody declared.
            if not error.code.startswith("unsupported") and error.code != "dynamic-shape":
                raise
            self._refuse(node, origin, error.what.removesuffix(f", in {node.op} '{node.label}'"))
        except DAMAGE as reason:
            raise senseless(f"{node.op} '{node.label}'", reason) from reason

    def _place(self, node: RawNode, origin: tuple[str, ...]) -> None:
        operator = self._registry.get(node.op)
        if not any(node.outputs):
            return
        if operator is None:
            self._inline_standard(node, origin)
            return
        try:
            self.add(self._typed(node, operator))
        except TilewrightError as error:
            if error.code != "use-function-body":
                raise
            self._inline_standard(node, origin)

    def _typed(self, node: RawNode, operator: Operator) -> Node:
        attrs = {key: plain(key, value) for key, value in node.attrs.items()}
        outputs = self._all_required(node, operator)
        while len(outputs) > 1 and not outputs[-1] and not operator.outputs.endswith("*"):
            outputs.pop()
        inputs = list(node.inputs)
        while inputs and not inputs[-1]:
            inputs.pop()
        kept = {key: value for key, value in attrs.items() if value is not None}
        return Node(node.op, tuple(inputs), tuple(outputs), MappingProxyType(kept), node.name)

    def _all_required(self, node: RawNode, operator: Operator) -> list[str]:
        """The outputs of a node. Code writes all that are not optional: these have names even if nobody reads any."""
        outputs = list(node.outputs)
        required = [name[-1] not in "?*" for name in operator.outputs.split()]
        outputs += [""] * (len(required) - len(outputs))
        for index, needed in enumerate(required):
            if needed and not outputs[index]:
                outputs[index] = self.fresh(f"{node.label}_{operator.outputs.split()[index]}")
        return outputs

    def _inline_standard(self, node: RawNode, origin: tuple[str, ...]) -> None:
        body = functions.standard_body(node, [self.types[name] if name else None for name in node.inputs])
        if body is None:
            self._refuse(node, origin)
        else:
            self._inline(body, node, origin)

    def _inline(self, function: Function, node: RawNode, origin: tuple[str, ...]) -> None:
        env: Env = dict.fromkeys(function.inputs, "")
        env.update(zip(function.inputs, node.inputs, strict=False))
        wanted = {formal: made for formal, made in zip(function.outputs, node.outputs, strict=False) if made}
        nodes = functions.specialise(function.nodes, {**function.defaults, **node.attrs})
        self._scope(nodes, env, wanted, (*origin, f"{node.op} {node.label}"))
        self._check_outputs(node, list(wanted.values()))

    def _scope(self, nodes: Sequence[RawNode], env: Env, wanted: Mapping[str, str], origin: tuple[str, ...]) -> None:
        """Builds an inner scope so that its outputs get the names that the outer one expects."""
        through = {formal for formal in wanted if formal in env}
        self.run(alive(nodes, wanted), env, {f: m for f, m in wanted.items() if f not in through}, origin)
        for formal in through:
            self.process(RawNode("Identity", (env[formal],), (wanted[formal],)), env, origin)

    def _branch(self, node: RawNode, env: Env, origin: tuple[str, ...]) -> None:
        condition = self.constants.get(node.inputs[0])
        if condition is not None:
            self._take(node, "then_branch" if condition.any() else "else_branch", node.outputs, env, origin)
            return
        # Branches have no effects, so both may be computed and one chosen, as long as they agree in type.
        results: list[tuple[str, ...]] = []
        for key in ("then_branch", "else_branch"):
            results.append(tuple(self.fresh(f"{output}_{key[:4]}") if output else "" for output in node.outputs))
            try:
                self._take(node, key, results[-1], env, origin)
            except TilewrightError as error:
                raise self._impossible(node, key, error) from error
        pairs = [found for found in zip(node.outputs, *results, strict=True) if found[0]]
        if any(self.types.get(yes) != self.types.get(no) for _, yes, no in pairs):
            self._refuse(node, origin, "its branches give different types, and its condition is known at run time only")
            return
        chosen = node.inputs[0]
        if self.types[chosen].rank:
            chosen, scalar = self.fresh(f"{chosen}_scalar"), self.constant(f"{chosen}_shape", np.zeros(0, np.int64))
            self.process(RawNode("Reshape", (node.inputs[0], scalar), (chosen,)), env, origin)
        for output, yes, no in pairs:
            self.process(RawNode("Where", (chosen, yes, no), (output,), {}, node.name), env, origin)

    def _impossible(self, node: RawNode, key: str, error: TilewrightError) -> Exception:
        """What to raise for a branch that is wrong for these shapes: whoever knows the condition may never take it."""
        where = f"the {key[:4]} branch of If '{node.label}'"
        sources = self.sources(node.inputs[:1])
        if not sources or error.code == "bad-model":
            return error
        text = f"{where} cannot be computed, and its condition is known at run time only: {error.what}"
        return NeedsValues(sources, TilewrightError("not-constant", text))

    def _check_outputs(self, node: RawNode, made: Sequence[str]) -> None:
        """An error for outputs that an inner graph or a function leaves without a value."""
        for output in made:
            if output not in self.types and output not in self._unknown:
                raise TilewrightError(
                    "bad-model",
                    f"nothing in {node.op} '{node.label}' makes its output '{output}'",
                    help="check that the file is complete",
                )

    def _take(self, node: RawNode, key: str, outputs: Sequence[str], env: Env, origin: tuple[str, ...]) -> None:
        """Builds a branch of an If; its results are called `outputs`."""
        branch = node.attrs.get(key)
        if not isinstance(branch, Subgraph):
            raise TilewrightError("bad-model", f"If '{node.label}' lacks its {key}")
        inner, pairs = self.enter(node, branch, (), env), zip(branch.outputs, outputs, strict=False)
        named = [(formal, made) for formal, made in pairs if made]
        # A branch may give one tensor more than once.
        wanted = dict(reversed(named))
        self._scope(branch.nodes, inner, wanted, (*origin, f"If {node.label}"))
        for formal, made in named:
            if wanted[formal] != made:
                self.process(RawNode("Identity", (wanted[formal],), (made,)), env, origin)
        self._check_outputs(node, [output for output in outputs if output])

    def enter(self, node: RawNode, graph: Subgraph, inputs: Sequence[str], env: Env) -> Env:
        """The names inside a graph of an attribute: those around it, its inputs and its constants."""
        inner = {**env, **dict(zip(graph.inputs, inputs, strict=True))}
        for name, array in graph.initialisers.items():
            if isinstance(array, Unsupported):
                raise TilewrightError("unsupported-operator", array.what)
            inner[name] = self.constant(f"{node.label}/{name}", array)
        return inner

    # What cannot be built.

    def give_up(self, names: Iterable[str]) -> None:
        """These tensors exist but nothing is known of them."""
        self._unknown.update(names)

    def _check_known(self, node: RawNode, origin: tuple[str, ...]) -> None:
        known = node.op in self._registry or is_known(node) or (node.domain, node.op) in self._local
        if not known and not functions.has_standard_body(node.op, node.domain):
            self._refuse(node, origin)

    def _refuse(self, node: RawNode, origin: tuple[str, ...], why: str = "") -> None:
        domain = f" of '{node.domain}'" if node.domain else ""
        if origin:
            outer, _, label = origin[0].partition(" ")
            line = f"{outer} '{label}': its definition needs {node.op}{domain}" + (f", {why}" if why else "")
        else:
            line = f"{node.op}{domain} '{node.label}'" + (f": {why}" if why else "")
        self.problems[line] = None
        self._give_up(node)

    def _give_up(self, node: RawNode) -> None:
        self._unknown.update(output for output in node.outputs if output and output not in self.types)

    # Adding nodes.

    def add(self, node: Node) -> None:
        """Adds a node of a declared operator, adapted to the types of its operands."""
        constant = all(name in self.constants for name in node.inputs if name)
        self._append(node if self._adapt is None or constant else self._adapt(self, node))

    def _append(self, node: Node) -> None:
        """Appends a node, or the constant it amounts to."""
        meant = functions.meant(node.op, node.attrs, self._registry[node.op].attrs)
        if meant != node.attrs:
            node = replace(node, attrs=MappingProxyType(meant))
        call = self._call(node)
        if all(name in self.constants for name in node.inputs if name) and self._fold(node, call):
            return
        # A rule that cannot follow the node must fail here, where it is known which one that is.
        call.domain()
        self.nodes.append(node)
        self._record(node, call)

    def _call(self, node: Node) -> Call:
        try:
            call = call_of(
                self._registry[node.op],
                [self.types[name] if name else None for name in node.inputs],
                node.attrs,
                values=[self.constants.get(name) for name in node.inputs],
                name=node.label,
                wanted=len(node.outputs),
            )
            for operand in sorted(call.op.compile_time):
                if call.has(operand):
                    call.value(operand)
            for name, kind in zip(node.outputs, call.outputs, strict=False):
                self.budget.tensor(name, kind)
            if any(node.outputs[len(call.outputs) :]):
                raise call.error("bad-model", f"{len(node.outputs)} outputs are named, {len(call.outputs)} are made")
            return call
        except TilewrightError as error:
            if error.code != "not-constant":
                raise
            operator = self._registry[node.op]
            operands = zip(operator.operand_names(len(node.inputs)), node.inputs, strict=False)
            names = [n for operand, n in operands if operand in operator.compile_time and n not in self.constants]
            raise NeedsValues(self.sources(names), error) from error

    def sources(self, names: Iterable[str]) -> tuple[str, ...]:
        """The graph inputs from which some tensors come."""
        waiting = list(names)
        made = {output: n for n in self.nodes for output in n.outputs}
        seen: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name and name not in seen:
                seen.add(name)
                waiting += made[name].inputs if name in made else ()
        return tuple(name for name in self._inputs if name in seen)

    def _fold(self, node: Node, call: Call) -> bool:
        if node.op == "DequantizeLinear":
            # Quantised weights stay as they are: as floats they would lose their integers.
            return False
        size = sum(kind.bytes for kind in call.outputs)
        if size > FOLD_LIMIT and size > sum(kind.bytes for kind in call.inputs if kind is not None):
            return False
        for name, kind in zip(node.outputs, call.outputs, strict=False):
            self.budget.constant(name, kind)
        arrays = evaluate(call, [self.constants[name] if name else None for name in node.inputs])
        self.constants.update({name: array for name, array in zip(node.outputs, arrays, strict=False) if name})
        self._record(node, call)
        return True

    def _record(self, node: Node, call: Call) -> None:
        self.types.update({name: kind for name, kind in zip(node.outputs, call.outputs, strict=False) if name})

    # The result.

    def graph(self, name: str, inputs: Sequence[str], outputs: Sequence[str]) -> Graph:
        """The finished graph: every output has its own name and is made by a node."""
        renamed: dict[str, str] = {}
        tail: list[Node] = []
        names: list[str] = []
        for output in outputs:
            if output in self.constants and output not in renamed:
                renamed[output] = self.constant(f"{output}_value", self.constants.pop(output))
                tail.append(Node("Identity", (renamed[output],), (output,), name=output))
            elif output in inputs or output in names:
                copy = self.fresh(f"{output}_output")
                tail.append(Node("Identity", (output,), (copy,), name=copy))
                self.types[copy] = self.types[output]
                output = copy
            names.append(output)
        nodes = _contributing([*(node.rename(renamed) for node in self.nodes), *tail], names)
        empty = Graph(
            name, tuple(inputs), tuple(names), (), MappingProxyType(self.types), MappingProxyType(self.constants)
        )
        return empty.with_nodes(nodes)


class _Scope(Struct, frozen=True):
    """What `unroll` asks of the place where a loop stands."""

    builder: Builder
    node: RawNode
    env: Env
    origin: tuple[str, ...]

    def type(self, name: str) -> TensorType:
        if name not in self.builder.types:
            raise TilewrightError("unsupported-operator", "a part of its body is not supported")
        return self.builder.types[name]

    def value(self, name: str) -> Array | None:
        return self.builder.value(name)

    def constant(self, hint: str, array: Array) -> str:
        return self.builder.constant(hint, array)

    def fresh(self, hint: str) -> str:
        return self.builder.fresh(hint)

    def room_for(self, nodes: int) -> None:
        self.builder.budget.room_for(nodes)

    def needed(self, name: str, what: str) -> Array:
        known = self.builder.value(name)
        if known is None:
            error = TilewrightError(
                "not-constant", f"{what} of {self.node.op} '{self.node.label}' must be known at compile time"
            )
            raise NeedsValues(self.builder.sources([name]), error)
        return known

    def place(self, node: RawNode) -> None:
        self.builder.process(node, self.env, self.origin)

    def step(self, body: Subgraph, inputs: Sequence[str]) -> tuple[str, ...]:
        self.builder.budget.node()
        inner = self.builder.enter(self.node, body, inputs, self.env)
        self.builder.run(
            alive(body.nodes, body.outputs), inner, {}, (*self.origin, f"{self.node.op} {self.node.label}")
        )
        missing = [name for name in body.outputs if name not in inner]
        if missing:
            raise TilewrightError(
                "bad-model",
                f"nothing in {self.node.op} '{self.node.label}' makes '{missing[0]}'",
                help="check that the file is complete",
            )
        return tuple(inner[name] for name in body.outputs)


def _contributing(nodes: Sequence[Node], outputs: Sequence[str]) -> list[Node]:
    needed = set(outputs)
    kept: list[Node] = []
    for node in reversed(nodes):
        if any(output in needed for output in node.outputs):
            needed.update(node.reads)
            kept.append(node)
    return kept[::-1]


def plain(name: str, value: RawAttr) -> Attr:
    """An attribute as operators take it: tensors become numbers or tuples of numbers."""
    if isinstance(value, np.ndarray):
        numbers = value.reshape(-1).tolist()
        return numbers[0] if len(numbers) == 1 else tuple(numbers)
    if isinstance(value, Unsupported):
        raise TilewrightError("unsupported-operator", value.what)
    if isinstance(value, (Subgraph, functions.Ref)):
        raise TilewrightError("unsupported-operator", f"attribute '{name}' is a graph")
    return value
