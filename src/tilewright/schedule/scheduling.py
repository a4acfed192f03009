"""When each node runs, on which engine, and what it costs: the native scheduler with names around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tilewright._native import Scheduler
from tilewright.errors import TilewrightError
from tilewright.schedule.fabric import Fabric
from tilewright.schedule.nodes import Nodes, Numbers

if TYPE_CHECKING:
    from tilewright._native import ScheduleResult

Priority: TypeAlias = Literal["latency", "memory"]
"""Of nodes that are ready: the one that was ready first, or the one furthest down the network."""
Rules: TypeAlias = Literal["own", "stream"]
"""How words and memory are counted: as docs/schedule.md says, or as Stream of April 2023 does, to compare with it."""
CAUSES = ("fetch", "pass", "evict", "result")
"""Why something is sent: from home to an engine, between engines, back home for want of room, home as a result."""
COST, ROUTE, ROOM, CYCLE = 1, 2, 3, 4


class NodeCosts(Struct, frozen=True):
    """What nodes cost: by kind of node and place."""

    cycles: NDArray[np.int64]
    """-1 where they cannot run."""
    energy: NDArray[np.float64]
    """Of computing and of the engine's memories."""
    far_energy: NDArray[np.float64]
    """Of the memory at home, for operands that are streamed."""
    streamed: NDArray[np.uint32]
    """A bit for each slot whose operand is too large for the engine: it comes from home, or goes there, while the node
    runs, and nothing else crosses the channel meanwhile."""


class Summary(Struct, frozen=True):
    """What a schedule comes to."""

    latency: int
    energies: Mapping[str, float]
    """By cause, in picojoules."""
    peaks: Mapping[str, int]
    """By store: bits that it holds at most."""

    @property
    def energy(self) -> float:
        return sum(self.energies.values())

    def memory(self, fabric: Fabric) -> int:
        """Bits that all memories of engines hold at most."""
        return sum(bits for store, bits in self.peaks.items() if store != fabric.home)


class Table(Struct, frozen=True):
    """Records as columns."""

    columns: Mapping[str, Numbers]

    def __getitem__(self, name: str) -> Numbers:
        return self.columns[name]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


class EngineSchedule(Struct, frozen=True):
    """All that happens."""

    nodes: Nodes
    fabric: Fabric
    summary: Summary
    places: Numbers
    """By node: the number of its place."""
    start: Numbers
    end: Numbers
    transfers: Table
    """tensor, source, target, node (which it is for), cause, carrier (the transfer whose channels it takes, another one
    where several receive it at once), start, end."""
    busy: Table
    """Of channels: link, transfer (or -1 where a node streams), node, start, end."""
    stored: Table
    """Changes of what stores hold: memory, tensor, time, bits."""

    @property
    def latency(self) -> int:
        return self.summary.latency

    @property
    def energy(self) -> float:
        return self.summary.energy

    def utilisation(self) -> dict[str, float]:
        """By engine: the part of the time in which it computes."""
        busy = np.bincount(self.places, self.end - self.start, len(self.fabric.places))
        return {name: float(busy[i]) / max(self.latency, 1) for i, name in enumerate(self.fabric.engines)}


