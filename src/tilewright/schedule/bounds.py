"""How little a schedule can take at least, whatever the allocation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.schedule.nodes import Nodes, Numbers
from tilewright.schedule.scheduling import NodeCosts


def least_latency(nodes: Nodes, costs: NodeCosts, allowed: Sequence[tuple[int, ...]]) -> int:
    """Cycles: nodes that wait for one another take the time of each on its fastest engine, and engines share the work.

    By group: the places that it may have.
    """
    if not nodes.count:
        return 0
    fastest = np.full((len(nodes.kinds), len(allowed)), np.iinfo(np.int64).max)
    pairs: list[list[int]] = np.unique(np.stack([nodes.kind, nodes.group], 1), axis=0).tolist()
    for kind, group in pairs:
        fastest[kind, group] = min(int(costs.cycles[kind, place]) for place in allowed[group])
    cycles: Numbers = fastest[nodes.kind, nodes.group]
    engines = {place for places in allowed for place in places}
    return max(_longest(nodes, cycles.tolist()), -(-int(cycles.sum()) // len(engines)))


def _longest(nodes: Nodes, cycles: list[int]) -> int:
    """Of all chains of nodes; each comes behind those that it waits for."""
    starts: list[int] = nodes.before_starts.tolist()
    before: list[int] = nodes.before.tolist()
    ends: list[int] = []
    for node, own in enumerate(cycles):
        ready = max((ends[other] for other in before[starts[node] : starts[node + 1]]), default=0)
        ends.append(ready + own)
    return max(ends)
