"""ITA's jobs: its arithmetic against numpy, whole layers through registers and memory, cycles, and what it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from sim.device_programs import ran
from sim.ita_jobs import (
    NEXT,
    NO_OUTPUT,
    TILE,
    TILE_BYTES,
    TIMING,
    Activation,
    Head,
    Layer,
    Requantisation,
    Values,
    attention,
    feed_forward,
    linear,
    untiled,
)
from sim.ita_units_program import ran_unit, with_accelerator
from tilewright import _native
from tilewright.ops.ita_rules import gelu, requantised, running_sums, softmax

GELU = Activation(1, -80, -7091, 74, 20, 0)
RELU = Activation(2, 0, 0, 255, 8, 3)


def ran_layer(layer: Layer, memory: NDArray[np.uint8] | None = None) -> tuple[NDArray[np.uint8], list[int]]:
    """What the jobs leave in memory, and their cycles."""
    memory = layer.image() if memory is None else memory
    engine = _native.ItaEngine(memory, TIMING)
    return memory, [engine.run(job) for job in layer.jobs]


def matrix(memory: NDArray[np.uint8], at: int, rows: int, columns: int) -> NDArray[np.int8]:
    return untiled(memory[at : at + rows * columns], rows, columns)


def activated(values: Values, activation: Activation) -> Values:
    if activation.kind == 0:
        return values
    raw = gelu(values, activation.b, activation.c) if activation.kind == 1 else np.maximum(values.astype(np.int64), 0)
    return requantised(raw, activation.mult, activation.shift, activation.add)


def product(left: Values, right: Values, bias: Values | int, scales: Requantisation, index: int) -> Values:
    sums = left.astype(np.int64) @ right.astype(np.int64) + bias
    return requantised(sums, int(scales.mult[index]), int(scales.shift[index]), int(scales.add[index]))


def check_head(head: Head, q: Values, kv: Values, weights: Sequence[Values], biases: Sequence[Values]) -> None:
    """Runs a head and compares every result with numpy's."""
    scales, inputs = head.layer.scales, (q, kv, kv)
    query, key, value = (product(inputs[i], weights[i], biases[i], scales, i) for i in range(3))
    scores = product(query, key.T, 0, scales, 3)
    mixed = product(softmax(scores), value, 0, scales, 4)
    out = product(mixed, weights[3], biases[3], scales, 5)
    memory = head.layer.image()
    engine = _native.ItaEngine(memory, TIMING)
    sums = np.concatenate(running_sums(scores), axis=1)
    for number, job in enumerate(head.layer.jobs, 1):
        engine.run(job)
        if number in head.row_ends:
            row = head.row_ends.index(number) * TILE
            np.testing.assert_array_equal(np.asarray(engine.rows())[:, :2], sums[row : row + TILE])
    made = {"query": query, "key": key, "value": value.T, "scores": scores, "mixed": mixed, "out": out}
    for name, wanted in made.items():
        np.testing.assert_array_equal(matrix(memory, getattr(head, name), *wanted.shape), wanted, name)


def random_scales(rng: np.random.Generator, shifts: Sequence[int]) -> Requantisation:
    mult = rng.integers(60, 128, len(shifts)).tolist()
    return Requantisation(mult, shifts, rng.integers(-4, 5, len(shifts)).tolist())


@pytest.mark.parametrize(("s", "e", "p"), [(64, 64, 64), (128, 64, 192), (192, 128, 64)])
def test_attention(s: int, e: int, p: int) -> None:
    rng = np.random.default_rng(s + e + p)
    q, kv = (rng.integers(-128, 128, (s, e)).astype(np.int8) for _ in range(2))
    sizes = [(e, p)] * 3 + [(p, e)]
    weights = [rng.integers(-128, 128, size).astype(np.int8) for size in sizes]
    biases = [rng.integers(-(1 << 20), 1 << 20, size[1]) for size in sizes]
    scales = random_scales(rng, (16, 16, 16, 17, 13, 16))
    head = attention(q, kv, weights, biases, scales)
    check_head(head, q, kv, weights, biases)


@pytest.mark.parametrize("activation", [Activation(), GELU, RELU], ids=["identity", "gelu", "relu"])
def test_products(activation: Activation) -> None:
    rng = np.random.default_rng(activation.kind)
    x, w = rng.integers(-128, 128, (128, 192)).astype(np.int8), rng.integers(-128, 128, (192, 64)).astype(np.int8)
    other = rng.integers(-128, 128, (64, 192)).astype(np.int8)
    bias, bias_back = rng.integers(-(1 << 23), 1 << 23, 64), rng.integers(-(1 << 18), 1 << 18, 192)
    scales = random_scales(rng, (17, 16))
    layer, out = linear(x, w, bias, scales, activation)
    wanted = activated(product(x, w, bias, scales, 0), activation)
    np.testing.assert_array_equal(matrix(ran_layer(layer)[0], out, *wanted.shape), wanted)
    moved = Requantisation(*([0] * 6 + list(part) for part in (scales.mult, scales.shift, scales.add)))
    layer, hidden, out = feed_forward(x, (w, other), (bias, bias_back), moved, activation)
    memory = ran_layer(layer)[0]
    np.testing.assert_array_equal(matrix(memory, hidden, *wanted.shape), wanted)
    back = product(wanted, other, bias_back, scales, 1)
    np.testing.assert_array_equal(matrix(memory, out, *back.shape), back)


