"""The Plan: for each node its engine and kernel, for each tensor its memory, address and lifetime."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import MappingProxyType

from msgspec import Struct, field
from msgspec.structs import replace

from tilewright.core.graph import Graph
from tilewright.core.moves import Move, Run
from tilewright.core.tiles import TileLoop
from tilewright.machine.kernel import Kernel
from tilewright.machine.target import Target

CONSTANT_ALIGNMENT = 16
"""Of constants in their memory."""


class Place(Struct, frozen=True):
    """Where a tensor lives: bytes of a memory, of an input or output of the network, or among the constants.

    Until it is written, the memory of an output is lent to other tensors, so a place there may have an offset too.
    """

    space: str
    """`input`, `output`, `constant`, `state`, or the name of a memory."""
    offset: int = 0
    """In bytes."""
    index: int = 0
    """Which input or output, or which section of the constants."""


class Rejection(Struct, frozen=True):
    """Why a kernel was not taken for a node."""

    kernel: str
    reason: str


class Choice(Struct, frozen=True):
    """How one node is computed: by a kernel, or by the loop nest printed from its access maps (`kernel` None)."""

    engine: str
    kernel: Kernel | None
    variables: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """The element type taken for each type variable of the kernel."""
    scratch: int = 0
    rejected: tuple[Rejection, ...] = ()
    unroll: int = 1
    """How many turns of the innermost loop of a nest the compiler is asked to join."""


class Buffer(Struct, frozen=True):
    """Bytes held from step `first` up to, not including, step `last`, in the arena or lent by an output."""

    name: str
    bytes: int
    first: int
    last: int
    place: Place


class TileBuffer(Struct, frozen=True):
    """Bytes in the engine's memory for the part of a tensor that a group works on.

    A tensor from outside is brought in, a result taken out by DMA; with more than one slot that happens while the group
    works on another slot. A tensor that stays inside the group has one slot.
    """

    tensor: str
    offset: int
    bytes: int
    """Of one slot."""
    slots: int
    pack: str = ""
    """How a constant is reordered for the kernel that reads it here."""
    within: int = -1
    """The buffer of the result whose bytes it has: each element is loaded to where the result has it, and not copied
    any more. -1 where it has bytes of its own."""

    @property
    def end(self) -> int:
        return self.offset + self.bytes * self.slots


class NodeWork(Struct, frozen=True):
    """How one node of a group is computed."""

    step: int
    """Which node of the graph."""
    buffers: Mapping[str, int]
    """The tile buffer of each use, by key. A use that is not named is read or written where its tensor lives."""
    scratch: int = 0
    """Offset of the kernel's scratch bytes in the engine's memory; each core has its own, one behind the other."""
    scratch_bytes: int = 0
    """Of one core."""
    split: str = ""
    """The dimension that cores share; "" where one core does it all."""
    chunk: int = 0
    """How much of it each core takes."""
    sums: int = 0
    """Bytes behind the scratch of all cores for the sums of what parts of a cut reduction give; 0 where none is cut.
    They are those of the whole tile, dense like its result."""

    def sums_at(self, cores: int) -> int:
        """Offset of the sums in the engine's memory."""
        return self.scratch + self.scratch_bytes * (cores if self.split else 1)


