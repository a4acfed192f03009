"""Operators: each is declared once, and everything else asks the declaration.

A declaration names operands and attributes and gives the type rule, the loop domain with access maps, the numpy
reference, examples that drive the generic tests, and, where the meaning fits in a few C expressions, a `Body` from
which the code generator prints a loop nest on any platform.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from math import isfinite
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from tilewright.base.dtype import DTYPES
from tilewright.core.domain import Domain, shared
from tilewright.core.graph import Array, Attr, Attrs, Graph, Node, Result, TensorType, type_of_array
from tilewright.errors import TilewrightError

HELP = "compare it with the operator's definition in the ONNX standard, or export the network again"
"""For errors of a network that say no better way out."""

Kind = Literal["elementwise", "view", "move", "reduce", "other"]
"""elementwise: one result per point of the broadcast inputs, fusable behind another operator; view: the output is the
input's bytes under another shape; move: bytes are only copied; reduce: an accumulation over dimensions that do not
index the output; other: anything else."""


class Call(Struct, frozen=True, dict=True):
    """An operator applied to inputs of known types: what type rules, domains, bodies and references are given."""

    op: Operator
    inputs: tuple[TensorType | None, ...]
    attrs: Attrs
    values: tuple[Array | None, ...] = ()
    name: str = ""
    outputs: tuple[TensorType, ...] = ()
    wanted: int = 1
    """How many outputs the network asks for (Split, optional outputs)."""

    @property
    def operands(self) -> tuple[str, ...]:
        """Names of the inputs of this call, absent optional ones included; variadic ones are numbered."""
        return self.op.operand_names(len(self.inputs))

    def _index(self, operand: str) -> int | None:
        return _positions(self.op.inputs, len(self.inputs)).get(operand)

    def has(self, operand: str) -> bool:
        index = self._index(operand)
        return index is not None and self.inputs[index] is not None

    def type(self, operand: str) -> TensorType:
        """The type of an operand, input or output."""
        index = self._index(operand)
        if index is not None:
            found = self.inputs[index]
        else:
            found = self.outputs[_positions(self.op.outputs, len(self.outputs))[operand]]
        if found is None:
            raise self.error("missing-input", f"input '{operand}' is required")
        return found

    def shape(self, operand: str) -> tuple[int, ...]:
        return self.type(operand).shape

    def value(self, operand: str) -> Array:
        """The value of an input that must be known at compile time (a shape, axes, a constant scale)."""
        known = self.known(operand)
        if known is None:
            raise self.error(
                "not-constant",
                f"input '{operand}' must be known at compile time",
                help="make it a constant of the network, or fix the input it comes from with --constant NAME=FILE.npy",
            )
        return known

    def known(self, operand: str) -> Array | None:
        """The value of an input where it is known."""
        index = self._index(operand)
        return self.values[index] if index is not None and index < len(self.values) else None

    def baked(self, operand: str) -> float | None:
        """The value of an input that is one known number, which code then holds itself."""
        value = self.known(operand)
        if value is None or value.size != 1 or self.type(operand).dtype.load:
            return None
        return value.reshape(-1)[0]

    def int(self, name: str) -> int:
        value = self._number(name)
        if not isfinite(value):
            raise self.error("bad-attribute", f"attribute '{name}' must be a whole number, found {value}")
        return int(value)

    def float(self, name: str) -> float:
        return float(self._number(name))

    def _number(self, name: str) -> int | float:
        value = self.attrs.get(name)
        if isinstance(value, (int, float)):
            return value
        if isinstance(value, tuple) and len(value) == 1 and isinstance(value[0], (int, float)):
            return value[0]
        raise self.error("bad-attribute", f"attribute '{name}' must be a number, found {value!r}")

    def ints(self, name: str) -> tuple[int, ...]:
        """A list attribute; absent is empty."""
        value = self.attrs.get(name)
        if value is None:
            return ()
        values = value if isinstance(value, tuple) else (value,)
        numbers = tuple(int(v) for v in values if isinstance(v, (int, float)) and isfinite(v))
        if len(numbers) < len(values):
            raise self.error("bad-attribute", f"attribute '{name}' must be a list of whole numbers, found {value!r}")
        return numbers

    def text(self, name: str) -> str:
        return str(self.attrs.get(name) or "")

    def axis(self, name: str, rank: int) -> int:
        """A possibly negative axis attribute, checked against a rank."""
        axis = self.int(name)
        if not -rank <= axis < rank:
            raise self.error("bad-attribute", f"{name}={axis} is outside a tensor of rank {rank}")
        return axis % rank

    def error(self, code: str, what: str, *, help: str = "") -> TilewrightError:
        return TilewrightError(code, f"{what}, in {self.op.name} '{self.name}'", help=help or HELP)

    def domain(self) -> Domain:
        return self._domain

    @cached_property
    def _domain(self) -> Domain:
        return shared(self.op.domain(self))

    @cached_property
    def body(self) -> Body | None:
        """What happens at each of its points, where expressions say that."""
        return None if self.op.body is None else self.op.body(self)

    @cached_property
    def answers(self) -> dict[str, Any]:
        """What others work out about it, so that they do it once."""
        return {}


class Body(Struct, frozen=True, dict=True):
    """What happens at each point of the domain, in C expressions over operand names.

    Operands are scalars of their compute type (`X`, `A`), dimensions are `int` indices by name. `state` are
    accumulators (C type, name, initial value) of each output point, `update` runs at each point of the reduction,
    `result` gives the expression of each output. `inside` gives that of the first output at points where the access of
    an operand lies inside its tensor, the first of several; `result` is left for all other points, which loops then
    visit apart. `constants` are typed named numbers used by the expressions. `fill` gives an input's value in a
    reduction where its access lies outside the tensor; such points are skipped for inputs without one. `scales` says
    that the result is just `tw_clamp(tw_scale(x, mul, shift, zero))` with the limits of its type, where x is the first
    operand, and `shift` and `zero` are constants; `shifts` the same of `tw_sum_rounded(x * mul, add, half, shift)`,
    `adds` that it is the sum of two int32 operands. `lanes` is the result once more, for four neighbours in a vector,
    by the functions tw_lanes_* that machines with vectors have; their operands are vectors or numbers. It is empty
    where there is no such text.
    """

    result: Mapping[str, str]
    state: tuple[tuple[str, str, str], ...] = ()
    update: str = ""
    constants: tuple[tuple[str, str, str], ...] = ()
    fill: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    inside: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    scales: bool = False
    shifts: bool = False
    adds: bool = False
    lanes: str = ""

    @cached_property
    def words(self) -> frozenset[str]:
        """Every name in its expressions."""
        starts = (init for _, _, init in self.state)
        texts = [*self.result.values(), *self.inside.values(), self.update, *starts, *self.fill.values()]
        return frozenset[str]().union(*map(words, texts))

    def reads(self, operand: str) -> bool:
        """Whether it uses an operand; a known constant may be part of its text instead."""
        return operand in self.words or f"{operand}_at" in self.words


def scaling(steps: Sequence[Body]) -> Body | None:
    """The last of some steps, where all that they do is to scale sums back to bytes; before, something may be added."""
    last = steps[-1] if steps else None
    plain = len(steps) == 1 or (len(steps) == 2 and steps[0].adds)
    return last if last is not None and plain and (last.scales or last.shifts) else None


class Example(Struct, frozen=True):
    """One call that drives the generic tests. Inputs are specs like `float32[2,3]`, arrays, or "" for an absent one."""

    inputs: tuple[str | Array, ...]
    attrs: Attrs = field(default_factory=lambda: MappingProxyType({}))
    wanted: int = 1


def example(*inputs: str | Array | Sequence[int] | Sequence[float], wanted: int = 1, **attributes: Attr) -> Example:
    """`example("float32[2,3]", [0, 1], axis=1)`: a plain list of ints is an int64 constant."""
    parsed = tuple(i if isinstance(i, (str, np.ndarray)) else np.asarray(i) for i in inputs)
    return Example(parsed, MappingProxyType(attributes), wanted)


class Operator(Struct, frozen=True):
    """The declaration of an operator.

    `inputs` and `outputs` are space-separated names; `B?` is optional, a last `X*` is variadic. `attrs` are the
    attributes with defaults (`REQUIRED` where there is none).
    """

    name: str
    inputs: str
    outputs: str
    infer: Callable[[Call], tuple[TensorType, ...]]
    domain: Callable[[Call], Domain]
    reference: Callable[..., Array | tuple[Array, ...]]
    """Takes the Call, then the input arrays (None for absent ones)."""
    examples: tuple[Example, ...]
    attrs: Mapping[str, Attr] = field(default_factory=lambda: MappingProxyType({}))
    kind: Kind = "other"
    body: Callable[[Call], Body] | None = None
    compile_time: frozenset[str] = frozenset()
    """Inputs whose values must be known at compile time (shapes, axes); no code reads them at run time."""
    doc: str = ""
    numbers: Callable[[Call], Mapping[str, int | float]] | None = None
    """Further numbers that kernels may name: defaults worked out (`pads_0` under auto_pad), codes of named choices."""
    padding: Callable[[Call], Mapping[str, tuple[str, int, Literal["before", "after"]]]] | None = None
    """Which of these numbers say how far accesses reach out of an operand's axis: a tile inside has less padding."""
    any_length: bool = False
    """Whether what it adds up or compares may be shorter when it runs than its type says."""
    may_be_empty: bool = False
    """Whether there may be none of that."""
    appends: bool = False
    """Whether the result is the first operand with the rows of R, along the attribute `axis`, behind those in use."""
    joins: bool = False
    """Whether the result is its inputs side by side, each where its access lies inside of it, as they are."""
    picks: frozenset[str] = frozenset()
    """Operands of which it reads one element for each result, at a place that is known when it runs."""

    limit: Callable[[Call, Mapping[str, int]], int] | None = None
    """The largest magnitude of an integer result, were its type wide enough, from those of the operands."""
    sample: Callable[[Example, np.random.Generator], Example] | None = None
    """An example with other sizes, drawn at random, where attributes go with them; see `ops.sampling`."""

    def operand_names(self, count: int) -> tuple[str, ...]:
        return _expand(self.inputs, count)

    def output_names(self, count: int) -> tuple[str, ...]:
        return _expand(self.outputs, count)


