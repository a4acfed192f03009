"""One node being drawn: its operator of some opset, its operands, attributes and results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import onnx
from msgspec import Struct
from onnx import defs, helper, numpy_helper

from tilewright.base.dtype import DTYPES
from tilewright.core.graph import Array

NEWEST_KNOWN = 21
"""The opset beside operators of other domains."""
LARGEST = 600
"""Elements of the largest operand."""
EMPTY = 40
"""One shape in so many has an extent of zero."""
NAMES = {"float": "float32", "double": "float64"}
"""What the standard calls types, where numpy says otherwise."""
WEIGHTS = {"float32": 6, "int8": 2, "uint8": 2, "int32": 2, "int64": 2}
"""How often a type is drawn, where it is more often than others."""

Shape = tuple[int, ...]


class Parameter(Struct, frozen=True):
    """An operand or a result, and the type variable of its type."""

    name: str
    letter: str


class Form(Struct, frozen=True):
    """What a schema says of an operator, of the standard or of onnxruntime."""

    op: str
    domain: str
    since: int
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    allowed: dict[str, tuple[str, ...]]
    """Types by type variable."""
    attributes: frozenset[str]


def form_of(schema: Any) -> Form:
    inputs, outputs = (
        tuple(Parameter(p.name, p.type_str if hasattr(p, "type_str") else p.typeStr) for p in parameters)
        for parameters in (schema.inputs, schema.outputs)
    )
    allowed = {c.type_param_str: tuple(c.allowed_type_strs) for c in schema.type_constraints}
    attributes = frozenset(schema.attributes)
    return Form(schema.name, schema.domain, schema.since_version, inputs, outputs, allowed, attributes)


class Impossible(Exception):
    """What was drawn so far cannot become a node of this operator."""


class Drawing:
    """A node that grows operand by operand; types are those that its schema allows, one for each type variable."""

    def __init__(self, op: str, seed: Sequence[int], foreign: Form | None = None) -> None:
        self.rng = np.random.default_rng(seed)
        self.opset = NEWEST_KNOWN if foreign else int(self.pick(*opsets_of(op)))
        self.schema = foreign or form_of(defs.get_schema(op, self.opset))
        self.op = op
        self.inputs: list[str] = []
        self.outputs: list[str] = []
        self.attributes: dict[str, Any] = {}
        self.fed: dict[str, Array] = {}
        self.constants: dict[str, Array] = {}
        self._types: dict[str, str] = {}
        for parameter in (*self.schema.inputs, *self.schema.outputs):
            letter = parameter.letter
            if letter not in self._types:
                self._types[letter] = self._draw_type(self.schema.allowed.get(letter, (letter,)))

    # Choices

    def below(self, count: int) -> int:
        return int(self.rng.integers(count))

    def flip(self) -> bool:
        return bool(self.below(2))

    def rarely(self) -> bool:
        return not self.below(5)

    def pick(self, *choices: Any) -> Any:
        return choices[self.below(len(choices))]

    def between(self, low: int, high: int) -> int:
        return low + self.below(high - low + 1)

    def shape(self, low: int = 0, high: int = 4) -> Shape:
        """Any shape of some ranks; extents of one are frequent."""
        dims = [self.pick(1, 1, 2, 3, 4, 5, 7) for _ in range(self.between(low, high))]
        while prod(dims) > LARGEST:
            dims[dims.index(max(dims))] //= 2
        if dims and not self.below(EMPTY):
            dims[self.below(len(dims))] = 0
        return tuple(dims)

    def part(self, shape: Sequence[int]) -> Shape:
        """A shape that broadcasts to `shape`."""
        kept = tuple(extent if self.below(4) else 1 for extent in shape)
        return kept[self.below(len(kept) + 1) if self.flip() else 0 :]

    def axis(self, rank: int) -> int:
        if not rank:
            raise Impossible
        return self.between(-rank, rank - 1) if self.opset >= 11 else self.below(rank)

    def axes(self, rank: int, least: int = 0) -> list[int]:
        """Some axes, counted from either end, in any order."""
        found = [axis for axis in range(rank) if self.flip()]
        if len(found) < least:
            raise Impossible
        self.rng.shuffle(found)
        return [axis - rank if self.opset >= 11 and self.rarely() else axis for axis in found]

    # Types and values

    def _draw_type(self, allowed: Sequence[str]) -> str:
        names = sorted(
            name
            for text in allowed
            for name in [NAMES.get(text[7:-1], text[7:-1])]
            if text.startswith("tensor(") and name in DTYPES
        )
        if not names:
            raise Impossible
        return str(self.pick(*[name for name in names for _ in range(WEIGHTS.get(name, 1))]))

    def limit(self, letter: str, *names: str) -> None:
        """Draws the type of a type variable again, of some that are allowed."""
        allowed = self.schema.allowed[letter]
        self._types[letter] = self._draw_type([t for t in allowed if NAMES.get(t[7:-1], t[7:-1]) in names])

    def same(self, letter: str, other: str) -> None:
        self._types[letter] = self._types[other]

    def kind(self, letter: str) -> str:
        return self._types[letter]

    def next_kind(self) -> str:
        """The type of the next operand; the last one may stand for many."""
        operands = self.schema.inputs
        return self._types[operands[min(len(self.inputs), len(operands) - 1)].letter]

    def noise(self, kind: str, shape: Sequence[int], low: float = -4.0, high: float = 4.0) -> Array:
        """Numbers of a range; those of floats have halves among them, so that it matters how they are rounded."""
        dtype = DTYPES[kind]
        if dtype.kind == "bool":
            return np.asarray(self.rng.random(tuple(shape)) < 0.5)
        if dtype.is_float:
            values = self.rng.uniform(low, high, tuple(shape))
            if self.rarely():
                values = np.clip(np.round(2 * values) / 2, low, high)
            return np.asarray(values).astype(dtype.numpy)
        first, last = (round(end) for end in (max(low, dtype.lo), min(high, dtype.hi)))
        return np.asarray(self.rng.integers(first, last, tuple(shape), endpoint=True)).astype(dtype.numpy)

    # Operands

    def put(self, shape: Sequence[int], low: float = -4.0, high: float = 4.0, *, constant: bool | None = None) -> Array:
        """The next operand, of noise."""
        return self.give(self.noise(self.next_kind(), shape, low, high), constant=constant)

    def give(self, value: Array, *, constant: bool | None = None) -> Array:
        """The next operand, of a known value; whether it is a constant of the network is drawn, unless it is said."""
        fixed = not self.below(3) if constant is None else constant
        name = f"i{len(self.inputs)}"
        (self.constants if fixed else self.fed)[name] = value
        self.inputs.append(name)
        return value

    def numbers(self, values: Sequence[int] | int) -> None:
        """The next operand, of integers that must be known."""
        self.give(np.asarray(values, np.dtype(self.next_kind())), constant=True)

    def skip(self) -> None:
        self.inputs.append("")

    def takes(self, operand: str) -> bool:
        return any(parameter.name == operand for parameter in self.schema.inputs)

    def has(self, attribute: str) -> bool:
        return attribute in self.schema.attributes

    def say(self, attribute: str, value: Any, *, always: bool = False) -> None:
        """Gives an attribute, where this opset has it; optional ones not every time."""
        if self.has(attribute) and (always or self.below(4)):
            self.attributes[attribute] = value

    def either(self, name: str, values: Sequence[int]) -> None:
        """Integers that are an attribute in some opsets and an operand in others."""
        if self.has(name):
            self.attributes[name] = list(values)
        elif self.takes(name):
            self.numbers(values)

    def results(self, count: int | None = None, *, most: int = 1) -> None:
        """How many results are asked for; where the number is open, some may be left out."""
        if count is not None:
            self.outputs = [f"o{i}" for i in range(count)]
            return
        asked = [self.flip() for _ in range(most)]
        asked[self.below(most)] = True
        last = max(i for i, wanted in enumerate(asked) if wanted)
        self.outputs = [f"o{i}" if asked[i] else "" for i in range(last + 1)]

    def model(self) -> onnx.ModelProto:
        domain = self.schema.domain
        node = helper.make_node(self.op, self.inputs, self.outputs or ["o0"], domain=domain, **self.attributes)
        ports = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in self.fed.items()
        ]
        results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        weights = [numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        graph = helper.make_graph([node], "node", ports, results, weights)
        opsets = [helper.make_opsetid("", self.opset)]
        least = helper.find_min_ir_version_for(opsets, True)
        opsets += [helper.make_opsetid(domain, self.schema.since)] if domain else []
        return helper.make_model(graph, opset_imports=opsets, ir_version=least)


Maker = Callable[[Drawing], None]

OLDEST, NEWEST = 7, 25
"""Opsets that are drawn from; an operator that is newer is drawn from its own on."""


def opsets_of(op: str) -> list[int]:
    """One opset for each form of an operator that is in use, the newest of these more often."""
    forms = sorted({s.since_version for s in defs.get_all_schemas_with_history() if s.name == op and not s.domain})
    opsets = sorted({max(OLDEST, form) for form in forms})
    return [*opsets, opsets[-1] if opsets[-1] > NEWEST else NEWEST]
