"""Kernels for language models in integers against the references, on the simulated chip with all its checks."""

from __future__ import annotations

import numpy as np
import pytest

from language_models import tiny
from passes.build import Builder
from platforms.test_siracusa_kernels import assert_right, random
from tilewright.api import Options, compile_model, run_model
from tilewright.core.graph import Array, Graph
from tilewright.core.interpret import interpret, interpret_steps
from tilewright.language.graphs import integer_graph
from tilewright.language.quantised import powers, quantised
from tilewright.language.ranges import own_texts, watched
from tilewright.machine.target import Sizes


def test_norms_of_16_bits() -> None:
    b = Builder()
    outputs: list[str] = []
    for number, shape in enumerate([(10, 33), (1, 252), (3, 2), (2, 1)]):
        weight = np.clip(random("int16", shape[1], seed=number).astype(np.int32), -32767, 32767)
        outputs.append(b.op("iRMSNorm", b.input(f"x{number}", f"int16[{shape[0]},{shape[1]}]"), weight, D=1 << 9))
    assert_right(b.graph(*outputs), "irmsnorm_s16")


def test_norms_of_rows_without_a_middle() -> None:
    """Rows whose deviation is 1, and the largest squares; with cores that have a row each, and a part of one."""
    b = Builder()
    weight = np.linspace(-32767, 32767, 20).astype(np.int32)
    graph = b.graph(b.op("iRMSNorm", b.input("x", "int16[10,20]"), weight, D=1 << 9))
    x = np.zeros((10, 20), np.int16)
    x[1], x[2, ::3], x[3], x[4], x[5, 7], x[8], x[9, 4] = 1, -1, -32768, 32767, -32768, -32768, 1
    ran = run_model(graph, Options(platform="siracusa"), inputs=[x])
    np.testing.assert_array_equal(ran.outputs[0], interpret(graph, [x])[0])


def test_quotients_of_norms_that_are_integers_or_just_not() -> None:
    """Elements that are all alike: what is divided is their weight times the deviation."""
    b = Builder()
    near = np.arange(-60, 61)[:, None] * (1 << 9) + np.arange(-1, 2)
    graph = b.graph(
        b.op("iRMSNorm", b.input("x", f"int16[18,{near.size}]"), near.reshape(-1).astype(np.int32), D=1 << 9)
    )
    alike = np.asarray([1, 2, 3, 7, 181, 4097, 32766, 32767, 32768])
    x = np.repeat(np.concatenate([-alike, alike.clip(max=32767)])[:, None], near.size, axis=1).astype(np.int16)
    ran = run_model(graph, Options(platform="siracusa"), inputs=[x])
    np.testing.assert_array_equal(ran.outputs[0], interpret(graph, [x])[0])


def test_weights_of_norms_that_are_large() -> None:
    b = Builder()
    assert_right(b.graph(b.op("iRMSNorm", b.input("x", "int16[2,9]"), np.full(9, 40000, np.int32), D=1 << 9)))


@pytest.mark.parametrize(
    ("heads", "rows", "length", "size", "kernel"),
    [
        (9, 1, 100, 28, "iattention_s8"),
        (4, 1, 23, 16, "iattention_s8"),
        (8, 1, 0, 8, "iattention_s8"),
        (17, 1, 6, 4, "iattention_s8"),
        (11, 1, 37, 12, "iattention_s8"),
        (3, 5, 6, 8, "iattention"),
        (3, 2, 7, 14, "iattention"),
    ],
)
def test_attention(heads: int, rows: int, length: int, size: int, kernel: str) -> None:
    assert_right(attention(heads, rows, length, size), kernel, l1=100_000)


@pytest.mark.parametrize(
    ("heads", "rows", "length", "size"),
    [(3, 8, 7, 8), (2, 4, 3, 4), (5, 12, 66, 12), (9, 64, 6, 28), (1, 4, 600, 4)],
)
def test_attention_of_four_queries_at_a_time(heads: int, rows: int, length: int, size: int) -> None:
    assert_right(attention(heads, rows, length, size), "iattention_fours_s8", l1=100_000)