REQUIRED: Attr = "<required>"
REGISTRY: dict[str, Operator] = {}


def declare(operator: Operator) -> Operator:
    """Registers an operator; a second declaration of a name is a mistake."""
    if operator.name in REGISTRY:
        raise ValueError(f"operator {operator.name} is declared twice")
    REGISTRY[operator.name] = operator
    return operator


@cache
def _expand(names: str, count: int) -> tuple[str, ...]:
    result: list[str] = []
    for name in names.split():
        if name.endswith("*"):
            base = name[:-1]
            result += [f"{base}{i}" for i in range(count - len(result))]
        else:
            result.append(name.removesuffix("?"))
    return tuple(result[:count])


@cache
def _positions(names: str, count: int) -> Mapping[str, int]:
    """Where each operand stands among so many."""
    return MappingProxyType({name: index for index, name in enumerate(_expand(names, count))})


@cache
def _needed(names: str) -> tuple[str, ...]:
    return tuple(name for name in names.split() if not name.endswith(("?", "*")))


@lru_cache(maxsize=4096)
def words(text: str) -> frozenset[str]:
    """The names and numbers in a piece of C; texts of a thousand operands are asked for every one of them."""
    return frozenset(re.findall(r"\w+", text))


def call_of(
    op: Operator,
    inputs: Sequence[TensorType | None],
    attributes: Attrs,
    *,
    values: Sequence[Array | None] = (),
    name: str = "",
    wanted: int = 1,
) -> Call:
    """A checked call with output types: defaults filled in, unknown attributes and missing inputs refused."""
    if unknown := sorted(attributes.keys() - op.attrs.keys()):
        raise TilewrightError(
            "bad-attribute",
            f"{op.name} '{name}' has no attribute {', '.join(unknown)}",
            help=f"known: {', '.join(sorted(op.attrs)) or 'none'}",
        )
    filled = MappingProxyType({**op.attrs, **attributes})
    if absent := sorted([key for key, value in filled.items() if value is REQUIRED]):
        raise TilewrightError("bad-attribute", f"{op.name} '{name}' needs the attribute {', '.join(absent)}", help=HELP)
    call = Call(op, tuple(inputs), filled, tuple(values), name, wanted=wanted)
    for key in attributes:
        if isinstance(op.attrs[key], int):
            call.int(key)
        elif isinstance(op.attrs[key], float):
            call.float(key)
    if len(inputs) > len(call.operands):
        raise call.error("bad-model", f"{len(inputs)} inputs are given, {len(call.operands)} are known")
    for operand in _needed(op.inputs):
        if not call.has(operand):
            raise call.error("missing-input", f"input '{operand}' is required")
    return replace(call, outputs=op.infer(call))


