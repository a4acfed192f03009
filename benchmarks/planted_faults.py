"""Plants faults in kernels, passes, plans and flags, and looks whether `tilewright diff` names the right layer.

Each of them is planted for each platform (`--platform`, may be repeated), while a network of `examples/models`, or one
of a transformer's layers that is made here, is compiled. `layer` is the one that `diff` names, `planted` where the
fault is. With `--explain` the cause is looked for, too, and a reproducer. `--cases DIR` (may be repeated) runs all
cases below a folder instead, small ones first, without a fault: `diff` has to stay silent. `--part I/N` takes a part.

The exit status is 1 where a fault is not found, or found elsewhere, or a case without one is told on.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, cast

import numpy as np
from msgspec import Struct
from onnx import TensorProto, helper, numpy_helper
from rich.console import Console
from rich.table import Table

from benchmarks.planting import (
    SLOWLY,
    Planted,
    constant,
    in_code,
    in_pass,
    in_plan,
    noisy,
    number,
    pointer,
    results,
    shared,
    texts,
    without,
)
from tilewright.api import Options, find_cases, load_case
from tilewright.api.arrays import read_arrays
from tilewright.api.cases import UNSUPPORTED
from tilewright.api.diffing import Diff, diff_model
from tilewright.errors import TilewrightError
from tilewright.machine.target import Sizes

EXAMPLES = Path(__file__).parent.parent / "examples" / "models"
PLATFORMS = ("generic", "siracusa", "cortex-m4")
SHORT = texts((r"(for \(int (?!i\b)\w+ = [^;]*; \w+ < )([\w]+)(; \w+\+\+\) \{)", r"\1(\2) - 1\3"))
"""Loops of a nest end one turn too early."""


class Fault(Struct, frozen=True):
    """A fault and where it is."""

    what: str
    network: str
    layer: str
    plant: Callable[[], AbstractContextManager[Planted | None]]
    flags: tuple[str, ...] = ()


INT8, FLOAT, BLOCK, REST = "tiny_cnn_int8", "tiny_cnn", "block", "rest"
BIT, PERCENT = "v ^ 1", "v * 1.01f"

FAULTS: tuple[Fault, ...] = (
    # Kernels and printed loops
    Fault("rounding: lowest bit of results", INT8, "conv0", lambda: in_code("conv0", results(BIT, PERCENT))),
    Fault(
        "clip: at 60 instead of 127",
        INT8,
        "conv3",
        lambda: in_code("conv3", texts((r"tw_clamp\((\w+), -128, 127\)", r"tw_clamp(\1, -128, 60)"), *SLOWLY)),
    ),
    Fault("operand read 16 bytes further on", INT8, "conv6", lambda: in_code("conv6", turn=pointer(written=False))),
    Fault("a sign is lost in results", INT8, "conv9", lambda: in_code("conv9", results("v < 0 ? -v : v", PERCENT))),
    Fault(
        "rounding: every result one less",
        INT8,
        "globalaveragepool12",
        lambda: in_code("globalaveragepool12", results("v - 1", PERCENT)),
    ),
    Fault("rounding: every result one more", INT8, "gemm14", lambda: in_code("gemm14", results("v + 1", PERCENT))),
    Fault("scale of results", INT8, "softmax15", lambda: in_code("softmax15", results(BIT, "v * 1.5f"))),
    Fault(
        "operand read 16 bytes further on",
        INT8,
        "image_QuantizeLinear",
        lambda: in_code("image_QuantizeLinear", turn=pointer(written=False)),
    ),
    Fault(
        "border: padded by one more",
        FLOAT,
        "batchnormalization1",
        lambda: in_code("batchnormalization1", turn=number(["pads_0"], 1)),
    ),
    Fault(
        "clip: Relu is lost",
        FLOAT,
        "batchnormalization4",
        lambda: in_code("batchnormalization4", texts((r"X < 0 \? 0 : X", "X"), *SLOWLY)),
    ),
    Fault(
        "sum becomes a difference",
        FLOAT,
        "batchnormalization7",
        lambda: in_code("batchnormalization7", texts((r"\bA \+ B\b", "A - B"), *SLOWLY)),
    ),
    Fault(
        "result written 16 bytes further on",
        FLOAT,
        "batchnormalization10",
        lambda: in_code("batchnormalization10", turn=pointer(written=True)),
    ),
    Fault(
        "operand read 16 bytes further on",
        FLOAT,
        "globalaveragepool12",
        lambda: in_code("globalaveragepool12", turn=pointer(written=False)),
    ),
    Fault("one percent too much", FLOAT, "gemm14", lambda: in_code("gemm14", results(BIT, PERCENT))),
    Fault(
        "operand read 16 bytes further on",
        FLOAT,
        "softmax15",
        lambda: in_code("softmax15", turn=pointer(written=False)),
    ),
    Fault("result written 16 bytes further on", BLOCK, "norm", lambda: in_code("norm", turn=pointer(written=True))),
    Fault("operand read 16 bytes further on", BLOCK, "query", lambda: in_code("query", turn=pointer(written=False))),
    Fault("operand read 16 bytes further on", BLOCK, "attend", lambda: in_code("attend", turn=pointer(written=False))),
    Fault("border: the last is left out", BLOCK, "mean", lambda: in_code("mean", SHORT)),
    # Passes
    Fault(
        "pass: weights with noise",
        FLOAT,
        "batchnormalization4",
        lambda: in_pass("batch_norm", constant("batchnormalization4", "Conv", 0, noisy)),
    ),
    Fault(
        "pass: a bias is lost", FLOAT, "gemm14", lambda: in_pass("gemm", constant("gemm14", "Add", 0, np.zeros_like))
    ),
    Fault("pass: a Relu is left out", FLOAT, "relu5", lambda: in_pass("simplify", without("relu5", "Relu"))),
    Fault(
        "pass: weights are mirrored",
        FLOAT,
        "batchnormalization10",
        lambda: in_pass("layout", constant("batchnormalization10", "Conv", 0, lambda w: w[..., ::-1, :])),
    ),
    Fault(
        "integers: weights one more",
        INT8,
        "conv3",
        lambda: in_pass("integers", constant("conv3", "Conv", 0, lambda w: np.minimum(w.astype(np.int32) + 9, 127))),
    ),
    Fault(
        "pass: another table of weights",
        BLOCK,
        "value",
        lambda: in_pass("transposes", constant("value", "MatMul", 0, noisy)),
    ),
    # Plans
    Fault(
        "plan: a result over an operand",
        INT8,
        "conv3",
        lambda: in_plan(shared("conv3_RequantShift", "conv0_RequantShift")),
    ),
    Fault(
        "plan: a result over an operand",
        FLOAT,
        "batchnormalization4",
        lambda: in_plan(shared("relu5_Relu", "relu2_Relu")),
    ),
    Fault(
        "plan: a result half over an operand",
        FLOAT,
        "batchnormalization10",
        lambda: in_plan(shared("relu11_Relu", "add8_Add", 64)),
    ),
    # Flags
    Fault("flags: no NaN", BLOCK, "check", lambda: nullcontext(), ("-ffinite-math-only",)),
    Fault("flags: rounded up, not down", REST, "floor", lambda: nullcontext(), ("-Dfloorf=ceilf",)),
)


Layer = tuple[str, list[str], str, str, dict[str, Any]]
"""Operator, operands, result, name and attributes."""
TRANSFORMER: tuple[Layer, ...] = (
    ("LayerNormalization", ["x", "gain", "shift"], "normed", "norm", {"axis": -1}),
    ("MatMul", ["normed", "to_query"], "asked", "query", {}),
    ("Softmax", ["asked"], "attended", "attend", {"axis": -1}),
    ("MatMul", ["attended", "to_value"], "valued", "value", {}),
    ("Add", ["valued", "x"], "summed", "sum", {}),
    ("Log", ["summed"], "logarithm", "logarithm", {}),
    ("IsNaN", ["logarithm"], "bad", "check", {}),
    ("Where", ["bad", "nothing", "logarithm"], "guarded", "guard", {}),
    ("ReduceMean", ["guarded", "axes"], "y", "mean", {"keepdims": 0}),
)
"""A layer of a transformer, more or less."""
WHOLE: tuple[Layer, ...] = (
    ("Sigmoid", ["x"], "between", "between", {}),
    ("Sub", ["x", "between"], "less", "less", {}),
    ("Floor", ["less"], "whole", "floor", {}),
    ("Sub", ["less", "whole"], "rest", "rest", {}),
    ("ReduceMean", ["rest", "axes"], "y", "mean", {"keepdims": 0}),
)
"""What is left when whole numbers are taken away."""
MADE = {BLOCK: TRANSFORMER, REST: WHOLE}


def made(network: str, folder: Path) -> Path:
    """A network that is no file of its own."""
    rng = np.random.default_rng(1)
    arrays = {
        "gain": rng.normal(1, 0.1, 32),
        "shift": rng.normal(0, 0.1, 32),
        "to_query": rng.normal(0, 0.4, (32, 32)),
        "to_value": rng.normal(0, 0.4, (32, 32)),
        "nothing": np.zeros(1),
    }
    layers = MADE[network]
    read = {name for _, given, *_ in layers for name in given}
    weights = [numpy_helper.from_array(a.astype(np.float32), n) for n, a in arrays.items() if n in read]
    weights.append(numpy_helper.from_array(np.array([1], np.int64), "axes"))
    nodes = [helper.make_node(op, given, [out], name=name, **attrs) for op, given, out, name, attrs in layers]
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", (1, 16, 32)), ("y", (1, 32)))]
    graph = helper.make_graph(nodes, network, ports[:1], ports[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    path = folder / f"{network}.onnx"
    path.write_bytes(cast("Any", model).SerializeToString())
    return path


class Outcome(Struct, frozen=True):
    """What became of a fault."""

    fault: Fault
    platform: str
    named: str
    where: str
    cause: str
    seconds: float
    times: int

    @property
    def right(self) -> bool:
        return self.named == self.fault.layer


def plant(fault: Fault, platform: str, folder: Path, *, explain: bool) -> Outcome:
    """Plants a fault, and asks `diff` for it."""
    path = made(fault.network, folder) if fault.network in MADE else EXAMPLES / f"{fault.network}.onnx"
    arrays = path.with_suffix(".npz")
    inputs = read_arrays(arrays, "input") if arrays.exists() else None
    began, times = time.perf_counter(), 1
    try:
        with fault.plant() as planted:
            found: Diff = diff_model(path, Options(platform=platform), inputs=inputs, flags=fault.flags)
            times = planted.times if planted is not None else 1
            first = found.faults[0] if found.faults else None
            named, where = (first.fault.layer, first.fault.where) if first else ("", "")
            cause = (
                first.cause.what + f" ({first.reproducer.layers}, {first.reproducer.shows})"
                if first and explain
                else ""
            )
    except TilewrightError as error:
        named, where, cause = "", error.code, error.what
    return Outcome(fault, platform, named, where, cause, time.perf_counter() - began, times)


def silent(name: str, place: Path, platform: str, home: str) -> str:
    """What `diff` says of a case without a fault; "" for nothing."""
    try:
        case = load_case(name, place)
        found = diff_model(case.model, Options(platform=platform, sizes=Sizes(home=home)), inputs=list(case.inputs))
    except TilewrightError as error:
        return "" if error.code in UNSUPPORTED else f"{error.code}: {error.what}"
    faults = [one.fault for one in found.faults]
    return "; ".join(f"{f.where} {f.node.op} '{f.layer}' {f.figures} {f.stage} {f.overwritten}" for f in faults)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks planted_faults", description=__doc__)
    parser.add_argument("--platform", action="append", default=[], help=f"by default {', '.join(PLATFORMS)}")
    parser.add_argument("--only", type=int, action="append", default=[], metavar="N", help="faults by number")
    parser.add_argument("--explain", action="store_true", help="look for causes and reproducers, too")
    parser.add_argument("--cases", action="append", type=Path, default=[], metavar="DIR", help="cases without a fault")
    parser.add_argument("--home", default="", help="another memory of inputs and weights, for cases that do not fit")
    parser.add_argument("--part", default="0/1", metavar="I/N", help="every Nth of them, from the Ith on")
    options = parser.parse_args()
    console = Console(soft_wrap=True)
    platforms = options.platform or PLATFORMS
    wrong = 0
    if not options.cases:
        outcomes = _planted(console, platforms, options.only or range(1, len(FAULTS) + 1), explain=options.explain)
        wrong += sum(not outcome.right for outcome in outcomes)
        for platform in platforms:
            mine = [outcome for outcome in outcomes if outcome.platform == platform]
            console.print(f"{platform}: {sum(o.right for o in mine)} of {len(mine)} faults at the right layer")
        return int(wrong > 0)
    first, count = map(int, options.part.split("/"))
    cases = sorted(find_cases(options.cases), key=lambda case: case[1].stat().st_size)[first::count]
    for platform in platforms:
        told = 0
        for name, place in cases:
            said = silent(name, place, platform, options.home)
            told += bool(said)
            if said:
                console.print(f"{platform} {name}: {said}", markup=False)
        console.print(f"{platform}: silent on {len(cases) - told} of {len(cases)} cases without a fault")
        wrong += told
    return int(wrong > 0)


def _planted(console: Console, platforms: Sequence[str], numbers: Sequence[int], *, explain: bool) -> list[Outcome]:
    outcomes: list[Outcome] = []
    table = Table("", "fault", "network", "planted", "platform", "layer", "between", "cause")
    for index in numbers:
        for platform in platforms:
            with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
                one = plant(FAULTS[index - 1], platform, Path(folder), explain=explain)
            outcomes.append(one)
            verdict = "right" if one.right else "WRONG" if one.times else "WRONG: nothing was planted"
            console.print(
                f"{index} {platform} {one.fault.what}: {verdict}, '{one.named}' {one.cause} {one.seconds:.1f} s",
                markup=False,
            )
            table.add_row(
                str(index),
                one.fault.what,
                one.fault.network,
                one.fault.layer,
                platform,
                one.named,
                one.where,
                one.cause,
            )
    console.print(table)
    return outcomes


if __name__ == "__main__":
    raise SystemExit(main())
