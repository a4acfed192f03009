"""Platforms: machines that networks can be compiled for. A folder with `platform.yaml`, kernels and a runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, cast

from msgspec import Meta, Struct, field, structs
from msgspec.structs import replace

from tilewright.base.descriptions import read_yaml
from tilewright.base.files import is_file, is_folder
from tilewright.base.schema import Flag, Number, Part, Share, Signed, Source, Whole, mapping, merged, read
from tilewright.errors import TilewrightError
from tilewright.machine.calibration import (
    FILE,
    Calibrations,
    behind,
    measured,
    read_calibrations,
    read_own,
    times_of_own,
)
from tilewright.machine.kernel import Kernel
from tilewright.machine.kernel_files import PLATFORMS, files_of, first_of_each_name, kernel_files
from tilewright.machine.kernels import Kernels
from tilewright.machine.machine import Machine, MachineFile, machine_values, renewed
from tilewright.machine.parts import Cores, Device, Engine
from tilewright.machine.timing import DeviceModel


class Cause(Part, frozen=True, kw_only=True):
    """Why some instructions take longer."""

    share: Share
    """The share of instructions that it concerns."""
    cycles: Number
    """How many cycles more these take."""


class Estimate(Part, frozen=True, kw_only=True):
    """Cycles of an instruction, on machines whose simulator counts instructions only."""

    base: Number
    """Of every instruction."""
    more: Mapping[str, Cause] = {}
    """By cause: cycles more for a share of the instructions."""

    @property
    def each(self) -> float:
        return self.base + sum(cause.share * cause.cycles for cause in self.more.values())


class Qemu(Part, frozen=True, kw_only=True):
    """A board of QEMU's, which counts instructions, one a nanosecond, by a timer of the board."""

    program: str
    """QEMU for this kind of core."""
    machine: str
    """QEMU's name of the board."""
    uart: Whole
    """Address of the UART (CMSDK) that programs print to."""
    timer: Annotated[float, Meta(ge=1, le=1e18)]
    """Ticks of the timer in a second."""


class Build(Part, frozen=True, kw_only=True):
    """How code is built."""

    compiler: str
    """The compiler."""
    flags: str
    """Its flags in a release build."""
    libraries: str
    """Libraries, as flags."""
    machine: str = ""
    """Flags that name a core, before all others, so that variants need not repeat these."""
    link: str = ""
    """How programs are linked, as flags."""


class Layout(Part, frozen=True, kw_only=True):
    """Folders of the C project."""

    header: str
    """For the network's header."""
    source: str
    """For its source files."""


