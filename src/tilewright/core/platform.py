"""Platforms: a folder with `platform.yaml`, kernels and a runtime; plain data, validated on load."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from tilewright.core.calibration import Calibrations, measured, read_calibrations
from tilewright.core.descriptions import read_yaml
from tilewright.core.kernel import Kernel, load_kernels
from tilewright.core.machine import DeviceModel, SimulatedMachine, simulated_machines
from tilewright.core.qemu import Qemu, read_qemu
from tilewright.core.reader import MOST_NUMBER, Reader
from tilewright.core.terms import weighted
from tilewright.errors import TilewrightError


@dataclass(frozen=True)
class Memory:
    """A memory of the machine; `bytes` None means that it is as large as needed."""

    name: str
    bytes: int | None
    reserved: int = 0
    """More bytes of it that are not for networks: stacks and the like."""
    section: str = ""
    """The section of the program that goes there; "" where constants go with all that is only read."""
    base: int | None = None
    """Its first address, where a linker script has to know it."""
    ports: bool = False
    """Whether it is the caller's: inputs and outputs of networks are there, and nothing else may be."""
    length: int = 0
    """Bytes that the machine has of it, however few a network may use."""


@dataclass(frozen=True)
class Engine:
    """Something that computes: a number of cores, or an array."""

    name: str
    kind: str
    count: int
    memory: str
    reads: tuple[str, ...] = ()
    """Other memories that it reads in place."""
    fork: int = 0
    """Cycles to start work on all cores and wait for it; of an array, to describe a job."""
    begin: int = 0
    """Cycles more of a kernel with a hook when it first runs in a group: its code comes into the caches."""
    peak: float = 0.0
    """Multiply-accumulates of bytes that one core, or the array, does in a cycle at best; 0 where nobody says."""
    turn: int = 0
    """Cycles of an array between jobs of two steps, besides those to describe one."""
    uneven: int = 0
    """Cycles more between jobs of several loops where tiles differ in size."""
    queue: int = 0
    """Cycles that code takes more to come into caches if it queues a step's jobs while those of another one run."""
    slows: float = 0.0
    """Cycles that cores wait for memory in each cycle of an array beside them."""
    device: str = ""
    """The simulated device that it is, whose timing its jobs have."""


@dataclass(frozen=True)
class Dma:
    """Something that copies between two memories, both ways, while engines work."""

    name: str
    between: tuple[str, str]
    setup: int
    """Cycles before the first byte of a transfer."""
    bytes_per_cycle: float
    rank: int
    """Dimensions of one transfer; loops around it do the rest."""
    run: float = 0.0
    """Cycles that a run of bytes takes at least, however short."""
    issue: int = 0
    """Cycles of a core to start a transfer and to wait for it, in which it computes nothing."""
    duplex: bool = False
    """Whether it copies both ways at once."""
    through: str = ""
    """The memory that bytes pass on their way, where two DMAs do it in turn; it lends as many bytes as the engine's
    memory has."""
    by_cores: bool = False
    """Whether it is a core that copies, so that nothing is computed meanwhile."""
    row: float = 0.0
    """Cycles of each row of a transfer besides its bytes."""
    latency: int = 0
    """Cycles from a request until it begins, and until its end is known, where another core drives it; what runs goes
    on meanwhile."""
    request: int = 0
    """Cycles between two transfers at least, as that core takes to start one."""
    passing: int = 0
    """Cycles to hand bytes from one of two DMAs to the other."""
    cold: int = 0
    """Cycles of code around the first transfer of a group, which is in no cache."""
    cold_start: int = 0
    """Cycles of further such code at the first transfer of all."""
    again: int = 0
    """Cycles of such code at each step, to start transfers and to hand them on, where several nodes run in between and
    take its places in the caches."""


@dataclass(frozen=True)
class Estimate:
    """Cycles of an instruction, on machines whose simulator counts instructions only."""

    base: float
    more: Mapping[str, tuple[float, float]]
    """By cause: the share of instructions that it concerns, and how many cycles more these take."""

    @property
    def each(self) -> float:
        return self.base + sum(share * cycles for share, cycles in self.more.values())


