"""What machines are made of: memories, links between them, engines of cores and devices, and energy."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from tilewright.base.schema import NAME, Flag, Number, Part, Positive, Whole

MOST_CORES, MOST_RANK, MOST_BANKS = 4096, 16, 2**16


class AccessEnergy(Part, frozen=True, kw_only=True):
    """Picojoules of a full word."""

    read: Number
    """Of a read."""
    write: Number
    """Of a write."""


class Memory(Part, frozen=True):
    """A memory."""

    name: str = field(name=NAME)
    bytes: Whole | None = None
    """Its size; as large as needed where nothing is said. Of the value, without what is reserved."""
    reserved: Whole = 0
    """How many of these bytes are not for networks: stacks and the like."""
    section: str = ""
    """The section of the program that goes there; nothing where constants go with all that is only read."""
    base: Whole | None = None
    """Its first address. The simulator takes one without for a memory that only devices reach."""
    ports: Flag = False
    """Whether it is the caller's: inputs and outputs of networks are there, and nothing else may be."""
    length: Whole = field(name="<length>", default=0)
    """Bytes that the machine has of it, however few a network may use."""
    banks: Annotated[int, Meta(ge=1, le=MOST_BANKS)] = 1
    """Banks of words in turn."""
    bank_bytes: Literal[4, 8] = 4
    """Of each of these words."""
    executable: Flag = False
    """Whether instructions may be fetched from it."""
    fill: Annotated[int, Meta(ge=0, le=255)] = 0
    """The byte that it is full of at the start."""
    image: Whole | None = None
    """Where a program has the bytes of a memory without a base: addresses that no hart can use."""
    word: Positive = 64
    """Bits of an access, where engines reach it by channels."""
    energy: AccessEnergy = AccessEnergy(read=0.0, write=0.0)
    """Picojoules of a word, where engines reach it by channels."""


class Link(Part, frozen=True):
    """Something that copies between two memories, both ways, while engines work."""

    name: str = field(name=NAME)
    between: tuple[str, str]
    """The two memories."""
    rank: Annotated[int, Meta(ge=1, le=MOST_RANK)]
    """Dimensions of one transfer; loops around it do the rest."""
    bytes_per_cycle: Annotated[float, Meta(gt=0, le=1e18)] = 1.0
    """Bytes that it copies in a cycle, needed of a DMA; that each core does, where these copy."""
    setup: Number = 0.0
    """Cycles before the first byte of a transfer."""
    run: Number = 0.0
    """Cycles that a run of bytes takes at least, however short; where cores copy, besides its bytes."""
    issue: Number = 0.0
    """Cycles of a core to start a transfer, in which it computes nothing."""
    queue: Whole = 0
    """How many transfers wait in it at most, each way: a core that starts one more waits until one of them begins. Any
    number where nothing is said."""
    duplex: Flag = False
    """Whether it copies both ways at once."""
    through: str = ""
    """The memory that bytes pass on their way, where two links do it in turn; it lends as many bytes as the engine's
    memory has."""
    by_cores: Flag = False
    """Whether it is a core that copies, so that nothing is computed meanwhile."""
    row: Number = 0.0
    """Cycles of each row of a transfer besides its bytes."""
    latency: Number = 0.0
    """Cycles from a request until it begins, where another core drives it; what runs goes on meanwhile."""
    request: Number = 0.0
    """Cycles between two transfers at least, as that core takes to start one."""
    wait: Number = 0.0
    """Cycles of a core to hand a load that is complete from one of two links to the other."""
    wake: Number = 0.0
    """Cycles from the end of a transfer that is waited for until that is known, where another core drives it; of a load
    by way of another memory, with those of `wait`."""
    passing: Number = 0.0
    """Cycles of a core to hand a store from one of two links to the other, besides those to start it."""
    cold: Number = 0.0
    """Cycles more until a transfer begins whose code is in no cache."""
    cold_wait: Number = 0.0
    """Cycles more of code that is in none to wait for loads that are complete, and to hand them on."""
    cold_end: Number = 0.0
    """The same of loads that are waited for: some of it comes meanwhile."""
    cold_passing: Number = 0.0
    """Cycles more of the first store behind these."""
    cold_start: Number = 0.0
    """Cycles of further such code at the first transfer of all."""
    issue_rows: Number = 0.0
    """Cycles of a core to start a transfer of several runs of bytes, besides those of one."""


