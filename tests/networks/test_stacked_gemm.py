"""Gemm of stacks of matrices, as some exporters write attention and its gradients, against numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import integer_oracle as oracle
from onnx_models import model, node, value, write
from onnx_networks import Model
from tilewright.api import Options, run_model
from tilewright.codegen.build import STRICT
from tilewright.core.graph import Array
from tilewright.errors import TilewrightError
from tilewright.frontend import load
from tilewright.machine.target import Sizes

MACHINES = {
    "generic": Options(),
    "scratchpad": Options(platform="scratchpad"),
    "small scratchpad": Options(platform="scratchpad", sizes=Sizes({"L1": 3000})),
    "siracusa": Options(platform="siracusa"),
    "siracusa's cores": Options(platform="siracusa", sizes=Sizes(without=("neureka",))),
    "cortex-m4": Options(platform="cortex-m4"),
}
STACK, TOKENS, WIDTH = 2, 6, 16


def gemm(a: Array, b: Array, c: Array | float = 0, **attributes: Any) -> Array:
    """What it means."""
    left = a.swapaxes(-1, -2) if attributes.get("transA") else a
    right = b.swapaxes(-1, -2) if attributes.get("transB") else b
    return attributes.get("alpha", 1.0) * (left @ right) + attributes.get("beta", 1.0) * np.asarray(c)


class Both:
    """A network and what it computes, node by node."""

    def __init__(self) -> None:
        self.model = Model()
        self.values: dict[str, Array] = {}

    def input(self, name: str, array: Array) -> str:
        self.values[name] = array.astype(np.float64)
        return self.model.input(name, array)

    def gemm(self, a: str, b: str | Array, c: str | Array | None = None, **attributes: Any) -> str:
        operands = [a, b] if c is None else [a, b, c]
        arrays = [self.values[o] if isinstance(o, str) else o.astype(np.float64) for o in operands]
        return self._made(self.model.op("Gemm", *operands, **attributes), gemm(*arrays, **attributes))

    def softmax(self, x: str) -> str:
        grown = np.exp(self.values[x] - self.values[x].max(-1, keepdims=True))
        return self._made(self.model.op("Softmax", x), grown / grown.sum(-1, keepdims=True))

    def requantised(self, x: str, log: int) -> str:
        mul, add = (np.asarray(number, np.float32) for number in (3, 1 << (log - 1)))
        made = self.model.op("RequantShift", x, mul, add, div=[float(1 << log)], n_levels=[256.0], signed=[1.0])
        result = oracle.requant(self.values[x].astype(np.int64), mul.astype(np.int64), add.astype(np.int64), log)
        return self._made(made, result.astype(np.float64))

    def _made(self, name: str, array: Array) -> str:
        self.values[name] = array
        return name

    def assert_right(self, outputs: list[str], options: Options, path: Path) -> None:
        content, inputs = self.model.network(*outputs)
        expected = [self.values[name].astype(np.float32) for name in outputs]
        ran = run_model(write(path, content), options, inputs=inputs, expected=expected, flags=STRICT)
        assert ran.right, ran.comparisons


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("machine", [name for name in MACHINES if name != "siracusa's cores"])
def test_attention_and_its_gradients(machine: str, tmp_path: Path) -> None:
    both = Both()
    noise = both.model.noise
    x, slope = (both.input(name, noise(STACK, TOKENS, WIDTH)) for name in ("x", "slope"))
    w, bias = both.input("w", noise(WIDTH, WIDTH, scale=0.3)), noise(WIDTH)
    query = both.gemm(x, w, bias)
    key = both.gemm(x, noise(WIDTH, WIDTH, scale=0.3), noise(TOKENS, WIDTH), transB=1, beta=0.5)
    seen = both.gemm(x, noise(STACK, WIDTH, WIDTH, scale=0.3), noise(STACK, TOKENS, WIDTH))
    share = both.softmax(both.gemm(query, key, noise(TOKENS, TOKENS), transB=1, alpha=WIDTH**-0.5))
    mixed = both.gemm(share, seen, np.array(0.25, np.float32))
    d_seen = both.gemm(share, slope, transA=1)
    d_share = both.gemm(slope, seen, transB=1)
    d_weights = both.gemm(x, d_seen, noise(STACK, 1, 1), transA=1, alpha=0.1, beta=-1.0)
    d_x = both.gemm(d_seen, w, transB=1)
    turned = both.gemm(w, x, noise(WIDTH, 1), transA=1, transB=1)
    both.assert_right([mixed, d_share, d_weights, d_x, turned], MACHINES[machine], tmp_path / "network.onnx")


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("machine", [name for name in MACHINES if name != "small scratchpad"])
def test_integer_attention(machine: str, tmp_path: Path) -> None:
    both = Both()

    def small(*shape: int) -> Array:
        return both.model.small(*shape, low=-128, high=128).astype(np.float32)

    x, slope = (both.input(name, small(STACK, TOKENS, WIDTH)) for name in ("x", "slope"))
    query = both.requantised(both.gemm(x, small(WIDTH, WIDTH), 9 * small(WIDTH)), 11)
    key = both.requantised(both.gemm(x, small(WIDTH, WIDTH), 9 * small(TOKENS, WIDTH), transB=1), 11)
    seen = both.requantised(both.gemm(x, small(STACK, WIDTH, WIDTH)), 11)
    share = both.requantised(both.gemm(query, key, 9 * small(STACK, TOKENS, TOKENS), transB=1, alpha=2.0), 13)
    mixed = both.requantised(both.gemm(share, seen), 11)
    d_seen = both.requantised(both.gemm(share, slope, transA=1, beta=3.0), 11)
    d_weights = both.gemm(x, d_seen, transA=1)
    turned = both.requantised(both.gemm(slope, small(WIDTH, WIDTH), transB=1), 12)
    both.assert_right([mixed, d_weights, turned], MACHINES[machine], tmp_path / "network.onnx")


@pytest.mark.parametrize(
    ("a", "b", "c", "reason"),
    [
        ((2, 3, 4), (3, 4, 5), (), "do not broadcast together"),
        ((2, 3, 4), (2, 5, 4), (), "A has 4 columns and B has 5 rows"),
        ((3, 4), (4, 5), (2, 3, 5), "does not broadcast to [3, 5]"),
        ((2, 3, 4), (4, 5), (2, 5), "do not broadcast together"),
        ((4,), (4, 5), (), "A and B must be matrices"),
    ],
)
def test_what_has_no_plain_meaning(
    a: tuple[int, ...], b: tuple[int, ...], c: tuple[int, ...], reason: str, tmp_path: Path
) -> None:
    content = model([node("Gemm", "a b c", "y")], [value("a", a), value("b", b), value("c", c)], ["y"])
    with pytest.raises(TilewrightError) as caught:
        load(write(tmp_path / "network.onnx", content))
    assert caught.value.code == "shape-mismatch"
    assert reason in str(caught.value)