CYCLES = "cycles"
"""The unit of time of most machines."""


@dataclass(frozen=True)
class Platform:
    """A machine: memories, engines, the kernels written for it, and how code for it is built."""

    name: str
    summary: str
    folder: Path
    channels_last: bool
    """Whether convolutions and pools want the channel axis last."""
    alignment: int
    """Bytes to which every buffer is aligned."""
    memories: Mapping[str, Memory]
    engines: Mapping[str, Engine]
    kernels: tuple[Kernel, ...]
    build: Mapping[str, str]
    """compiler, flags and libraries of a release build, and how programs are linked; nothing where the platform can
    only be simulated."""

    headers: tuple[Path, ...]
    """C headers that kernels and generated code include."""
    runtime: Mapping[str, Path]
    """Files and templates that go into every C project, by their place in it: build files, the example program."""
    dmas: Mapping[str, Dma] = field(default_factory=lambda: MappingProxyType({}))
    home: str = ""
    """The memory of inputs, outputs and weights, on machines whose engine works in another one."""
    operations: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Cycles of operations in loops that are printed from expressions, by kind; see `price.operations`."""
    fused: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """The same in what is fused behind kernels."""
    machines: Mapping[str, SimulatedMachine] = field(default_factory=lambda: MappingProxyType({}))
    """The machine as the simulator runs it, by timing, the default first; none where there is no simulator for it."""
    gvsoc: str = ""
    """What GVSoC calls the machine; "" where it has none."""
    qemu: Qemu | None = None
    """How programs run in QEMU, where they do."""
    unit: str = CYCLES
    """What times are counted in."""
    code: str = ""
    """The memory of code, where a linker script has to know it."""
    layout: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Folders of the C project for the network's `header` and its `source` files, where they have some."""
    whole: bool = False
    """Whether layers run on whole tensors where these fit the memory of the cores. Callers see one arena, also where
    they do not and layers run tile by tile; all constants are read in place."""
    estimate: Estimate | None = None
    """How many cycles a unit of time may be, where that is not the cycle."""
    calibrations: Calibrations = field(default_factory=lambda: MappingProxyType({}))
    """What was measured of kernels whose headers have terms."""

    @property
    def cores(self) -> Engine:
        """The engine that runs programs."""
        return next(iter(self.engines.values()))

    @property
    def in_place(self) -> str:
        """The memory whose constants an engine reads where they are; "" where there is none."""
        return next((name for engine in self.engines.values() for name in engine.reads), "")

    def beside(self, kernel: Kernel | None) -> Engine | None:
        """The engine of a kernel, where that is not the cores: they start it and go on."""
        engine = self.engines.get(kernel.engine) if kernel is not None else None
        return None if engine is None or engine == self.cores else engine

    def device(self, engine: str) -> DeviceModel | None:
        """The device that an engine is, as the simulator runs it by default."""
        name = self.engines[engine].device
        return next(iter(self.machines.values())).devices[name] if name else None

    def dma(self, source: str, target: str) -> Dma | None:
        """What copies between two memories."""
        return next((d for d in self.dmas.values() if {*d.between} == {source, target}), None)


MOST_CORES, MOST_ALIGNMENT, MOST_RANK = 4096, 4096, 16
PLATFORMS = Path(__file__).parent.parent / "platforms"
DEFAULT_PLATFORM = "generic"


def platform_names() -> tuple[str, ...]:
    """The platforms that come with the package; one that has variants is named by these."""
    found = (_variants(path) or (path.parent.name,) for path in PLATFORMS.glob("*/platform.yaml"))
    return tuple(sorted(name for names in found for name in names))


@dataclass(frozen=True)
class Sizes:
    """What a user changes of a platform: bytes of memories, the home memory, cores, and engines that are not used."""

    memories: Mapping[str, int] = field(default_factory=dict[str, int])
    home: str = ""
    cores: int = 0
    without: tuple[str, ...] = ()


