"""How long groups wait for a slow home: copies of constants in a nearer memory, and what they bring from it themselves.

One DMA does both, in the order in which it is asked. What a group takes by itself comes from `price.tiles`; here groups
run one behind the other, with those of their transfers that this DMA makes, and without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.core.parts import Dma
from tilewright.core.plan import Group, Stage
from tilewright.core.platform import Platform
from tilewright.price.copies import copied
from tilewright.price.tiles import Priced

ASKED = 0.7
"""What of the cycles to start a copy and to await it passes until it is asked for, of a core that asks for several:
125 of 170 for each of 6 to 18 copies, in 8 networks."""


@dataclass
class _Queue:
    """A slow DMA, which does one transfer after the other."""

    dma: Dma
    free: float = 0.0
    started: float = 0.0

    def add(self, asked: float, cycles: float) -> float:
        """When a transfer is there that is asked for at some time."""
        self.started = max(self.free, asked + self.dma.issue + self.dma.latency, self.started + self.dma.request)
        self.free = self.started + cycles
        return self.free

    def copy(self, asked: float, amount: int) -> float:
        return self.add(asked, copied(self.dma, [amount]))


@dataclass(frozen=True)
class Brought:
    """What a group itself brings from a slow home, and takes there: cycles of its DMA."""

    steps: int = 1
    compute: float = 0.0
    """Of the cores, at each step."""
    lead: float = 0.0
    """Until its first loads have arrived, with nothing before them."""
    first: float = 0.0
    """Of these, of which the last ones `behind` are those of another DMA."""
    behind: float = 0.0
    loads: float = 0.0
    """Of each further step, beside the step before."""
    waited: float = 0.0
    """Of each further step, for which the cores wait."""
    stores: float = 0.0
    """Of each step."""
    beside: float = 0.0
    """Of the node beside whose first step copies are asked for; the cores wait for who does that."""

    @property
    def any(self) -> bool:
        return self.first + self.loads + self.waited + self.stores > 0

    def walk(self, queue: _Queue, begin: float, copies: Sequence[int], cold: float = 0.0) -> tuple[float, list[float]]:
        """When a group ends that begins at some time, and when copies for later groups are there.

        It starts these behind the loads of its second step, with code that may be `cold`.
        """
        now, stored = begin + self.lead, begin
        if self.first:
            soon = now - self.first - self.behind
            now += max(queue.free - soon, 0.0)
            queue.free = queue.started = now - self.behind
        there: list[float] = []
        for step in range(self.steps):
            before, begun, further = stored, now, step + 1 < self.steps
            if step and self.stores:
                stored = queue.add(begun, self.stores)
            now = max(now + self.compute, before)
            if further and self.loads:
                now = max(now, queue.add(begun, self.loads))
            if not step:
                there = [queue.copy(begun, amount) for amount in copies]
                now += max(len(copies) * queue.dma.issue * ASKED + cold - self.beside, 0.0)
            if further and self.waited:
                now = queue.add(now, self.waited)
        return (queue.add(now, self.stores) if self.stores else now), there


def brought(found: Priced) -> Brought:
    """What a group itself brings from a slow home."""
    steps = int(found.grid.steps.sum())
    further = max(steps - 1, 1)
    first = behind = loads = waited = stores = 0.0
    for flow in found.flows.values():
        if flow.far is None:
            continue
        each = flow.cycles * found.due(flow)
        total, once = found.total(each), float(found.grid.corner(each, last=False).sum())
        if flow.store:
            stores += total / steps
        else:
            first += once
            behind = max(behind, float(found.grid.corner(flow.far.passing, last=False).sum())) if once else behind
            beside = bool(np.any(flow.beside))
            loads += (total - once) / further * beside
            waited += (total - once) / further * (not beside)
    cost = found.cost
    return Brought(steps, cost.compute / steps, found.lead, first, behind, loads, waited, stores, cost.beside)


def fetched(
    platform: Platform, groups: Sequence[Group], slow: Sequence[Brought], stages: Sequence[Stage]
) -> list[float]:
    """Cycles by which a slow home makes each group longer, given what these take by themselves.

    One DMA makes copies in the nearer memory, and brings what groups read from the home by themselves, all in the order
    in which they are asked for. A group first waits for the copies that it reads. It starts those for later groups when
    its own first loads have arrived and those of its second step are on their way.
    """
    ways = [dma for dma in platform.dmas.values() if platform.home in dma.between]
    relay = next((dma for dma in ways if dma.through), None)
    way = next((platform.dma(platform.home, stage.place.space) for stage in stages), relay)
    found = [0.0] * len(groups)
    if way is None:
        return found
    # Where another core drives the DMA, it takes a while to see that a copy is there.
    seen = way.issue / 2 if relay is not None else 0.0
    queue, now, there = _Queue(way), 0.0, dict[int, float]()
    used, before = False, False
    for number, (group, far) in enumerate(zip(groups, slow, strict=True)):
        mine = [n for n, stage in enumerate(stages) if stage.first == number]
        later = [n for n, stage in enumerate(stages) if stage.start == number < stage.first]
        there |= {n: queue.copy(now, stages[n].bytes) for n in mine if stages[n].start == number}
        begin = max([now, *(there[n] for n in mine)]) + seen * len(mine)
        amounts = [stages[n].bytes for n in later]
        if relay is not None and (far.any or mine) and not used:
            begin, used = begin + relay.cold_start, True
        usual = far.walk(_Queue(way), 0.0, ())[0]
        # Code to ask for copies is in no cache unless the group before had it, or this one brings something itself.
        end, arrived = far.walk(queue, begin, amounts, way.cold if amounts and not (before or far.any) else 0.0)
        before = bool(amounts) or far.any
        there |= dict(zip(later, arrived, strict=True))
        found[number] = max(end - usual, begin) - now
        now += found[number] + group.cycles
    return found