def is_view(node: Node) -> bool:
    """Whether a node does nothing: its result is its input, seen otherwise."""
    return REGISTRY[node.op].kind == "view" and not node.epilogue


def call_node(graph: Graph, node: Node) -> Call:
    """The call a node of a graph makes (its own operator, without the epilogue); each is worked out once."""
    _, found = graph.answers.get(id(node), (None, None))
    if found is None:
        found = _call_node(graph, node)
        graph.answers[id(node)] = (node, found)
    return found


def _call_node(graph: Graph, node: Node) -> Call:
    return call_of(
        REGISTRY[node.op],
        [graph.types[name] if name else None for name in node.inputs],
        node.attrs,
        values=[graph.constants.get(name) for name in node.inputs],
        name=node.label,
        wanted=len(node.outputs),
    )


def call_steps(graph: Graph, node: Node) -> tuple[Call, ...]:
    """The calls that the steps of a node's epilogue make; they are worked out once, too."""
    call = call_node(graph, node)
    if "steps" not in call.answers:
        call.answers["steps"] = _call_steps(graph, node, call.outputs[0])
    return call.answers["steps"]


def _call_steps(graph: Graph, node: Node, result: TensorType) -> tuple[Call, ...]:
    results = [result, *(step.type for step in node.epilogue)]
    return tuple(
        call_of(
            REGISTRY[step.op],
            [results[i.number] if isinstance(i, Result) else graph.types[i] if i else None for i in step.inputs],
            step.attrs,
            values=[graph.constants.get(i) if isinstance(i, str) else None for i in step.inputs],
            name=node.label,
        )
        for step in node.epilogue
    )


