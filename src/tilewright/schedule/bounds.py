"""How little a schedule can take at least, whatever the allocation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.schedule.nodes import Nodes
from tilewright.schedule.scheduling import NodeCosts


def least_latency(nodes: Nodes, costs: NodeCosts, allowed: Sequence[tuple[int, ...]]) -> int:
    """Cycles: nodes that wait for one another take the time of each on its fastest engine, and engines share the work.

    By group: the places that it may have.
    """
    if not nodes.count:
        return 0
    cycles = _least(nodes, costs.cycles, allowed)
    engines = {place for places in allowed for place in places}
    return max(_longest(nodes, cycles.astype(np.int64).tolist()), -(-int(cycles.sum()) // len(engines)))


def least_energy(nodes: Nodes, costs: NodeCosts, allowed: Sequence[tuple[int, ...]]) -> float:
    """Picojoules: each node on the engine that needs least for it, without transfers."""
    return float(_least(nodes, costs.energy + costs.far_energy, allowed).sum())


def _least(nodes: Nodes, values: NDArray[Any], allowed: Sequence[tuple[int, ...]]) -> NDArray[Any]:
    """By node: the least value at a place that it may have."""
    found = np.zeros((len(nodes.kinds), len(allowed)), values.dtype)
    pairs: list[list[int]] = np.unique(np.stack([nodes.kind, nodes.group], 1), axis=0).tolist()
    for kind, group in pairs:
        found[kind, group] = min(values[kind, place] for place in allowed[group])
    return found[nodes.kind, nodes.group]


def _longest(nodes: Nodes, cycles: list[int]) -> int:
    """Of all chains of nodes; each comes behind those that it waits for."""
    starts: list[int] = nodes.before_starts.tolist()
    before: list[int] = nodes.before.tolist()
    ends: list[int] = []
    for node, own in enumerate(cycles):
        ready = max((ends[other] for other in before[starts[node] : starts[node + 1]]), default=0)
        ends.append(ready + own)
    return max(ends)
