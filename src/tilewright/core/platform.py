"""Platforms: a folder with `platform.yaml`, kernels and a runtime; plain data, validated on load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import yaml

from tilewright.core.kernel import Kernel, load_kernels
from tilewright.errors import TilewrightError


@dataclass(frozen=True)
class Memory:
    """A memory of the machine; `bytes` None means that it is as large as needed."""

    name: str
    bytes: int | None


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
    """Cycles to start work on all cores and wait for it."""


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
    """compiler, flags and libraries of a release build."""

    headers: tuple[Path, ...]
    """C headers that kernels and generated code include."""
    runtime: tuple[Path, ...]
    """Files and templates that go into every C project: build files, the example program, drivers."""
    dmas: Mapping[str, Dma] = field(default_factory=lambda: MappingProxyType({}))
    home: str = ""
    """The memory of inputs, outputs and weights, on machines whose engine works in another one."""

    def dma(self, source: str, target: str) -> Dma | None:
        """What copies between two memories."""
        return next((d for d in self.dmas.values() if {*d.between} == {source, target}), None)


PLATFORMS = Path(__file__).parent.parent / "platforms"
DEFAULT_PLATFORM = "generic"


def platform_names() -> tuple[str, ...]:
    """The platforms that come with the package."""
    return tuple(sorted(path.parent.name for path in PLATFORMS.glob("*/platform.yaml")))


@dataclass(frozen=True)
class Sizes:
    """What a user changes of a platform: bytes of memories, the home memory, the number of cores."""

    memories: Mapping[str, int] = field(default_factory=dict[str, int])
    home: str = ""
    cores: int = 0


def resize(platform: Platform, sizes: Sizes) -> Platform:
    """The platform with other sizes; a memory that it does not have is an error."""
    memories, engines = dict(platform.memories), dict(platform.engines)
    for name in [*sizes.memories, *([sizes.home] if sizes.home else [])]:
        if name not in memories:
            raise TilewrightError(
                "unknown-memory",
                f"platform '{platform.name}' has no memory '{name}'",
                reasons=[f"it has {', '.join(memories)}"],
                help="leave the option away, or choose another platform with --platform",
            )
    memories |= {name: Memory(name, size) for name, size in sizes.memories.items()}
    if sizes.cores:
        first = next(iter(engines.values()))
        engines[first.name] = replace(first, count=sizes.cores)
    return replace(
        platform,
        memories=MappingProxyType(memories),
        engines=MappingProxyType(engines),
        home=sizes.home or platform.home,
    )


def load_platform(name_or_folder: str | Path, extra_kernels: tuple[Path, ...] = ()) -> Platform:
    """A platform by name or by the folder of a user's own; `extra_kernels` are searched before its own."""
    folder = Path(name_or_folder)
    if not (folder / "platform.yaml").is_file():
        folder = PLATFORMS / str(name_or_folder)
    path = folder / "platform.yaml"
    if not path.is_file():
        raise TilewrightError(
            "unknown-platform",
            f"there is no platform '{name_or_folder}'",
            reasons=[f"known: {', '.join(platform_names())}"],
            help="name one of these, or a folder that holds a platform.yaml",
        )
    try:
        data: object = yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as reason:
        raise TilewrightError("bad-platform", f"'{path}' is not YAML", reasons=str(reason).splitlines()) from reason
    return _platform(_Reader(path, data), folder, extra_kernels)


def _platform(reader: _Reader, folder: Path, extra_kernels: tuple[Path, ...]) -> Platform:
    folders = (*extra_kernels, *(folder / name for name in reader.strings("kernels")))
    for place in folders:
        if not place.is_dir():
            raise reader.wrong("kernels", f"folder '{place}' does not exist")
    memories = {key: Memory(key, part.optional_int("bytes")) for key, part in reader.parts("memories").items()}
    engines: dict[str, Engine] = {}
    for key, part in reader.parts("engines").items():
        engines[key] = Engine(
            key,
            part.text("kind"),
            part.integer("count"),
            part.text("memory"),
            tuple(part.strings("reads") if part.has("reads") else ()),
            part.optional_int("fork") or 0,
        )
        for name in (engines[key].memory, *engines[key].reads):
            if name not in memories:
                raise part.wrong("memory", f"'{name}' is not among memories ({', '.join(memories)})")
        part.finish()
    dmas = {
        key: _dma(key, part, memories) for key, part in (reader.parts("dmas") if reader.has("dmas") else {}).items()
    }
    home = reader.text("home") if reader.has("home") else ""
    if home and home not in memories:
        raise reader.wrong("home", f"'{home}' is not among memories ({', '.join(memories)})")
    platform = Platform(
        reader.text("name"),
        reader.text("summary"),
        folder,
        bool(reader.integer("channels_last")),
        reader.integer("alignment"),
        MappingProxyType(memories),
        MappingProxyType(engines),
        tuple(kernel for place in folders for kernel in load_kernels(place)),
        MappingProxyType({key: str(value) for key, value in reader.mapping("build").items()}),
        tuple(path for place in folders for path in sorted(place.glob("*.h"))),
        _runtime(reader, folder),
        MappingProxyType(dmas),
        home,
    )
    reader.finish()
    return platform


