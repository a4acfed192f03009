"""Run: compile, build, execute on this machine, and compare with what was expected."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tilewright.api.compiling import Compiled, Observer, Options, compile_model
from tilewright.api.feeding import fit, noise, stepped
from tilewright.api.measuring import Building
from tilewright.base.dtype import BFLOAT16, FLOAT16
from tilewright.codegen import build, project_in
from tilewright.core.graph import Array, Graph
from tilewright.core.interpret import interpret_steps
from tilewright.core.sizes import extents, type_of
from tilewright.errors import TilewrightError
from tilewright.machine.target import Target
from tilewright.quantize import quantisation_step
from tilewright.sim.chip import run_on_chip
from tilewright.sim.gvsoc import GVSOC_FLAGS, check_gvsoc, given_files, run_on_gvsoc
from tilewright.sim.host import run_on_host
from tilewright.sim.limits import USUAL, Limits
from tilewright.sim.marks import GroupProfile
from tilewright.sim.qemu import Footprint, profile_flags, qemu_of, run_in_qemu
from tilewright.sim.settings import EmulatedMachine, SimulatorName
from tilewright.sim.simulator import timing_of

ABSOLUTE, RELATIVE = 1e-4, 1e-5
"""A float result of a network is right within either."""
OFFICIAL_ABSOLUTE, OFFICIAL_RELATIVE = 1e-7, 1e-3
"""Tolerances of ONNX's own tests, which add up."""

Rule = Literal["network", "official"]
"""When results are right. Integers have to be equal by both.

network: floats within the tolerances of this project; NaN is never right; an integer network may state its results as
floats. official: as ONNX's own tests have it; shape and type have to be equal, and NaN is right where NaN is expected,
because some of these tests are about what becomes of NaN. One rounding error of float32 at the largest
expected number is added to their tolerances: where a sum should cancel to zero, the expected arrays hold such noise
themselves.
"""


class Comparison(Struct, frozen=True):
    """How one output compares with what was expected."""

    name: str
    exact: bool
    """Whether equality was asked for."""
    wrong: int
    size: int
    worst: float
    """Largest absolute difference."""
    tolerance: float
    overruled: int = 0
    """Elements that are not as expected, and are right by the specification of the network."""


class Ran(Struct, frozen=True):
    """One execution: outputs in graph order, and the comparison where expectations were given."""

    compiled: Compiled
    outputs: tuple[Array, ...]
    comparisons: tuple[Comparison, ...]
    nanoseconds: float | None
    cycles: int | None = None
    """Of the inference, or all of them, on a simulated machine; in the platform's unit of time."""
    groups: tuple[GroupProfile, ...] = ()
    """What each group of nodes, or each step, took there, where a profile was asked for."""
    footprint: Footprint | None = None
    """Bytes of the program, where an emulator ran it."""
    step_cycles: tuple[int, ...] = ()
    """Of each run, where a simulated machine tells."""

    @property
    def right(self) -> bool:
        return all(c.wrong == 0 for c in self.comparisons)


