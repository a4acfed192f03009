"""Compile: an ONNX file becomes a Graph, a Plan, a Program and a C project."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from tilewright.api.changing import Change, change
from tilewright.api.feeding import fit, noise
from tilewright.base.folders import write_folder
from tilewright.codegen import lower, project_files, write_project
from tilewright.codegen.lower import together
from tilewright.codegen.pieces import ConstantPool
from tilewright.codegen.project_name import check_files, check_name
from tilewright.core.graph import Array, Graph
from tilewright.core.matching import check_kernel
from tilewright.core.plan import Plan
from tilewright.core.program import Program
from tilewright.errors import TilewrightError
from tilewright.frontend import load, save
from tilewright.machine import DEFAULT_PLATFORM
from tilewright.machine.kernels import own_kernels
from tilewright.machine.permissions import allowed
from tilewright.machine.target import Sizes, Target, described_platforms, load_platform, resize
from tilewright.ops import load_folder
from tilewright.passes import run_pipeline
from tilewright.plan import PlanOptions, alternatives, check, plan
from tilewright.quantize import to_integers

if TYPE_CHECKING:
    from tilewright.api.measuring import Building

Observer = Callable[[str], None]
StageObserver = Callable[[str, Graph], None]
"""Is shown the network behind each stage."""


class Options(Struct, frozen=True):
    """What a user may say about a compilation. Plain values only: it is sent to worker processes."""

    platform: str = DEFAULT_PLATFORM
    name: str = "network"
    dims: Mapping[str, int | tuple[int, int]] = field(default_factory=dict[str, int | tuple[int, int]])
    input_types: Mapping[str, str] = field(default_factory=dict[str, str])
    constants: Mapping[str, Array] = field(default_factory=dict[str, Array])
    kernels: tuple[Path, ...] = ()
    ops: tuple[Path, ...] = ()
    dump_stages: Path | None = None
    sizes: Sizes = field(default_factory=Sizes)
    planning: PlanOptions = field(default_factory=PlanOptions)
    max_bytes: int | None = None
    """Of the largest tensor, and of all constants; half of this machine's memory where it is None."""
    states: Mapping[str, str] = field(default_factory=dict[str, str])
    """Inputs that keep the value of an output from run to run."""
    measure: int = 0
    """How many plans are built and simulated to keep the fastest; 0 takes the one predicted to be."""
    data_folders: tuple[Path, ...] = ()
    """From which external data may be read, besides the folder of the network."""
    allow: tuple[str, ...] = ()
    """What may change numbers; see `machine.permissions`."""


class Compiled(Struct, frozen=True):
    """Everything a compilation made. `source` is the network as imported, `plan.graph` as compiled."""

    source: Graph
    plan: Plan
    program: Program
    platform: Target
    files: Mapping[str, bytes]
    change: Change | None = None
    """What a permission changed of its numbers."""

    def write(self, folder: Path) -> None:
        """Writes the C project; on failure the folder is as it was."""
        write_project(self.files, folder, self.program.name)


def compile_model(
    model: Path | Graph,
    options: Options | None = None,
    *,
    samples: Sequence[Array] | None = None,
    building: Building | None = None,
    progress: Observer = lambda _stage: None,
    show: StageObserver = lambda _stage, _graph: None,
) -> Compiled:
    """Compiles an ONNX file (or an imported Graph). `samples` are example inputs in graph order.

    Plans that are measured are fed the samples, or noise, and made into programs as `building` says.
    """
    chosen = options or Options()
    check_name(chosen.name)
    real = load_platform(chosen.platform, chosen.kernels)
    source, planned = _planned(real, model, chosen, samples, building, progress, show)
    check_files(chosen.name, planned.platform)
    _check_memories(planned, real)
    progress("generate")
    program = lower(planned, chosen.name)
    files = project_files([program], planned.platform)
    changed = change(source, planned.graph, samples, chosen.planning.seed) if chosen.allow else None
    return Compiled(source, planned, program, planned.platform, MappingProxyType(files), changed)


