"""What a user says about operations: where they may run, and how they are cut into nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from tilewright.core.domain import Affine
from tilewright.core.split import Loops, OperationSplit, Parts
from tilewright.errors import TilewrightError
from tilewright.frontend.stream_mapping import StreamMapping
from tilewright.schedule.fabric import Fabric
from tilewright.schedule.network import Operation, OperationGraph

ROLES: Mapping[int, tuple[str, ...]] = {
    1: ("K",),
    2: ("B", "K"),
    3: ("B", "D", "K"),
    4: ("B", "K", "OY", "OX"),
    5: ("B", "K", "OZ", "OY", "OX"),
}
"""Other tools' names for loops along the axes of a result, by its rank."""


@dataclass(frozen=True)
class OperationPlacement:
    """By operation."""

    engines: Mapping[str, tuple[str, ...]]
    """Those that may compute it."""
    splits: Mapping[str, OperationSplit] = field(default_factory=lambda: MappingProxyType({}))


def loop_named(operation: Operation, name: str) -> str | None:
    """The loop of an operation that goes by a name: its own, or that of the axis of the result which it runs along."""
    domain = operation.domain
    if name in domain.dims:
        return name
    axes = domain.access[domain.outputs[0]]
    roles = ROLES.get(len(axes), ())
    if name not in roles:
        return None
    axis = axes[roles.index(name)]
    along = [dim for dim, scale in axis.terms if scale == 1] if isinstance(axis, Affine) else []
    return along[0] if along else None


def cut(operation: Operation, loops: Loops) -> Loops:
    """Those of some loops that an operation can be cut along, by its own names."""
    found: list[tuple[str, Parts]] = []
    for name, parts in loops:
        loop = loop_named(operation, name)
        if loop is not None and loop in operation.domain.parallel:
            size = operation.domain.dims[loop]
            found.append((loop, parts if parts == "all" else min(parts, size)))
    return tuple(found)


def placed(
    network: OperationGraph, fabric: Fabric, mapping: StreamMapping | None, loops: Loops = ()
) -> OperationPlacement:
    """Of a mapping file, if there is one; loops that it does not name are cut as given for all operations."""
    engines: dict[str, tuple[str, ...]] = {}
    splits: dict[str, OperationSplit] = {}
    for operation in network.operations:
        entry = mapping.entry(operation.name, operation.kind) if mapping else None
        engines[operation.name] = entry.engines if entry else fabric.engines
        if not engines[operation.name]:
            raise TilewrightError(
                "unallocated-layer",
                f"nothing says which engine computes '{operation.name}'",
                help=f"name one of {', '.join(fabric.engines)} for it, or for 'default', in the mapping",
            )
        within = entry.within if entry and entry.within else loops
        splits[operation.name] = OperationSplit(cut(operation, entry.across) if entry else (), cut(operation, within))
    return OperationPlacement(engines, splits)


def hinted(
    network: OperationGraph, hints: tuple[Loops, ...], mode: int = 1, cutoffs: tuple[int, ...] = ()
) -> dict[str, OperationSplit]:
    """Cuts as Stream of 2023 says them (`hint_loops` with `cn_define_mode`), as lists of hints.

    Mode 1: the list has the loops around the nodes of all layers. Mode 2: they are those inside of nodes, and all other
    loops along the result are around them. Mode 3: one list of hints for each part of the network, which begin at the
    numbers of layers in `cutoffs`.
    """
    splits: dict[str, OperationSplit] = {}
    for number, operation in enumerate(network.operations):
        mine = hints[sum(number >= cutoff for cutoff in cutoffs) if mode == 3 else 0]
        if mode == 2:
            mine = _around(operation, mine)
        elif mode not in (1, 3):
            raise TilewrightError(
                "bad-argument", f"cn_define_mode is {mode}", help="1: loops around nodes, 2: inside, 3: by parts"
            )
        splits[operation.name] = OperationSplit(within=cut(operation, mine))
    return splits


def _around(operation: Operation, inside: Loops) -> Loops:
    """The loops around nodes that have some inside."""
    sizes = dict(operation.domain.dims)
    steps = dict.fromkeys(operation.domain.parallel, 1)
    for name, parts in inside:
        loop = loop_named(operation, name)
        if loop in steps:
            steps[loop] = sizes[loop] if parts == "all" else min(parts, sizes[loop])
    return tuple((loop, -(-sizes[loop] // size)) for loop, size in steps.items() if sizes[loop] > size)
