"""Operands that are loaded straight to their place in a result that is made of them, so that no core copies them.

A cache with a new row behind it is loaded row by row to where the result has these rows: its tile buffer has the bytes
of the result's, and only the new row is left to the cores. Which operators join their operands so they say themselves
(`joins`), and kernels which of them may lie there already (`within`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from tilewright.core.plan import Group
from tilewright.core.tiles import Member, left
from tilewright.plan.addresses.packing import round_up
from tilewright.plan.draft import PlanDraft
from tilewright.plan.joint import Pick
from tilewright.plan.network import Network
from tilewright.plan.tiling.rules import at_ends


def inside_results(draft: PlanDraft) -> PlanDraft:
    """Operands inside of results where no group is slower for it."""
    picks = tuple(_Inside(draft.network, pick, draft.sources).run() for pick in draft.solution.picks)
    return replace(draft, solution=replace(draft.solution, picks=picks))


class _Inside(Struct, frozen=True, dict=True):
    """A group whose tiles are chosen."""

    network: Network
    pick: Pick
    sources: Mapping[str, str]
    """The memory of each tensor outside the engine's, by its name and those of its views."""

    def run(self) -> Pick:
        """The same group with operands within its result, unless that is slower."""
        keys, before = self._keys(), self._group
        if not keys:
            return self.pick
        after, size = self._within(keys)
        now, then = (self.network.price(group, self.sources).cost for group in (before, after))
        if then.cycles > now.cycles:
            return self.pick
        candidate = self.pick.candidate.with_group(after, cycles=then.cycles, bytes=size)
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

    def _keys(self) -> tuple[str, ...]:
        """Operands that may lie within the result and do not yet."""
        group, mine = self._group, self._mine
        work = group.works[-1]
        bound = [index for each in group.works for index in each.buffers.values()]
        made = {self.network.members[at].output.tensor for at in range(self.pick.run.first, self.pick.run.last)}
        alone = {
            use.key
            for use in mine.uses
            if not use.writes
            and bound.count(work.buffers.get(use.key, -1)) == 1
            and use.tensor not in made
            and self.sources[use.tensor] != self.network.platform.cores.memory
            and group.buffers[work.buffers[use.key]].slots == group.buffers[self._outer].slots
        }
        step = self.network.task(work.step)
        found = at_ends(step, alone) if self._outer >= 0 and not group.inlaid(work) else ()
        cut = {loop.dim for loop in group.loops}
        return () if mine.open or cut & left(mine, found).keys() else found

    def _within(self, keys: tuple[str, ...]) -> tuple[Group, int]:
        """The group with these operands within its result, and the bytes that it needs."""
        group, align = self._group, self.network.platform.alignment
        chosen = {group.works[-1].buffers[key] for key in keys}
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
