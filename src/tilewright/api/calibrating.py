"""Calibrate: what kernels take, measured on layers made at random from what operators and kernels declare.

Layers run in programs of one and of several on the platform's simulator, with all cores and with one, in memories of
several sizes. Coefficients of a header's terms are solved from all of them, and the errors of each program told from
a solution without it.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import comb, inf
from pathlib import Path
from types import MappingProxyType

import numpy as np

from tilewright.api.sampled_layers import Layer, draw_layers, network
from tilewright.codegen import build, lower, project_files, write_project
from tilewright.codegen.build import build_drivers
from tilewright.codegen.project import compiler_version, drivers
from tilewright.core.plan import Group, Plan, Work
from tilewright.errors import TilewrightError
from tilewright.machine.calibration import COMPILER, Calibration, key_of, stale, write_calibrations
from tilewright.machine.kernel import Kernel
from tilewright.machine.target import Sizes, Target, load_platform, resize
from tilewright.machine.terms import weighted
from tilewright.ops import load_folder
from tilewright.passes import LAST, run_pipeline
from tilewright.plan import PlanOptions, plan
from tilewright.price.terms import FIRST_CALL, Observation, group_terms, solved
from tilewright.sim.chip import run_on_chip
from tilewright.sim.marks import GroupProfile
from tilewright.sim.qemu import profile_flags, qemu_of, run_in_qemu
from tilewright.sim.simulator import timing_of

Random = np.random.Generator
Progress = Callable[[str, int, int], None]
"""Is told a kernel's name, and how many of its programs have run, of how many."""

LAYERS_PER_PAIR, LAYERS_PER_TYPE, LEAST_LAYERS = 2, 4, 24
"""Layers for each two terms, which have to be told apart, for each type of elements, and at least."""
TOGETHER = (1, 4, 2, 5)
"""Layers of a program: the first finds its code cold; where others follow, code is for several callers."""
TOGETHER_WHOLE = (1, 12, 4, 12)
"""The same where layers run on whole tensors, one behind the other, so that each is seen in one call."""
SHARES = (4, 1, 14, 1, 4, 14, 2)
"""Of the cores' memory: which part of it a program has."""
ALONE = (False, True, False)
"""Whether a program is for one core."""
LEAST_PROGRAMS = 5
"""Fewer say nothing of layers that are not among them."""
MOST_CYCLES = 1 << 23
"""Of a program, as predicted from those before it: longer ones tell no more."""
MOST_MISSES = 40
"""Programs that may come to nothing."""


@dataclass(frozen=True)
class Ran:
    """A program of layers for one kernel, with what the simulator saw of it."""

    plan: Plan
    groups: tuple[GroupProfile, ...]


@dataclass(frozen=True)
class Result:
    """What was measured of a kernel."""

    kernel: Kernel
    calibration: Calibration


def kernels_with_terms(platform: Target, names: Sequence[str] = (), own: Sequence[Path] = ()) -> tuple[Kernel, ...]:
    """Those of the cores that can be calibrated; an error for a name that is none.

    Where none is named, all of a user's `own` folders, or else of the platform.
    """
    found = {k.path.name: k for k in platform.kernels if k.terms and k.engine == platform.cores.name}
    wanted = sorted({name.removesuffix(".c") + ".c" for name in names})
    for name in wanted:
        if name not in found:
            raise TilewrightError(
                "bad-argument",
                f"'{name}' is no kernel of '{platform.name}' that can be calibrated",
                reasons=[f"these have terms in their headers: {', '.join(sorted(found)) or 'none'}"],
                help="name one of these, or write `cycles:` of its header as a mapping of terms (docs/calibrating.md)",
            )
    usual = (name for name, kernel in sorted(found.items()) if not own or kernel.path.parent in own)
    return tuple(found[name] for name in (wanted or usual))


def outdated(
    platform: str, kernels: tuple[Path, ...] = (), ops: tuple[Path, ...] = (), names: Sequence[str] = ()
) -> list[tuple[str, tuple[str, ...]]]:
    """Kernels whose calibration does not belong to what there is now, and why."""
    machine = _loaded(platform, kernels, ops)
    compiler = {COMPILER: compiler_of(machine)}
    found = ((k.path.name, stale(machine, k, compiler)) for k in kernels_with_terms(machine, names, kernels))
    return [(name, reasons) for name, reasons in found if reasons]