def _runtime(reader: _Reader, folder: Path) -> tuple[Path, ...]:
    """The files of all runtime folders; of those with the same name, the one in the folder named first."""
    if not reader.has("runtime"):
        return tuple(sorted(path for path in (folder / "runtime").glob("*") if path.is_file()))
    places = [folder / name for name in reader.strings("runtime")]
    for place in places:
        if not place.is_dir():
            raise reader.wrong("runtime", f"folder '{place}' does not exist")
    files = {path.name: path for place in reversed(places) for path in place.glob("*") if path.is_file()}
    return tuple(files[name] for name in sorted(files))


def _dma(name: str, part: _Reader, memories: Mapping[str, Memory]) -> Dma:
    between = part.strings("between")
    if len(between) != 2 or any(memory not in memories for memory in between):
        raise part.wrong("between", f"must be two of {', '.join(memories)}, found {', '.join(between)}")
    dma = Dma(
        name,
        (between[0], between[1]),
        part.integer("setup"),
        part.number("bytes_per_cycle"),
        part.integer("rank"),
    )
    if dma.rank < 1 or dma.bytes_per_cycle <= 0:
        raise part.wrong("rank", "and bytes_per_cycle must be positive")
    part.finish()
    return dma


class _Reader:
    """Reads checked values out of a mapping and says the path of what is wrong."""

    def __init__(self, path: Path, data: object, prefix: str = "") -> None:
        self._path, self._prefix = path, prefix
        if not isinstance(data, dict):
            raise self.wrong("", "must be a mapping")
        self._data = cast("dict[str, Any]", data)
        self._seen: set[str] = set()

    def wrong(self, key: str, why: str) -> TilewrightError:
        where = ".".join(part for part in (self._prefix, key) if part)
        return TilewrightError(
            "bad-platform", f"{self._path.name} of '{self._path.parent.name}': {where or 'file'}: {why}"
        )

    def _get(self, key: str) -> Any:
        self._seen.add(key)
        if key not in self._data:
            raise self.wrong(key, "is missing")
        return self._data[key]

    def text(self, key: str) -> str:
        value = self._get(key)
        if not isinstance(value, str):
            raise self.wrong(key, f"must be text, found {value!r}")
        return value

    def integer(self, key: str) -> int:
        value = self._get(key)
        if not isinstance(value, int):
            raise self.wrong(key, f"must be a whole number, found {value!r}")
        return value

    def number(self, key: str) -> float:
        value = self._get(key)
        if not isinstance(value, (int, float)):
            raise self.wrong(key, f"must be a number, found {value!r}")
        return float(value)

    def has(self, key: str) -> bool:
        return key in self._data

    def optional_int(self, key: str) -> int | None:
        return self.integer(key) if key in self._data else None

    def strings(self, key: str) -> list[str]:
        value = self._get(key)
        if not isinstance(value, list) or not all(isinstance(v, str) for v in cast("list[Any]", value)):
            raise self.wrong(key, f"must be a list of names, found {value!r}")
        return cast("list[str]", value)

    def mapping(self, key: str) -> dict[str, Any]:
        value = self._get(key)
        if not isinstance(value, dict):
            raise self.wrong(key, "must be a mapping")
        return cast("dict[str, Any]", value)

    def parts(self, key: str) -> dict[str, _Reader]:
        prefix = f"{self._prefix}.{key}" if self._prefix else key
        return {name: _Reader(self._path, value or {}, f"{prefix}.{name}") for name, value in self.mapping(key).items()}

    def finish(self) -> None:
        unknown = sorted(set(self._data) - self._seen)
        if unknown:
            raise self.wrong(unknown[0], f"is not a known key (known: {', '.join(sorted(self._seen))})")