class Scheduling:
    """Schedules the same nodes with any allocation of groups to engines."""

    def __init__(
        self,
        nodes: Nodes,
        fabric: Fabric,
        costs: NodeCosts,
        priority: Priority | Sequence[int] = "latency",
        rules: Rules = "own",
    ) -> None:
        """`priority` may be an order of all nodes: of those that are ready, the first in it goes first."""
        self.nodes, self.fabric = nodes, fabric
        order = np.arange(nodes.count)
        if priority == "memory":
            order = -order
        elif not isinstance(priority, str):
            order = _ranks(nodes, priority)
        columns: dict[str, NDArray[np.int64]] = {
            "before": nodes.before,
            "group": nodes.group,
            "kind": nodes.kind,
            "read_tensor": nodes.read_tensor,
            "read_slot": nodes.read_slot,
            "write_tensor": nodes.write_tensor,
            "write_slot": nodes.write_slot,
        }
        work: dict[str, object] = {name: column.astype(np.int32) for name, column in columns.items()}
        work |= {
            "before_starts": nodes.before_starts,
            "reads_starts": nodes.reads_starts,
            "writes_starts": nodes.writes_starts,
            "rank": order.astype(np.int64),
            "bits": nodes.bits,
            "result": nodes.result.astype(np.uint8),
            "cycles": costs.cycles.reshape(-1).astype(np.int64),
            "energy": costs.energy.reshape(-1).astype(np.float64),
            "far_energy": costs.far_energy.reshape(-1).astype(np.float64),
            "streamed": costs.streamed.reshape(-1).astype(np.uint32),
        }
        self._native = Scheduler(fabric.arrays, work, priority == "latency", rules == "stream")

    def places(self, allocation: Mapping[str, Sequence[str]]) -> Numbers:
        """An allocation as numbers of places: for each operation the engine of each of its slices."""
        found: list[int] = []
        for name, part in self.nodes.groups:
            engines = allocation.get(name, ())
            if part >= len(engines):
                raise TilewrightError(
                    "unallocated-layer",
                    f"nothing says which engine computes '{name}'" + (f", slice {part}" if part else ""),
                    help=f"name one of {', '.join(self.fabric.engines)} for it in the mapping",
                )
            if engines[part] not in self.fabric.engines:
                raise TilewrightError(
                    "unknown-engine",
                    f"'{name}' is to run on '{engines[part]}', which '{self.fabric.name}' does not have",
                    help=f"it has {', '.join(self.fabric.engines)}",
                )
            found.append(self.fabric.places.index(engines[part]))
        return np.array(found, np.int64)

    def evaluate(self, places: Numbers) -> Summary:
        """Latency, energy and memory of one allocation, by numbers of places for each group."""
        return self._summary(self._native.run(places.astype(np.int32)))

    def evaluate_many(self, places: Numbers, workers: int = 1) -> tuple[Numbers, NDArray[np.float64], Numbers]:
        """By row of places: latency, energy, and bits that all memories of engines hold at most; a latency of -1 where
        there is no schedule. Nothing depends on the number of workers."""
        return self._native.evaluate(np.ascontiguousarray(places, np.int32), workers)

    def schedule(self, places: Numbers) -> EngineSchedule:
        """The same with all that happens."""
        found = self._native.run(places.astype(np.int32), True)
        summary = self._summary(found)
        transfers = ("tensor", "source", "target", "node", "cause", "carrier", "start", "end")
        busy, stored = ("link", "transfer", "node", "start", "end"), ("memory", "tensor", "time", "bits")
        return EngineSchedule(
            nodes=self.nodes,
            fabric=self.fabric,
            summary=summary,
            places=places[self.nodes.group],
            start=found["start"],
            end=found["end"],
            transfers=Table(dict(zip(transfers, found["transfers"], strict=True))),
            busy=Table(dict(zip(busy, found["busy"], strict=True))),
            stored=Table(dict(zip(stored, found["stored"], strict=True))),
        )

    def _summary(self, found: ScheduleResult) -> Summary:
        if found["failure"]:
            raise self._failed(found["failure"], *found["failed"])
        energies = {"compute": found["compute_energy"], "streamed": found["far_energy"]}
        for cause, link, memory in zip(CAUSES, found["link_energy"], found["memory_energy"], strict=True):
            energies |= {f"{cause} links": link, f"{cause} memories": memory}
        names = (store.name for store in self.fabric.stores)
        return Summary(found["latency"], energies, dict(zip(names, found["peaks"], strict=True)))

    def _failed(self, failure: int, node: int, tensor: int, place: int, other: int) -> TilewrightError:
        name = self.nodes.name(node)
        what = f"'{self.nodes.tensor_names[int(self.nodes.tensor_of[tensor])]}'" if tensor >= 0 else "an operand"
        where = self.fabric.places[place] if place >= 0 else ""
        if failure == COST:
            return TilewrightError(
                "no-engine",
                f"'{name}' cannot run on '{where}'",
                help="allocate it to an engine that can compute it",
            )
        if failure == ROUTE:
            target = self.fabric.places[other]
            return TilewrightError(
                "unreachable-engine",
                f"there is no way from '{where}' to '{target}', by which {what} has to go for '{name}'",
                help="add a channel to the machine, or allocate both to engines with a way between them",
            )
        if failure == ROOM:
            bits = int(self.nodes.bits[tensor])
            return TilewrightError(
                "no-room",
                f"{what} of '{name}' fits into no memory of '{where}'",
                reasons=[f"it has {bits:,} bits, and what the node needs beside it has to stay"],
                help="split the operation into smaller nodes, or allocate it to an engine with more memory",
            )
        return TilewrightError(
            "cyclic-order",
            f"'{name}' waits for itself",
            reasons=["operations need one another's results in a circle"],
            help="put operations into an order in which each comes behind those that it reads",
        )


def _ranks(nodes: Nodes, order: Sequence[int]) -> Numbers:
    given = np.array(order, np.int64)
    if len(given) != nodes.count or not np.array_equal(np.sort(given), np.arange(nodes.count)):
        raise TilewrightError(
            "bad-order", f"an order must name each of {nodes.count} nodes once", help="number nodes from 0"
        )
    ranks = np.empty(nodes.count, np.int64)
    ranks[given] = np.arange(nodes.count)
    behind = np.repeat(np.arange(nodes.count), np.diff(nodes.before_starts))
    wrong = np.flatnonzero(ranks[nodes.before] > ranks[behind])
    if len(wrong):
        first, second = int(nodes.before[wrong[0]]), int(behind[wrong[0]])
        raise TilewrightError(
            "cyclic-order",
            f"the order has '{nodes.name(second)}' before '{nodes.name(first)}', which it waits for",
            help="put each node behind those that it reads, and nodes of one operation on one engine in their order",
        )
    return ranks