@pytest.mark.parametrize("table", [[0], [1, 0], [0, 1], [2, 0], [255, 255]])
def test_totals_of_weights_that_are_powers_of_two_or_nothing(table: list[int]) -> None:
    assert_right(attention(2, 4, 9, 8, np.asarray(table, np.uint8)), "iattention_fours_s8")


def test_the_position_stays_in_l1() -> None:
    """Rows are appended to two caches in each layer, where the position is that which rotations have."""
    model = tiny()
    graph = integer_graph(quantised(model, watched(model, own_texts(model))))
    text = compile_model(graph, Options(platform="siracusa")).files["network.c"].decode()
    loads = [line for line in text.splitlines() if "tw_dma_start(" in line and "inputs[1]" in line]
    assert 0 < len(loads) < 2 * model.sizes.layers


def test_rows_of_the_cache_begin_at_words() -> None:
    """Values of a channel are as many as there are tokens; the next channel begins where words do."""
    model = tiny()
    graph = integer_graph(quantised(model, watched(model, own_texts(model))))
    files = compile_model(graph, Options(platform="siracusa")).files
    text = next(str(text) for place, text in files.items() if place.endswith("network.c"))
    calls = [" ".join(call.split()) for call in text.split("iattention_s8(")[2:]]
    assert calls
    assert all("(size_0 + 7) / 8 * 8, 320," in call for call in calls)


def attention(heads: int, rows: int, length: int, size: int, table: Array | None = None) -> Graph:
    b = Builder()
    shapes = {"q": (rows, size), "k": (length, size), "v": (size, length), "new_k": (rows, size), "new_v": (size, rows)}
    parts = [b.input(name, f"int8[{heads},{x},{y}]") for name, (x, y) in shapes.items()]
    weights = powers() if table is None else table
    factors = np.arange(1, heads + 1, dtype=np.int32), weights, np.full((heads, size), 5000, np.int32)
    return b.graph(b.op("iAttention", *parts, *factors, score_shift=6, mean_shift=18))


