"""What the texts of the command line mean: options for the compiler, each checked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tilewright.api.arrays import read_arrays
from tilewright.api.compiling import Options
from tilewright.cli.options import LARGEST, Allowing, BuildOptions, Code, NetworkOptions, Planning, Shape, whole_number
from tilewright.core.graph import Array
from tilewright.errors import TilewrightError
from tilewright.machine.permissions import allowed
from tilewright.machine.target import Sizes, Target, load_platform
from tilewright.plan.options import PlanOptions
from tilewright.price.copies import route

DMA = "--dma"


def options_of(
    network: NetworkOptions,
    code: Code,
    shape: Shape,
    planning: Planning,
    *,
    allowing: Allowing | None = None,
    build: BuildOptions | None = None,
    name: str = "network",
    dump_stages: Path | None = None,
) -> Options:
    """Options from command-line texts, each checked."""
    return Options(
        code.platform,
        name,
        *network_of(network),
        tuple(code.kernels),
        tuple(code.ops),
        dump_stages,
        _sizes(code.platform, shape, _needing_tiles(shape, planning.chosen, build)),
        planning.chosen,
        network.max_bytes,
        states_of(network),
        planning.measure,
        tuple(network.external_data),
        allowed(allowing.allow if allowing is not None else ()),
    )


def states_of(network: NetworkOptions) -> dict[str, str]:
    """Inputs that are states, with the outputs that are their new values."""
    found: dict[str, str] = {}
    for old, new in _pairs("--state", network.state):
        if found.setdefault(old, new) != new:
            raise TilewrightError(
                "bad-state", f"--state gives '{old}' two new values, '{found[old]}' and '{new}'", help="leave one away"
            )
    return found


def network_of(
    network: NetworkOptions,
) -> tuple[dict[str, int | tuple[int, int]], dict[str, str], dict[str, Array]]:
    """Extents, input types and constants that a network leaves open."""
    return (
        {key: _extent(key, value) for key, value in _pairs("--dim", network.dim)},
        dict(_pairs("--input-type", network.input_type)),
        {key: _constant(key, value) for key, value in _pairs("--constant", network.constant)},
    )


def _needing_tiles(shape: Shape, planning: PlanOptions, build: BuildOptions | None) -> list[str]:
    """Flags given that only mean something on machines whose cores have a memory of their own."""
    usual = PlanOptions()
    given = {
        "--home": bool(shape.home),
        "--cores": shape.cores is not None,
        "--without": bool(shape.without),
        "--buffers": planning.buffers != usual.buffers,
        "--fuse": planning.fuse != usual.fuse,
        "--overlap": planning.overlap != usual.overlap,
        "--max-extra-macs": planning.max_extra_macs != usual.max_extra_macs,
        DMA: build is not None and build.dma is not None,
    }
    return [flag for flag, there in given.items() if there]


def _sizes(name: str, shape: Shape, flags: Sequence[str]) -> Sizes:
    """What is changed of a machine; what it could not follow is an error, so nothing is ignored."""
    given = {"L1": shape.l1, "L2": shape.l2, "L3": shape.l3, "RAM": shape.ram, "FLASH": shape.flash}
    memories = {name: size for name, size in given.items() if size is not None}
    if not flags and shape.weight_memory is None:
        return Sizes(memories)
    platform = load_platform(name)
    if shape.weight_memory is not None:
        memories[_weight_memory(platform)] = shape.weight_memory
    for flag in flags:
        require_tiles(platform, flag)
    if DMA in flags:
        _require_host(platform)
    if shape.home in platform.memories:
        _check_home(platform, shape.home)
    return Sizes(memories, shape.home, shape.cores or 0, tuple(shape.without))


def require_tiles(platform: str | Target, flag: str) -> None:
    """An error where a flag means nothing, because the platform has one memory."""
    found = load_platform(platform) if isinstance(platform, str) else platform
    if not found.home:
        raise TilewrightError(
            "bad-argument",
            f"{flag} is for machines whose cores have a memory of their own, which '{found.name}' is not",
            help="leave the option away, or choose another platform with --platform; tilewright platforms lists them",
        )


def _require_host(platform: Target) -> None:
    """An error where this computer does not emulate the DMA of a platform, so that it cannot be told when to copy."""
    if platform.qemu or platform.timings:
        raise TilewrightError(
            "bad-argument",
            f"{DMA} is for machines emulated on this computer; programs of '{platform.name}' run in a simulator",
            help="leave the option away",
        )


def _check_home(platform: Target, home: str) -> None:
    near = platform.cores.memory
    possible = [name for name in platform.memories if name != near and route(platform, name)]
    if home not in possible:
        raise TilewrightError(
            "bad-argument",
            f"--home {home}: no DMA of '{platform.name}' leads from there to {near}, in which its cores compute",
            help=f"choose {' or '.join(possible)}",
        )


def _weight_memory(platform: Target) -> str:
    for engine in platform.engines.values():
        if engine.reads:
            return engine.reads[0]
    raise TilewrightError(
        "unknown-memory",
        f"platform '{platform.name}' has no memory that weights are read from in place",
        reasons=[f"it has {', '.join(platform.memories)}"],
        help="leave --weight-memory away, or choose another platform with --platform",
    )


def _pairs(flag: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not equals or not name or not value:
            raise TilewrightError("bad-argument", f"{flag} '{text}' is not NAME=VALUE", help="leave no blanks around =")
        pairs.append((name, value))
    return pairs


def _extent(name: str, text: str) -> int | tuple[int, int]:
    low, dots, high = text.partition("..")
    numbers = whole_number(low), whole_number(high) if dots else 0
    if numbers[0] is None or numbers[1] is None or (dots and numbers[0] > numbers[1]):
        raise TilewrightError(
            "bad-argument",
            f"--dim {name}={text}: '{text}' is not a whole number from 0 to {LARGEST}, or two of them like 1..256",
            help=f"such as --dim {name}=1",
        )
    return (numbers[0], numbers[1]) if dots else numbers[0]


def _constant(name: str, path: str) -> Array:
    arrays = read_arrays(Path(path))
    if len(arrays) != 1:
        raise TilewrightError(
            "bad-argument",
            f"--constant {name}={path}: the file must hold one array, not {len(arrays)}",
            help="write it with numpy.save",
        )
    return arrays[0]