def compile_entries(
    entries: Mapping[str, Graph], options: Options | None = None, *, progress: Observer = lambda _stage: None
) -> dict[str, Compiled]:
    """Compiles networks that keep the same states into one project, with a function for each, named by its entry.

    There is one set of constants, in which equal ones are there once, and one of memories. All results have the files
    of the whole project; the example program of the platform gives way to that for language models.
    """
    chosen = options or Options()
    check_name(chosen.name)
    real = load_platform(chosen.platform, chosen.kernels)
    found = {entry: _planned(real, graph, chosen, None, None, progress) for entry, graph in entries.items()}
    for _, planned in found.values():
        _check_memories(planned, real)
    progress("generate")
    pool = ConstantPool()
    programs = together([lower(planned, chosen.name, entry, pool) for entry, (_, planned) in found.items()])
    platform = next(planned.platform for _, planned in found.values())
    check_files(chosen.name, platform)
    _check_together(programs, platform)
    files = MappingProxyType(project_files(programs, replace(platform, runtime=platform.language)))
    return {
        entry: Compiled(source, planned, program, platform, files)
        for (entry, (source, planned)), program in zip(found.items(), programs, strict=True)
    }


def _check_together(programs: Sequence[Program], platform: Target) -> None:
    """An error where memories have room for each of some programs, but not for what all of them have there."""
    first, known = programs[0], platform.memories
    beside = platform.in_place if platform.whole else platform.home
    by_section = {memory.section: name for name, memory in known.items() if memory.section}
    sizes = dict.fromkeys(known, 0)
    for name, size in first.memories or ((platform.cores.memory, first.arena_bytes),):
        sizes[name] = sizes.get(name, 0) + size
    for constant in first.constants:
        name = by_section.get(first.sections[constant.section], beside)
        sizes[name] = sizes.get(name, 0) + constant.array.nbytes
    for name, used in sizes.items():
        most = known[name].bytes if name in known else None
        if most is not None and used > most:
            raise TilewrightError(
                "does-not-fit",
                f"buffers, states and constants of {' and '.join(p.function for p in programs)} take {used} bytes of "
                f"{name}, '{platform.name}' has {most}",
                help="choose a smaller model, or a platform with more memory",
            )


def plan_model(
    model: Path | Graph,
    options: Options | None = None,
    *,
    samples: Sequence[Array] | None = None,
    building: Building | None = None,
    progress: Observer = lambda _stage: None,
) -> tuple[Graph, Plan]:
    """Compiles as far as the plan, which is checked; also returns the network as imported."""
    chosen = options or Options()
    real = load_platform(chosen.platform, chosen.kernels)
    return _planned(real, model, chosen, samples, building, progress)


def _planned(
    real: Target,
    model: Path | Graph,
    chosen: Options,
    samples: Sequence[Array] | None,
    building: Building | None,
    progress: Observer,
    show: StageObserver = lambda _stage, _graph: None,
) -> tuple[Graph, Plan]:
    """The network as imported, and its plan, which is for the real machine with other sizes."""
    if chosen.measure:
        from tilewright.api.measuring import check_measurable  # it needs the simulator, and a cold start is felt

        check_measurable(real)
    for folder in chosen.ops:
        load_folder(folder)
    for kernel in own_kernels(real.kernels):
        check_kernel(kernel)
    given = _with_code(real)
    platform = resize(given, _beside_reserved(given, chosen.sizes))
    platform = replace(platform, allowed=allowed(chosen.allow))
    progress("import")
    source = (
        model
        if isinstance(model, Graph)
        else load(
            model,
            dims=chosen.dims,
            input_types=chosen.input_types,
            constants=chosen.constants,
            samples=samples,
            max_bytes=chosen.max_bytes,
            states=chosen.states,
            data_folders=chosen.data_folders,
        )
    )
    _check_indices(source)
    stages: list[tuple[str, Graph]] = [("import", source)]

    def observe(stage: str, graph: Graph) -> None:
        progress(stage)
        show(stage, graph)
        if chosen.dump_stages is not None:
            stages.append((stage, graph))

    # Odd constants give odd results, as they do in the program; that is no reason to complain on the way.
    with np.errstate(all="ignore"):
        graph = to_integers(source, platform)
        observe("integers", graph)
        graph = run_pipeline(graph, platform, observe)
    progress("plan")
    planned = plan(graph, platform, chosen.planning)
    check(planned)
    if chosen.measure and planned.schedule and planned.schedule.groups:
        planned = _fastest(graph, planned, real, chosen, samples, building, progress)
    if chosen.dump_stages is not None:
        _dump(stages, chosen.dump_stages)
    return source, planned


