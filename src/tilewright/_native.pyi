"""What the compiled part of the simulator offers (native/src/module.cpp and the bindings it calls)."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

_Words: TypeAlias = NDArray[np.uint32]
_Bytes: TypeAlias = NDArray[np.uint8]
_Sizes: TypeAlias = NDArray[np.int64]

Stop: TypeAlias = Literal["cycle-limit", "exited", "fault", "deadlock", "breakpoint"]

class Counters(TypedDict):
    """What a hart did, in events and in cycles of its own clock."""

    instructions: int
    cycles: int
    loads: int
    stores: int
    jumps: int
    branches: int
    taken: int
    stall_use: int
    stall_branch: int
    stall_bank: int
    stall_unit: int
    stall_memory: int
    stall_misaligned: int
    stall_fetch: int
    fetch_misses: int
    asleep: int

class Fault(TypedDict):
    """Why the machine cannot go on, and where."""

    kind: str
    message: str
    hart: int
    pc: int
    address: int
    time: int

class Transfer(TypedDict):
    """What a device did on its own: a DMA transfer, a job of an accelerator."""

    id: int
    what: str
    lane: str
    hart: int
    pc: int
    started: int
    finished: int
    bytes: int

class OtherAccess(TypedDict):
    """The other access of a race, by a hart; its pc is 0 where that is not known any more."""

    hart: int
    pc: int
    stack: list[int]

class Finding(TypedDict):
    """Something that a program must not do, as the checks saw it."""

    kind: str
    warning: bool
    message: str
    hart: int
    pc: int
    address: int
    time: int
    count: int
    stack: list[int]
    missing: str
    other: OtherAccess | None
    transfer: Transfer | None
    range: tuple[int, int] | None

class Machine:
    """Harts, memories and devices. Memories are described first, then harts, then devices."""

    def __init__(self) -> None: ...
    def add_memory(
        self, name: str, base: int, size: int, banks: int, executable: bool, bank_bytes: int = 4
    ) -> None: ...
    def add_outer_memory(self, name: str, size: int, fill: int) -> None: ...
    def add_alias(self, memory: str, base: int, size: int, test_and_set: bool, group: str) -> None: ...
    def add_harts(
        self,
        name: str,
        extensions: Sequence[str],
        harts: Mapping[str, int],
        pipeline: Mapping[str, int],
        fetch: Mapping[str, int],
        cycles: Mapping[str, int],
        near: str,
        tiles: Mapping[str, int] = ...,
    ) -> None: ...
    def add_units(
        self, harts: str, instructions: Sequence[str], count: int, cycles: int, round_robin: bool
    ) -> None: ...
    def add_device(self, kind: str, name: str, base: int, size: int, settings: Mapping[str, int | str]) -> None: ...
    def add_window(self, name: str, device: str, base: int, size: int, offset: int) -> None: ...
    def talk_to_host(self, to_host: int, from_host: int) -> None: ...
    def start(self, hart: int, pc: int, time: int) -> None: ...
    def run(self, until: int) -> Stop: ...
    def step(self, hart: int) -> Stop: ...
    @property
    def now(self) -> int: ...
    @property
    def exit_code(self) -> int: ...
    def take_output(self) -> bytes: ...
    def fault(self) -> Fault | None: ...
    def register(self, hart: int, number: int) -> int: ...
    def set_register(self, hart: int, number: int, value: int) -> None: ...
    def float_register(self, hart: int, number: int) -> int: ...
    def set_float_register(self, hart: int, number: int, value: int) -> None: ...
    def fcsr(self, hart: int) -> int: ...
    def set_fcsr(self, hart: int, value: int) -> None: ...
    def pc(self, hart: int) -> int: ...
    def disassemble(self, hart: int, word: int, pc: int) -> str: ...
    def read(self, address: int, size: int) -> bytes: ...
    def write(self, address: int, data: bytes) -> None: ...
    def read_memory(self, name: str, offset: int, size: int) -> bytes: ...
    def write_memory(self, name: str, offset: int, data: bytes) -> None: ...
    def counters(self, hart: int) -> Counters: ...
    def state(self, hart: int) -> Literal["off", "running", "asleep"]: ...
    def statistics(self) -> dict[str, dict[str, int]]: ...
    def far_accesses(self) -> dict[str, int]: ...
    def record_profile(self, on: bool) -> None: ...
    def profile(self, group: int) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]: ...
    def record_trace(self, most: int, functions: Sequence[int]) -> None: ...
    def take_trace(self) -> tuple[NDArray[np.int64], NDArray[np.uint16], NDArray[np.uint8], NDArray[np.uint32]]: ...
    @property
    def trace_left_out(self) -> int: ...
    def break_at(self, addresses: Sequence[int]) -> None: ...
    @property
    def stopped_hart(self) -> int: ...
    def mark(self, hart: int, addresses: Sequence[int]) -> None: ...
    def take_passages(
        self,
    ) -> tuple[NDArray[np.int64], NDArray[np.uint16], NDArray[np.uint32], dict[str, NDArray[np.uint64]]]: ...
    def observe_checks(self, on: bool) -> None: ...
    def record_transfers(self, on: bool) -> None: ...
    def add_flag(self, address: int, size: int) -> None: ...
    def look_for_races(self, on: bool) -> None: ...
    def set_stack(self, hart: int, low: int) -> None: ...
    def findings(self) -> list[Finding]: ...
    @property
    def findings_left_out(self) -> int: ...
    def transfers(self) -> list[Transfer]: ...
    @property
    def transfers_left_out(self) -> int: ...

def instruction_table() -> list[tuple[str, str, int, int, str, str, str]]:
    """All 32-bit instructions: id, name, match, mask, operands, timing, extension."""

def compressed_table() -> list[tuple[str, int, int]]:
    """All compressed instructions: name, match, mask."""

def expand_compressed(word: int) -> int:
    """The 32-bit instruction that a compressed one stands for; 0 where there is none."""

def float32_op(name: str, a: _Words, b: _Words, c: _Words, rounding: int, flags_in: int) -> tuple[_Words, _Words]: ...

class NeurekaResult:
    @property
    def fault(self) -> str | None: ...
    @property
    def cycles(self) -> int: ...
    @property
    def hidden(self) -> int: ...
    @property
    def multiplications(self) -> int: ...
    @property
    def peak_multiplications_per_cycle(self) -> float: ...
    @property
    def phase_cycles(self) -> dict[str, int]: ...
    @property
    def phase_bytes(self) -> dict[str, int]: ...

def neureka_run(
    registers: Sequence[int],
    tcdm: _Bytes,
    weights: _Bytes,
    tcdm_base: int,
    tcdm_mask: int,
    timing: Mapping[str, int],
    gvsoc: bool = False,
    hidden: int = 0,
) -> NeurekaResult: ...
def neureka_busy(
    mode: str,
    settings: Mapping[str, int],
    height: _Sizes,
    width: _Sizes,
    inputs: _Sizes,
    outputs: _Sizes,
    bottom: _Sizes,
    right: _Sizes,
    weight_bits: _Sizes,
    scaled: _Sizes,
    prefetch: _Sizes,
) -> _Sizes:
    """Cycles in which each of many jobs keeps the array busy, by numbers of the device; 0 for jobs of no size."""

def neureka_ranges(
    registers: Sequence[int], tcdm: _Bytes, weights: _Bytes, tcdm_base: int, tcdm_mask: int, gvsoc: bool = False
) -> list[tuple[str, bool, bool, int, int]]: ...

class ItaEngine:
    """ITA with a memory, without the device around it: jobs are products of two tiles, in the order of their layer."""

    def __init__(self, memory: _Bytes, timing: Mapping[str, int]) -> None: ...
    def run(self, registers: Sequence[int]) -> int:
        """The cycles of the next job; ValueError where it cannot run."""
    def rows(self) -> list[tuple[int, int, int]]:
        """Maximum, sum and inverse of each row of the softmax."""

def ita_busy(
    mode: str, settings: Mapping[str, int], rows: _Sizes, columns: _Sizes, inner: _Sizes, bias: _Sizes, output: _Sizes
) -> _Sizes:
    """Cycles in which each of many parts of layers keeps the engine busy, by numbers of the device."""

def ita_units_busy(
    mode: str, settings: Mapping[str, int], rows: _Sizes, embedding: _Sizes, projection: _Sizes
) -> _Sizes:
    """Cycles of the products of heads, each on a unit, by numbers of the device."""

def ita_requantise(sum: int, mult: int, shift: int, add: int) -> int: ...
def ita_activate(value: int, kind: int, b: int, c: int, mult: int, shift: int, add: int) -> int: ...
def ita_softmax(scores: Sequence[int]) -> list[int]: ...

class ScheduleResult(TypedDict):
    """What a schedule of many cores comes to; the rest is there where a trace was asked for."""

    failure: int
    failed: tuple[int, int, int, int]
    latency: int
    compute_energy: float
    far_energy: float
    link_energy: list[float]
    memory_energy: list[float]
    peaks: list[int]
    start: _Sizes
    end: _Sizes
    transfers: tuple[_Sizes, ...]
    busy: tuple[_Sizes, ...]
    stored: tuple[_Sizes, ...]

class Scheduler:
    """List scheduling over cores, links and memories."""

    def __init__(
        self, fabric: Mapping[str, object], work: Mapping[str, object], by_time: bool, as_stream: bool
    ) -> None: ...
    def run(self, places: NDArray[np.int32], trace: bool = False) -> ScheduleResult: ...
    def evaluate(self, places: NDArray[np.int32], workers: int) -> tuple[_Sizes, NDArray[np.float64], _Sizes]: ...