class Target(Machine, frozen=True):
    """A machine with the kernels written for it, and how code for it is built."""

    engines: Mapping[str, Engine] = field(default_factory=lambda: MappingProxyType({}))
    folder: Path = Path()
    channels_last: bool = False
    """Whether convolutions and pools want the channel axis last."""
    alignment: int = 1
    """Bytes to which every buffer is aligned."""
    kernels: Sequence[Kernel] = ()
    build: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """compiler, flags and libraries of a release build, and how programs are linked; nothing where the platform can
    only be simulated."""
    headers: tuple[Path, ...] = ()
    """C headers that kernels and generated code include."""
    runtime: Mapping[str, Path] = field(default_factory=lambda: MappingProxyType({}))
    """Files and templates that go into every C project, by their place in it: build files, the example program."""
    language: Mapping[str, Path] = field(default_factory=lambda: MappingProxyType({}))
    """The same of C projects of language models; nothing where the platform has none for them."""
    operations: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Cycles of operations in loops that are printed from expressions, by kind; see `price.operations`."""
    fused: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """The same in what is fused behind kernels, where that was measured."""
    gvsoc: str = ""
    """What GVSoC calls the machine; "" where it has none."""
    qemu: Qemu | None = None
    """How programs run in QEMU, where they do."""
    code: str = ""
    """The memory of code, where a linker script has to know it."""
    layout: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Folders of the C project for the network's `header` and its `source` files, where they have some."""
    whole: bool = False
    """Whether layers run on whole tensors where these fit the memory of the cores. Callers see one arena, also where
    they do not and layers run tile by tile; all constants are read in place."""
    copies_joined: int = 1
    """How many turns of the innermost loop of a nest that only copies the compiler is asked to join."""
    estimate: Estimate | None = None
    """How many cycles a unit of time may be, where that is not the cycle."""
    calibrations: Calibrations = field(default_factory=lambda: MappingProxyType({}))
    """What was measured of kernels whose headers have terms."""
    own_calibrations: Calibrations = field(default_factory=lambda: MappingProxyType({}))
    """What was measured of times and of starts of engines beside the cores, by the names of these parts."""
    measured_as: Target | None = None
    """The machine on which that was measured, where it is another one."""
    allowed: tuple[str, ...] = ()
    """What may change numbers, as a user allows it; see `PERMISSIONS`."""

    @property
    def cores(self) -> Engine:
        """The engine that runs programs."""
        return next(iter(self.engines.values()))

    @property
    def driver(self) -> int:
        """Which hart of the cores' group drives DMAs and other engines."""
        return (self.cores.drives or 0) if isinstance(self.cores, Cores) else 0

    @property
    def driver_computes(self) -> bool:
        """Whether the simulated hart that drives is one of those that compute, and does one after the other."""
        return bool(self.timings) and self.driver < self.cores.count

    @property
    def in_place(self) -> str:
        """The memory whose constants an engine reads where they are; "" where there is none."""
        return next((name for engine in self.engines.values() for name in engine.reads), "")

    def kernels_of(self, op: str) -> Sequence[Kernel]:
        """The kernels for an operator."""
        every = self.kernels
        return every.of(op) if isinstance(every, Kernels) else [kernel for kernel in every if kernel.op == op]

    def beside(self, kernel: Kernel | None) -> Device | None:
        """The engine of a kernel, where that is a device: cores start it and go on."""
        engine = self.engines.get(kernel.engine) if kernel is not None else None
        return engine if isinstance(engine, Device) else None

    def device(self, engine: str) -> DeviceModel | None:
        """The device that an engine is, as the simulator runs it by default."""
        found = self.engines[engine]
        name = found.device if isinstance(found, Device) else ""
        return next(iter(self.timings.values())).devices[name] if name else None

    def others_on_unit(self, instructions: str, working: int | None = None) -> int:
        """How many cores a core shares its unit for such instructions with, at most, as the simulator runs them.

        The first cores are those that are `working`, and they take turns with units.
        """
        timing = next(iter(self.timings.values()), None)
        harts = timing.harts.get(self.cores.name) if timing is not None else None
        counts = [unit.count for unit in harts.units if instructions in unit.instructions] if harts is not None else []
        cores = self.cores.count if working is None else working
        return max((max(-(-cores // count) - 1, 0) for count in counts), default=0)


class TargetFile(MachineFile, frozen=True, kw_only=True):
    """What a platform.yaml says besides."""

    channels_last: Flag
    """Whether convolutions and pools want the channel axis last."""
    alignment: Annotated[int, Meta(ge=1, le=4096)]
    """Bytes to which every buffer is aligned."""
    kernels: tuple[str, ...]
    """Folders of kernels, here or of a platform of Tilewright's (`generic/kernels`); a file takes the place of one of
    the same name in a later folder."""
    runtime: tuple[str, ...] | None = None
    """Folders of files and templates that go into every C project; `runtime` where nothing is said."""
    language: tuple[str, ...] = ()
    """Folders of further files and templates that go into C projects of language models."""
    build: Build | None = None
    """How code is built; nothing where programs are only simulated."""
    layout: Layout | None = None
    """Folders of the C project, where it has some."""
    code: str = ""
    """The memory of code, where a linker script has to know it."""
    whole: Flag = False
    """Whether layers run on whole tensors where these fit the memory of the cores."""
    operations: Mapping[str, Signed] = {}
    """Cycles of operations in loops that are printed from expressions, by kind."""
    copies_joined: Annotated[int, Meta(ge=1, le=16)] = 1
    """How many turns of the innermost loop of a nest that only copies the compiler is asked to join (gcc)."""
    estimate: Estimate | None = None
    """How many cycles a unit of time may be, where that is not the cycle."""
    gvsoc: str = ""
    """What GVSoC calls the machine."""
    qemu: Qemu | None = None
    """How programs run in QEMU, where they do."""
    measured_as: str = ""
    """The variant whose calibration this one takes, because it runs the same instructions."""
    variants: Mapping[str, Mapping[str, Any]] = {}
    """Machines of one family: what each has besides, or in place of, what all have in common."""


DESCRIPTION = "platform.yaml"
"""The file of a platform's folder that describes it."""


def platform_names() -> tuple[str, ...]:
    """The platforms that come with the package; one that has variants is named by these."""
    found = (_variants(path) or (path.parent.name,) for path in PLATFORMS.glob(f"*/{DESCRIPTION}"))
    return tuple(sorted(name for names in found for name in names))


def described_platforms() -> tuple[Target, ...]:
    """The platforms that come with the package, without what was measured on them: a list of them tells no times."""
    sources = [Source(path, "bad-platform") for path in PLATFORMS.glob(f"*/{DESCRIPTION}")]
    found = (_described(_data(each, name), each) for each in sources for name in _variants(each.path) or ("",))
    return tuple(sorted(found, key=lambda platform: platform.name))


class Sizes(Struct, frozen=True):
    """What a user changes of a platform: bytes of memories, the home memory, cores, and engines that are not used."""

    memories: Mapping[str, int] = field(default_factory=dict[str, int])
    home: str = ""
    cores: int = 0
    without: tuple[str, ...] = ()


def resize(platform: Target, sizes: Sizes) -> Target:
    """The platform with other sizes; a memory or engine that it does not have is an error."""
    memories, engines = dict(platform.memories), dict(platform.engines)
    for name in [*sizes.memories, *([sizes.home] if sizes.home else [])]:
        if name not in memories:
            raise TilewrightError(
                "unknown-memory",
                f"platform '{platform.name}' has no memory '{name}'",
                reasons=[f"it has {', '.join(memories)}"],
                help="leave the option away, or choose another platform with --platform",
            )
    memories |= {name: structs.replace(memories[name], bytes=size) for name, size in sizes.memories.items()}
    if sizes.cores > platform.cores.count and platform.qemu:
        raise TilewrightError(
            "bad-argument",
            f"a machine of platform '{platform.name}' has {platform.cores.count} core, not {sizes.cores}",
            help="leave --cores away, or choose another platform with --platform",
        )
    if sizes.cores:
        engines[platform.cores.name] = structs.replace(platform.cores, count=sizes.cores)
    for name in sizes.without:
        others = [other for other in platform.engines if other != platform.cores.name]
        if name not in others:
            raise TilewrightError(
                "unknown-engine",
                f"platform '{platform.name}' has no engine '{name}' that it could do without",
                reasons=[f"besides its cores it has {', '.join(others) or 'none'}"],
                help="leave the option away, or choose another platform with --platform",
            )
        engines.pop(name, None)
    return replace(
        platform,
        memories=MappingProxyType(memories),
        engines=MappingProxyType(engines),
        home=sizes.home or platform.home,
    )


def load_platform(name_or_folder: str | Path, extra_kernels: tuple[Path, ...] = ()) -> Target:
    """A platform by name or by the folder of a user's own; `extra_kernels` are searched before its own.

    A variant is named by itself, or behind the folder of a user's own: `folder/variant`.
    """
    folder, variant = _find(name_or_folder)
    source = Source(folder / DESCRIPTION, "bad-platform")
    variants = _variants(source.path)
    if variants and not variant:
        raise TilewrightError(
            "unknown-platform",
            f"platform '{name_or_folder}' is several machines",
            reasons=[f"it has the variants {', '.join(variants)}"],
            help="name one of these",
        )
    if extra_kernels or folder.parent != PLATFORMS:
        return _loaded(source, variant, variants, extra_kernels)
    return _shipped(source, variant, variants, (_written(source.path), _written(folder / FILE)))


@lru_cache(maxsize=64)
def _shipped(source: Source, variant: str, variants: tuple[str, ...], _stamps: tuple[int, int]) -> Target:
    """A platform that comes with the package: its kernels stay as they are, so each is parsed once in a process."""
    return _loaded(source, variant, variants)


def _written(path: Path) -> int:
    """When a file was written last; 0 where there is none."""
    return path.stat().st_mtime_ns if is_file(path) else 0


def _loaded(source: Source, variant: str, variants: tuple[str, ...], extra_kernels: tuple[Path, ...] = ()) -> Target:
    """A platform with what was measured on it."""
    data = _data(source, variant)
    found, like = _described(data, source, extra_kernels), mapping(data).get("measured_as")
    if not like:
        return _measured(found, extra_kernels)
    if like not in variants:
        raise source.wrong("measured_as", f"there is no variant '{like}'")
    other = _described(_data(source, str(like)), source, extra_kernels)
    return replace(_measured(found, extra_kernels, other), measured_as=_measured(other, extra_kernels))


def _find(name: str | Path) -> tuple[Path, str]:
    """The folder of a platform, and the variant, or ""."""
    given, known = Path(name), sorted(PLATFORMS.glob(f"*/{DESCRIPTION}"))
    for folder in (given, PLATFORMS / str(name)):
        if is_file(folder / DESCRIPTION):
            # A family may have the name of one of its own.
            return folder, folder.name if folder.name in _variants(folder / DESCRIPTION) else ""
    for path in (given.parent / DESCRIPTION, *known):
        if is_file(path) and given.name in _variants(path):
            return path.parent, given.name
    raise TilewrightError(
        "unknown-platform",
        f"there is no platform '{name}'",
        reasons=[f"known: {', '.join(platform_names())}"],
        help="name one of these, or a folder that holds a platform.yaml",
    )


def _variants(path: Path) -> tuple[str, ...]:
    data = read_yaml(path, "bad-platform")
    if "variants" not in mapping(data):
        return ()
    return tuple(read(Variants, {"variants": mapping(data)["variants"]}, Source(path, "bad-platform")).variants)


class Variants(Part, frozen=True):
    """The part of a description that is read first."""

    variants: Mapping[str, Mapping[str, Any]]


def _data(source: Source, variant: str) -> object:
    """What a file says; of one variant, what it says itself, then what all have in common."""
    data = read_yaml(source.path, source.code)
    if variant:
        common = {key: value for key, value in mapping(data).items() if key != "variants"}
        data = merged(common, {"name": variant, **mapping(data)["variants"][variant]})
    return renewed(data)


def _described(data: object, source: Source, extra_kernels: tuple[Path, ...] = ()) -> Target:
    """A platform as its description says it."""
    file, folder = read(TargetFile, data, source), source.path.parent
    folders = (*extra_kernels, *(_place(folder, name) for name in file.kernels))
    for place in folders:
        if not is_folder(place):
            raise source.wrong("kernels", f"folder '{place}' does not exist")
    machine = machine_values(mapping(data), file, file.name or folder.resolve().name, source)
    engines: Mapping[str, object] = machine["engines"]
    for name, engine in engines.items():
        if not isinstance(engine, Engine):
            raise source.wrong(
                f"engines.{name}.kind", "an array is for the cost model; kernels drive cores and devices"
            )
    if file.alignment & (file.alignment - 1):
        raise source.wrong("alignment", f"{file.alignment} is no power of two")
    _check_copies(machine, source)
    if file.code and file.code not in file.memories:
        raise source.wrong("code", f"'{file.code}' is not among memories ({', '.join(file.memories)})")
    files = kernel_files(folders)
    cores = next((name for name, engine in engines.items() if isinstance(engine, Cores)), ANY_CORES)
    return Target(
        **machine,
        folder=folder,
        channels_last=bool(file.channels_last),
        alignment=file.alignment,
        kernels=Kernels(files, MappingProxyType({ANY_CORES: cores})),
        build=MappingProxyType(_build(file.build) if file.build else {}),
        headers=first_of_each_name(path for place in folders for path in files_of(place, "*.h")),
        runtime=(runtime := _runtime("runtime", file.runtime, folder, source)),
        language={**runtime, **_runtime("language", file.language, folder, source)} if file.language else {},
        operations=file.operations,
        gvsoc=file.gvsoc,
        qemu=file.qemu,
        code=file.code,
        layout=structs.asdict(file.layout) if file.layout else {},
        whole=bool(file.whole),
        copies_joined=file.copies_joined,
        estimate=file.estimate,
    )


def _measured(described: Target, extra_kernels: tuple[Path, ...], other: Target | None = None) -> Target:
    """A platform with what was measured on it, or on an `other` one that runs the same instructions."""
    kernels = described.kernels
    assert isinstance(kernels, Kernels)
    calibrations = read_calibrations((other or described).name, described.folder, extra_kernels, kernels.files)
    own = read_own(described.name, described.folder)
    times = {**described.operations, **measured(calibrations)}
    found = replace(
        described,
        kernels=kernels.measured({name: calibration.terms for name, calibration in calibrations.items()}),
        operations=MappingProxyType({}),
        calibrations=calibrations,
        own_calibrations=own,
    )
    # Nothing where nothing was measured, so that operations of loop nests have their usual cycles.
    found = with_times(found, {**_code_lines(found), **times} if times else {})
    found = replace(found, fused=behind(calibrations, found.operations))
    return with_times(found, times_of_own(own))


def _check_copies(machine: Mapping[str, Any], source: Source) -> None:
    """Tiles are copied to the cores' memory, and parts of them within it."""
    near = next(iter(machine["engines"].values())).memory
    ends = [{*link.between} for link in machine["links"].values()]
    if {near} not in ends and (machine["home"] not in ("", near) or any(near in pair for pair in ends)):
        raise source.wrong(
            "links",
            f"nothing copies within {near}, and parts of tiles have to be; "
            f"where the cores do that, say 'local: {{between: [{near}, {near}], by_cores: true, ...}}'",
        )


def _code_lines(platform: Target) -> dict[str, float]:
    """Cycles of a line of code from memory, and the cache of code that all cores share, as the simulator has them."""
    timing = next(iter(platform.timings.values()), None)
    if timing is None or platform.cores.name not in timing.harts:
        return {}
    fetch = timing.harts[platform.cores.name].fetch
    # It is missed in the cache of a core, then in the shared one.
    line = 2 * fetch["refill_cycles"] + fetch["memory_cycles"]
    return {"line": line, "sets": fetch["shared_banks"] * fetch["shared_sets"], "ways": fetch["shared_ways"]}


def with_times(platform: Target, times: Mapping[str, float]) -> Target:
    """A platform with other cycles: of operations, or of engines and links by their names, such as `cluster.fork`."""
    engines, links, operations = dict(platform.engines), dict(platform.links), dict(platform.operations)
    for name, time in times.items():
        part, _, key = name.partition(".")
        if key and part in engines:
            engines[part] = structs.replace(engines[part], **{key: time})
        elif key and part in links:
            links[part] = structs.replace(links[part], **{key: time})
        else:
            operations[name] = time
    made = (MappingProxyType(engines), MappingProxyType(links), MappingProxyType(operations))
    return replace(platform, engines=made[0], links=made[1], operations=made[2])


def _place(folder: Path, name: str) -> Path:
    """A folder that a platform names: below its own, or one of a platform that comes with Tilewright."""
    shipped = PLATFORMS / name
    return shipped if is_folder(shipped) and not is_folder(folder / name) else folder / name


def _build(build: Build) -> dict[str, str]:
    """What builds, with all flags of the compiler in one."""
    found = cast("dict[str, str]", structs.asdict(build))
    found["flags"] = " ".join(part for part in (found.pop("machine"), build.flags) if part)
    return found


ANY_CORES = "cpu"
"""The engine of kernels in plain C: the platform's cores, whatever their name."""


def _runtime(key: str, named: Sequence[str] | None, folder: Path, source: Source) -> Mapping[str, Path]:
    """The files of all runtime folders; of those with the same name, the one in the folder named first."""
    places = [_place(folder, name) for name in (("runtime",) if named is None else named)]
    for place in places:
        if named is not None and not is_folder(place):
            raise source.wrong(key, f"folder '{place}' does not exist")
    files = {str(p.relative_to(place)): p for place in reversed(places) for p in place.rglob("*") if p.is_file()}
    return MappingProxyType({name: files[name] for name in sorted(files)})
