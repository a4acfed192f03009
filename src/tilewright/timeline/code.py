"""Code that is still in the caches because an earlier group ran it: that of nodes, and of transfers by way of a memory
in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from tilewright.core.graph import Graph
from tilewright.core.plan import Choice, Group, NodeWork
from tilewright.machine.target import Target
from tilewright.price.caches import still_there
from tilewright.price.tasks import task
from tilewright.price.tiles import begin_cycles

FAR_CODE = ("transfers",)
"""What runs for transfers by way of a memory in between, among the code of nodes."""

GROUP_CODE = ("first transfer", "further transfer", "cold wake")
"""Of a group's own code, on the core that starts transfers: what it takes where it is cold."""


class Kept(Struct, frozen=True):
    """What a group finds in the caches."""

    nodes: tuple[float, ...] = ()
    """Cycles that each node saves when it first runs."""
    again: tuple[float, ...] = ()
    """Those that each takes more at further steps: others of its group took the place of its code."""
    far: float = 0.0
    """The share of the code for transfers by way of a memory in between."""
    far_again: float = 0.0
    """The share of it that each further step does not find, as nodes ran in between."""


def kept_code(
    graph: Graph, platform: Target, choices: Sequence[Choice], groups: Sequence[Group], slow: Sequence[bool]
) -> list[Kept]:
    """What each group finds there; `slow` says which of them ask for something from a slow home."""
    links = (dma for dma in platform.links.values() if not dma.by_cores)
    way = max((dma.cold + dma.cold_end for dma in links), default=0.0)
    line = platform.operations.get("line", 0.0)
    found: list[Kept] = []
    every = [
        [_code(graph, platform, choices, number, group, work) for work in group.works]
        for number, group in enumerate(groups)
    ]
    calls = Counter(code.name for codes in every for code in codes)
    ran: list[tuple[tuple[str, ...], float]] = []
    started = 0
    for number, (codes, far) in enumerate(zip(every, slow, strict=True)):
        share = 0.0
        if line and way and far:
            share = _share(platform, FAR_CODE, ran, number - started)
            started = number
            ran.append((FAR_CODE, way / line))
        mine = [code.of_one if calls[code.name] == 1 else code for code in codes]
        shares: list[float] = []
        left = 1.0
        # The first step; where several nodes run, another one, which finds what these left.
        for code in mine * (1 + (len(mine) > 1 and line > 0)):
            if len(shares) == len(mine):
                left = _share(platform, FAR_CODE, ran) if far else 1.0
            shares.append(_share(platform, code.name, ran))
            if line:
                ran.append((code.name, code.begin / line))
        unlike = (code.begin - one.begin for code, one in zip(codes, mine, strict=True))
        saved = tuple(one.cold * kept + less for one, kept, less in zip(mine, shares, unlike, strict=False))
        more = tuple(one.cold * (1 - kept) for one, kept in zip(mine, shares[len(mine) :], strict=False))
        found.append(Kept(saved, more, share, 1 - left))
    return found


class _Code(Struct, frozen=True):
    """The code of a node."""

    name: tuple[str, ...]
    begin: float
    """Cycles in which it comes into the caches."""
    again: float
    """What is left of these where it is there."""
    several: float
    """Those of them that are spent because several nodes call it."""

    @property
    def cold(self) -> float:
        """What it saves to be there."""
        return max(self.begin - self.again, 0.0)

    @property
    def of_one(self) -> _Code:
        """The same where one node alone calls it."""
        return replace(self, begin=self.begin - self.several, several=0.0)


def _code(
    graph: Graph, platform: Target, choices: Sequence[Choice], number: int, group: Group, work: NodeWork
) -> _Code:
    node, kernel = graph.nodes[work.step], choices[work.step].kernel
    mine = task(graph, node, kernel)
    beside = platform.beside(kernel)
    begin = begin_cycles(platform, mine) if beside is None else beside.fork + beside.begin
    shared = kernel is not None and beside is None
    # A nest is code of its own. Kernels are compiled anew for each chain of steps behind them, and for parts.
    name = kernel.path.name if kernel is not None and shared else f"{number} {work.step}"
    cut = work is group.works[-1] and any(loop.dim in mine.member.domain.reduction for loop in group.loops)
    code = (name, mine.path, *(step.op for step in node.epilogue), *(["sums"] * cut))
    costs = platform.operations
    return _Code(code, begin, costs.get(f"again {name}", 0.0), min(costs.get(f"several {name}", 0.0), begin))


def _share(
    platform: Target, code: tuple[str, ...], ran: Sequence[tuple[tuple[str, ...], float]], groups: int = 0
) -> float:
    """The share of some code that is still in a cache, given what ran: its lines fall on sets at random.

    On the core that starts transfers, code of `groups` ran besides.
    """
    costs = platform.operations
    most = 4 * costs.get("sets", 1.0) * costs.get("ways", 0.0)
    own = sum(costs.get(name, 0.0) for name in GROUP_CODE) / costs.get("line", 1.0)
    since, total = set[tuple[str, ...]](), 0.0
    for other, lines in reversed(ran):
        if other == code:
            return still_there(platform, total + groups * own)
        if other not in since:
            since.add(other)
            total += lines
            if total > most:
                break
    return 0.0
