"""Operands that are loaded straight to their place in a result that is made of them, so that no core copies them.

A cache with a new row behind it is loaded row by row to where the result has these rows: its tile buffer has the bytes
of the result's, and only the new row is left to the cores. Which operators join their operands so they say themselves
(`joins`), and kernels which of them may lie there already (`within`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.core.op import REGISTRY
from tilewright.core.plan import Group
from tilewright.core.tiles import Member, Use, left, shift
from tilewright.cost.tiles import group_cost
from tilewright.plan.addresses.packing import round_up
from tilewright.plan.joint import Pick
from tilewright.plan.network import Network


@dataclass(frozen=True)
class Inlay:
    """A group whose tiles are chosen."""

    network: Network
    pick: Pick
    sources: Mapping[str, str]
    """The memory of each tensor outside the engine's, by its name and those of its views."""

    def run(self) -> Pick:
        """The same group with operands within its result, unless that is slower."""
        uses, before = self._uses(), self._group
        if not uses:
            return self.pick
        after, size = self._within(uses)
        parts = (self.network.graph, self.network.platform, self.network.choices)
        gain = group_cost(*parts, before, self.sources).cycles - group_cost(*parts, after, self.sources).cycles
        if gain < 0:
            return self.pick
        cycles = before.cycles - gain
        candidate = replace(self.pick.candidate, group=replace(after, cycles=cycles), cycles=cycles, bytes=size)
        return replace(self.pick, candidate=candidate)

    @property
    def _group(self) -> Group:
        return self.pick.candidate.group

    @cached_property
    def _mine(self) -> Member:
        """The node that makes the result."""
        return self.network.members[self.pick.run.last]

    @cached_property
    def _outer(self) -> int:
        """The buffer of the result, -1 where it has none."""
        return self._group.works[-1].buffers.get(self._mine.output.key, -1)

    def _uses(self) -> list[Use]:
        """Operands at both ends of the result that may lie there; what is left between them is one part."""
        if self._outer < 0 or not REGISTRY[self._mine.node.op].joins or self._mine.node.epilogue:
            return []
        inputs = [use for use in self._mine.uses if not use.writes and use.type.bytes]
        others = [number for number, use in enumerate(inputs) if not self._may(use)]
        first, last = (others[0], others[-1]) if others else (len(inputs), len(inputs))
        return [*inputs[:first], *inputs[last + 1 :]]

    def _may(self, use: Use) -> bool:
        """Whether an operand is loaded to where nothing else reads it, tile by tile as the result is made."""
        group, mine = self._group, self._mine
        kernel = self.network.choices[group.works[-1].step].kernel
        index = group.works[-1].buffers.get(use.key, -1)
        readers = [other for work in group.works for other in work.buffers.values()].count(index)
        made = {self.network.members[at].output.tensor for at in range(self.pick.run.first, self.pick.run.last)}
        if index < 0 or readers > 1 or use.tensor in made or (kernel is not None and use.key not in kernel.within):
            return False
        joined, cut = left(mine, [use.key]), {loop.dim for loop in group.loops}
        return (
            self.sources[use.tensor] != self.network.platform.cores.memory
            and group.buffers[index].slots == group.buffers[self._outer].slots
            and shift(mine.domain, use.key, mine.output.key) is not None
            and len(joined) == 1
            and not cut & joined.keys()
        )

    def _within(self, uses: list[Use]) -> tuple[Group, int]:
        """The group with these operands within its result, and the bytes that it needs."""
        group, align = self._group, self.network.platform.alignment
        chosen = {group.works[-1].buffers[use.key] for use in uses}
        buffers, size = list(group.buffers), self.pick.candidate.bytes
        if len(group.works) == 1 and not group.works[0].scratch_bytes and not group.works[0].sums:
            # Nothing but buffers, which are there all the time: they close up.
            size = 0
            for index, buffer in enumerate(buffers):
                if index not in chosen:
                    buffers[index] = replace(buffer, offset=size)
                    size = round_up(buffers[index].end, align)
        outer = buffers[self._outer]
        for index in chosen:
            buffers[index] = replace(buffers[index], offset=outer.offset, bytes=outer.bytes, within=self._outer)
        return replace(group, buffers=tuple(buffers)), size