def run_model(
    model: Path | Graph,
    options: Options | None = None,
    *,
    inputs: Sequence[Array] | None = None,
    expected: Sequence[Array] | None = None,
    rule: Rule = "network",
    folder: Path | None = None,
    compiler: str = "",
    flags: tuple[str, ...] = (),
    repeat: int = 0,
    seed: int = 0,
    machine: EmulatedMachine | None = None,
    profile: bool = False,
    simulator: SimulatorName | None = None,
    timing: str = "",
    limits: Limits = USUAL,
    steps: int | None = None,
    progress: Observer = lambda _stage: None,
) -> Ran:
    """Compiles, builds and runs a network. Without `inputs`, seeded noise is fed.

    `machine` says how an emulated machine behaves, on platforms that are one; `profile` is for those with a simulator,
    of which `simulator` names one that is not the platform's usual, and `timing` one of Tilewright's that is not the
    first. `limits` say how far the program may go. With `steps` the network is run so many times and keeps its states
    between; the first axis of all arrays counts runs. Where a permission changed the network's numbers, outputs are
    compared with what it gives now; `Compiled.change` says how far that is from the network as it was.
    """
    samples = [a[0] if steps and a.ndim else a for a in inputs] if inputs is not None else None
    building = Building((options or Options()).name, compiler, flags, limits)
    compiled = compile_model(model, options, samples=samples, building=building, progress=progress)
    where = _simulator(compiled.platform, simulator, profile=profile)
    _check_wishes(compiled.platform, where, repeat, steps)
    graph = compiled.plan.graph
    fed = fit(inputs, graph, steps) if inputs is not None else noise(graph, seed, steps)
    marks = compiled.program.parts if profile else []
    if where == "gvsoc":
        compiled = replace(compiled, files={**compiled.files, **given_files(fed)})
    name = compiled.program.name
    with project_in(folder, compiled.files, name) as target:
        progress("build")
        added = GVSOC_FLAGS if where == "gvsoc" else profile_flags(marks) if where == "qemu" and profile else ()
        added += (f"-DTW_STEPS={steps}",) if where == "qemu" and steps else ()
        built = build(target, compiled.platform, name, compiler=compiler, flags=(*flags, *added))
        progress("run")
        types = [stepped(graph.types[o], steps) for o in graph.given]
        nanoseconds, cycles, groups, footprint, each = None, None, (), None, ()
        if where == "gvsoc":
            gvsoc = run_on_gvsoc(built.executable, types, compiled.platform, limits, progress=progress)
            outputs, cycles = gvsoc.outputs, gvsoc.cycles
        elif where == "qemu":
            emulator = run_in_qemu(built.executable, fed, types, compiled.platform, marks, limits)
            outputs, cycles, groups = emulator.outputs, emulator.instructions, emulator.parts
            footprint = emulator.footprint
        elif compiled.platform.timings:
            chip = run_on_chip(
                built.executable,
                fed,
                types,
                compiled.platform,
                timing=timing,
                checks=True,
                profile=profile,
                limits=limits,
                steps=steps or 1,
            )
            outputs, cycles, groups, each = chip.outputs, sum(chip.cycles), chip.groups, chip.cycles
        else:
            emulated = (machine or EmulatedMachine()) if compiled.platform.links else None
            host = run_on_host(
                built.executable, fed, types, machine=emulated, repeat=repeat, limits=limits, steps=steps or 1
            )
            outputs, nanoseconds = host.outputs, host.nanoseconds
    if graph.bounds and steps is None:
        outputs = _reached(graph, fed, outputs)
    if expected is not None and compiled.change is not None:
        expected = interpret_steps(graph, fed, steps or 1)
    comparisons = compare(compiled, fed, outputs, expected, rule, steps) if expected is not None else ()
    return Ran(compiled, outputs, comparisons, nanoseconds, cycles, groups, footprint, each)


def _check_wishes(platform: Target, where: SimulatorName, repeat: int, steps: int | None) -> None:
    """An error where what runs the program cannot repeat it."""
    if repeat and (where != "tilewright" or platform.timings):
        raise TilewrightError(
            "bad-argument",
            f"programs of '{platform.name}' run in a simulator, where each run takes the same time",
            help="leave --repeat away",
        )
    if steps and where == "gvsoc":
        raise TilewrightError(
            "bad-argument", "programs run once in GVSoC", help="leave --steps or --simulator gvsoc away"
        )


def _simulator(platform: Target, name: SimulatorName | None, *, profile: bool) -> SimulatorName:
    """What runs a platform's programs; an error where that cannot."""
    found = name or ("qemu" if platform.qemu else "tilewright")
    if found == "gvsoc":
        check_gvsoc(platform)
    elif found == "qemu":
        qemu_of(platform)
    elif profile or platform.qemu:
        timing_of(platform)
    return found


def _reached(graph: Graph, fed: Sequence[Array], outputs: Sequence[Array]) -> tuple[Array, ...]:
    """Outputs as far as they reach with the sizes that were given."""
    given = dict(zip(graph.fed, fed, strict=True))
    at = {bound.variable: bound.clamped(int(given[bound.name])) for bound in graph.bounds}
    kinds = [type_of(graph, extents(graph), name, at) for name in graph.given]
    return tuple(o.reshape(-1)[: kind.size].reshape(kind.shape) for o, kind in zip(outputs, kinds, strict=True))


def compare(
    compiled: Compiled,
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    expected: Sequence[Array],
    rule: Rule = "network",
    steps: int | None = None,
) -> tuple[Comparison, ...]:
    """Compares outputs with expectations by position.

    A dequantised output is right within one quantisation step of what the ONNX specification gives. Expected arrays may
    come from an optimising runtime that is further off; the specification itself, that is our references, then decides,
    unless they are no result of the network at all.
    """
    if len(expected) < len(outputs):
        raise TilewrightError("wrong-outputs", f"the network has {len(outputs)} outputs, {len(expected)} are expected")
    names = compiled.source.given
    if rule == "official":
        return tuple(_official(n, o, e) for n, o, e in zip(names, outputs, expected, strict=True))
    rounding = [quantisation_step(compiled.source, name) for name in names]
    found = [_compare(n, o, e, s) for n, o, e, s in zip(names, outputs, expected, rounding, strict=False)]
    if any(c.wrong and step for c, step in zip(found, rounding, strict=True)):
        specified = interpret_steps(compiled.source, inputs, steps or 1)
        found = [
            replace(_compare(c.name, output, right, step), overruled=c.wrong)
            if c.wrong and step and _resembles(wanted, right)
            else c
            for c, output, wanted, right, step in zip(found, outputs, expected, specified, rounding, strict=False)
        ]
    return tuple(found)