class Channel(Struct, frozen=True):
    """A way for tensors between engines with memories of their own, and to the memory at home. All pairs of a source
    and a target share it."""

    name: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    bits: int | None = None
    """That cross it in a cycle; any number at once where it is None."""
    energy: float = 0.0
    """Picojoules of a bit."""
    multicast: bool = False
    """Whether all targets that want what crosses it take it at once."""


class Net(Part, frozen=True, kw_only=True):
    """Channels for tensors between engines with memories of their own, and to the memory at home."""

    name: str = field(name=NAME)
    kind: Literal["link", "ring", "mesh", "bus", "one_way"] = "link"
    """`link`: between each two, each way by itself; `ring`: with the next one, the last with the first; `mesh`: with
    neighbours in rows and columns; `bus`: one channel for all; `one_way`: one channel from `ends` to those in `to`."""
    ends: tuple[str, ...]
    """Engines, or the memory at home; of a mesh row by row."""
    to: tuple[str, ...] = ()
    """Those that receive, where it is `one_way`."""
    columns: Whole = 0
    """Of a mesh."""
    bits: Positive | None = None
    """Bits that cross a channel in a cycle; any number at once where nothing is said."""
    energy: Number = 0.0
    """Picojoules of a bit."""
    multicast: Flag = False
    """Whether all that will read what crosses a channel take it at once, those on its way included."""


class Offload(Part, frozen=True):
    """An operator that is offloaded to an engine, and how. What it leaves, cores compute behind it."""

    op: str
    """The operator."""
    weights: str = ""
    """The operand that it reads in place, where it has a memory for that."""
    added: str = ""
    """The operand that cores add to its sums."""
    channels_last: Flag = False
    """Whether it asks for channels as the last axis."""
    bits: Annotated[int, Meta(ge=0, le=8)] = 0
    """Weights have as many bits as they need, and so many at least; 0 where they are bytes."""


class Engine(Part, frozen=True, kw_only=True, tag_field="kind"):
    """What programs run on, or have work done by."""

    name: str = field(name=NAME)
    memory: str
    """The memory that it works in."""
    count: Annotated[int, Meta(ge=1, le=MOST_CORES)] = 1
    """How many there are of it, which share the work of a node."""
    reads: tuple[str, ...] = ()
    """Other memories that it reads in place."""
    takes: tuple[Offload, ...] = ()
    """The operators that it takes, where it works beside the cores that run programs."""
    fork: Whole = 0
    """Cycles to start work on all cores and wait for it; of a device, to start a step's jobs."""
    begin: Whole = 0
    """Cycles more of a kernel with a hook, or a device, that first runs in a group: its code comes into the caches."""
    peak: Number = 0.0
    """Multiply-accumulates of bytes that one core, or the device, does in a cycle at best; 0 where nobody says."""
    slows: Number = 0.0
    """Cycles that cores wait for memory in each cycle of a device beside them."""


class Cores(Engine, frozen=True, tag="cores"):
    """Cores that run programs."""

    drives: Whole | None = None
    """Which of the simulator's harts of this name drives DMAs and other engines, from 0 on; where nothing is said, the
    one behind those that compute, or the first if there is none."""
    reaches: tuple[str, ...] = ()
    """Other memories from which they read single elements in place."""


class Device(Engine, frozen=True, tag="device"):
    """Something that cores give jobs to, by kernels that name it."""

    device: str = ""
    """The simulated device that it is, whose timing its jobs have."""
    modes: tuple[str, ...] = ()
    """Array machines, by name or file, that say what its ways to work cost; a layer takes the best one."""
    early: Flag = False
    """Whether the runtime can describe jobs before they may begin (`TW_DESCRIBE`)."""
    go: Whole = 0
    """Cycles to let it begin with a job that was described before."""
    turn: Whole = 0
    """Cycles of its further steps, besides those to start them."""
    uneven: Whole = 0
    """The same where tiles of several loops differ in size, so that it is known at run time only."""


class EnergyPart(Part, frozen=True):
    """What something costs each time it happens."""

    activity: str
    """What happens, as the simulator counts it: `cluster.active`, `mchan.bytes_in`."""
    pj: Number
    """Picojoules, each time."""
    basis: Literal["published", "derived", "estimate"]
    """What the number rests on: said by its source, computed from what a source says, or a guess."""


class EnergyTerm(Struct, frozen=True):
    """Energy of one activity: a component's picojoules each time, and what that number rests on."""

    component: str
    activity: str
    picojoules: float
    basis: str
