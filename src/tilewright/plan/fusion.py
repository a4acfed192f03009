"""Which runs of nodes may form a group that is executed depth-first, tile by tile.

Inside a run every tensor but the results of its last node is used by the run alone and under its own name (no views),
and every node but the last has one result. Runs in which no tile passes from one node to the next are left out: keeping
the whole tensor in the engine's memory does the same.
"""

from __future__ import annotations

from tilewright.core.domain import Whole
from tilewright.core.tiles import axis_dim
from tilewright.plan.network import Network, Run

LONGEST = 16
# Longer runs than this are tried only where a tensor inside is large.
SHORT = 3


def runs(network: Network, *, fuse: bool, large: int) -> tuple[tuple[Run, ...], ...]:
    """The runs that start at each position, shortest first; every position has at least the run of itself alone.

    Runs longer than a few nodes must hold a tensor of `large` bytes or more.
    """
    found: list[tuple[Run, ...]] = []
    links = _Links(network)
    for first in range(len(network.steps)):
        mine = [Run(first, first)]
        until, biggest = first, 0
        for last in range(first + 1, min(first + LONGEST, len(network.steps)) if fuse else first):
            reach = links.reach(last - 1)
            if reach is None:
                break
            until = max(until, reach)
            biggest = max(biggest, network.lives[network.writes[last - 1][0]].bytes)
            if until <= last and (last - first < SHORT or biggest >= large):
                mine.append(Run(first, last))
        found.append(tuple(mine))
    return tuple(found)


class _Links:
    """What may be inside a run, position by position."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._viewed = {root for name, root in network.roots.items() if name != root}
        self._reach: dict[int, int | None] = {}

    def reach(self, position: int) -> int | None:
        """The last position that reads the result of this one; None where the result cannot stay inside a run."""
        if position not in self._reach:
            self._reach[position] = self._find(position)
        return self._reach[position]

    def _find(self, position: int) -> int | None:
        network = self._network
        results = [output for output in network.node(position).outputs if output]
        if len(results) != 1 or results[0] not in network.lives or results[0] in self._viewed:
            return None
        readers = network.readers.get(results[0], ())
        if not readers or not all(self._passes(position, reader, results[0]) for reader in readers):
            return None
        return readers[-1]

    def _passes(self, producer: int, consumer: int, tensor: str) -> bool:
        """Whether a tile of the consumer needs less than the whole tensor, and the producer can compute less."""
        made, taken = self._network.members[producer], self._network.members[consumer]
        cuttable = [bool(axis_dim(made.domain, axis)[0]) for axis in made.domain.access[made.output.key]]
        for use in taken.uses:
            if use.tensor == tensor and not use.writes:
                axes = zip(taken.domain.access[use.key], cuttable, strict=True)
                if not any(cut and not isinstance(axis, Whole) and axis.terms for axis, cut in axes):
                    return False
        return True