def _resembles(expected: Array, specified: Array) -> bool:
    """Whether an array may be what another runtime gives: it is nearer to what the specification gives than zeros."""
    if expected.size != specified.size or not np.isfinite(expected).all():
        return False
    right = specified.astype(np.float64).reshape(-1)
    return float(np.linalg.norm(expected.astype(np.float64).reshape(-1) - right)) < float(np.linalg.norm(right))


def _compare(name: str, found: Array, expected: Array, step: float) -> Comparison:
    exact = found.dtype.kind in "iub"
    if found.size != expected.size:
        return Comparison(name, exact, found.size, found.size, float("inf"), 0.0)
    left = found.astype(np.float64).reshape(-1)
    right = expected.astype(np.float64).reshape(-1)
    if exact and expected.dtype.kind in "iub":
        return _equal(name, found.reshape(-1), expected.reshape(-1))
    if exact:
        tolerance = np.zeros_like(left)
    elif found.dtype in FRACTION_BITS:
        # Inputs and what lies between layers are rounded as well, so the ulp is that of the largest value.
        largest = np.max(np.abs(right), where=np.isfinite(right), initial=0.0)
        least = ABSOLUTE if found.dtype == FLOAT16.numpy else 0.0
        tolerance = np.maximum(_ulp(np.full_like(right, largest), FRACTION_BITS[found.dtype]), least)
    else:
        # A rounding that falls on the other side of a tie is one step; a hair is added for the product itself.
        tolerance = np.maximum(np.maximum(ABSOLUTE, RELATIVE * np.abs(right)), step * (1 + 1e-3))
    with np.errstate(invalid="ignore"):
        difference = np.abs(left - right)
        good = (left == right) | (difference <= tolerance)
    worst = float(np.max(np.where(left == right, 0.0, difference), initial=0.0))
    return Comparison(name, exact, int(np.sum(~good)), found.size, worst, float(np.max(tolerance, initial=0.0)))


def _equal(name: str, found: Array, expected: Array) -> Comparison:
    """Integers, not by way of floats, which do not hold every int64."""
    wrong = found != expected
    difference = np.where(wrong, np.abs(found.astype(np.float64) - expected.astype(np.float64)), 0.0)
    # Neighbours that no float64 tells apart are one apart.
    worst = np.where(wrong, np.maximum(difference, 1.0), 0.0)
    return Comparison(name, True, int(np.sum(wrong)), found.size, float(np.max(worst, initial=0.0)), 0.0)


def _official(name: str, found: Array, expected: Array) -> Comparison:
    exact = found.dtype.kind in "iub"
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return Comparison(name, exact, max(found.size, 1), found.size, float("inf"), 0.0)
    if exact:
        return _equal(name, found, expected)
    left, right = found.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        same = (left == right) | (np.isnan(left) & np.isnan(right))
        difference = np.where(same, 0.0, np.abs(left - right))
        largest = np.max(np.abs(right), initial=0.0, where=np.isfinite(right))
        noise = float(np.finfo(np.float32).eps) * largest
        tolerance = OFFICIAL_ABSOLUTE + OFFICIAL_RELATIVE * np.abs(right) + noise
        # An infinite tolerance would let any number pass where an infinity is expected.
        good = same | (np.isfinite(right) & (difference <= tolerance))
    finite = tolerance[np.isfinite(tolerance)]
    worst = float(np.max(difference, initial=0.0))
    return Comparison(name, exact, int(np.sum(~good)), found.size, worst, float(np.max(finite, initial=0.0)))


FRACTION_BITS = {BFLOAT16.numpy: 7, FLOAT16.numpy: 10}
"""Of element types so short that their results are right within one unit in the last place."""


def _ulp(values: Array, bits: int) -> Array:
    magnitude = np.maximum(np.abs(values), float(np.finfo(np.float32).tiny))
    return np.exp2(np.floor(np.log2(magnitude)) - bits)
