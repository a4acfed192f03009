"""Test cases on disk: `network.onnx` with `inputs.npz` and `outputs.npz`, or `X.onnx` beside `X.npz`."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from tilewright.api.compiling import Options
from tilewright.api.running import Comparison, run_model
from tilewright.core.graph import Array
from tilewright.errors import TilewrightError

Status = Literal["pass", "fail", "unsupported", "error"]
UNSUPPORTED = frozenset({"unsupported-operator", "unsupported-type", "no-kernel", "dynamic-shape", "not-constant", "use-function-body"})
"""Error codes that say: this network is outside what Tilewright compiles."""


@dataclass(frozen=True)
class Case:
    """A network with inputs and expected outputs."""

    name: str
    model: Path
    inputs: tuple[Array, ...]
    expected: tuple[Array, ...]


@dataclass(frozen=True)
class CaseResult:
    """What became of a case."""

    name: str
    status: Status
    detail: str
    seconds: float
    arena_bytes: int = 0
    weight_bytes: int = 0
    comparisons: tuple[Comparison, ...] = field(default=())


def find_cases(paths: Iterable[Path]) -> tuple[tuple[str, Path], ...]:
    """Names and model files of all cases below some folders (or of single model files), sorted."""
    found: dict[Path, str] = {}
    for path in paths:
        if not path.exists():
            raise TilewrightError("no-such-file", f"'{path}' does not exist", help="name a case folder or a model file")
        models = [path] if path.is_file() else sorted(path.rglob("*.onnx"))
        for model in models:
            if _arrays_of(model) is not None:
                base = path.parent if path.is_file() else path
                relative = model.relative_to(base)
                found[model] = str(relative.parent if model.name == "network.onnx" else relative.with_suffix(""))
                if found[model] == ".":
                    found[model] = model.parent.name
    if not found:
        raise TilewrightError(
            "no-cases",
            f"no test case below {', '.join(str(p) for p in paths)}",
            help="a case is network.onnx with inputs.npz and outputs.npz, or X.onnx beside X.npz with input_0.. and output_0..",
        )
    return tuple((name, model) for model, name in found.items())


def _arrays_of(model: Path) -> tuple[Path, ...] | None:
    if model.name == "network.onnx":
        files = (model.parent / "inputs.npz", model.parent / "outputs.npz")
        return files if all(f.is_file() for f in files) else None
    beside = model.with_suffix(".npz")
    return (beside,) if beside.is_file() else None


def load_case(name: str, model: Path) -> Case:
    """Reads a case; arrays match inputs and outputs by position."""
    files = _arrays_of(model)
    if files is None:
        raise TilewrightError("no-cases", f"'{model}' has no arrays beside it")
    try:
        if len(files) == 2:
            inputs, expected = (tuple(data[key] for key in data.files) for data in map(np.load, files))
            return Case(name, model, inputs, expected)
        with np.load(files[0]) as data:
            return Case(name, model, _numbered(data, "input_"), _numbered(data, "output_"))
    except (OSError, ValueError) as reason:
        raise TilewrightError("bad-case", f"the arrays of case '{name}' cannot be read", reasons=[str(reason)]) from reason


def _numbered(data: np.lib.npyio.NpzFile, prefix: str) -> tuple[Array, ...]:
    count = sum(key.startswith(prefix) for key in data.files)
    return tuple(data[f"{prefix}{i}"] for i in range(count))


def run_case(name: str, model: Path, options: Options, compiler: str = "", flags: tuple[str, ...] = ()) -> CaseResult:
    """Compiles, builds, runs and compares one case; never raises for what the case does wrong."""
    start = time.perf_counter()

    def result(status: Status, detail: str) -> CaseResult:
        return CaseResult(name, status, detail, time.perf_counter() - start)

    try:
        case = load_case(name, model)
        ran = run_model(case.model, options, inputs=case.inputs, expected=case.expected, compiler=compiler, flags=flags)
    except TilewrightError as error:
        return result("unsupported" if error.code in UNSUPPORTED else "error", str(error))
    except Exception as error:
        return result("error", f"internal error: {type(error).__name__}: {error}")
    wrong = [c for c in ran.comparisons if c.wrong]
    detail = "; ".join(f"{c.name}: {c.wrong} of {c.size} wrong, worst {c.worst:.3g}" for c in wrong)
    program = ran.compiled.program
    return CaseResult(
        name,
        "fail" if wrong else "pass",
        detail,
        time.perf_counter() - start,
        program.arena_bytes,
        program.constant_bytes,
        ran.comparisons,
    )
