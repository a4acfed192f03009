"""Sample i of seed S: random networks of all kinds, with what they are fed and who says what is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from msgspec import Struct
from onnx import numpy_helper

from random_graphs import Network
from random_integers import Quantiser, qdq
from random_nodes import answers, node
from random_types import Soup, by_onnxruntime
from tilewright.api import Compiled
from tilewright.api.running import compare
from tilewright.core.graph import Array

KINDS = ("graph", "types", "graph", "quantiser", "graph", "types", "graph", "qdq")
NODE = "node"
TOLERANCE = {"graph": 1e-3, "types": 1e-5, NODE: 1e-4}
"""Relative and absolute; networks of integers are judged as those of users are."""
SHORT = {"float16": 4e-3, "bfloat16": 3e-2}
"""The same for types that are less exact than it."""
SHAKEN = 1e-6
"""How far numbers are moved to see whether a result is decided at all."""
TRIES = 6


class Sample(Struct, frozen=True):
    """A network, its inputs in order, and the right outputs where an oracle of its own knows them."""

    name: str
    kind: str
    model: onnx.ModelProto
    fed: dict[str, Array]
    known: tuple[Array, ...] | None = None
    others: tuple[tuple[Array, ...], ...] = ()
    """What other oracles say, where the standard leaves something open."""

    @property
    def inputs(self) -> list[Array]:
        return list(self.fed.values())

    @property
    def expected(self) -> list[Array]:
        return list(self.known) if self.known is not None else by_onnxruntime(self.model, self.fed)

    def write(self, folder: Path) -> Path:
        path = folder / f"{self.name}.onnx"
        path.write_bytes(self.model.SerializeToString())
        return path


def sample(seed: int, index: int) -> Sample:
    """The same for the same numbers, on every machine."""
    kind = KINDS[index % len(KINDS)]
    own = seed * (1 << 32) + index
    name = f"s{seed}_{index}_{kind}"
    steps = 3 + 5 * index % 14
    if kind == "graph":
        network = Network(own, steps)
        return Sample(name, kind, network.model(), network.fed)
    if kind == "types":
        return Sample(name, kind, *Soup(own, steps).model())
    if kind == "quantiser":
        made = Quantiser(own, 2 + steps // 3)
        return Sample(name, kind, made.model, made.b.fed, tuple(made.b.expected.values()))
    return Sample(name, kind, *qdq(own))


def node_sample(seed: int, index: int) -> Sample:
    """A network of one node."""
    model, fed, (first, *others) = node(seed, index)
    name = f"s{seed}_{index}_{model.graph.node[0].op_type}"
    return Sample(name, NODE, model, fed, first, tuple(others))


def differences(sample: Sample, compiled: Compiled, found: Sequence[Array], expected: Sequence[Array]) -> list[str]:
    """What is wrong with outputs: integers that are not equal, and floats beyond the tolerance.

    Outputs that are as far off when inputs, weights and scales are shaken a little are decided by nothing but rounding.
    """
    if sample.kind not in TOLERANCE:

        def wrong_in(outputs: Sequence[Array]) -> dict[str, str]:
            compared = compare(compiled, sample.inputs, tuple(outputs), expected)
            return {c.name: f"{c.wrong} of {c.size} wrong, worst {c.worst:.4g}" for c in compared if c.wrong}

        told = wrong_in(found)
        if told and sample.known is None:
            moved = {name for outputs in shaken(sample.model, sample.fed, TRIES) for name in wrong_in(outputs)}
            told = {name: text for name, text in told.items() if name not in moved}
        return [f"{name}: {text}" for name, text in told.items()]
    within = TOLERANCE[sample.kind]
    wrong, *beside = (_differing(found, each, within) for each in (expected, *sample.others))
    if not wrong or not all(beside):
        return []
    moved = unsteady(sample, expected, within)
    return [f"output {at}: {text}" for at, text in wrong if at not in moved]


def _differing(found: Sequence[Array], expected: Sequence[Array], tolerance: float) -> list[tuple[int, str]]:
    pairs = enumerate(zip(found, expected, strict=True))
    return [(at, text) for at, (a, b) in pairs if (text := difference(a, b, tolerance))]


def difference(found: Array, expected: Array, tolerance: float) -> str:
    """How an output is wrong, or nothing."""
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        return f"{found.dtype}{list(found.shape)} instead of {expected.dtype}{list(expected.shape)}"
    if expected.dtype.kind != "f" and expected.dtype.name not in SHORT:
        count = int(np.sum(found != expected))
        return f"{count} of {expected.size} are not equal" if count else ""
    left, right = found.astype(np.float64), expected.astype(np.float64)
    tolerance = max(tolerance, SHORT.get(expected.dtype.name, 0))
    good = np.isclose(left, right, rtol=tolerance, atol=tolerance, equal_nan=True)
    if good.all():
        return ""
    at = np.unravel_index(int(np.argmin(good)), good.shape)
    return f"{int(np.sum(~good))} of {expected.size} wrong, the first is {left[at]:.6g} instead of {right[at]:.6g}"


def unsteady(sample: Sample, expected: Sequence[Array], tolerance: float) -> set[int]:
    """Outputs that move by more than half of the tolerance when all floats are shaken."""
    oracle = _first_answer if sample.kind == NODE else by_onnxruntime
    return {
        at
        for results in shaken(sample.model, sample.fed, TRIES, oracle)
        for at, (a, b) in enumerate(zip(results, expected, strict=True))
        if difference(a, b, tolerance / 2)
    }


def _first_answer(model: onnx.ModelProto, fed: dict[str, Array]) -> list[Array]:
    return [*answers(model, fed)[0]]


def shaken(
    model: onnx.ModelProto,
    fed: Mapping[str, Array],
    tries: int,
    oracle: Callable[[onnx.ModelProto, dict[str, Array]], list[Array]] = by_onnxruntime,
) -> Iterator[list[Array]]:
    """Outputs of a network with all floats of weights and inputs moved a little, by some other noise each time."""
    rng = np.random.default_rng(0)

    def moved(array: Array) -> Array:
        if array.dtype.kind != "f":
            return array
        noise = np.asarray(rng.uniform(-1, 1, array.shape), np.float64)
        return np.asarray(array * (1 + SHAKEN * noise), array.dtype)

    # Factors of sizes are no numbers to be moved: a picture would have another shape.
    sizes = {name for node in model.graph.node if node.op_type in ("Resize", "Upsample") for name in node.input[1:]}
    for _ in range(tries):
        other = onnx.ModelProto()
        other.CopyFrom(model)
        for tensor in other.graph.initializer:
            if tensor.name in sizes:
                continue
            value = np.asarray(numpy_helper.to_array(tensor))
            tensor.CopyFrom(numpy_helper.from_array(moved(value), tensor.name))
        yield oracle(other, {name: moved(array) for name, array in fed.items()})