def resize(platform: Platform, sizes: Sizes) -> Platform:
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
    memories |= {name: replace(memories[name], bytes=size) for name, size in sizes.memories.items()}
    if sizes.cores > platform.cores.count and platform.qemu:
        raise TilewrightError(
            "bad-argument",
            f"a machine of platform '{platform.name}' has {platform.cores.count} core, not {sizes.cores}",
            help="leave --cores away, or choose another platform with --platform",
        )
    if sizes.cores:
        engines[platform.cores.name] = replace(platform.cores, count=sizes.cores)
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


def load_platform(name_or_folder: str | Path, extra_kernels: tuple[Path, ...] = ()) -> Platform:
    """A platform by name or by the folder of a user's own; `extra_kernels` are searched before its own.

    A variant is named by itself, or behind the folder of a user's own: `folder/variant`.
    """
    folder, variant = _find(name_or_folder)
    path = folder / "platform.yaml"
    data = read_yaml(path, "bad-platform")
    if variants := _variants(path):
        if not variant:
            raise TilewrightError(
                "unknown-platform",
                f"platform '{name_or_folder}' is several machines",
                reasons=[f"it has the variants {', '.join(variants)}"],
                help="name one of these",
            )
        data = _varied(cast("dict[str, Any]", data), variant)
    return _platform(Reader(path, data), folder, extra_kernels)


def _find(name: str | Path) -> tuple[Path, str]:
    """The folder of a platform, and the variant, or ""."""
    given, known = Path(name), sorted(PLATFORMS.glob("*/platform.yaml"))
    for folder in (given, PLATFORMS / str(name)):
        if (folder / "platform.yaml").is_file():
            return folder, ""
    for path in (given.parent / "platform.yaml", *known):
        if path.is_file() and given.name in _variants(path):
            return path.parent, given.name
    raise TilewrightError(
        "unknown-platform",
        f"there is no platform '{name}'",
        reasons=[f"known: {', '.join(platform_names())}"],
        help="name one of these, or a folder that holds a platform.yaml",
    )


def _variants(path: Path) -> tuple[str, ...]:
    data = read_yaml(path, "bad-platform")
    if not isinstance(data, dict) or "variants" not in data:
        return ()
    reader = Reader(path, cast("dict[str, Any]", data))
    return tuple(reader.parts("variants"))


def _varied(data: dict[str, Any], variant: str) -> dict[str, Any]:
    """The description of one variant: what it says itself, then what all have in common."""
    common = {key: value for key, value in data.items() if key != "variants"}
    return _merged(common, {"name": variant, **data["variants"][variant]})


def _merged(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**common, **own}
    for key, value in own.items():
        if isinstance(value, dict) and isinstance(common.get(key), dict):
            merged[key] = _merged(common[key], cast("dict[str, Any]", value))
    return merged