class Group(Struct, frozen=True):
    """Nodes that run depth-first, tile by tile."""

    works: tuple[NodeWork, ...]
    loops: tuple[TileLoop, ...]
    """Outermost first, over dimensions of the last node; those over reductions, which a kernel adds up, innermost."""
    buffers: tuple[TileBuffer, ...]
    keep: Mapping[str, int]
    """Tensors of which lines are kept from one step of the innermost loop to the next, with the axis of the lines."""
    cycles: float = 0.0
    """Predicted, or measured where the schedule says so."""
    ahead: bool = False
    """Whether the first node runs one step ahead of the others, on an engine that works beside the cores.

    A node that is alone has its next step's work queued there before it is done with one.
    """

    @property
    def queued(self) -> bool:
        """Whether an engine beside the cores works alone, with two steps at a time on their way."""
        return self.ahead and len(self.works) == 1

    def awaits(self, kernel: Kernel | None) -> frozenset[str]:
        """Operands that the node of a group with nothing else and one step may await itself, computed by a kernel."""
        alone = len(self.works) == 1 and not self.works[0].split and all(loop.count == 1 for loop in self.loops)
        return frozenset(kernel.awaits) if kernel is not None and alone else frozenset()

    def ragged_loop(self, dims: Mapping[str, int]) -> int | None:
        """The first loop whose last tile is smaller; starts of jobs have code of their own for that one."""
        return next((number for number, loop in enumerate(self.loops) if dims[loop.dim] % loop.size), None)

    def is_ragged(self, step: int, dims: Mapping[str, int]) -> bool:
        """Whether a step is at the end of that loop."""
        number = self.ragged_loop(dims)
        if number is None:
            return False
        inner = prod(loop.count for loop in self.loops[number + 1 :])
        return step // inner % self.loops[number].count == self.loops[number].count - 1

    def with_buffer(self, index: int, new: TileBuffer) -> Group:
        """The same with another buffer; a result and what lies within it stay together."""
        outer = new.within if new.within >= 0 else index
        buffers = tuple(
            new if number == index else replace(other, offset=new.offset) if outer in (number, other.within) else other
            for number, other in enumerate(self.buffers)
        )
        return replace(self, buffers=buffers)

    def inlaid(self, work: NodeWork) -> frozenset[str]:
        """Operands of a node that lie within its result already when it is computed."""
        return frozenset(key for key, index in work.buffers.items() if self.buffers[index].within >= 0)


class Stage(Struct, frozen=True):
    """A tensor of the home memory held in a nearer one: copied before one group, there until another's end."""

    tensor: str
    pack: str
    place: Place
    bytes: int
    start: int
    """The group before which the copy is started."""
    first: int
    """The first group that reads it."""
    last: int
    """The last group that reads it."""


class Schedule(Struct, frozen=True):
    """Tiled execution on a machine with several memories."""

    engine: str
    home: str
    """The memory of inputs, outputs and constants."""
    groups: tuple[Group, ...]
    stages: tuple[Stage, ...]
    direct: frozenset[str]
    """Constants in a memory that the engine reads in place."""
    used: Mapping[str, int]
    """Bytes needed of each memory."""
    cores: int
    bound: float = 0.0
    """No plan of the kinds considered takes fewer predicted cycles, where as much is loaded early as here."""
    states: str = ""
    """The memory of states, where there are some."""
    moves: tuple[Move, ...] = ()
    runs: tuple[Run, ...] = ()
    measured: bool = False
    """Whether the cycles of the groups were simulated; then they add up to those of the program."""

    @property
    def cycles(self) -> float:
        """Of all groups."""
        return sum(group.cycles for group in self.groups)

    @property
    def known(self) -> str:
        """How the cycles are known."""
        return "measured" if self.measured else "predicted"

    def memory(self, place: Place) -> str:
        """The memory that a place is in."""
        if place.space == "state":
            return self.states
        return self.home if place.space in ("input", "output", "constant") else place.space


class Plan(Struct, frozen=True):
    """A network placed on a platform. Node i of the graph runs at step i."""

    graph: Graph
    platform: Target
    choices: tuple[Choice, ...]
    places: Mapping[str, Place]
    buffers: tuple[Buffer, ...]
    scratch: Mapping[int, int]
    """Arena offset of the scratch bytes of the steps that need some."""
    arena_bytes: int
    lower_bound: int
    """No allocation of this order needs fewer bytes."""
    optimal: bool
    schedule: Schedule | None = None
    """On machines whose engine has a memory of its own; elsewhere every node runs once, on whole tensors."""
    state_bytes: int = 0
    """Of all states, which lie in memory of their own from run to run."""
