"""The fewest nodes and flags with which a network still goes wrong: `MODEL [--inputs FILE.npz] [--cflag=FLAG]`.

What is right is what onnxruntime gives without optimisations. A network goes wrong where its outputs differ from that,
or where it ends as the whole one does: by the same error, by an exception, or not at all. Every attempt is a process of
its own with limits of time and memory. The smallest network is written with its inputs, so that it can be run.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks.fuzzing import TESTS as TESTS
from benchmarks.fuzzing.workers import Verdict, failure, judged
from random_types import by_onnxruntime
from reduction import Network, smallest, smallest_network
from samples import difference
from tilewright.api import Options, run_model
from tilewright.api.arrays import read_arrays
from tilewright.errors import TilewrightError

WALL_SECONDS = 600.0


class Attempt:
    """A way to run networks, and what became of the whole one."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._folder: Path = options.output
        self._folder.mkdir(parents=True, exist_ok=True)

    def verdict(self, network: Network, flags: Sequence[str]) -> Verdict:
        (found,) = judged(lambda _: iter([self._run(network, flags)]), [0], WALL_SECONDS)
        return found

    def _run(self, network: Network, flags: Sequence[str]) -> Verdict:
        model, fed = network
        path = self.write(network, "attempt")
        try:
            ran = run_model(
                path,
                Options(platform=self._options.platform),
                inputs=list(fed.values()),
                compiler=self._options.cc,
                flags=tuple(flags),
            )
            pairs = zip(ran.outputs, by_onnxruntime(model, fed), strict=True)
            wrong = [text for found, right in pairs if (text := difference(found, right, self._options.tolerance))]
        except TilewrightError as error:
            return Verdict(0, "traceback", error.code)
        except Exception as error:
            return failure(0, error)
        return Verdict(0, "wrong" if wrong else "right", "; ".join(wrong)[:400])

    def write(self, network: Network, name: str) -> Path:
        model, fed = network
        arrays: dict[str, Any] = {f"input_{i}": array for i, array in enumerate(fed.values())}
        np.savez(self._folder / f"{name}.npz", **arrays)
        path = self._folder / f"{name}.onnx"
        path.write_bytes(model.SerializeToString())
        return path


def same(one: Verdict, other: Verdict) -> bool:
    """Whether two networks go wrong in the same way; how far numbers are off does not matter."""
    return one.status == other.status and (one.status != "traceback" or one.detail[:40] == other.detail[:40])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--inputs", type=Path, help="an .npz file; else noise")
    parser.add_argument("--platform", default="generic")
    parser.add_argument("--cc", default="", help="another C compiler than the platform's")
    parser.add_argument("--cflag", action="append", default=[], help="a flag for it; may be repeated")
    parser.add_argument("--tolerance", type=float, default=1e-3, help="relative and absolute (default: 0.001)")
    parser.add_argument("--output", "-o", type=Path, default=Path("build/reduced"))
    options = parser.parse_args()
    model = onnx.ModelProto.FromString(options.model.read_bytes())
    constants = {tensor.name for tensor in model.graph.initializer}
    ports = [port for port in model.graph.input if port.name not in constants]
    arrays = read_arrays(options.inputs, "input") if options.inputs else tuple(noise(port) for port in ports)
    network: Network = (model, {port.name: array for port, array in zip(ports, arrays, strict=True)})
    attempt = Attempt(options)
    whole = attempt.verdict(network, options.cflag)
    print(f"the whole network: {json.dumps([whole.status, whole.detail])}")
    if whole.fine:
        return 0
    flags = smallest(options.cflag, lambda some: same(attempt.verdict(network, some), whole))
    small = smallest_network(network, lambda part: same(attempt.verdict(part, flags), whole))
    print(f"{len(small[0].graph.node)} of {len(model.graph.node)} nodes, flags: {' '.join(flags) or 'none'}")
    print(attempt.write(small, "reduced"))
    return 1


def noise(port: onnx.ValueInfoProto) -> np.ndarray:
    kind = onnx.helper.tensor_dtype_to_np_dtype(port.type.tensor_type.elem_type)
    shape = [dim.dim_value or 1 for dim in port.type.tensor_type.shape.dim]
    return (4 * np.random.default_rng(0).normal(size=shape)).astype(kind)