def _platform(reader: Reader, folder: Path, extra_kernels: tuple[Path, ...]) -> Platform:
    folders = (*extra_kernels, *(folder / name for name in reader.strings("kernels")))
    for place in folders:
        if not place.is_dir():
            raise reader.wrong("kernels", f"folder '{place}' does not exist")
    memories = {key: _memory(key, part) for key, part in reader.parts("memories").items()}
    engines: dict[str, Engine] = {}
    for key, part in reader.parts("engines").items():
        engines[key] = Engine(
            key,
            part.text("kind"),
            part.integer("count", 1, MOST_CORES),
            part.text("memory"),
            tuple(part.strings("reads") if part.has("reads") else ()),
            part.optional_int("fork") or 0,
            part.optional_int("begin") or 0,
            part.number("peak") if part.has("peak") else 0.0,
            part.optional_int("turn") or 0,
            part.optional_int("uneven") or 0,
            part.optional_int("queue") or 0,
            part.number("slows") if part.has("slows") else 0.0,
            part.text("device") if part.has("device") else "",
        )
        for name in (engines[key].memory, *engines[key].reads):
            if name not in memories:
                raise part.wrong("memory", f"'{name}' is not among memories ({', '.join(memories)})")
        part.finish()
    dmas = {
        key: _dma(key, part, memories) for key, part in (reader.parts("dmas") if reader.has("dmas") else {}).items()
    }
    home = reader.text("home") if reader.has("home") else ""
    if not engines:
        raise reader.wrong("engines", "must name at least one engine")
    near = next(iter(engines.values())).memory
    if home and home != near and not any({home, near} == {*dma.between} for dma in dmas.values()):
        raise reader.wrong("home", f"'{home}' is not a memory with a DMA between it and {near}")
    kernels = [_assigned(kernel, engines) for kernel in _kernels(folders)]
    calibrations = read_calibrations(reader.text("name"), folder, extra_kernels, kernels)
    platform = Platform(
        reader.text("name"),
        reader.text("summary"),
        folder,
        bool(reader.integer("channels_last")),
        reader.integer("alignment", 1, MOST_ALIGNMENT),
        MappingProxyType(memories),
        MappingProxyType(engines),
        _timed(reader, folder, kernels, calibrations),
        MappingProxyType(_build(reader)),
        tuple(path for place in folders for path in sorted(place.glob("*.h"))),
        _runtime(reader, folder),
        MappingProxyType(dmas),
        home,
        MappingProxyType(_numbers(reader, "operations") | measured(calibrations)),
        MappingProxyType(_numbers(reader, "fused")),
        MappingProxyType(
            simulated_machines(reader, {m.name: m.bytes and m.bytes + m.reserved for m in memories.values()})
        ),
        reader.text("gvsoc") if reader.has("gvsoc") else "",
        read_qemu(reader.part("qemu")) if reader.has("qemu") else None,
        reader.text("unit") if reader.has("unit") else CYCLES,
        reader.text("code") if reader.has("code") else "",
        MappingProxyType(_layout(reader.part("layout"))) if reader.has("layout") else MappingProxyType({}),
        bool(reader.integer("whole")) if reader.has("whole") else False,
        _estimate(reader.part("estimate")) if reader.has("estimate") else None,
        calibrations,
    )
    if platform.code and platform.code not in memories:
        raise reader.wrong("code", f"'{platform.code}' is not among memories ({', '.join(memories)})")
    known = [name for machine in platform.machines.values() for name in machine.devices]
    for engine in engines.values():
        if engine.device and engine.device not in known:
            raise reader.wrong(f"engines.{engine.name}.device", f"the simulator has no device '{engine.device}'")
    reader.finish()
    return platform


def _kernels(folders: Iterable[Path]) -> tuple[Kernel, ...]:
    """Those of all folders; a file takes the place of one of the same name in a later folder."""
    found: dict[str, Kernel] = {}
    # By the same path from wherever they are named, so that each file is read once.
    for kernel in (kernel for place in folders for kernel in load_kernels(place.resolve())):
        found.setdefault(kernel.path.name, kernel)
    return tuple(found.values())


NONE: Mapping[str, str] = MappingProxyType({})
OTHERS = "others"
"""In place of a kernel's name: for those that are not named, how many times the cycles of their headers they take."""


def _timed(reader: Reader, folder: Path, kernels: Iterable[Kernel], calibrations: Calibrations) -> tuple[Kernel, ...]:
    """Kernels with the cycles that they take here; of the platform's own, their headers say so."""
    found = {kernel.path.name: kernel for kernel in kernels}
    given = reader.formulas("cycles") if reader.has("cycles") else {}
    times, own_folder = given.pop(OTHERS, "1"), folder.resolve()
    for name in given.keys() - found.keys():
        raise reader.wrong("cycles", f"there is no kernel '{name}'")
    for name, kernel in found.items():
        if name in calibrations:
            found[name] = replace(kernel, cycles=weighted(kernel.terms, calibrations[name].terms))
        elif not kernel.path.is_relative_to(own_folder):
            own = kernel.cycles if times == "1" else f"{times}*({kernel.cycles})"
            found[name] = replace(
                kernel, cycles=given.get(name, own), terms=kernel.terms if name not in given else NONE
            )
    return tuple(found.values())


