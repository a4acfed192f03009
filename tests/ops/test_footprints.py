"""One property for all operators: noise outside the declared footprint never changes the output tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType

import numpy as np
import pytest
from msgspec.structs import replace

from tilewright.core.domain import Affine, Axis, AxisRegion, Domain, Tile
from tilewright.core.graph import Array
from tilewright.core.op import REGISTRY, Call, Example, Operator, arrays_of, call_example, evaluate
from tilewright.ops import operators

TILES_PER_EXAMPLE = 4


def random_tile(domain: Domain, rng: np.random.Generator) -> Tile:
    """A random part of every dimension that may be split."""
    tile: dict[str, tuple[int, int]] = {}
    for name in domain.parallel:
        size = domain.dims[name]
        if size:
            start = int(rng.integers(0, size))
            tile[name] = (start, int(rng.integers(1, size - start + 1)))
    return tile


def region(spans: Sequence[AxisRegion]) -> tuple[slice, ...]:
    return tuple(slice(s.start, s.start + s.size) for s in spans)


def disturbed(array: Array, spans: Sequence[AxisRegion], rng: np.random.Generator) -> Array:
    """The array with noise everywhere outside a region; integers stay valid values of their type."""
    noisy: Array = rng.permutation(array.reshape(-1)).reshape(array.shape)
    if array.dtype.kind == "f" or array.dtype.name == "bfloat16":
        far = 10 * rng.standard_normal(array.size).reshape(array.shape)
        noisy = np.add(noisy, far).astype(array.dtype)
    elif array.dtype.kind == "b":
        noisy = ~array
    kept = np.array(noisy)
    kept[region(spans)] = array[region(spans)]
    return kept


def tile_is_independent(
    op: Operator, spec: Example, domain: Domain, call: Call, inputs: Sequence[Array | None], seed: int
) -> bool:
    """Whether noise outside the footprint of a random tile leaves that tile of every output alone."""
    rng = np.random.default_rng(seed)
    tile = random_tile(domain, rng)
    noisy: list[Array | None] = []
    for operand, array, given in zip(call.operands, inputs, spec.inputs, strict=True):
        if array is None or isinstance(given, np.ndarray) or operand in op.compile_time or operand not in domain.access:
            noisy.append(array)
        else:
            noisy.append(disturbed(array, domain.footprint(operand, tile), rng))
    expected, found = evaluate(call, inputs), evaluate(call, noisy)
    for name, left, right in zip(op.output_names(len(call.outputs)), expected, found, strict=False):
        if name not in domain.outputs:
            continue
        where = region(domain.footprint(name, tile))
        if not np.array_equal(left[where], right[where], equal_nan=left.dtype.kind == "f"):
            return False
    return True


def check(op: Operator, spec: Example, index: int, domain: Domain | None = None) -> bool:
    inputs = arrays_of(spec, seed=index)
    call = call_example(op, spec, inputs)
    known = domain or call.domain()
    return all(tile_is_independent(op, spec, known, call, inputs, seed) for seed in range(TILES_PER_EXAMPLE))


@pytest.mark.parametrize("name", list(operators()))
def test_noise_outside_the_footprint_never_changes_a_tile(name: str) -> None:
    op = REGISTRY[name]
    assert op.examples, "an operator without examples is not tested at all"
    for index, spec in enumerate(op.examples):
        assert check(op, spec, index), f"{name} example {index} {spec.inputs} {dict(spec.attrs)}"


@pytest.mark.parametrize("name", list(operators()))
def test_domains_name_every_operand_and_output(name: str) -> None:
    op = REGISTRY[name]
    for index, spec in enumerate(op.examples):
        call = call_example(op, spec, arrays_of(spec, seed=index))
        domain = call.domain()
        runtime = {o for o, t in zip(call.operands, call.inputs, strict=True) if t is not None} - op.compile_time
        missing = runtime - set(domain.access)
        assert not missing, f"{name} example {index} has no access map for {missing}"
        assert set(domain.outputs) == set(op.output_names(len(call.outputs))), f"{name} example {index}"
        for operand, axes in domain.access.items():
            assert len(axes) == len(domain.shapes[operand]), f"{name} example {index} operand {operand}"
            assert domain.shapes[operand] == call.shape(operand), f"{name} example {index} operand {operand}"


def shifted(axis: Axis, by: int) -> Axis:
    return replace(axis, constant=axis.constant + by) if isinstance(axis, Affine) else axis


def scaled(axis: Axis) -> Axis:
    if isinstance(axis, Affine) and any(c > 1 for _, c in axis.terms):
        return replace(axis, terms=tuple((n, 1) for n, _ in axis.terms))
    return axis


def with_access(domain: Domain, operand: str, axis: int, wrong: Axis) -> Domain:
    axes = list(domain.access[operand])
    axes[axis] = wrong
    return replace(domain, access=MappingProxyType({**domain.access, operand: tuple(axes)}))


def without_halo(axis: Axis) -> Axis:
    if isinstance(axis, Affine):
        return Affine(tuple((n, c) for n, c in axis.terms if not n.startswith("K")), axis.constant)
    return axis


Mistake = Callable[[Axis], Axis]
SEEDED_MISTAKES: list[tuple[str, int, str, int, Mistake, str]] = [
    ("MatMul", 0, "A", 0, lambda a: shifted(a, 1), "rows shifted"),
    ("MatMul", 0, "B", 1, lambda a: shifted(a, -1), "columns shifted"),
    ("MatMul", 0, "B", 1, lambda _: Affine((("M", 1),)), "columns indexed by the rows"),
    ("Add", 0, "B", 2, lambda a: shifted(a, 1), "second operand one too far"),
    ("Add", 1, "B", 0, lambda _: Affine((), 0), "broadcast along a real axis"),
    ("Conv", 0, "X", 2, lambda a: shifted(a, 2), "padding with the wrong sign"),
    ("Conv", 0, "X", 3, without_halo, "halo forgotten"),
    ("Conv", 1, "X", 2, scaled, "stride forgotten"),
    ("Conv", 0, "W", 0, lambda a: shifted(a, 1), "filters shifted"),
    ("Transpose", 0, "data", 0, lambda a: shifted(a, 1), "moved by one"),
    ("Softmax", 0, "X", 2, lambda _: Affine((), 0), "normalised axis not whole"),
]


@pytest.mark.parametrize(
    ("name", "index", "operand", "axis", "mistake", "what"), SEEDED_MISTAKES, ids=[m[-1] for m in SEEDED_MISTAKES]
)
def test_a_wrong_access_map_is_caught(
    name: str, index: int, operand: str, axis: int, mistake: Mistake, what: str
) -> None:
    op = REGISTRY[name]
    spec = op.examples[index]
    call = call_example(op, spec, arrays_of(spec, seed=index))
    right = call.domain()
    wrong = with_access(right, operand, axis, mistake(right.access[operand][axis]))
    assert wrong != right
    assert check(op, spec, index, right)
    assert not check(op, spec, index, wrong), f"not caught: {what}"
