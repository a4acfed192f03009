"""NEUREKA as arrays predicts the cycles of its jobs, as the simulator has them."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest
from msgspec.structs import replace

from sim.neureka_reference import TIMING
from tilewright import _native
from tilewright.core.equation import LayerText, read_layer
from tilewright.core.mapping import SpatialMapping
from tilewright.core.workload import Layer
from tilewright.machine.array import ArrayEngine
from tilewright.machine.library import load_array
from tilewright.mapping.allocate import allocate
from tilewright.price.array import evaluate

DENSE = "O[k][oy][ox] += W[k][c][fy][fx] * I[c][iy][ix]"
MODES = {"1x1": "pointwise", "3x3": "dense", "depthwise": "depthwise"}
DEPTHWISE = "O[k][oy][ox] += W[k][fy][fx] * I[k][iy][ix]"


@cache
def machine(mode: str) -> ArrayEngine:
    return load_array(f"neureka-{mode}")


def simulated(mode: str, layer: Layer, weight_bits: int) -> int:
    """Cycles of a job with 32-bit scales and bias, without padding or prefetch."""
    dims = layer.dims
    inputs = dims["K"] if mode == "depthwise" else dims["C"]
    fields = (dims["OY"], dims["OX"], inputs, dims["K"], 0, 0, weight_bits, 1, 0)
    found = _native.neureka_busy(MODES[mode], TIMING, *(np.array([field]) for field in fields))
    return int(found[0]) + TIMING["job"]


def random_layer(mode: str, rng: random.Random) -> tuple[Layer, int]:
    window = 1 if mode == "1x1" else 3
    dims = {"K": rng.randint(16, 256), "C": rng.randint(16, 256), "OY": rng.randint(4, 64), "OX": rng.randint(4, 64)}
    if mode == "depthwise":
        del dims["C"]
    bits = rng.randint(2, 8)
    text = LayerText(
        name=mode,
        kind="convolution",
        equation=DEPTHWISE if mode == "depthwise" else DENSE,
        dims={**dims, "FY": window, "FX": window},
        relations=("ix = ox + fx", "iy = oy + fy"),
        bits={"I": 8, "W": bits, "O": 32},
        slots={"I": "I1", "W": "I2"},
    )
    return read_layer(text), bits


def predicted(mode: str, layer: Layer, weight_bits: int) -> float:
    """In the order of loops that the hardware has: input channels, columns, rows, output channels."""
    engine = machine(mode)
    if mode != "1x1":
        engine = replace(engine, cycles=weight_bits)
    along = {"X": "OX", "Y": "OY"}
    dims = {array: along.get(array, array) for array in engine.dims}
    spatial = SpatialMapping({array: ((dim, min(engine.dims[array], layer.dims[dim])),) for array, dim in dims.items()})
    steps = spatial.steps(layer)
    order = tuple((dim, steps[dim]) for dim in ("C", "OX", "OY", "K") if dim in steps) or (("K", 1),)
    return evaluate(layer, engine, spatial, allocate(layer, engine, spatial, order), corrected=True).cycles


@pytest.mark.parametrize("mode", ["1x1", "3x3", "depthwise"])
def test_cycles(mode: str) -> None:
    rng = random.Random(7)
    for _ in range(40):
        layer, bits = random_layer(mode, rng)
        expected = simulated(mode, layer, bits)
        assert predicted(mode, layer, bits) == pytest.approx(expected, rel=0.1), f"{dict(layer.dims)}, {bits} bits"