def _numbers(reader: Reader, key: str) -> dict[str, float]:
    if not reader.has(key):
        return {}
    part = reader.part(key)
    # Corrections of other numbers may be negative.
    return {name: part.number(name, -MOST_NUMBER) for name in part.keys}


def _build(reader: Reader) -> dict[str, str]:
    """How code is built; `machine` are the flags that name a core, so that variants need not repeat the others."""
    if not reader.has("build"):
        return {}
    part = reader.part("build")
    found = {key: part.text(key) for key in (*part.keys, "compiler", "flags", "libraries")}
    found["flags"] = " ".join(part for part in (found.pop("machine", ""), found.get("flags", "")) if part)
    return found


def _layout(part: Reader) -> dict[str, str]:
    layout = {key: part.text(key) for key in ("header", "source")}
    part.finish()
    return layout


def _estimate(part: Reader) -> Estimate:
    more = {name: (cause.number("share"), cause.number("cycles")) for name, cause in part.parts("more").items()}
    return Estimate(part.number("base"), MappingProxyType(more))


def _memory(name: str, part: Reader) -> Memory:
    size, reserved = part.optional_int("bytes"), part.optional_int("reserved") or 0
    if size is not None and reserved > size:
        raise part.wrong("reserved", f"must not be more than its {size} bytes, found {reserved}")
    section = part.text("section") if part.has("section") else ""
    base, ports = part.optional_int("base"), bool(part.optional_int("ports"))
    part.finish()
    return Memory(name, size if size is None else size - reserved, reserved, section, base, ports, size or 0)


ANY_CORES = "cpu"
"""The engine of kernels in plain C: the platform's cores, whatever their name."""


def _assigned(kernel: Kernel, engines: Mapping[str, Engine]) -> Kernel:
    cores = next((name for name, engine in engines.items() if engine.kind == "cores"), ANY_CORES)
    return replace(kernel, engine=cores) if kernel.engine == ANY_CORES else kernel


def _runtime(reader: Reader, folder: Path) -> Mapping[str, Path]:
    """The files of all runtime folders; of those with the same name, the one in the folder named first."""
    places = [folder / name for name in reader.strings("runtime")] if reader.has("runtime") else [folder / "runtime"]
    for place in places:
        if reader.has("runtime") and not place.is_dir():
            raise reader.wrong("runtime", f"folder '{place}' does not exist")
    files = {str(p.relative_to(place)): p for place in reversed(places) for p in place.rglob("*") if p.is_file()}
    return MappingProxyType({name: files[name] for name in sorted(files)})


def _dma(name: str, part: Reader, memories: Mapping[str, Memory]) -> Dma:
    between = part.strings("between")
    if len(between) != 2 or any(memory not in memories for memory in between):
        raise part.wrong("between", f"must be two of {', '.join(memories)}, found {', '.join(between)}")
    dma = Dma(
        name,
        (between[0], between[1]),
        part.integer("setup"),
        part.number("bytes_per_cycle"),
        part.integer("rank", 1, MOST_RANK),
        part.number("run") if part.has("run") else 0.0,
        part.optional_int("issue") or 0,
        bool(part.optional_int("duplex")),
        part.text("through") if part.has("through") else "",
        bool(part.integer("by_cores")) if part.has("by_cores") else False,
        part.number("row") if part.has("row") else 0.0,
        *(part.optional_int(name) or 0 for name in ("latency", "request", "passing", "cold", "cold_start", "again")),
    )
    if dma.through and dma.through not in memories:
        raise part.wrong("through", f"'{dma.through}' is not among memories ({', '.join(memories)})")
    if not dma.bytes_per_cycle:
        raise part.wrong("bytes_per_cycle", "must be positive")
    part.finish()
    return dma
