"""What a user says about operations: where they may run, and how they are cut into nodes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType

from msgspec import Struct, field

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
AROUND, INSIDE, BY_PARTS = MODES = (1, 2, 3)
"""Values of `cn_define_mode`."""


class OperationPlacement(Struct, frozen=True):
    """By operation."""

    engines: Mapping[str, tuple[str, ...]]
    """Those that may compute it."""
    splits: Mapping[str, OperationSplit] = field(default_factory=lambda: MappingProxyType({}))
    fixed: frozenset[str] = frozenset()
    """Those that the user said how to cut."""


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


class Hints(Struct, frozen=True):
    """How Stream of 2023 says how layers are cut (`hint_loops` with `cn_define_mode`).

    Mode 1: one list, the loops around the nodes of all layers. Mode 2: one list, the loops inside of nodes; all other
    loops along the result are around them. Mode 3: a list for each part of the network.
    """

    loops: tuple[Loops, ...]
    mode: int = AROUND
    cutoffs: tuple[int, ...] = ()
    """In mode 3: the numbers of the operations at which parts begin, but the first."""

    def __post_init__(self) -> None:
        parts = len(self.cutoffs) + 1 if self.mode == BY_PARTS else 1
        if self.mode not in MODES or len(self.loops) != parts or (self.cutoffs and self.mode != BY_PARTS):
            raise TilewrightError(
                "bad-argument",
                f"cn_define_mode {self.mode} does not go with {len(self.loops)} lists of loops "
                f"and {len(self.cutoffs)} layer cutoffs",
                help="1: one list of loops around nodes; 2: one list of those inside; 3: one list more than cutoffs",
            )

    def split(self, operation: Operation, number: int) -> Loops:
        """Of an operation by its number."""
        mine = self.loops[sum(number >= cutoff for cutoff in self.cutoffs)]
        return _around(operation, mine) if self.mode == INSIDE else mine


def check_hints(network: OperationGraph, hints: Hints) -> None:
    """An error where a loop is named along which nothing can be cut, or no part begins at a cutoff."""
    count, bounds = len(network.operations), (0, *hints.cutoffs)
    if any(first >= then or then >= count for first, then in pairwise(bounds)):
        raise TilewrightError(
            "bad-argument",
            f"parts of '{network.name}' cannot begin at operations {', '.join(map(str, hints.cutoffs))}",
            help=f"give rising numbers from 1 to {count - 1}, the last operation",
        )
    for name in dict.fromkeys(name for loops in hints.loops for name, _ in loops):
        if not any(cut(operation, ((name, 1),)) for operation in network.operations):
            known = {role for operation in network.operations for role in operation.domain.parallel}
            known |= {role for operation in network.operations for role in _roles(operation)}
            raise TilewrightError(
                "unknown-dimension",
                f"no operation of '{network.name}' can be cut along {name}",
                help=f"cut along {', '.join(sorted(known))}",
            )


def _roles(operation: Operation) -> tuple[str, ...]:
    """The names of its axes, as other tools call them, along which it can be cut."""
    names = ROLES.get(len(operation.domain.access[operation.domain.outputs[0]]), ())
    return tuple(name for name in names if cut(operation, ((name, 1),)))


def placed(
    network: OperationGraph, fabric: Fabric, mapping: StreamMapping | None, hints: Hints | None = None
) -> OperationPlacement:
    """Of a mapping file, if there is one; operations that it does not cut are cut as hints say."""
    engines: dict[str, tuple[str, ...]] = {}
    splits: dict[str, OperationSplit] = {}
    fixed: set[str] = set()
    for number, operation in enumerate(network.operations):
        entry = mapping.entry(operation.name, operation.kind) if mapping else None
        engines[operation.name] = entry.engines if entry else fabric.engines
        if not engines[operation.name]:
            raise TilewrightError(
                "unallocated-layer",
                f"nothing says which engine computes '{operation.name}'",
                help=f"name one of {', '.join(fabric.engines)} for it, or for 'default', in the mapping",
            )
        loops = hints.split(operation, number) if hints else ()
        within = entry.within if entry and entry.within else loops
        splits[operation.name] = OperationSplit(cut(operation, entry.across) if entry else (), cut(operation, within))
        if entry and (entry.within or entry.across):
            fixed.add(operation.name)
    return OperationPlacement(engines, splits, frozenset(fixed))


def _around(operation: Operation, inside: Loops) -> Loops:
    """The loops around nodes that have some inside."""
    sizes = dict(operation.domain.dims)
    steps = dict.fromkeys(operation.domain.parallel, 1)
    for name, parts in inside:
        loop = loop_named(operation, name)
        if loop in steps:
            steps[loop] = sizes[loop] if parts == "all" else min(parts, sizes[loop])
    return tuple((loop, -(-sizes[loop] // size)) for loop, size in steps.items() if sizes[loop] > size)
