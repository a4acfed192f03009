"""What a campaign found: the network with its data, as it was and as small as it still goes wrong, with the message."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import asdict, replace

from benchmarks.fuzzing.networks import run_once
from benchmarks.fuzzing.workers import Verdict, judged
from random_types import is_of_onnxruntime
from reduction import Network, smallest_network
from samples import Sample

LEAST_WALL = 120.0
"""Seconds that one attempt of a reduction may take."""


def keep_file(place: Path, name: str, content: bytes, verdict: Verdict) -> None:
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_bytes(content)
    _tell(place, verdict)


def keep_network(place: Path, platform: str, made: Sample, verdict: Verdict) -> None:
    """A case folder: network.onnx, inputs.npz and, reduced.onnx with reduced.npz."""
    place.mkdir(parents=True, exist_ok=True)
    _write(place, "network", made)
    _tell(place, verdict)
    if made.known is None and verdict.status != "hang":
        small = reduced(made, again(platform, verdict.index, verdict))
        _write(place, "reduced", small)


def again(platform: str, index: int, verdict: Verdict) -> Callable[[Sample], bool]:
    """Whether a sample goes wrong as another did, in a process of its own."""

    def fails(made: Sample) -> bool:
        with tempfile.TemporaryDirectory(prefix="tilewright-reduce-") as scratch:
            folder = Path(scratch)
            (found,) = judged(lambda _: iter([run_once(platform, made, index, folder)]), [index], LEAST_WALL)
        same_place = verdict.detail.partition(":")[0] == found.detail.partition(":")[0]
        return found.status == verdict.status and (verdict.status != "traceback" or same_place)

    return fails


def reduced(made: Sample, fails: Callable[[Sample], bool]) -> Sample:
    """The sample with the fewest nodes that fail."""

    def judged_part(network: Network) -> bool:
        model, fed = network
        return fails(replace(made, model=model, fed=fed))

    try:
        model, fed = smallest_network((made.model, made.fed), judged_part)
    except Exception as refusal:
        if not is_of_onnxruntime(refusal):
            raise
        return made
    return replace(made, model=model, fed=fed)


def _write(place: Path, name: str, made: Sample) -> None:
    (place / f"{name}.onnx").write_bytes(made.model.SerializeToString())
    arrays: Any = {f"input_{i}": array for i, array in enumerate(made.inputs)}
    np.savez(place / f"{name}.npz", **arrays)


def _tell(place: Path, verdict: Verdict) -> None:
    (place / "verdict.json").write_text(json.dumps(asdict(verdict), indent=1) + "\n")