def calibrate(
    platform: str,
    *,
    kernels: tuple[Path, ...] = (),
    ops: tuple[Path, ...] = (),
    names: Sequence[str] = (),
    seed: int = 0,
    output: Path | None = None,
    progress: Progress = lambda _name, _done, _all: None,
) -> tuple[Result, ...]:
    """Measures kernels of a platform and writes what they take: beside a user's own ones, else beside the platform's.

    All is written at the end, or nothing.
    """
    machine = _loaded(platform, kernels, ops)
    results = tuple(measured(machine, k, seed, progress) for k in kernels_with_terms(machine, names, kernels))
    for folder in dict.fromkeys((*kernels, machine.folder)):
        mine = [r for r in results if _place(r.kernel, kernels, machine) == folder]
        if mine:
            found = {result.kernel.path.name: result.calibration for result in mine}
            write_calibrations(output or folder, machine.name, found)
    return results


def _loaded(platform: str, kernels: tuple[Path, ...], ops: tuple[Path, ...]) -> Target:
    for folder in ops:
        load_folder(folder)
    machine = load_platform(platform, kernels)
    machine = machine.measured_as or machine
    _ = qemu_of(machine) if machine.qemu else timing_of(machine)
    return machine


def _place(kernel: Kernel, own: Sequence[Path], platform: Target) -> Path:
    return kernel.path.parent if kernel.path.parent in own else platform.folder


def measured(platform: Target, kernel: Kernel, seed: int, progress: Progress) -> Result:
    """Samples, runs and solves one kernel."""
    return solution(platform, kernel, programs(platform, kernel, seed, progress))


def solution(platform: Target, kernel: Kernel, ran: Sequence[Ran]) -> Result:
    """What follows from programs that ran."""
    seen = [observed(one) for one in ran]
    coefficients = solved(kernel, [one for layers in seen for one in layers])
    errors = np.abs(held_out_errors(kernel, seen))
    values = dict(zip((*kernel.terms, *FIRST_CALL), (_rounded(c) for c in coefficients), strict=True))
    first = {name: values.pop(name) for name in FIRST_CALL}
    held_out = {"median": np.median(errors), "p90": np.quantile(errors, 0.9), "worst": errors.max()}
    return Result(
        kernel,
        Calibration(
            MappingProxyType(key_of(platform, kernel) | {COMPILER: compiler_of(platform)}),
            MappingProxyType(values),
            **first,
            shapes=len(errors),
            held_out=MappingProxyType({name: round(float(value), 4) for name, value in held_out.items()}),
        ),
    )


def held_out_errors(kernel: Kernel, seen: Sequence[Sequence[Observation]]) -> list[float]:
    """Relative errors of all layers, each by coefficients that were solved without its program."""
    found: list[float] = []
    for number, layers in enumerate(seen):
        coefficients = solved(kernel, [one for others in (*seen[:number], *seen[number + 1 :]) for one in others])
        found += [one.error(coefficients) for one in layers]
    return found


def _rounded(value: float) -> float:
    """Four digits: more are noise, and files would differ by the machine that solves."""
    return float(f"{value:.4g}")


def compiler_of(platform: Target) -> str:
    """Name and version of the compiler that builds a platform's programs."""
    return compiler_version(platform.build["compiler"])


# Programs


def programs(
    platform: Target, kernel: Kernel, seed: int, progress: Progress = lambda _name, _done, _all: None
) -> list[Ran]:
    """Layers for a kernel, as they ran. What `calibration.json` says plays no part in how they are planned."""
    # A file may be for several operators. What lies at its place within a result already would leave it nothing to do.
    mine = (replace(k, within=()) for k in platform.kernels if k.path == kernel.path)
    tried = [replace(k, cycles=weighted(k.terms, {})) for k in mine]
    random = np.random.default_rng([zlib.crc32(kernel.path.name.encode()), seed])
    types = max((len(allowed) for allowed in kernel.variables.values()), default=1)
    wanted = max(LAYERS_PER_PAIR * comb(len(kernel.terms), 2), LAYERS_PER_TYPE * types, LEAST_LAYERS)
    found: list[Ran] = []
    done = number = 0
    with tempfile.TemporaryDirectory(prefix="tilewright-") as scratch:
        bench = Bench(Path(scratch))
        while (done < wanted or len(found) < LEAST_PROGRAMS) and number - len(found) < MOST_MISSES:
            progress(kernel.path.name, min(done, wanted), wanted)
            # Predictions from few layers say little of others.
            most = MOST_CYCLES if len(found) >= LEAST_PROGRAMS else inf
            ran = _program(platform, tried[number % len(tried)], random, number, bench, most)
            number += 1
            if ran is None:
                continue
            found.append(ran)
            done += len(ran.groups)
            # Tiles of further programs are chosen by what is known by now.
            coefficients = solved(kernel, [one for ran in found for one in observed(ran)])
            known = dict(zip(kernel.terms, coefficients.tolist(), strict=False))
            tried = [replace(k, cycles=weighted(k.terms, known)) for k in tried]
    progress(kernel.path.name, wanted, wanted)
    if len(found) < LEAST_PROGRAMS:
        raise TilewrightError(
            "no-samples",
            f"{kernel.where} cannot be calibrated: hardly any layer made from the examples of {kernel.op} is for it",
            reasons=[f"{len(found)} of {number} programs ran"],
            help=f"add an example to the declaration of {kernel.op} that the kernel fits",
        )
    return found


