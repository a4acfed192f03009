"""Reference data of ITA: every array of every case, through the registers of its jobs and images of its memory."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sim.ita_jobs import TILE, TIMING, Activation, Requantisation, Values, attention, feed_forward, linear, untiled
from sim.ita_units_program import ran_unit
from sim.test_ita import activated, matrix, product, ran_layer
from support import CASES_VARIABLE, cases_folder
from tilewright import _native
from tilewright.core.graph import type_of_array
from tilewright.core.op import REGISTRY, call_of, evaluate
from tilewright.ops.ita_heads import ENTRY
from tilewright.ops.ita_rules import gelu, requantised, running_sums, softmax

Case = dict[str, NDArray[Any]]
"""By the names of its README."""
FOLDER = (cases_folder() or Path()) / "ita"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"{CASES_VARIABLE} names no folder with them")


def cases(kind: str) -> list[str]:
    index = FOLDER / "index.csv"
    if not index.is_file():
        return []
    with index.open(encoding="utf-8") as file:
        return [row["file"] for row in csv.DictReader(file) if row["kind"] == kind]


def case(name: str) -> Case:
    with np.load(FOLDER / name) as stored:
        return dict(stored)


def same(found: Values, wanted: Values, name: str) -> None:
    np.testing.assert_array_equal(found.astype(np.int64), wanted.astype(np.int64), name)


def bounds(cycles: list[int], products: int) -> None:
    """A job takes 256 cycles at least, one with output 290 accesses, and both a few to begin and end."""
    assert len(cycles) == products
    assert all(256 <= count <= 298 + 15 for count in cycles)


def scales_of(data: Case, rows: int, head: int | None = None) -> Requantisation:
    parts = [np.atleast_1d(data[f"rq_{name}"]) for name in ("mult", "shift", "add")]
    return Requantisation(*((p if head is None else p[:, head])[:rows].astype(int).tolist() for p in parts))


def activation_of(data: Case) -> Activation:
    names = ("activation", "gelu_b", "gelu_c", "act_mult", "act_shift", "act_add")
    return Activation(*(int(data[name]) for name in names))


@pytest.mark.parametrize("name", cases("attention"))
def test_attention(name: str) -> None:
    data = case(name)
    s, p, e, heads = (int(n) for n in data["dims"])
    for h in range(heads):
        scales = scales_of(data, 6, h)
        weights, biases = [data[f"W{n}"][h] for n in "qkvo"], [data[f"B{n}"][h] for n in "qkvo"]
        head = attention(data["Q"], data["KV"], weights, biases, scales)
        memory = head.layer.image()
        engine = _native.ItaEngine(memory, TIMING)
        cycles: list[int] = []
        for job in head.layer.jobs:
            cycles.append(engine.run(job))
            if len(cycles) in head.row_ends:
                row = head.row_ends.index(len(cycles)) * TILE
                found = np.asarray(engine.rows()).T
                for values, part in zip(found, ("max", "sum", "inv"), strict=True):
                    same(values, data[f"softmax_{part}"][h, row : row + TILE], part)
        ts, te, tp = s // TILE, e // TILE, p // TILE
        bounds(cycles, 4 * ts * tp * te + 2 * ts * ts * tp)
        made = {"Qp": (head.query, s, p), "Kp": (head.key, s, p), "A": (head.scores, s, s)}
        made |= {"O": (head.mixed, s, p), "Out": (head.out, s, e)}
        for array, (at, rows, columns) in made.items():
            same(matrix(memory, at, rows, columns), data[array][h], array)
        same(matrix(memory, head.value, p, s).T, data["Vp"][h], "Vp")
        # The same by the reference of the operators, accumulators included.
        same(softmax(data["A"][h]), data["A_soft"][h], "A_soft")
        same(running_sums(data["A"][h])[1][:, 0], data["softmax_sum"][h], "softmax_sum")
        left = {"Qp": data["Q"], "Kp": data["KV"], "Vp": data["KV"], "A": data["Qp"][h]}
        left |= {"O": data["A_soft"][h], "Out": data["O"][h]}
        right = {"Qp": weights[0], "Kp": weights[1], "Vp": weights[2], "A": data["Kp"][h].T}
        right |= {"O": data["Vp"][h], "Out": weights[3]}
        added = {"Qp": biases[0], "Kp": biases[1], "Vp": biases[2], "A": 0, "O": 0, "Out": biases[3]}
        for index, array in enumerate(("Qp", "Kp", "Vp", "A", "O", "Out")):
            same(product(left[array], right[array], added[array], scales, index), data[array][h], array)
            if f"{array}_acc" in data:
                sums = left[array].astype(np.int64) @ right[array].astype(np.int64) + added[array]
                same(sums, data[f"{array}_acc"][h], f"{array}_acc")
    total = data["Out"].astype(np.int64).sum(axis=0)
    last = [int(data[f"rq_{name}"][6, 0]) for name in ("mult", "shift", "add")]
    same(requantised(total, *last), data["Sum"], "Sum")


@pytest.mark.parametrize("name", cases("feed-forward"))
def test_feed_forward(name: str) -> None:
    data = case(name)
    s, e, f = (int(n) for n in data["dims"])
    scales, activation = scales_of(data, 2), activation_of(data)
    moved = Requantisation(*([0] * 6 + list(part) for part in (scales.mult, scales.shift, scales.add)))
    weights, biases = (data["W1"], data["W2"]), (data["B1"], data["B2"])
    layer, hidden, out = feed_forward(data["X"], weights, biases, moved, activation)
    memory, cycles = ran_layer(layer)
    bounds(cycles, 2 * s * e * f // TILE**3)
    same(matrix(memory, hidden, s, f), data["H"], "H")
    same(matrix(memory, out, s, e), data["Y"], "Y")
    pre = product(data["X"], data["W1"], data["B1"], scales, 0)
    same(pre, data["H_pre"], "H_pre")
    same(activated(pre, activation), data["H"], "H")


@pytest.mark.parametrize("name", cases("linear"))
def test_linear(name: str) -> None:
    data = case(name)
    m, k, n = (int(size) for size in data["dims"])
    scales, activation = scales_of(data, 1), activation_of(data)
    layer, out = linear(data["X"], data["W"], data["B"], scales, activation)
    memory, cycles = ran_layer(layer)
    bounds(cycles, m * k * n // TILE**3)
    same(matrix(memory, out, m, n), data["Y"], "Y")
    pre = product(data["X"], data["W"], data["B"], scales, 0)
    same(pre, data["Y_pre"], "Y_pre")
    same(activated(pre, activation), data["Y"], "Y")


@pytest.mark.parametrize("number", ["03", "20", "23"])
def test_byte_images(number: str) -> None:
    """What the reference has in its memory is what the jobs here are given and leave."""
    data, image = case(f"attn_{number}.npz"), case(f"hwpe_attn_{number}.npz")
    weights, biases = [data[f"W{n}"][0] for n in "qkvo"], [data[f"B{n}"][0] for n in "qkvo"]
    head = attention(data["Q"], data["KV"], weights, biases, scales_of(data, 6, 0))
    names = ("Q", "K", "WqT", "WkT", "WvT", "WoT", "Bq", "Bk", "Bv", "Bo")
    for name, part in zip(names, head.layer.memory, strict=False):
        same(part, image[name], name)
    registers = [word for name in ("mult", "shift", "add") for word in image[f"reg_{name}"].tolist()]
    assert head.layer.jobs[0][7:13] == [int(word) & 0xFFFFFFFF for word in registers]
    memory, _ = ran_layer(head.layer)
    places = {"Qp": head.query, "Kp": head.key, "VpT": head.value, "A": head.scores, "O": head.mixed, "Out": head.out}
    for name, at in places.items():
        same(memory[at : at + len(image[name])], image[name], name)
    s = int(image["dims"][0])
    same(softmax(untiled(image["A"], s, s)), untiled(image["A_soft"], s, s).view(np.uint8), "A_soft")


def test_softmax_rows() -> None:
    data = case("softmax_rows.npz")
    for length in (64, 128, 256, 512):
        x = data[f"x_{length}"]
        same(softmax(x), data[f"y_{length}"], "y")
        same(np.asarray([_native.ita_softmax(row.tolist()) for row in x]), data[f"y_{length}"], "y")
        top, total = running_sums(x)
        same(top[:, 0], data[f"max_{length}"], "max")
        same(total[:, 0], data[f"sum_{length}"], "sum")
        for name, bits in (("itapartialmax", 8), ("banshee", 10)):
            call = call_of(REGISTRY["ITAPartialMax"], [type_of_array(x)], {"group_width": 16, "term_bits": bits})
            same(evaluate(call, [x])[0], data[f"{name}_{length}"], name)


def test_single_functions() -> None:
    data = case("activations.npz")
    for k in range(5):
        b, c, mult, shift, add = (int(n) for n in data[f"const_{k}"])
        # PyITA clips to -127 first, which the requantised result does not show.
        same(gelu(np.maximum(data["q"], -127), b, c), data[f"gelu_raw_{k}"], "gelu_raw")
        for kind, name in ((1, "gelu"), (2, "relu")):
            found = [_native.ita_activate(int(q), kind, b, c, mult, shift, add) for q in data["q"]]
            same(np.asarray(found), data[f"{name}_{k}"], name)
            same(activated(data["q"], Activation(kind, b, c, mult, shift, add)), data[f"{name}_{k}"], name)
    data = case("requantiser.npz")
    for *given, wanted in zip(*(data[name].tolist() for name in ("acc", "mult", "shift", "add", "out")), strict=True):
        assert _native.ita_requantise(*given) == wanted
        assert requantised(np.asarray(given[0]), *given[1:]) == wanted


@pytest.mark.parametrize("number", range(1, 5))
def test_units(number: int, tmp_path: Path) -> None:
    """The flavour with one head for each of four units."""
    data = case(f"mempool_ita_{number:02d}.npz")
    s, e, p = (int(size) for size in data["dims"])
    scales = Requantisation(*(data[name].astype(int).tolist() for name in ("mult", "shift", "add")))
    out, cycles = ran_unit(tmp_path, data["block"], (s, e, p), scales)
    same(out.reshape(s, e), data["Out"], "Out")
    ts, te, tp = (-(-size // TILE) for size in (s, e, p))
    assert 0 <= cycles - 256 * (4 * ts * tp * te + 2 * ts * ts * tp) <= 100
    # The same by the reference of the operator.
    entry = np.zeros(1, ENTRY)
    for name in ("mult", "shift", "add"):
        entry[name][0, :6] = data[name]
    block, table = data["block"].view(np.int8), entry.view(np.int8)
    sizes = {"heads": 1, "rows": s, "embedding": e, "projection": p}
    call = call_of(REGISTRY["ITAHeads"], [type_of_array(block), type_of_array(table)], sizes)
    same(evaluate(call, [block, table])[0][0], data["Out"], "Out")
