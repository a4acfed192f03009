"""Tile bounds as expressions of loop variables are the numbers of every step: the code does what was planned."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest

from tilewright.core.expr import Expr, Size, at_first, clamp, larger, rounded_up, smaller, value_of, variable
from tilewright.core.graph import Graph, Node, TensorType, attrs
from tilewright.core.op import parse_type
from tilewright.core.tiles import Member, Region, TileLoop, member, trace


def chain(strides: Sequence[int]) -> list[Member]:
    """Pools of 3x3 behind each other, each with its stride and a padding of one."""
    types: dict[str, TensorType] = {"t0": parse_type("int8[1,2,23,19]")}
    nodes: list[Node] = []
    for index, stride in enumerate(strides):
        given = attrs(kernel_shape=(3, 3), strides=(stride, stride), pads=(1, 1, 1, 1))
        nodes.append(Node("MaxPool", (f"t{index}",), (f"t{index + 1}",), given))
        rows, columns = types[f"t{index}"].shape[2:]
        types[f"t{index + 1}"] = parse_type(f"int8[1,2,{(rows - 1) // stride + 1},{(columns - 1) // stride + 1}]")
    graph = Graph("chain", ("t0",), (f"t{len(strides)}",), tuple(nodes), types)
    return [member(graph, node, None) for node in nodes]


def ends(region: Region) -> list[Size]:
    return [end for part in region for end in (part.start, part.stop, part.before, part.after)]


@pytest.mark.parametrize("strides", [(1,), (2, 1), (1, 2, 1), (2, 1, 2, 1)])
@pytest.mark.parametrize("kept", [False, True])
def test_expressions_are_the_numbers_of_every_step(strides: tuple[int, ...], kept: bool) -> None:
    members = chain(strides)
    last = members[-1].domain.dims
    loops = [TileLoop("OW", 2, -(-last["OW"] // 2)), TileLoop("OH", 3, -(-last["OH"] // 3))]
    keep = {m.output.tensor: 2 for m in members[:-1]} if kept else {}
    symbolic = trace(members, loops, keep, [variable(loop.dim, loop.count) for loop in loops])
    for at in product(*(range(loop.count) for loop in loops)):
        known = {loop.dim: index for loop, index in zip(loops, at, strict=True)}
        numbers = trace(members, loops, keep, at)
        pairs = [(symbolic.held[name], numbers.held[name]) for name in numbers.held]
        for mine, theirs in zip(symbolic.regions, numbers.regions, strict=True):
            pairs += [(mine[key], theirs[key]) for key in theirs]
        for expressions, expected in pairs:
            assert [value_of(end, known) for end in ends(expressions)] == ends(expected), (at, expressions)


def test_expressions_fold_where_their_variables_leave_no_doubt() -> None:
    i = variable("i", 8)
    assert isinstance(i, Expr)
    assert str(smaller(i * 4 + 4, 32)) == "i * 4 + 4"
    assert (i * 4 + 4) - i * 4 == Expr((), 4)
    assert larger(i + 1, 0) == i + 1
    assert str(clamp(i * 2 - 1, 0, 15)) == "tw_max(i * 2 - 1, 0)"
    assert at_first(i + 1, 5, 6) == 6
    assert [value_of(((i - 3) // 2), {"i": n}) for n in range(8)] == [(n - 3) // 2 for n in range(8)]
    assert variable("once", 1) == 0


def test_multiples_are_factors_of_products() -> None:
    i, j = variable("i", 8), variable("j", 30)
    assert [value_of(rounded_up(j, 8), {"j": n}) for n in (0, 1, 8, 9)] == [0, 8, 8, 16]
    assert (rounded_up(13, 8), str(i * rounded_up(j, 8))) == (16, "i * ((j + 7) / 8) * 8")
