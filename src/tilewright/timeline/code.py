"""Code that is still in the caches because an earlier group ran it: that of nodes, and of transfers by way of a memory
in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, factorial

from msgspec import Struct

from tilewright.core.graph import Graph
from tilewright.core.plan import Choice, Group
from tilewright.machine.kernel import formula, named
from tilewright.machine.target import Target
from tilewright.price.tiles import Task, begin_cycles, task

FAR_CODE = ("transfers",)
"""What runs for transfers by way of a memory in between, among the code of nodes."""


class Kept(Struct, frozen=True):
    """What a group finds in the caches."""

    nodes: tuple[float, ...] = ()
    """Cycles that each node saves when it first runs."""
    far: float = 0.0
    """The share of the code for transfers by way of a memory in between."""


def kept_code(
    graph: Graph, platform: Target, choices: Sequence[Choice], groups: Sequence[Group], slow: Sequence[bool]
) -> list[Kept]:
    """What each group finds there; `slow` says which of them ask for something from a slow home."""
    way = max((dma.cold for dma in platform.links.values()), default=0)
    line, own = platform.operations.get("line", 0.0), platform.operations.get("own", 0.0)
    found: list[Kept] = []
    ran: list[tuple[tuple[str, ...], float]] = []
    started = 0
    for number, (group, far) in enumerate(zip(groups, slow, strict=True)):
        share = 0.0
        if line and way and far:
            share = _share(platform, FAR_CODE, ran, number - started)
            started = number
            ran.append((FAR_CODE, way / line))
        saved: list[float] = []
        for work in group.works:
            node, kernel = graph.nodes[work.step], choices[work.step].kernel
            mine = task(graph, node, kernel)
            beside = platform.beside(kernel)
            begin = begin_cycles(platform, mine) if beside is None else beside.fork + beside.begin
            shared = kernel is not None and beside is None
            # A nest is code of its own. Kernels are compiled anew for each chain of steps behind them, and for parts.
            name = kernel.path.name if kernel is not None and shared else f"{number} {work.step}"
            cut = work is group.works[-1] and any(loop.dim in mine.member.domain.reduction for loop in group.loops)
            code = (name, _path(mine), *(step.op for step in node.epilogue), *(["sums"] * cut))
            cold = max(begin - platform.operations.get(f"again {name}", own), 0.0)
            saved.append(cold * _share(platform, code, ran) if cold else 0.0)
            if line:
                ran.append((code, begin / line))
        found.append(Kept(tuple(saved), share))
    return found


def _path(mine: Task) -> str:
    """Which of the paths through its kernel a node takes."""
    if mine.kernel is None:
        return ""
    with named(mine.kernel, "path"):
        return str(formula(mine.kernel.path_taken, mine.known))


def _share(
    platform: Target, code: tuple[str, ...], ran: Sequence[tuple[tuple[str, ...], float]], groups: int = 0
) -> float:
    """The share of some code that is still in a cache, given what ran: its lines fall on sets at random.

    On the core that starts transfers, code of `groups` ran besides.
    """
    sets, ways = platform.operations.get("sets", 1.0), int(platform.operations.get("ways", 0.0))
    since, total = set[tuple[str, ...]](), 0.0
    for other, lines in reversed(ran):
        if other == code:
            load = (total + groups * platform.operations.get("group", 0.0)) / sets
            return exp(-load) * sum(load**n / factorial(n) for n in range(ways))
        if other not in since:
            since.add(other)
            total += lines
            if total > 4 * sets * ways:
                break
    return 0.0
