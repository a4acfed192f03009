"""What patterns share: looking through products, sums and reductions."""

from __future__ import annotations

from collections.abc import Iterator
from math import isclose

from tilewright.core.graph import Node
from tilewright.passes.edit import Edit

TOLERANCE = 1e-5
"""Relative error up to which a constant of a network is the number of a formula; exporters round to few digits."""

MAX_POWER = 4

MAX_DEPTH = 6
"""Products in products that are taken apart; no formula has more, and what they are made of may double each time."""


def close(value: float | None, wanted: float) -> bool:
    return value is not None and isclose(value, wanted, rel_tol=TOLERANCE)


def operands(node: Node) -> Iterator[tuple[str, str]]:
    """Both orders of the operands of a commutative operator."""
    left, right = node.inputs
    yield left, right
    if left != right:
        yield right, left


def plus_number(edit: Edit, name: str) -> tuple[str, float] | None:
    """`t` and `c` where a tensor is `t + c` with a number c."""
    node = edit.producer(name, "Add")
    for tensor, number in operands(node) if node else ():
        value = edit.uniform(number)
        if value is not None and edit.types[tensor] == edit.types[name]:
            return tensor, value
    return None


def scaled(edit: Edit, name: str) -> tuple[str, float]:
    """`t` and `c` where a tensor is `c * t` or `t / (1 / c)`; c is 1 where no number is multiplied."""
    node = edit.producer(name, "Mul", "Div")
    if node is None:
        return name, 1.0
    pairs = operands(node) if node.op == "Mul" else iter([node.inputs])
    for tensor, number in pairs:
        value = edit.uniform(number)
        if value and edit.types[tensor] == edit.types[name]:
            return tensor, value if node.op == "Mul" else 1 / value
    return name, 1.0


def product(edit: Edit, name: str, atoms: frozenset[str], depth: int = MAX_DEPTH) -> tuple[float, tuple[str, ...]]:
    """A tensor as a number times tensors (sorted, repeated for powers), none of `atoms` taken apart."""
    node = None if name in atoms or not depth else edit.producer(name, "Mul", "Div", "Pow", "Neg")
    number = edit.uniform(name)
    if number is not None:
        return number, ()
    if node is None:
        return 1.0, (name,)
    if node.op == "Neg":
        factor, names = product(edit, node.inputs[0], atoms, depth - 1)
        return -factor, names
    left, right = node.inputs
    value = edit.uniform(right)
    if node.op == "Div":
        if not value:
            return 1.0, (name,)
        factor, names = product(edit, left, atoms, depth - 1)
        return factor / value, names
    if node.op == "Pow":
        if value is None or value not in range(1, MAX_POWER + 1):
            return 1.0, (name,)
        factor, names = product(edit, left, atoms, depth - 1)
        return factor ** int(value), tuple(sorted(names * int(value)))
    factors = [product(edit, operand, atoms, depth - 1) for operand in node.inputs]
    return factors[0][0] * factors[1][0], tuple(sorted(factors[0][1] + factors[1][1]))


def product_of(edit: Edit, node: Node, atoms: frozenset[str]) -> tuple[float, tuple[str, ...]] | None:
    """`product` of a Mul or Div that is being looked at; None for a division by a tensor."""
    left, names = product(edit, node.inputs[0], atoms)
    if node.op == "Div":
        number = edit.uniform(node.inputs[1])
        return (left / number, names) if number else None
    right, more = product(edit, node.inputs[1], atoms)
    return left * right, tuple(sorted(names + more))


def factors(edit: Edit, name: str, depth: int = MAX_DEPTH) -> Iterator[str]:
    """The tensors that a product multiplies, in products and divisions by a number inside of it, too."""
    node = edit.producer(name, "Mul", "Div") if depth else None
    if node is None:
        yield name
    else:
        yield from factors_of(edit, node, depth - 1)


def factors_of(edit: Edit, node: Node, depth: int = MAX_DEPTH) -> Iterator[str]:
    """`factors` of a Mul or Div that is being looked at."""
    for source in node.inputs if node.op == "Mul" else node.inputs[:1]:
        yield from factors(edit, source, depth)


def subterms(edit: Edit, name: str, depth: int = MAX_DEPTH) -> Iterator[str]:
    """All tensors that products are made of, products included."""
    yield name
    node = edit.producer(name, "Mul", "Div") if depth else None
    for source in node.inputs if node else ():
        yield from subterms(edit, source, depth - 1)


def square(edit: Edit, name: str) -> str | None:
    """`t` where a tensor is `t * t`."""
    node = edit.producer(name, "Mul", "Pow")
    if node is None:
        return None
    left, right = node.inputs
    squared = left == right if node.op == "Mul" else edit.uniform(right) == 2
    return left if squared and edit.types[left] == edit.types[name] else None


def reduced(edit: Edit, name: str, op: str) -> tuple[str, tuple[int, ...]] | None:
    """What a reduction that keeps its axes reduces, and along which axes (not negative, sorted)."""
    node = edit.producer(name, op)
    if node is None:
        return None
    call = edit.call(node)
    rank = call.type("data").rank
    listed = edit.ints(node.inputs[1]) if call.has("axes") else ()
    if not call.int("keepdims") or listed is None or (not listed and call.int("noop_with_empty_axes")):
        return None
    return node.inputs[0], tuple(sorted(axis % rank for axis in listed)) or tuple(range(rank))


def inverse_of(edit: Edit, node: Node) -> Iterator[tuple[str, str]]:
    """Readings of a node as `a / b`: a Div, or a Mul by a reciprocal; yields a and b."""
    if node.op == "Div":
        yield node.inputs[0], node.inputs[1]
        return
    for tensor, inverse in operands(node):
        below = edit.producer(inverse, "Reciprocal", "Div")
        if below is None:
            continue
        if below.op == "Reciprocal":
            yield tensor, below.inputs[0]
        elif edit.uniform(below.inputs[0]) == 1:
            yield tensor, below.inputs[1]


def root_plus(edit: Edit, name: str) -> tuple[str, float] | None:
    """`t` and `c` where a tensor is `sqrt(t + c)`."""
    node = edit.producer(name, "Sqrt")
    if node is None:
        node = edit.producer(name, "Pow")
        if node is None or edit.uniform(node.inputs[1]) != 0.5:
            return None
    return plus_number(edit, node.inputs[0])
