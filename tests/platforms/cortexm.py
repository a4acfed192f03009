"""What tests of kernels for Cortex-M share: layers on noise, and their results against the references.

Integer results have to be equal, floats within the tolerances of networks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from passes.build import Builder
from tilewright.api import Options, run_model
from tilewright.codegen.build import SANITIZE, STRICT
from tilewright.core.graph import Array, Attr, Graph
from tilewright.core.interpret import interpret
from tilewright.machine.kernel import parse_kernels
from tilewright.machine.target import PLATFORMS
from tilewright.plan import PlanOptions

OWN = PLATFORMS / "cortexm"
FOLDERS = {"cortex-m55": ("mve", "dsp", "kernels"), "cortex-m0plus": ("kernels",)}
"""Where a machine has its kernels, those that it prefers first."""
Layer = tuple[tuple[int, ...], int, tuple[int, int], str, dict[str, Attr]]


def noise(kind: str, shape: Sequence[int], seed: int) -> Array:
    rng = np.random.default_rng(seed)
    if kind == "float32":
        return rng.normal(size=shape).astype(np.float32)
    limits = np.iinfo(kind)
    return rng.integers(max(limits.min, -1000), min(limits.max, 1000) + 1, shape).astype(kind)


def assert_right(
    graph: Graph,
    machine: str,
    kernel: str,
    folder: Path,
    *,
    given: Mapping[str, Array] | None = None,
    optimise: str = "-O2",
) -> None:
    """The machine computes what the references do with this kernel, which is made to cost nothing.

    Inputs are noise where none are given.
    """
    places = FOLDERS.get(machine, ("dsp", "kernels"))
    found = next(path for place in places for path in (OWN / place).glob(f"{kernel}.c"))
    chosen = folder / found.name
    header, _, text = found.read_text().partition("--- */")
    chosen.write_text(re.sub(r"^cycles:.*(\n .*)*$", 'cycles: "0"', header, flags=re.MULTILINE) + "--- */" + text)
    types = [(n, graph.types[n]) for n in graph.inputs]
    fed = [(given or {}).get(n, noise(t.dtype.name, t.shape, i)) for i, (n, t) in enumerate(types)]
    wanted = interpret(graph, fed)
    planning = PlanOptions(seconds=0.0)
    if machine == "host":
        options = Options(kernels=(folder, *(OWN / place for place in places)), planning=planning)
        flags = (*STRICT, *SANITIZE, "-O1")
    else:
        options, flags = Options(platform=machine, kernels=(folder,), planning=planning), (*STRICT, optimise)
    ran = run_model(graph, options, inputs=fed, expected=wanted, flags=flags)
    ops = {kernel.op for kernel in parse_kernels(found)}
    pairs = zip(ran.compiled.plan.graph.nodes, ran.compiled.plan.choices, strict=True)
    used = {choice.kernel and choice.kernel.path for node, choice in pairs if node.op in ops}
    assert used == {chosen}, used
    assert [c for c in ran.comparisons if c.wrong] == []
    for name, got, expected in zip(graph.outputs, ran.outputs, wanted, strict=True):
        if got.dtype.kind != "f":
            np.testing.assert_array_equal(got, expected, err_msg=name)


def requantised(b: Builder, x: str, number: int) -> str:
    """In one of several ways to round; half to even with factors that may give halves and with others."""
    if number % 3 == 0:
        return b.op("RequantShift", x, np.asarray(9, np.int32), np.asarray(-5000, np.int32), div=1 << 14)
    mul = np.asarray((12394601, 1 << 23)[number % 2], np.int32)
    limits: dict[str, Attr] = {"half_to_even": 1, "x_limit": 1 << 23, "zero_point": -7, "signed": number % 2}
    return b.op("RequantShift", x, mul, np.asarray(0, np.int32), div=1 << 33, name="", **limits)


def conv(shape: tuple[int, ...], features: int, size: tuple[int, int], kind: str = "int8", **given: Attr) -> Layer:
    return shape, features, size, kind, given


def convolutions(given: Sequence[Layer]) -> Graph:
    """All layers beside each other, their sums as they are and scaled back to bytes."""
    b = Builder()
    outputs: list[str] = []
    for number, (shape, features, size, kind, attributes) in enumerate(given):
        x = b.input(f"x{number}", f"{kind}[{','.join(map(str, shape))}]")
        group = attributes.get("group", 1)
        assert isinstance(group, int)
        real = kind == "float32"
        w = noise("float32" if real else "int8", (features, shape[1] // group, *size), 100 + number)
        bias = noise("float32" if real else "int32", (features,), 200 + number)
        y = b.op("Conv", x, w, *([] if number % 4 == 3 else [bias]), name="", **attributes)
        outputs.append(b.op("Relu", y) if real else requantised(b, y, number) if number % 2 else y)
    return b.graph(*outputs)