def evaluate(call: Call, inputs: Sequence[Array | None]) -> tuple[Array, ...]:
    """The outputs by the reference, in the declared types."""
    with np.errstate(all="ignore"):
        result = call.op.reference(call, *inputs)
        arrays = result if isinstance(result, tuple) else (result,)
        return tuple(
            np.asarray(array).astype(kind.dtype.numpy).reshape(kind.shape)
            for array, kind in zip(arrays, call.outputs, strict=False)
        )


def arrays_of(spec: Example, seed: int = 0) -> tuple[Array | None, ...]:
    """Input arrays of an example; specs are filled with seeded noise that suits their type."""
    rng = np.random.default_rng(seed)
    return tuple(_array(item, rng) for item in spec.inputs)


def call_example(op: Operator, spec: Example, inputs: Sequence[Array | None]) -> Call:
    """The call of an example; arrays given literally are known at compile time, as are compile-time operands."""
    literal = [isinstance(item, np.ndarray) for item in spec.inputs]
    values = [array if fixed else None for array, fixed in zip(inputs, literal, strict=True)]
    types = [None if array is None else type_of_array(array) for array in inputs]
    return call_of(op, types, spec.attrs, values=values, name="example", wanted=spec.wanted)


def parse_type(text: str) -> TensorType:
    """`float32[2,3]`, as printed by TensorType."""
    name, _, rest = text.partition("[")
    inner = rest.rstrip("]")
    return TensorType(DTYPES[name], tuple(int(extent) for extent in inner.split(",")) if inner else ())


def _array(item: str | Array, rng: np.random.Generator) -> Array | None:
    if not isinstance(item, str):
        return item
    if not item:
        return None
    kind = parse_type(item)
    if kind.dtype.is_float:
        return rng.normal(size=kind.shape).astype(kind.dtype.numpy)
    if kind.dtype.kind == "bool":
        return rng.integers(0, 2, size=kind.shape).astype(np.bool_)
    lo, hi = max(kind.dtype.lo, -1000), min(kind.dtype.hi, 1000)
    return rng.integers(lo, hi + 1, size=kind.shape).astype(kind.dtype.numpy)
