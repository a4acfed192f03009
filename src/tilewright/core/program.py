"""The Program: C functions and the statements that make up one inference. C is printed from it."""

from __future__ import annotations

from typing import Literal as TypeLiteral

from msgspec import Struct

from tilewright.core.expr import Size
from tilewright.core.graph import Array, Bound, TensorType
from tilewright.core.plan import Place


class Pointer(Struct, frozen=True):
    """An argument that points at a tensor or at scratch bytes."""

    place: Place
    ctype: str
    const: bool
    offset: Size = 0
    """Further bytes, which may depend on where loops stand."""


class Literal(Struct, frozen=True):
    """A number passed by value, as C text."""

    text: str


class Number(Struct, frozen=True):
    """A whole number passed by value, which may depend on where loops stand."""

    value: Size


class ParameterBlock(Struct, frozen=True):
    """A parameter block of a fused epilogue, initialised at the call."""

    ctype: str
    fields: tuple[Pointer | Literal | Number, ...]


class Maybe(Struct, frozen=True):
    """A pointer that is passed where a value is 0; elsewhere NULL is."""

    pointer: Pointer
    value: Size


Argument = Pointer | Literal | Number | ParameterBlock | Maybe


class CFunction(Struct, frozen=True):
    """A C function (or a group that belongs together) as text; identical ones are emitted once."""

    name: str
    text: str


class Invoke(Struct, frozen=True):
    """One call of a function."""

    function: str
    arguments: tuple[Argument, ...]
    comment: str


class Test(Struct, frozen=True):
    """`value relation bound`, such as `i1 == 0`."""

    value: Size
    relation: str
    bound: int


class If(Struct, frozen=True):
    """Statements that run where all tests hold."""

    tests: tuple[Test, ...]
    body: tuple[Statement, ...]


class Let(Struct, frozen=True):
    """A name for a value."""

    name: str
    value: Size


class For(Struct, frozen=True):
    """A loop over `[start, stop)`."""

    name: str
    start: int
    stop: int
    body: tuple[Statement, ...]


class OnCores(Struct, frozen=True):
    """Statements that every core runs, with `name` as its number; behind it all are done, and together."""

    name: str
    count: int
    body: tuple[Statement, ...]
    beside: tuple[Statement, ...] = ()
    """What drives DMAs and other engines meanwhile; it has names of its own for all that it mentions."""


class Meet(Struct, frozen=True):
    """All cores, and what drives, go on when all of them are here."""


class Release(Struct, frozen=True):
    """What a kernel awaits itself is there: so many cores that run it need not wait for what drives any more."""

    count: int


class Driven(Struct, frozen=True):
    """Statements that only what drives DMAs and other engines runs."""

    body: tuple[Statement, ...]


class Copy(Struct, frozen=True):
    """Starts a DMA transfer: `counts` runs of `bytes`, with strides in bytes on both sides, outermost first."""

    channel: Size
    to: Pointer
    source: Pointer
    bytes: Size
    counts: tuple[Size, ...]
    to_strides: tuple[Size, ...]
    source_strides: tuple[Size, ...]
    rank: int
    """Dimensions of one transfer of the DMA, the run included; loops around it do the rest."""

    def inside(self, memory: str) -> bool:
        """Whether both sides are in a memory: in their own, cores copy."""
        return self.to.place.space == self.source.place.space == memory


class AwaitTransfers(Struct, frozen=True):
    """Goes on when all transfers of a channel are complete."""

    channel: Size


class MoveBytes(Struct, frozen=True):
    """Moves bytes inside a memory, to a lower address that may overlap."""

    to: Pointer
    source: Pointer
    bytes: Size


class StartEngine(Struct, frozen=True):
    """Calls that start work on an engine beside the cores."""

    engine: str
    body: tuple[Statement, ...]
    beside: tuple[Statement, ...] = ()
    """What is done next, with names of its own for all that it mentions."""
    single: bool = False
    """Whether it is one job, which may be described before it begins."""
    goes: bool = True
    """Whether work begins; else it is described, and begins with the next one, which calls nothing."""


class AwaitEngine(Struct, frozen=True):
    """Goes on when an engine has done all that was started."""

    engine: str
    recent: bool = True
    """Whether that includes what was started since this was waited for last."""


MarkedPlace = TypeLiteral["begin", "ahead", "start", "now", "work", "made", "store", "await", "end"]
"""Of the run of a group: its start, where transfers of a later step are started (the number is how many steps later),
where another engine is started for the next step and waited for (the number is the node's position in the group), where
a step starts its own transfers and waits for them, the computation of a node (the number is its position in the group)
and, in programs that are observed, its end, where results are sent off (the number is how many steps later), and where
the last of them are waited for."""


class Mark(Struct, frozen=True):
    """A place that profilers know; it does nothing."""

    group: int
    place: MarkedPlace
    number: int = 0


Statement = (
    Invoke
    | If
    | Let
    | For
    | OnCores
    | Meet
    | Release
    | Driven
    | Copy
    | AwaitTransfers
    | MoveBytes
    | Mark
    | StartEngine
    | AwaitEngine
)


class Routine(Struct, frozen=True):
    """The statements of one group of nodes."""

    name: str
    comment: str
    body: tuple[Statement, ...]


class Constant(Struct, frozen=True):
    """Bytes that stay in flash: a weight as the kernels want it, at its offset among all constants of its section."""

    name: str
    offset: int
    array: Array
    section: int = 0

    @property
    def place(self) -> Place:
        return Place("constant", self.offset, self.section)


class NetworkPort(Struct, frozen=True):
    """An input or output of the network."""

    name: str
    type: TensorType


class Runtime(Struct, frozen=True):
    """A size that is known when the program runs, and the input that says it."""

    bound: Bound
    input: int


class KeptState(Struct, frozen=True):
    """A state of the network, at its offset among all states; `initial` are bytes among the constants, None zeros."""

    name: str
    type: TensorType
    offset: int
    initial: Place | None


class Program(Struct, frozen=True):
    """Everything the C printer needs."""

    name: str
    inputs: tuple[NetworkPort, ...]
    outputs: tuple[NetworkPort, ...]
    functions: tuple[CFunction, ...]
    calls: tuple[Invoke | Mark, ...]
    constants: tuple[Constant, ...]
    constant_bytes: int
    arena_bytes: int
    headers: tuple[tuple[str, str], ...]
    """C headers by file name."""
    routines: tuple[Routine, ...] = ()
    """On machines with several memories: what runs, in order, instead of `calls`."""
    memories: tuple[tuple[str, int], ...] = ()
    """Bytes needed of each memory."""
    home: str = ""
    """The memory of inputs and outputs, where there are several."""
    sections: tuple[str, ...] = ("",)
    """Those that constants are in, by number; "" is that of all that is only read."""
    states: tuple[KeptState, ...] = ()
    states_at: int = 0
    """Where they begin in the arena; where there are several memories, the last of `memories` is theirs alone."""
    sizes: tuple[Runtime, ...] = ()
    entry: str = ""
    """Which one it is of the programs of a project, where that has several; they share constants and states."""

    @property
    def stem(self) -> str:
        """What names begin with that are its own, and no other program's of the project."""
        return f"{self.name}_{self.entry}" if self.entry else self.name

    @property
    def function(self) -> str:
        """The C function that runs it."""
        return self.stem if self.entry else f"{self.name}_run"

    @property
    def parts(self) -> list[int]:
        """Numbers of the groups, or steps, that profilers tell apart."""
        steps = [call.group for call in self.calls if isinstance(call, Mark)]
        return steps or [*range(len(self.routines))]