def _fastest(
    graph: Graph,
    first: Plan,
    real: Target,
    options: Options,
    samples: Sequence[Array] | None,
    building: Building | None,
    progress: Observer,
) -> Plan:
    """The fastest of as many plans of a lowered graph as are to be measured."""
    from tilewright.api.measuring import Building, Meter  # likewise

    _check_memories(first, real)
    inputs = noise(graph, options.planning.seed) if samples is None else fit(samples, graph)
    meter = Meter(inputs, building or Building(options.name), options.planning)
    return meter.fastest(first, _others(graph, first.platform, options, real), options.measure, progress)


def _others(graph: Graph, platform: Target, options: Options, real: Target) -> Iterator[Plan]:
    """Other plans of a network that run on the real machine."""
    for other in alternatives(graph, platform, options.planning):
        check(other)
        try:
            _check_memories(other, real)
        except TilewrightError:
            continue
        yield other


def _check_indices(graph: Graph) -> None:
    """An error for tensors that programs could not index: they count elements in an int."""
    for name, kind in graph.types.items():
        if kind.size >= 1 << 31:
            raise TilewrightError(
                "too-large",
                f"tensor '{name}' is {kind}: programs count at most 2^31 - 1 elements",
                help="cut the network or its batch into smaller parts",
            )


def _beside_reserved(platform: Target, sizes: Sizes) -> Sizes:
    """A size that is that of a whole memory means all that is free there."""
    known = platform.memories

    def free(name: str, size: int) -> int:
        most = known[name].bytes if name in known else None
        return most if most is not None and most < size <= most + known[name].reserved else size

    return replace(sizes, memories={name: free(name, size) for name, size in sizes.memories.items()})


def _check_memories(planned: Plan, real: Target) -> None:
    """An error for a program that would not run: plans may be for larger memories than a simulated machine has."""
    if planned.schedule is None or not real.timings:
        return
    for name, used in planned.schedule.used.items():
        most = real.memories[name].bytes
        if most is not None and used > most:
            raise TilewrightError(
                "does-not-fit",
                f"the plan takes {used} bytes of {name}, '{real.name}' has {most}",
                help=f"give --{name.lower()} {most} or less; `tilewright plan` also plans for larger memories",
            )


def _with_code(platform: Target) -> Target:
    if platform.build:
        return platform
    others = [other.name for other in described_platforms() if other.build]
    raise TilewrightError(
        "simulator-only",
        f"platform '{platform.name}' has no code that networks could be compiled to",
        reasons=["its platform.yaml has no 'build': it is there for `tilewright sim`, which runs programs"],
        help=f"compile for another platform ({', '.join(others)}), or name a folder of your own with --platform",
    )


def _dump(stages: Sequence[tuple[str, Graph]], folder: Path) -> None:
    def fill(place: Path) -> None:
        for index, (stage, graph) in enumerate(stages):
            save(graph, place / f"{index:02d}_{stage}.onnx")

    write_folder(folder, fill)
