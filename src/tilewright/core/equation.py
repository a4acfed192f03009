"""Layers written down as text: `O[b][k][oy][ox] += W[k][c][fy][fx] * I[b][c][iy][ix]` with `ix = 2*ox + 1*fx`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import prod
from types import MappingProxyType

from msgspec import Struct, field

from tilewright.core.workload import Layer, Operand, Sum
from tilewright.errors import TilewrightError

Access = tuple[str, tuple[str, ...]]
"""An operand and the names that index it."""
MOST_OPERATIONS = 2**62
"""Of a layer; beyond, numbers of 64 bits overflow."""
SHOWN = 160
"""Letters of a text that an error repeats."""
_OPERAND = re.compile(r"\s*([A-Z]\w*)")
_INDEX = re.compile(r"\s*\[\s*([A-Za-z]\w*)\s*\]")
_TERM = re.compile(r"\s*(?:(\d+)\s*\*\s*)?([A-Za-z]\w*)")


class _Scanner(Struct):
    """Reads a text from left to right and points at what it cannot read."""

    what: str
    text: str
    at: int = 0

    def wrong(self, expected: str) -> TilewrightError:
        at = self.at + len(self.text[self.at :]) - len(self.text[self.at :].lstrip())
        first = max(at - SHOWN // 2, 0) if len(self.text) > SHOWN else 0
        return TilewrightError(
            "bad-equation",
            f"{self.what} does not parse: expected {expected}",
            reasons=[self.text[first : first + SHOWN], " " * (at - first) + "^"],
            help="write it like O[m][n] += A[m][k] * B[k][n], or ix = 2*ox + fx",
        )

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def need(self, pattern: re.Pattern[str], expected: str) -> re.Match[str]:
        found = self.match(pattern)
        if found is None:
            raise self.wrong(expected)
        return found

    def end(self) -> bool:
        return not self.text[self.at :].strip()


def parse_equation(text: str) -> tuple[Access, tuple[Access, ...]]:
    """The output and the inputs, with the names that index them in upper case."""
    scanner = _Scanner("equation", text)
    output = _access(scanner)
    scanner.need(re.compile(r"\s*\+?="), "'+=' or another '[index]'")
    inputs = [_access(scanner)]
    while not scanner.end():
        scanner.need(re.compile(r"\s*[*+]"), "'*', another '[index]' or the end")
        inputs.append(_access(scanner))
    names = [name for name, _ in (output, *inputs)]
    if len(set(names)) < len(names):
        raise TilewrightError(
            "bad-equation", f"equation '{text}' names an operand twice", help="give each operand a name of its own"
        )
    return output, tuple(inputs)


def _access(scanner: _Scanner) -> Access:
    name = scanner.need(_OPERAND, "an operand, which begins with a capital letter")[1]
    indices: list[str] = []
    while found := scanner.match(_INDEX):
        indices.append(found[1].upper())
    return name, tuple(indices)


def parse_relation(text: str) -> tuple[str, tuple[str, int], tuple[str, int]]:
    """`ix = 2*ox + 1*fx` as its name and two dimensions with their factors."""
    scanner = _Scanner("dimension relation", text)
    name = scanner.need(re.compile(r"\s*([A-Za-z]\w*)"), "the name of an axis")[1]
    scanner.need(re.compile(r"\s*="), "'='")
    first = scanner.need(_TERM, "a dimension, with or without a factor")
    scanner.need(re.compile(r"\s*\+"), "'+' and a second dimension")
    second = scanner.need(_TERM, "a dimension, with or without a factor")
    if not scanner.end():
        raise scanner.wrong("the end")
    return name.upper(), (first[2].upper(), int(first[1] or 1)), (second[2].upper(), int(second[1] or 1))


class LayerText(Struct, frozen=True):
    """A layer as people write it."""

    name: str
    kind: str
    equation: str
    dims: Mapping[str, int]
    relations: tuple[str, ...] = ()
    bits: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Of elements of each operand; `O_final` of an output that is summed up."""
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """The layers that make operands."""
    constants: frozenset[str] = frozenset()
    slots: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    axis_sizes: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Sizes of axes that relations name, where the tensor has less than the loops touch."""
    padding: Mapping[str, tuple[int, int]] = field(default_factory=lambda: MappingProxyType({}))
    density: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))


def read_layer(text: LayerText) -> Layer:
    """The layer that a text describes."""
    output, inputs = parse_equation(text.equation)
    if prod(text.dims.values()) > MOST_OPERATIONS:
        raise TilewrightError(
            "bad-workload",
            f"layer '{text.name}' has more than {MOST_OPERATIONS:,} operations",
            reasons=[", ".join(f"{dim} {size}" for dim, size in text.dims.items())],
            help="make it smaller: numbers of 64 bits hold no more",
        )
    sums = {name: _sum(text, name, first, second) for name, first, second in map(parse_relation, text.relations)}
    slots = _slots(text, output[0], [name for name, _ in inputs])

    def operand(access: Access, final: int | None = None) -> Operand:
        name, indices = access
        bits = text.bits.get(name, 8)
        used = any(index in sums for index in indices)
        _known(text, access, sums)
        return Operand(
            name=name,
            slot=slots[name],
            dims=tuple(index for index in indices if index not in sums),
            sums=tuple(sums) if used else (),
            bits=bits,
            final_bits=bits if final is None else final,
            sources=text.sources.get(name, ()),
            constant=name in text.constants,
            density=text.density.get(name, 1.0),
        )

    return Layer(
        name=text.name,
        kind=text.kind,
        dims=MappingProxyType(dict(text.dims)),
        output=operand(output, text.bits.get(f"{output[0]}_final", text.bits.get(output[0], 8))),
        inputs=tuple(operand(access) for access in inputs),
        sums=MappingProxyType(sums),
        equation=text.equation,
    )


def _sum(text: LayerText, name: str, first: tuple[str, int], second: tuple[str, int]) -> Sum:
    for dim, _ in (first, second):
        if dim not in text.dims:
            raise _unknown(text, dim, f"axis {name}", text.dims)
    whole = Sum(name, first[0], second[0], first[1], second[1], 1 << 62)
    touched = whole.values(text.dims[first[0]], text.dims[second[0]]) - sum(text.padding.get(name, (0, 0)))
    return Sum(name, first[0], second[0], first[1], second[1], text.axis_sizes.get(name, touched))


def _known(text: LayerText, access: Access, sums: Mapping[str, Sum]) -> None:
    for index in access[1]:
        if index not in text.dims and index not in sums:
            raise _unknown(text, index, f"operand {access[0]}", [*text.dims, *sums])


def _unknown(text: LayerText, dim: str, where: str, known: Iterable[str]) -> TilewrightError:
    return TilewrightError(
        "unknown-dimension",
        f"layer '{text.name}': {where} uses the dimension {dim}, which has no size",
        help=f"dimensions of this layer: {', '.join(known)}",
    )


def _slots(text: LayerText, output: str, inputs: list[str]) -> Mapping[str, str]:
    """The slots that nobody names: `O` for the output; constants from the last input slot, others from the first."""
    free = [f"I{number + 1}" for number in range(len(inputs))]
    order = sorted(inputs, key=lambda name: name in text.constants)
    slots = {output: "O", **dict(zip(order, free, strict=True)), **text.slots}
    if len({slots[name] for name in (output, *inputs)}) <= len(inputs):
        raise TilewrightError(
            "bad-workload",
            f"layer '{text.name}': two operands are in one slot",
            reasons=[f"{name} is in {slots[name]}" for name in (output, *inputs)],
            help="give each operand a slot of its own",
        )
    return slots
