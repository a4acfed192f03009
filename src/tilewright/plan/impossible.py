"""Why a network does not fit a machine: which layer or tensors, which memory, and the smallest size that would do."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from tilewright.errors import TilewrightError
from tilewright.machine.target import Sizes, resize
from tilewright.plan.addresses.packing import round_up
from tilewright.plan.joint import NEVER, smallest
from tilewright.plan.levels import UNLIMITED, Levels, first_sources, levels_of
from tilewright.plan.menu import Menu
from tilewright.plan.network import Network, NodeRange
from tilewright.plan.options import PlanOptions

SHOWN = 8

Fits = Callable[[Network], bool]


def why_impossible(network: Network, options: PlanOptions, fits: Fits) -> TilewrightError:
    """The error for a network that does not fit; `fits` plans it on a machine with other sizes."""
    levels = levels_of(network)
    sources = first_sources(network, levels)
    menu = Menu(network, options, levels.capacity)
    needs = [smallest(menu, levels, sources, position) for position in range(len(network.steps))]
    if max(needs) > levels.capacity:
        return _together(_layer(menu, levels, needs, options, fits), network, levels, max(needs), options, fits)
    for memory in dict.fromkeys((network.platform.home, *levels.far, levels.near)):
        if fits(_resized(network, memory, UNLIMITED)):
            return _memory(network, levels, memory, fits)
    return TilewrightError(
        "does-not-fit",
        f"the network does not fit '{network.platform.name}', whichever one of its memories is enlarged",
        reasons=_contents(network, levels),
        help="enlarge several memories (--l1, --l2, --l3), or use a smaller network",
    )


def _together(
    error: TilewrightError, network: Network, levels: Levels, need: int, options: PlanOptions, fits: Fits
) -> TilewrightError:
    """The error, and what else is missing where a larger memory of the engine would not be enough."""
    if need >= NEVER:
        return error
    wide = _resized(network, levels.near, need)
    if fits(wide):
        return error
    if not levels.far:
        # There is one memory to enlarge, and this number is the larger one.
        return _memory(network, levels, levels.near, fits)
    more = why_impossible(wide, options, fits)
    what, reasons = f"{error.what}; {more.what}", [*error.reasons, *more.reasons]
    return TilewrightError(error.code, what, reasons=reasons, help=f"{error.help}; {more.help}")


def _resized(network: Network, memory: str, size: int) -> Network:
    return replace(network, platform=resize(network.platform, Sizes({memory: size})))


def _least(network: Network, memory: str, below: int, above: int, fits: Fits) -> int:
    """The smallest size that works, given one that does not and one that does."""
    unit = network.platform.alignment
    low, high = below // unit, above // unit
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(_resized(network, memory, middle * unit)) else (middle, high)
    return high * unit


def _layer(menu: Menu, levels: Levels, needs: list[int], options: PlanOptions, fits: Fits) -> TilewrightError:
    """One node alone needs more than the engine's memory."""
    network = menu.network
    unit = network.platform.alignment
    position = needs.index(max(needs))
    label, need = network.label(position), needs[position]
    if need >= NEVER:
        return TilewrightError(
            "does-not-fit",
            f"{label} cannot be cut into tiles on '{network.platform.name}'",
            help="run this network on another platform, or without this layer",
        )
    if need - unit > levels.capacity and fits(_resized(network, levels.near, need - unit)):
        need = _least(network, levels.near, levels.capacity, need - unit, fits)
    given = network.platform.memories[levels.near].bytes
    group = menu.front(NodeRange(position, position), levels.direct, first_sources(network, levels))[0].group
    reasons = [f"'{b.tensor}' takes {b.bytes * b.slots} bytes at its smallest tile" for b in group.buffers]
    scratch = sum(work.scratch_bytes * (network.engine.count if work.split else 1) for work in group.works)
    reasons += [f"scratch of the kernel takes {scratch} bytes"] if scratch else []
    reasons += [f"sums of its parts take {group.works[0].sums} bytes"] if group.works[0].sums else []
    fewer = "" if options.buffers < 2 else ", use --buffers 1"
    return TilewrightError(
        "does-not-fit",
        f"{label} needs at least {need} bytes of {levels.near}, {given} given",
        reasons=reasons,
        help=f"give --{levels.near.lower()} {need}{fewer}, or make the layer smaller",
    )


def _memory(network: Network, levels: Levels, memory: str, fits: Fits) -> TilewrightError:
    """All nodes run, but what lies between and around them does not fit."""
    unit = network.platform.alignment
    given = network.platform.memories[memory].bytes or 0
    enough = max(given, levels.occupied.get(memory, 0)) + unit
    while not fits(_resized(network, memory, enough)):
        given, enough = enough, enough * 2
    need = _least(network, memory, given, enough, fits)
    asked = network.platform.memories[memory].bytes or 0
    return TilewrightError(
        "does-not-fit",
        f"the network needs at least {need} bytes of {memory}, {asked} given",
        reasons=_contents(network, levels),
        help=f"give --{memory.lower()} {need}, or use a smaller network",
    )


def _contents(network: Network, levels: Levels) -> list[str]:
    graph, align = network.graph, network.platform.alignment
    ports = sum(round_up(graph.types[name].bytes, align) for name in (*graph.fed, *graph.given))
    constants = sum(size for (tensor, _), size in network.constants.items() if tensor not in levels.direct)
    lines = [
        f"inputs and outputs take {ports} bytes of {network.platform.home}",
        f"constants take {constants} bytes of {network.platform.home}",
    ]
    largest = sorted(network.lives, key=lambda name: (-network.lives[name].bytes, name))
    return lines + [f"'{name}' between layers takes {network.lives[name].bytes} bytes" for name in largest[:SHOWN]]