def test_single_functions() -> None:
    rng = np.random.default_rng(5)
    sums, shifts = rng.integers(-(1 << 25), 1 << 25, 200), rng.integers(0, 24, 200)
    for total, shift in zip(sums.tolist(), shifts.tolist(), strict=True):
        wanted = int(requantised(np.asarray(total), 201, shift, -7))
        assert _native.ita_requantise(total, 201, shift, -7) == wanted
    rows = rng.integers(-128, 128, (20, 64)) // (1 + np.arange(20)[:, None])
    np.testing.assert_array_equal([_native.ita_softmax(row.tolist()) for row in rows], softmax(rows))
    q = np.arange(-128, 128)
    for a in (GELU, RELU):
        made = [_native.ita_activate(int(v), a.kind, a.b, a.c, a.mult, a.shift, a.add) for v in q]
        np.testing.assert_array_equal(made, activated(q, a))


def ones(rows: int, inner: int, columns: int) -> tuple[Layer, int]:
    scales = Requantisation([1], [0], [0])
    x, w = np.ones((rows, inner), np.int8), np.ones((inner, columns), np.int8)
    return linear(x, w, np.zeros(columns, np.int64), scales, Activation())


def test_cycles_are_those_of_port_and_array() -> None:
    """A job with output is bound by 290 accesses, 301 cycles in all; one without by its 256 products."""
    layer, _ = ones(128, 192, 64)
    _, cycles = ran_layer(layer)
    assert cycles == [267, 267, 301, 267, 267, 293], "the last one loads no weights for another"
    busy = [_native.ita_busy("linear", TIMING, *(np.array([size]) for size in (128, 64, 192, 1, 1)))[0]]
    assert busy[0] == 4 * 267 + 2 * 301 + 5 * TIMING["next_cycles"]
    parts = [
        _native.ita_busy("linear", TIMING, *(np.array([size]) for size in (64, 64, 128, 1, last)))[0] for last in (0, 1)
    ]
    assert parts == [2 * 267 + TIMING["next_cycles"], 267 + 301 + TIMING["next_cycles"]]
    assert 256 / (busy[0] / 6) > 0.85


def test_attention_is_priced_as_it_runs() -> None:
    rng = np.random.default_rng(0)
    q = rng.integers(-128, 128, (128, 64)).astype(np.int8)
    weights = [q[:64]] * 4
    head = attention(q, q, weights, [np.zeros(64, np.int64)] * 4, random_scales(rng, (16,) * 6))
    cycles = ran_layer(head.layer)[1]
    inner = slice(6, 6 + 2 * (2 + 2))
    priced = int(_native.ita_busy("attention", TIMING, *(np.array([size]) for size in (128, 128, 64, 0, 1)))[0])
    assert priced == sum(cycles[inner]) + 7 * TIMING["next_cycles"]


@pytest.mark.parametrize(
    ("register", "value", "why"),
    [
        (0, 4, "the address of its input is no multiple of 8"),
        (4, 1 << 24, "its output lies outside of the memory"),
        (14, NO_OUTPUT | 1, "it gives the last product of a tile, but no output"),
        (14, NEXT, "nothing has loaded the first rows of its weights"),
        (13, 3 << 2 | 2, "there is no activation 3"),
        (6, 9, "more than 8 tiles"),
    ],
)
def test_what_it_refuses(register: int, value: int, why: str) -> None:
    layer, _ = ones(64, 64, 64)
    layer.jobs[0][register] = value
    with pytest.raises(ValueError, match=why):
        ran_layer(layer)


def test_layers_are_whole() -> None:
    layer, _ = ones(64, 128, 64)
    layer.jobs[1][6] = 1
    with pytest.raises(ValueError, match="tile counts differ"):
        ran_layer(layer)
    layer, _ = ones(64, 128, 64)
    layer.jobs[0][2] += TILE_BYTES
    with pytest.raises(ValueError, match="first rows of other weights"):
        ran_layer(layer)


# As a device


SETTINGS: dict[str, int | str] = {"memory": "L1", "events": "event_unit", "event": 12, "start_cycles": 2, **TIMING}


def test_the_device(tmp_path: Path) -> None:
    """Sixteen jobs queued four deep: they follow each other, and every one tells its end."""
    ended = ran("ita", tmp_path, machine=with_accelerator("ita", SETTINGS))
    results = ended.results
    assert results[0:4] == (0, 0xFFFFFFFE, 0x01010101, 0xFFFFFFFF)
    assert results[4] == 1 << 12
    assert results[5] == 16
    wanted = 16 * 301 + 15 * TIMING["next_cycles"]
    assert wanted <= results[6] <= wanted + 250, "registers of the first are written with cold caches"
    assert results[7] == 16 * 6 + 5
    assert ended.simulator.native.statistics()["neureka"]["jobs"] == 16


def striped(values: Values) -> Values:
    """In strips of 16 columns."""
    return values.reshape(values.shape[0], -1, 16).swapaxes(0, 1).reshape(-1)


def test_units(tmp_path: Path) -> None:
    """A head with zero weights but for the last product, whose bias comes out."""
    s, e, p = 32, 48, 16
    rng = np.random.default_rng(1)
    weights, inputs = np.zeros(3 * e * p, np.int8), rng.integers(-128, 128, (2, s, e)).astype(np.int8)
    biases = np.concatenate([np.arange(-24, 24) * 4, np.zeros(3 * p)]).astype("<i4")
    striped_inputs = [striped(part) for part in inputs]
    parts = [weights, *striped_inputs, np.zeros(e * p, np.int8), biases.view(np.uint8)]
    block = np.concatenate([part.view(np.uint8) for part in parts])
    out, cycles = ran_unit(tmp_path, block, (s, e, p), Requantisation([1] * 6, [1] * 6, [0] * 5 + [3]))
    np.testing.assert_array_equal(out.reshape(s, e), np.tile(np.arange(-24, 24) * 2 + 3, (s, 1)))
    assert 6 * 256 <= cycles <= 6 * 256 + 100
