"""Calibrate: what kernels take, measured on layers made at random from what operators and kernels declare.

Layers run in programs of one and of several on the platform's simulator, with all cores and with one, in memories of
several sizes. Coefficients of a header's terms are solved from all of them, and the errors of each program told from
a solution without it.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Callable, Collection, Sequence
from functools import partial
from math import comb, inf
from pathlib import Path
from types import MappingProxyType

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tilewright.api.bench import Bench, BenchRun, Progress, compiler_of, quantiles, quiet, rounded
from tilewright.api.calibrating_engines import measured_engine
from tilewright.api.calibrating_nests import measured_nests
from tilewright.api.calibrating_steps import measured_steps
from tilewright.api.calibrating_times import measured_times
from tilewright.api.sampled_layers import SampledLayer, any_steps, draw_layers
from tilewright.core.plan import Group, NodeWork
from tilewright.errors import TilewrightError
from tilewright.machine.calibration import COMPILER, ENGINE, NESTS, STEPS, TIMES, Calibration, write_calibrations
from tilewright.machine.kernel import Kernel
from tilewright.machine.staleness import key_of, stale, stale_engine, stale_nests, stale_steps, stale_times
from tilewright.machine.target import Target, load_platform, with_times
from tilewright.machine.terms import weighted
from tilewright.ops import load_folder
from tilewright.ops.usual_steps import usual_steps
from tilewright.price.terms import FIRST_CALL, Observation, group_terms, solved
from tilewright.sim.marks import GroupProfile
from tilewright.sim.qemu import qemu_of
from tilewright.sim.simulator import timing_of

LAYERS_PER_PAIR, LAYERS_PER_TYPE, LEAST_LAYERS = 6, 4, 72
"""Layers for each two terms, which have to be told apart, for each type of elements, and at least."""
TOGETHER = (1, 6, 1, 3)
"""Layers of a program: the first finds its code cold; where others follow, code is for several callers. All have
the same types of elements and steps behind them, so few layers in many programs show more of these."""
TOGETHER_WHOLE = (1, 12, 4, 12)
"""The same where layers run on whole tensors, one behind the other, so that each is seen in one call."""
ANY_STEPS = 6
"""One program of so many has steps of any kind behind its layers, so that kernels and steps are told apart."""
LEAST_PROGRAMS = 5
"""Fewer say nothing of layers that are not among them."""
MOST_CYCLES = 1 << 23
"""Of a program, as predicted from those before it: longer ones tell no more."""
LEAST_OCCURRENCES, MOST_TIMES = 4, 2
"""Layers in which each term has to occur, unless there are so many times as many layers as wanted."""
HELD_OUT = 7
"""In so many turns, each so many-th program is not used to solve, and its errors are told."""
MOST_MISSES = 40
"""Programs that may come to nothing."""


class CalibrationResult(Struct, frozen=True):
    """What was measured of a kernel, of loop nests, of starts of an engine, or of times."""

    name: str
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
    """What has a calibration that does not belong to what there is now, and why."""
    machine = _loaded(platform, kernels, ops)
    compiler = {COMPILER: compiler_of(machine)}
    found = [(k.path.name, stale(machine, k, compiler)) for k in kernels_with_terms(machine, names, kernels)]
    if not (names or kernels):
        own = load_platform(platform)
        found += [(NESTS, stale_nests(machine, compiler)), (STEPS, stale_steps(machine, compiler))]
        found += [(TIMES, stale_times(own, compiler))]
        found += [(f"{ENGINE}{name}", stale_engine(own, name, compiler)) for name in _engines_measured(own)]
    return [(name, reasons) for name, reasons in found if reasons]


def calibrate(
    platform: str,
    *,
    kernels: tuple[Path, ...] = (),
    ops: tuple[Path, ...] = (),
    names: Sequence[str] = (),
    parts: Collection[str] = (),
    engines: Sequence[str] = (),
    seed: int = 0,
    output: Path | None = None,
    progress: Progress = quiet,
) -> tuple[CalibrationResult, ...]:
    """Measures what a platform's programs take and writes it: beside a user's own kernels, else beside the platform's.

    Loop nests, all kernels and what was measured before of times, steps and starts of engines, or only some `parts`
    (`NESTS`, `STEPS`, `TIMES`), the `engines` or kernels that are named, or a user's own kernels. Kernels are measured
    behind nests, and the rest by what is known of these: each part is written as it is done, whole.
    """
    machine, own = _loaded(platform, kernels, ops), load_platform(platform, kernels)
    some = bool(parts or names or kernels or engines)
    chosen = _engines(own, engines, everything=not some)
    if machine.qemu and parts:
        raise TilewrightError(
            "bad-argument",
            f"{', '.join(parts)} of '{machine.name}' cannot be measured",
            reasons=["QEMU counts instructions of whole layers, with no caches"],
            help="name kernels, or nothing: `operations` of its platform.yaml say what the rest takes",
        )
    wanted = () if (parts or engines) and not names else kernels_with_terms(machine, names, kernels)
    results: list[CalibrationResult] = []
    if NESTS in parts or not (some or machine.qemu):
        results.append(CalibrationResult(NESTS, measured_nests(machine, seed, progress)))
        machine = with_times(machine, results[0].calibration.terms)
    results += [measured(machine, kernel, seed, progress) for kernel in wanted]
    places = {kernel.path.name: _place(kernel, kernels, machine) for kernel in wanted} | {NESTS: machine.folder}
    for folder in dict.fromkeys((*kernels, machine.folder)):
        mine = {result.name: result.calibration for result in results if places[result.name] == folder}
        if mine:
            write_calibrations(output or folder, machine.name, mine)

    def measure(part: str, of: Callable[[Target], Calibration], name: str) -> None:
        found = of(load_platform(name, kernels))
        write_calibrations(output or machine.folder, name, {part: found})
        results.append(CalibrationResult(part, found))

    if TIMES in parts or (TIMES in own.own_calibrations and not some):
        measure(TIMES, partial(measured_times, progress=progress), own.name)
    if STEPS in parts or (STEPS in machine.calibrations and not some):
        measure(STEPS, partial(measured_steps, seed=seed, progress=progress), machine.name)
    for name in chosen:
        measure(f"{ENGINE}{name}", partial(measured_engine, engine=name, seed=seed, progress=progress), own.name)
    return tuple(results)


def _engines(platform: Target, names: Sequence[str], *, everything: bool) -> tuple[str, ...]:
    """Those that are named, or all that were measured before."""
    used = {kernel.engine for kernel in platform.kernels} if platform.timings else set[str]()
    found = [name for name in platform.engines if name != platform.cores.name and name in used]
    for name in names:
        if name not in found:
            raise TilewrightError(
                "bad-argument",
                f"'{name}' is no engine of '{platform.name}' that can be calibrated",
                reasons=[f"these are simulated: {', '.join(found) or 'none'}"],
                help="name one of these, or add a kernel for it",
            )
    return tuple(names) or (_engines_measured(platform) if everything else ())


def _engines_measured(platform: Target) -> tuple[str, ...]:
    return tuple(name.removeprefix(ENGINE) for name in platform.own_calibrations if name.startswith(ENGINE))


def _loaded(platform: str, kernels: tuple[Path, ...], ops: tuple[Path, ...]) -> Target:
    for folder in ops:
        load_folder(folder)
    machine = load_platform(platform, kernels)
    machine = machine.measured_as or machine
    _ = qemu_of(machine) if machine.qemu else timing_of(machine)
    return machine


def _place(kernel: Kernel, own: Sequence[Path], platform: Target) -> Path:
    return kernel.path.parent if kernel.path.parent in own else platform.folder


def measured(platform: Target, kernel: Kernel, seed: int, progress: Progress) -> CalibrationResult:
    """Samples, runs and solves one kernel."""
    return solution(platform, kernel, programs(platform, kernel, seed, progress))


def solution(platform: Target, kernel: Kernel, ran: Sequence[BenchRun]) -> CalibrationResult:
    """What follows from programs that ran."""
    seen = [observed(one) for one in ran]
    coefficients = solved(kernel, [one for layers in seen for one in layers])
    errors = held_out_errors(kernel, seen)
    values = dict(zip((*kernel.terms, *FIRST_CALL), (rounded(c) for c in coefficients), strict=True))
    first = {name: values.pop(name) for name in FIRST_CALL}
    return CalibrationResult(
        kernel.path.name,
        Calibration(
            MappingProxyType(key_of(platform, kernel) | {COMPILER: compiler_of(platform)}),
            MappingProxyType(values),
            **first,
            shapes=len(errors),
            held_out=MappingProxyType(quantiles(errors)),
        ),
    )


def held_out_errors(kernel: Kernel, seen: Sequence[Sequence[Observation]]) -> list[float]:
    """Relative errors of all layers, each by coefficients that were solved without its program and some others."""
    found: list[float] = []
    for turn in range(HELD_OUT):
        others = [one for number, layers in enumerate(seen) if number % HELD_OUT != turn for one in layers]
        coefficients = solved(kernel, others)
        found += [one.error(coefficients) for layers in seen[turn::HELD_OUT] for one in layers]
    return found


# Programs


def possible(platform: Target, kernel: Kernel) -> list[int]:
    """Numbers of the terms that can occur on a machine: cores may have units of their own."""
    alone = not platform.others_on_unit("fp")
    return [number for number, text in enumerate(kernel.terms.values()) if not (alone and "FPU_OTHERS" in text)]


def _too_few(terms: Sequence[int], seen: Sequence[Sequence[Observation]], done: int, wanted: int) -> bool:
    """Whether there are fewer layers than are wanted, or, up to some more, too few for these terms to be known well."""
    if done < wanted or len(seen) < LEAST_PROGRAMS:
        return True
    if done >= MOST_TIMES * wanted:
        return False
    ones = np.ones(len(seen[0][0].terms.parts[0]) + len(FIRST_CALL))
    counts = sum(np.sum([row for row, _ in one.rows(ones)], axis=0) > 0 for layers in seen for one in layers)
    return bool(np.any(np.asarray(counts)[[*terms]] < LEAST_OCCURRENCES))


def programs(platform: Target, kernel: Kernel, seed: int, progress: Progress = quiet) -> list[BenchRun]:
    """Layers for a kernel, as they ran. What `calibration.json` says plays no part in how they are planned."""
    # A file may be for several operators. Of operands that may lie within the result already, one at least does not.
    mine = [k for k in platform.kernels if k.path == kernel.path]
    tried = [
        replace(k, cycles=weighted(k.terms, {}), within=k.within[:there])
        for k in mine
        for there in range(max(len(k.within), 1))
    ]
    random = np.random.default_rng([zlib.crc32(kernel.path.name.encode()), seed])
    types = max((len(allowed) for allowed in kernel.variables.values()), default=1)
    wanted = max(LAYERS_PER_PAIR * comb(len(kernel.terms), 2), LAYERS_PER_TYPE * types, LEAST_LAYERS)
    together = TOGETHER_WHOLE if platform.whole else TOGETHER
    found: list[BenchRun] = []
    seen: list[list[Observation]] = []
    done = number = 0
    terms = possible(platform, kernel)
    with tempfile.TemporaryDirectory(prefix="tilewright-") as scratch:
        bench = Bench(Path(scratch))
        while _too_few(terms, seen, done, wanted) and number - len(found) < MOST_MISSES:
            progress(kernel.path.name, min(done, wanted), wanted)
            # Predictions from few layers say little of others.
            most = MOST_CYCLES if len(found) >= LEAST_PROGRAMS else inf
            one, turn = tried[number % len(tried)], number // len(tried)
            steps = usual_steps if (number + 1) % ANY_STEPS else any_steps
            drawn = draw_layers(one, together[number % len(together)], random, platform.kernels, turn, steps)
            layers = _at_home(platform, drawn)
            machine = replace(platform, kernels=(one,), calibrations=MappingProxyType({}))
            ran = bench.run(machine, layers, number, most) if layers else None
            number += 1
            if ran is None:
                continue
            found.append(ran)
            done += len(ran.groups)
            # Tiles of further programs are chosen by what is known by now.
            seen.append(observed(ran))
            coefficients = solved(kernel, [one for layers in seen for one in layers])
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


def _at_home(platform: Target, layers: Sequence[SampledLayer]) -> list[SampledLayer]:
    """As many layers as have room in half of the memory of inputs and results: code may be there, too."""
    room = (platform.memories[platform.home].bytes or inf) / 2
    sizes = np.cumsum([sum(kind.bytes for kind in layer.types.values()) for layer in layers])
    return [layer for layer, size in zip(layers, sizes, strict=True) if size <= room]


def observed(ran: BenchRun) -> list[Observation]:
    """What was seen of each group in which the kernel ran alone."""
    planned, caches = ran.plan, ran.plan.platform.qemu is None
    found: list[Observation] = []
    groups = measured_groups(ran)
    for group, profile in groups:
        cycles = [tile.kernel for tile in profile.tiles] or [profile.cycles]
        terms = group_terms(planned.graph, planned.platform, planned.choices, group)
        found.append(Observation(terms, cycles[0], sum(cycles[1:]), not found, len(groups) > 1, len(cycles), caches))
    return found


def measured_groups(ran: BenchRun) -> list[tuple[Group, GroupProfile]]:
    """Groups that the kernel computes, with what was seen of them; on whole tensors each of its nodes is one."""
    planned = ran.plan
    if planned.schedule is not None:
        groups = planned.schedule.groups
    else:
        groups = tuple(Group((NodeWork(profile.index, {}),), (), (), {}) for profile in ran.groups)
    pairs = zip(groups, ran.groups, strict=True)
    return [pair for pair in pairs if planned.choices[pair[0].works[0].step].kernel is not None]