def _program(platform: Target, kernel: Kernel, random: Random, number: int, bench: Bench, most: float) -> Ran | None:
    """A program for one kernel; none where its layers do not fit the machine, or take more than `most` cycles."""
    cores = platform.cores
    memory = None if platform.whole else platform.memories[cores.memory].bytes
    sizes = {cores.memory: memory // SHARES[number % len(SHARES)]} if memory else {}
    others = tuple(name for name in platform.engines if name != cores.name)
    machine = resize(
        replace(platform, kernels=(kernel,)), Sizes(sizes, cores=1 if ALONE[number % len(ALONE)] else 0, without=others)
    )
    together = TOGETHER_WHOLE if platform.whole else TOGETHER
    turn = number // sum(k.path == kernel.path for k in platform.kernels)
    layers = draw_layers(kernel, together[number % len(together)], random, platform.kernels, turn)
    if not layers:
        return None
    graph = run_pipeline(network(layers), machine, passes=LAST)
    try:
        planned = plan(graph, machine, PlanOptions(seconds=0.0, fuse="off", order="given"))
    except TilewrightError:
        return None
    if (planned.schedule is None) != platform.whole or (planned.schedule and planned.schedule.cycles > most):
        return None
    return Ran(planned, bench.run(planned, layers))


class Bench:
    """A folder in which one program after the other is built and run. What all of them have in common is built once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._objects: tuple[str, ...] = ()

    def run(self, planned: Plan, layers: Sequence[Layer]) -> tuple[GroupProfile, ...]:
        platform, graph = planned.platform, planned.graph
        program, project = lower(planned), self._folder / "project"
        files = project_files(program, platform)
        if not self._objects:
            write_project(files, project)
            self._objects = build_drivers(project, platform, graph.name, self._folder)
        write_project({name: data for name, data in files.items() if name not in drivers(platform)}, project)
        marked = profile_flags(program.parts) if platform.qemu else ()
        built = build(project, platform, flags=(*self._objects, *marked))
        fed = {name: array for layer in layers for name, array in layer.fed.items()}
        inputs, kinds = [fed[name] for name in graph.inputs], [graph.types[name] for name in graph.outputs]
        if platform.qemu:
            return run_in_qemu(built.executable, inputs, kinds, platform, program.parts).parts
        return run_on_chip(built.executable, inputs, kinds, platform, profile=True).groups


def observed(ran: Ran) -> list[Observation]:
    """What was seen of each group in which the kernel ran alone."""
    planned, caches = ran.plan, ran.plan.platform.qemu is None
    found: list[Observation] = []
    for group, profile in measured_groups(ran):
        cycles = [tile.kernel for tile in profile.tiles] or [profile.cycles]
        terms = group_terms(planned.graph, planned.platform, planned.choices, group)
        found.append(Observation(terms, cycles[0], sum(cycles[1:]), not found, len(cycles), caches))
    return found


def measured_groups(ran: Ran) -> list[tuple[Group, GroupProfile]]:
    """Groups that the kernel computes, with what was seen of them; on whole tensors each of its nodes is one."""
    planned = ran.plan
    if planned.schedule is not None:
        groups = planned.schedule.groups
    else:
        groups = tuple(Group((Work(profile.index, {}),), (), (), {}) for profile in ran.groups)
    pairs = zip(groups, ran.groups, strict=True)
    return [pair for pair in pairs if planned.choices[pair[0].works[0].step].kernel is not None]
