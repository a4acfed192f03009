"""Networks with states, and what onnxruntime gives for them when states are plain inputs and outputs."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from onnx_models import Array, model, node, value, write
from tilewright.api.compiling import Options
from tilewright.api.running import Ran, run_model
from tilewright.codegen.build import SANITIZE, STRICT

_runtime: Any = importlib.import_module("onnxruntime")
PLATFORMS = ("generic", "scratchpad", "siracusa")


def stepped(path: Path, states: Mapping[str, str], inputs: Mapping[str, Array], initial: Mapping[str, Array]) -> Array:
    """The first output of all runs; the first axis of inputs counts runs, states have the value of the run before."""
    session = _runtime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    outputs = [output.name for output in session.get_outputs()]
    kept, found = dict(initial), list[Array]()
    for step in range(len(next(iter(inputs.values())))):
        fed = {name: array[step] for name, array in inputs.items()}
        results = dict(zip(outputs, session.run(None, {**fed, **kept}), strict=True))
        kept = {old: results[new] for old, new in states.items()}
        found.append(results[outputs[0]])
    return np.stack(found)


def ran(
    path: Path, platform: str, states: Mapping[str, str], inputs: Mapping[str, Array], expected: Array, **options: Any
) -> Ran:
    """Runs the network step by step, with sanitizers where this computer does, and compares with what is expected."""
    flags = () if platform not in ("generic", "scratchpad") else (*STRICT, *SANITIZE)
    made = run_model(
        path,
        Options(platform=platform, states=states, **options),
        inputs=tuple(inputs.values()),
        expected=(expected,),
        flags=flags,
        steps=len(expected),
    )
    assert made.right, made.comparisons
    return made


def running_sum(folder: Path, count: int = 40) -> Path:
    """s = s + x; y = s * s."""
    nodes = [node("Add", "x s_in", "s_out"), node("Mul", "s_out s_out", "y")]
    return write(folder / "sum.onnx", model(nodes, [value("x", (count,)), value("s_in", (count,))], ["y", "s_out"]))


def streaming_conv(folder: Path, channels: int = 4, width: int = 3, new: int = 2) -> Path:
    """A 1-D convolution over all inputs so far: the state is the last `width - 1` of them."""
    rng = np.random.default_rng(5)
    weights = rng.normal(size=(6, channels, width)).astype(np.float32)
    nodes = [
        node("Concat", "past x", "all", axis=2),
        node("Conv", "all w", "c", kernel_shape=[width]),
        node("Relu", "c", "y"),
        node("Slice", "all start end axes", "present"),
    ]
    constants = {
        "w": weights,
        "start": np.asarray([-(width - 1)], np.int64),
        "end": np.asarray([1 << 30], np.int64),
        "axes": np.asarray([2], np.int64),
    }
    inputs = [value("x", (1, channels, new)), value("past", (1, channels, width - 1))]
    return write(folder / "conv.onnx", model(nodes, inputs, ["y", "present"], constants=constants))


def with_metadata(path: Path, states: str) -> Path:
    """The same file, which names its states itself."""
    loaded = onnx.ModelProto.FromString(path.read_bytes())
    loaded.metadata_props.add(key="tilewright.states", value=states)
    return write(path, loaded)


def noise(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def zeros(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


def kv_cache(folder: Path, heads: int = 2, width: int = 8) -> Path:
    """One step of attention: a row of keys and of values is appended, and all rows so far are read."""
    rng = np.random.default_rng(9)
    size = heads * width
    constants: dict[str, Array] = {
        **{name: (rng.normal(size=(size, size)) / 4).astype(np.float32) for name in ("wq", "wk", "wv", "wo")},
        "split": np.asarray([heads, 1, width], np.int64),
        "merged": np.asarray([1, size], np.int64),
        "scale": np.asarray(width**-0.5, np.float32),
    }
    nodes = [
        *(node("MatMul", f"x w{name}", f"{name}_row") for name in "qkv"),
        *(node("Reshape", f"{name}_row split", name) for name in "qkv"),
        node("Concat", "past_k k", "present_k", axis=1),
        node("Concat", "past_v v", "present_v", axis=1),
        node("Transpose", "present_k", "turned", perm=[0, 2, 1]),
        node("MatMul", "q turned", "scores"),
        node("Mul", "scores scale", "scaled"),
        node("Softmax", "scaled", "weights", axis=-1),
        node("MatMul", "weights present_v", "mixed"),
        node("Reshape", "mixed merged", "flat"),
        node("MatMul", "flat wo", "y"),
    ]
    caches = [value(name, (heads, "past", width)) for name in ("past_k", "past_v")]
    built = model(nodes, [value("x", (1, size)), *caches], ["y", "present_k", "present_v"], constants=constants)
    return write(folder / "kv.onnx", built)
