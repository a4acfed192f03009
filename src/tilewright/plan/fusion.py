"""Which runs of nodes may form a group that is executed depth-first, tile by tile.

Inside a run every tensor but the results of its last node is used by the run alone and under its own name (no views),
and every node but the last has one result. Runs in which no tile passes from one node to the next are left out: keeping
the whole tensor in the engine's memory does the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from tilewright.core.domain import Whole
from tilewright.core.tiles import axis_dim
from tilewright.plan.content import attributes
from tilewright.plan.menu import Menu
from tilewright.plan.network import Network, NodeRange

LONGEST = 16
# Lengths tried where memory does not force fusion: enough to find the gain, few enough to be quick.
LENGTHS = frozenset({2, 3, 4, 6, 8, 12, 16})
# A run may hold this many tensors that would have stayed in the engine's memory anyway.
SPARE = 1
FORCED_SPARE = 8


def singles(network: Network) -> list[list[NodeRange]]:
    """Every position alone."""
    return [[NodeRange(position, position)] for position in range(len(network.steps))]


def fused(menu: Menu, wanted: frozenset[str], *, effort: int | None) -> list[list[NodeRange]]:
    """Runs of several nodes by their first position, shortest first, each with some of the wanted tensors inside.

    With an `effort` (nodes of runs whose candidates must be computed), those that keep most bytes inside come first,
    and runs of equal content count once; so do runs in which another engine works beside the cores. Without, all that
    keep wanted tensors inside are given.
    """
    network = menu.network
    links, everything = _Links(network), effort is None
    found = [r for first in range(len(network.steps)) for r in _from(network, links, first, wanted, everything)]
    kept = found if effort is None else _most_useful(menu, found, wanted, effort)
    result: list[list[NodeRange]] = [[] for _ in network.steps]
    for run in sorted(kept, key=lambda run: (run.first, run.last)):
        result[run.first].append(run)
    return result


def _from(
    network: Network, links: _Links, first: int, wanted: frozenset[str], all_lengths: bool
) -> Iterator[NodeRange]:
    until, inside, spare = first, 0, 0
    ahead = network.beside[first] and not all_lengths
    for last in range(first + 1, min(first + LONGEST, len(network.steps))):
        reach = links.reach(last - 1)
        apart = {network.node(at).outputs[0] for at in (first, last)} & network.apart
        if reach is None or (apart and not all_lengths):
            return
        until = max(until, reach)
        ahead = ahead and not network.beside[last]
        if network.writes[last - 1][0] in wanted:
            inside += 1
        elif last - 1 > first or not ahead:
            spare += 1
        if spare > (FORCED_SPARE if all_lengths else SPARE):
            return
        wanted_length = all_lengths or last - first + 1 in LENGTHS
        if until <= last and (inside or ahead) and wanted_length and not _overwrites(network, first, last):
            yield NodeRange(first, last)


def _overwrites(network: Network, first: int, last: int) -> bool:
    """Whether the last node of a run writes a state whose old value another one reads: later tiles would miss it."""
    written = {network.root(name) for name in network.node(last).made} & network.graph.updates.keys()
    return any(network.root(name) in written for at in range(first, last) for name in network.node(at).reads)


def _most_useful(menu: Menu, found: Sequence[NodeRange], wanted: frozenset[str], effort: int) -> list[NodeRange]:
    network = menu.network
    alike: dict[Hashable, list[NodeRange]] = {}
    saved: dict[Hashable, int] = {}
    for run in found:
        inner = [name for position in range(run.first, run.last) for name in network.writes[position]]
        nodes = [network.node(position) for position in range(run.first, run.last + 1)]
        content = (menu.content(run), *(attributes(node) for node in nodes))
        alike.setdefault(content, []).append(run)
        beside = network.writes[run.first] if network.beside[run.first] else ()
        gained = (network.lives[name].bytes for name in inner if name in wanted or name in beside)
        saved[content] = saved.get(content, 0) + sum(gained)
    kept: list[NodeRange] = []
    for content in sorted(alike, key=lambda c: -saved[c] / (alike[c][0].last - alike[c][0].first + 1)):
        effort -= alike[content][0].last - alike[content][0].first + 1
        if effort < 0:
            break
        kept += alike[content]
    return kept


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
