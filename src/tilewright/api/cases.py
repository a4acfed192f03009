"""Test cases on disk: a network with inputs and expected outputs, in one of three layouts.

`network.onnx` with `inputs.npz` and `outputs.npz`; `X.onnx` beside `X.npz`; and that of ONNX's own tests, `model.onnx`
with folders `test_data_set_N` of protobuf files, each of which is one case.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from msgspec import Struct, field

from tilewright.api.arrays import read_arrays
from tilewright.api.compiling import Options
from tilewright.api.running import Comparison, Rule, run_model
from tilewright.base.files import is_file, is_folder
from tilewright.core.graph import Array
from tilewright.errors import TilewrightError
from tilewright.frontend import load_test_data
from tilewright.sim.limits import USUAL, Limits
from tilewright.sim.settings import EmulatedMachine, SimulatorName

Status = Literal["pass", "fail", "unsupported", "error"]
UNSUPPORTED = frozenset(
    {"unsupported-operator", "unsupported-type", "no-kernel", "dynamic-shape", "not-constant", "use-function-body"}
)
"""Error codes that say: this network is outside what Tilewright compiles."""


class Case(Struct, frozen=True):
    """A network with inputs and expected outputs."""

    name: str
    model: Path
    inputs: tuple[Array, ...]
    expected: tuple[Array, ...]
    rule: Rule = "network"


class CaseResult(Struct, frozen=True):
    """What became of a case."""

    name: str
    status: Status
    detail: str
    seconds: float
    arena_bytes: int = 0
    weight_bytes: int = 0
    comparisons: tuple[Comparison, ...] = field(default=())


def find_cases(paths: Iterable[Path]) -> tuple[tuple[str, Path], ...]:
    """Names and places of all cases below some folders (or of single model files), sorted.

    The place is the model file, or the folder of the arrays where one model has several.
    """
    given = tuple(paths)
    found: dict[Path, str] = {}
    for path in given:
        if not (is_file(path) or is_folder(path)):
            raise TilewrightError("missing-file", f"'{path}' does not exist", help="name a case folder or a model file")
        for model in [path] if is_file(path) else sorted(path.rglob("*.onnx")):
            sets = _data_sets(model)
            name = _name(model, path.parent if is_file(path) else path)
            if sets:
                found.update({folder: name if len(sets) == 1 else f"{name}/{folder.name}" for folder in sets})
            elif _arrays_of(model) is not None:
                found[model] = name
    if not found:
        raise TilewrightError(
            "no-cases",
            f"no test case below {', '.join(map(str, given))}",
            help="a case is network.onnx with inputs.npz and outputs.npz, X.onnx beside X.npz with input_0.. and "
            "output_0.., or model.onnx with test_data_set_0/input_0.pb.. and output_0.pb..",
        )
    return tuple((name, place) for place, name in found.items())


def _name(model: Path, base: Path) -> str:
    relative = model.relative_to(base)
    whole_folder = model.name in ("network.onnx", "model.onnx")
    name = str(relative.parent if whole_folder else relative.with_suffix(""))
    return model.parent.name if name == "." else name


def _data_sets(model: Path) -> list[Path]:
    """Folders of protobuf files beside a model, in order."""
    if model.name != "model.onnx":
        return []
    return sorted((p for p in model.parent.glob("test_data_set_*") if p.is_dir()), key=lambda p: (len(p.name), p.name))


def _arrays_of(model: Path) -> tuple[Path, ...] | None:
    if model.name == "network.onnx":
        files = (model.parent / "inputs.npz", model.parent / "outputs.npz")
        return files if all(f.is_file() for f in files) else None
    beside = model.with_suffix(".npz")
    return (beside,) if beside.is_file() else None


def load_case(name: str, place: Path) -> Case:
    """Reads a case; arrays match inputs and outputs by position."""
    if is_folder(place):
        model = place.parent / "model.onnx"
        return Case(name, model, *load_test_data(model, place), rule="official")
    files = _arrays_of(place)
    if files is None:
        raise TilewrightError("no-cases", f"'{place}' has no arrays beside it")
    inputs = read_arrays(files[0], "input", code="bad-case")
    return Case(name, place, inputs, read_arrays(files[-1], "output", code="bad-case"))


def run_case(
    name: str,
    place: Path,
    options: Options,
    compiler: str = "",
    flags: tuple[str, ...] = (),
    machine: EmulatedMachine | None = None,
    simulator: SimulatorName | None = None,
    limits: Limits = USUAL,
) -> CaseResult:
    """Compiles, builds, runs and compares one case; never raises for what the case does wrong."""
    start = time.perf_counter()

    def result(status: Status, detail: str) -> CaseResult:
        return CaseResult(name, status, detail, time.perf_counter() - start)

    try:
        case = load_case(name, place)
        ran = run_model(
            case.model,
            options,
            inputs=case.inputs,
            expected=case.expected,
            rule=case.rule,
            compiler=compiler,
            flags=flags,
            machine=machine,
            simulator=simulator,
            limits=limits,
        )
    except TilewrightError as error:
        return result("unsupported" if error.code in UNSUPPORTED else "error", str(error))
    except Exception as error:
        return result("error", f"internal error: {type(error).__name__}: {error}")
    wrong = [c for c in ran.comparisons if c.wrong]
    detail = "; ".join(f"{c.name}: {c.wrong} of {c.size} wrong, worst {c.worst:.3g}" for c in wrong)
    if not wrong and ran.compiled.change is not None:
        detail = ran.compiled.change.text
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