@pytest.mark.parametrize(("half", "kernels"), [(2, ["irotary"]), (5, []), (6, ["irotary"])])
def test_rotations(half: int, kernels: list[str]) -> None:
    b = Builder()
    cosines, sines = (random("int16", 7, half, seed=seed) // 2 for seed in range(2))
    outputs = [
        b.op(
            "iRotary",
            b.input(f"x{at}", f"int16[{rows},{6 * half}]"),
            cosines,
            sines,
            np.asarray(at, np.int32),
            heads=3,
            shift=20,
        )
        for at, rows in ((0, 1), (4, 2), (-2, 3), (9, 11))
    ]
    assert_right(b.graph(*outputs), *kernels)


@pytest.mark.parametrize("half", [1, 5, 6])
def test_queries_of_sums(half: int) -> None:
    """A row, scaled back and turned at once, also at places that the tables do not reach."""
    b = Builder()
    cosines, sines = (random("int16", 7, half, seed=seed) // 2 for seed in range(2))
    mul, add = (random("int16", 12 * half, seed=seed).astype(np.int32) for seed in range(2))
    outputs: list[str] = []
    for at in (0, 4, -2, 9):
        x = b.input(f"x{at}", f"int32[1,{12 * half}]")
        scaled = b.op("RequantShift", x, mul, add, div=1 << 9, n_levels=1 << 16, axis=-1, x_limit=1 << 15)
        outputs.append(b.op("iRotary", scaled, cosines, sines, np.asarray(at, np.int32), heads=6, shift=20))
    assert "requant_rotary(" in _with_small_sums(b.graph(*outputs), 16)


@pytest.mark.parametrize("half", [1, 5, 6])
def test_rows_of_queries_of_sums(half: int) -> None:
    """Many rows of a pair of columns at a time, also at places that the tables do not reach."""
    b = Builder()
    cosines, sines = (random("int16", 7, half, seed=seed) // 2 for seed in range(2))
    mul, add = (random("int16", 6 * half, seed=seed).astype(np.int32) for seed in range(2))
    outputs: list[str] = []
    for at, rows in ((0, 7), (4, 2), (-2, 3), (9, 11), (-3, 64)):
        x = b.input(f"x{at}", f"int32[{rows},{6 * half}]")
        scaled = b.op("RequantShift", x, mul, add, div=1 << 9, n_levels=1 << 16, axis=-1, x_limit=1 << 15)
        outputs.append(b.op("iRotary", scaled, cosines, sines, np.asarray(at, np.int32), heads=3, shift=20))
    text = _with_small_sums(b.graph(*outputs), 16)
    assert "requant_rotary_rows(" in text
    assert "irotary(" not in text


def test_sums_added_to_a_residual() -> None:
    """Tiles of any number of rows and columns, and results beyond 24 and 16 bits."""
    b, one, none = Builder(), np.asarray(1, np.int32), np.asarray(0, np.int32)
    outputs: list[str] = []
    for number, (rows, columns) in enumerate([(1, 256), (9, 24), (5, 7), (64, 130), (3, 1)]):
        mul, add = (np.abs(random("int16", columns, seed=seed)).astype(np.int32) for seed in (number, 7))
        sums, residual = (
            b.input(f"x{number}", f"int32[{rows},{columns}]"),
            b.input(f"a{number}", f"int16[{rows},{columns}]"),
        )
        for div, levels in ((1 << 10, 1 << 24), (2, 1 << 24), (4, 1 << 20)):
            scaled = b.op("RequantShift", sums, mul, add, div=div, n_levels=levels, axis=-1, x_limit=1 << 15)
            total = b.op("Add", *((residual, scaled) if div > 2 else (scaled, residual)), widen=1)
            outputs.append(b.op("RequantShift", total, one, none, div=1, n_levels=1 << 16))
    text = _with_small_sums(b.graph(*outputs), 16)
    assert "requant_add(" in text
    assert "requant_columns(" not in text


def _with_small_sums(graph: Graph, bits: int) -> str:
    """The chip computes what the references do of sums that are so many bits shorter. Returns the program's text."""
    fed = [random(graph.types[n].dtype.name, *graph.types[n].shape, seed=i) >> bits for i, n in enumerate(graph.inputs)]
    ran = run_model(graph, Options(platform="siracusa", sizes=Sizes({"L1": 24_000}, without=("neureka",))), inputs=fed)
    for found, wanted in zip(ran.outputs, interpret(graph, fed), strict=True):
        np.testing.assert_array_equal(found, wanted)
    return ran.compiled.files["network.c"].decode()


def test_rows_that_are_appended() -> None:
    """Tiles in which they begin, end or are all there is, along either axis; a place too far behind is the last one."""
    b = Builder()
    outputs: list[str] = []
    shapes = [((3, 40, 12), (3, 9, 12), 1), ((5, 7, 90), (5, 7, 32), 2), ((2, 6, 16), (2, 6, 16), -2)]
    for number, (table, rows, axis) in enumerate(shapes):
        x, r = (b.input(f"{n}{number}", f"int8[{', '.join(map(str, s))}]") for n, s in (("x", table), ("r", rows)))
        for at in (0, 5, 99):
            outputs.append(b.op("Append", x, r, np.asarray(at, np.int32), axis=axis))
    assert_right(b.graph(*outputs), "append", l1=2_000)


def test_rows_appended_to_a_cache() -> None:
    """Only new rows are in the memory of the cores."""
    model = tiny()
    graph = integer_graph(quantised(model, watched(model, own_texts(model))), 8)
    tokens, positions = np.arange(24, dtype=np.int32).reshape(3, 8), np.arange(0, 24, 8, dtype=np.int32)
    fed = [tokens, positions]
    ran = run_model(graph, Options(platform="siracusa"), inputs=fed, steps=3)
    np.testing.assert_array_equal(ran.outputs[0].reshape(-1), interpret_steps(graph, fed, 3)[0].reshape(-1))
    calls = ran.compiled.files["network.c"].decode().split("append(NULL, ")
    assert len(calls) == 1 + 2 * 2


@pytest.mark.parametrize(("engines", "lowest"), [((), -32767), (("neureka",), -32767), ((), -32768)])
def test_gates_and_partners(engines: tuple[str, ...], lowest: int) -> None:
    """Tiles of pairs of columns; sums, gates and products that are too large, and the largest product of 16 bits.

    A product with the lowest number may need more, which the kernel does not expect.
    """
    b = Builder()
    outputs: list[str] = []
    for number, (rows, columns) in enumerate([(9, 24), (2, 7), (64, 70)]):
        x = b.input(f"x{number}", f"int8[{rows},20]")
        scaled: list[str] = []
        for part in range(2):
            mul, add = (np.abs(random("int16", columns, seed=number + seed)).astype(np.int32) for seed in (part, 2))
            sums = b.op("MatMul", x, random("int8", 20, columns, seed=part))
            scaled.append(b.op("RequantShift", sums, mul % 4096, add, div=1 << (6 + part), n_levels=1 << 16, axis=-1))
        opened = b.op("iSiLU", scaled[0], np.linspace(lowest, 32767, 64).astype(np.int16), step=7)
        product = b.op("Mul", opened, scaled[1], widen=1)
        outputs.append(b.op("RequantShift", product, np.asarray(1, np.int32), np.asarray(0, np.int32), div=1 << 20))
    graph = b.graph(*outputs)
    fed = [random("int8", *graph.types[name].shape, seed=seed) for seed, name in enumerate(graph.inputs)]
    ran = run_model(graph, Options(platform="siracusa", sizes=Sizes({"L1": 24_000}, without=engines)), inputs=fed)
    for found, wanted in zip(ran.outputs, interpret(graph, fed), strict=True):
        np.testing.assert_array_equal(found, wanted)
    used = {choice.kernel.function for choice in ran.compiled.plan.choices if choice.kernel is not None}
    assert ("requant_gate" in used) == (lowest > -32768)
    assert ("neureka_matmul" in used) == (not engines)


@pytest.mark.parametrize("levels", [1 << 8, 1 << 16])
def test_requantised_columns(levels: int) -> None:
    """Whole fours of columns and others, alone and with a gate behind them."""
    b = Builder()
    outputs: list[str] = []
    for number, (rows, columns) in enumerate([(9, 24), (5, 7), (1, 30), (3, 2)]):
        x, mul = b.input(f"x{number}", f"int32[{rows},{columns}]"), random("int8", columns, seed=number)
        add = random("int16", columns, seed=number).astype(np.int32)
        kept, gated = (
            b.op("RequantShift", x, mul.astype(np.int32), a, div=1 << 9, n_levels=levels, axis=-1, x_limit=1 << 23)
            for a in (add, -add)
        )
        outputs.append(kept)
        if levels > 1 << 8:
            outputs.append(b.op("iSiLU", gated, np.arange(128).astype(np.int16) * 256, step=9))
    assert "requant_columns(" in _with_small_sums(b.graph(*outputs), 8)


@pytest.mark.parametrize(
    ("rows", "weight_memory", "in_place"),
    [(1, 1 << 20, True), (24, 1 << 20, True), (1, 0, False), (300, 1 << 20, False)],
)
def test_rows_of_a_table_are_read_in_place(rows: int, weight_memory: int, in_place: bool) -> None:
    """Where that is sooner than to load all of it; each core reads its share."""
    b = Builder()
    table = random("int8", 500, 60)
    graph = b.graph(b.op("Gather", table, b.input("index", f"int32[{rows}]"), axis=0))
    index = np.arange(rows, dtype=np.int32) * 7 % 1000 - 500
    options = Options(platform="siracusa", sizes=Sizes({"WMEM": weight_memory}))
    ran = run_model(graph, options, inputs=[index], expected=[table[index]])
    assert ran.right
    assert ran.compiled.plan.schedule is not None
    assert bool(ran.compiled.plan.schedule.used["WMEM"]) == in_place
    assert ran.cycles is not None
    assert (ran.cycles < 4000) == in_place
