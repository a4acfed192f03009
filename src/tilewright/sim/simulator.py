"""Running programs on simulated machines: load, run, step, look into memory, count."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Literal

from msgspec import Struct

from tilewright import _native
from tilewright.errors import TilewrightError
from tilewright.machine.machine import Machine
from tilewright.machine.target import Target, described_platforms, load_platform
from tilewright.machine.timing import Timing
from tilewright.sim.findings import Finding, findings_of
from tilewright.sim.flags import flags_of
from tilewright.sim.limits import USUAL, Limits, cycle_limit, output_limit, time_limit
from tilewright.sim.program import ElfProgram, SourcePlace, Symbol, load_program
from tilewright.sim.stacks import stack_ends

Stop = Literal["exited", "fault", "deadlock", "cycle-limit", "output-limit", "time-limit", "breakpoint"]
"""Why a run ended: the program did, it did something that the machine cannot do, all harts wait for each other, the
cycles given are used up, it printed or lasted more than it may, or a hart is where the run was to end."""

SLICE = 1_000_000
"""Cycles that run before anybody is told: Ctrl-C, output and progress come through in between."""


class Look(Struct, frozen=True):
    """What is recorded of a run besides its counters; all of it costs speed."""

    checks: bool = False
    """Tell on programs that read what was never written, race with transfers, leave their stack and the like."""
    profile: bool = False
    trace: bool = False


NOTHING = Look()


class Simulator:
    """A machine with a program. `timing` is one of the platform's, its default where none is named."""

    def __init__(
        self, platform: str | Path | Target, timing: str = "", *, look: Look = NOTHING, limits: Limits = USUAL
    ) -> None:
        found = platform if isinstance(platform, Target) else load_platform(platform)
        self.platform = found
        self.timing = timing_of(found, timing)
        self.look = look
        self.limits = limits
        self.native = built(found, self.timing)
        self.program: ElfProgram | None = None
        self._output = bytearray()
        self._too_much = False
        self._reached = 0
        self.knows_flags = True
        """Whether checks know the variables by which harts tell each other; if not, they do not look for races."""
        if look.checks:
            self.native.observe_checks(True)
        if look.profile:
            self.native.record_profile(True)
        if look.trace:
            self.native.record_transfers(True)

    def load(self, program: Path | str | ElfProgram) -> ElfProgram:
        """Puts a program into memory; its first hart starts at the entry."""
        loaded = program if isinstance(program, ElfProgram) else load_program(program)
        for segment in loaded.segments:
            try:
                self._write(segment.address, segment.data)
            except IndexError:
                raise self._outside(loaded, segment.address, len(segment.data)) from None
        self.program = loaded
        if self.look.checks:
            self._find_flags(loaded)
        for hart, low in stack_ends(loaded, self.timing).items():
            self.native.set_stack(hart, low)
        if self.look.trace:
            self.native.record_trace(MOST_EVENTS, [function.address for function in loaded.functions])
        self._start(loaded)
        return loaded

    def _start(self, program: ElfProgram) -> None:
        """Harts at the program's entry, and the words in memory by which it talks to its host, where it has them."""
        first_argument = 10
        symbols = program.symbols
        if "tohost" in symbols:
            answers = symbols["fromhost"].address if "fromhost" in symbols else 0
            self.native.talk_to_host(symbols["tohost"].address, answers)
        if not self.timing.all_start:
            self.native.start(self.timing.first_hart(self.timing.starts), program.entry, 0)
            return
        for group in self.timing.harts.values():
            for index in range(group.count):
                hart = self.timing.first_hart(group.name) + index
                self.native.set_register(hart, first_argument, group.first_id + index)
                self.native.start(hart, program.entry, 0)

    def _find_flags(self, program: ElfProgram) -> None:
        """Tells the checks by which variables harts tell each other: without them, much looks as if it had no order."""
        flags = flags_of(program)
        self.knows_flags = flags is not None
        self.native.look_for_races(self.knows_flags)
        for address, size in flags or ():
            self.native.add_flag(address, size)

    def run(self, max_cycles: int | None = None, *, watch: Callable[[Simulator], None] | None = None) -> Stop:
        """Runs until the program ends or cannot go on; `watch` is called now and then.

        It has the cycles given, or all that the limits leave the machine, and their seconds for each call.
        """
        end = self.limits.most_cycles if max_cycles is None else self.cycles + max_cycles
        deadline = time.monotonic() + self.limits.seconds
        while True:
            until = min(self.cycles + SLICE, end)
            stop: Stop = self.native.run(until)
            if stop == "cycle-limit":
                self._reached = max(self._reached, until)
            self._take_output()
            if watch is not None:
                watch(self)
            if self._too_much:
                return "output-limit"
            if stop != "cycle-limit" or until == end:
                return stop
            if time.monotonic() > deadline:
                return "time-limit"

    def run_until(self, place: str | int, max_cycles: int | None = None) -> Stop:
        """Runs until a hart is at a symbol or address ("breakpoint"), or until the run ends in another way."""
        self.native.break_at([self.symbol(place).address if isinstance(place, str) else place])
        try:
            return self.run(max_cycles)
        finally:
            self.native.break_at([])

    def step(self, hart: int = 0) -> Stop:
        """One instruction of a hart; others go on as far as they would meanwhile."""
        stop = self.native.step(hart)
        self._take_output()
        return stop

    def _take_output(self) -> None:
        """Keeps what the program has printed, as far as it may."""
        new = self.native.take_output()
        room = self.limits.output - len(self._output)
        self._output += new[:room]
        self._too_much = self._too_much or len(new) > room

    def limit_error(self, stop: Stop) -> TilewrightError | None:
        """The error of a run that ended for a limit."""
        name = self.program.path.name if self.program else ""
        if stop == "cycle-limit":
            return cycle_limit(name, self.limits, self.platform.unit, self.whereabouts())
        if stop == "output-limit":
            return output_limit(name, self.limits)
        return time_limit(name, self.limits, self.whereabouts()) if stop == "time-limit" else None

    @property
    def cycles(self) -> int:
        """Of the machine's clock, so far."""
        # The native machine stays at its last event; a run that came to the end of its cycles has passed these.
        return max(self.native.now, self._reached)

    @property
    def instructions(self) -> int:
        """Of all harts, so far."""
        return sum(self.native.counters(hart)["instructions"] for hart in range(len(self.timing.hart_names)))

    @property
    def output(self) -> bytes:
        """All that the program has printed, up to its limit."""
        return self.output_from(0)

    def output_from(self, position: int) -> bytes:
        """What it has printed beyond the first bytes."""
        return bytes(self._output[position:])

    @property
    def exit_code(self) -> int:
        return self.native.exit_code

    @property
    def stopped_hart(self) -> int:
        """The hart that a run ended at a breakpoint for."""
        return self.native.stopped_hart

    def symbol(self, name: str) -> Symbol:
        symbols: Mapping[str, Symbol] = self.program.symbols if self.program else {}
        if name not in symbols:
            raise TilewrightError(
                "unknown-symbol",
                f"the program has no symbol '{name}'",
                reasons=[] if self.program else ["no program is loaded"],
                help="give an address, or a name that `riscv64-unknown-elf-nm` lists",
            )
        return symbols[name]

    def address(self, place: str | int) -> int:
        return place if isinstance(place, int) else self.symbol(place).address

    def read(self, place: str | int, size: int | None = None) -> bytes:
        """Bytes at an address, or of a symbol (as many as it has); also of a memory that only programs' images name."""
        count = self.symbol(place).size if size is None and isinstance(place, str) else size
        if count is None:
            raise TilewrightError("bad-argument", f"how many bytes to read at {place:#x} is not said")
        image = self._image(self.address(place))
        try:
            return self.native.read_memory(*image, count) if image else self.native.read(self.address(place), count)
        except IndexError:
            raise self._no_memory(self.address(place), count) from None

    def write(self, place: str | int, data: bytes) -> None:
        """Changes memory. A program that has begun notices, just as of a transfer."""
        try:
            self._write(self.address(place), data)
        except IndexError:
            raise self._no_memory(self.address(place), len(data)) from None

    def read_words(self, place: str | int, count: int = 1) -> tuple[int, ...]:
        """Whole numbers of 32 bits without sign."""
        raw = self.read(place, 4 * count)
        return tuple(int.from_bytes(raw[at : at + 4], "little") for at in range(0, len(raw), 4))

    def read_memory(self, name: str, offset: int, size: int) -> bytes:
        """Bytes of a memory by its name, also of one that has no address."""
        return self.native.read_memory(name, offset, size)

    def register(self, hart: int, number: int) -> int:
        return self.native.register(hart, number)

    def pc(self, hart: int) -> int:
        return self.native.pc(hart)

    def place(self, address: int) -> SourcePlace:
        """An address in words: function and line, where the program knows them."""
        return self.program.place(address) if self.program else SourcePlace(address)

    def findings(self) -> tuple[Finding, ...]:
        """What the checks found and what stopped the machine, errors before warnings."""
        return findings_of(self.native, self.program, self.timing.hart_names) if self.program else ()

    def whereabouts(self) -> list[str]:
        """Where each hart is that has started."""
        lines: list[str] = []
        for index, name in enumerate(self.timing.hart_names):
            state = self.native.state(index)
            if state != "off":
                lines.append(f"{name}: {'asleep at ' if state == 'asleep' else ''}{self.place(self.pc(index))}")
        return lines

    def _write(self, address: int, data: bytes) -> None:
        image = self._image(address)
        if image:
            self.native.write_memory(*image, data)
        else:
            self.native.write(address, data)

    def _image(self, address: int) -> tuple[str, int] | None:
        """The memory, and where in it, that an address stands for which no hart can use."""
        for memory in self.platform.memories.values():
            if memory.image is not None and memory.image <= address < memory.image + memory.length:
                return memory.name, address - memory.image
        return None

    def _outside(self, program: ElfProgram, address: int, size: int) -> TilewrightError:
        return TilewrightError(
            "bad-elf",
            f"'{program.path}' does not fit into the memories of '{self.platform.name}'",
            reasons=[f"it has {size} bytes at {address:#010x}", *self._memories()],
            help="link it with the addresses of this machine's memories",
        )

    def _no_memory(self, address: int, size: int) -> TilewrightError:
        return TilewrightError(
            "bad-argument", f"there is no memory for {size} bytes at {address:#010x}", reasons=self._memories()
        )

    def _memories(self) -> list[str]:
        return [
            f"{memory.name} is at {memory.base:#010x} to {memory.base + memory.length:#010x}"
            for memory in self.platform.memories.values()
            if memory.base is not None
        ]


MOST_EVENTS = 4_000_000
"""Of a trace, kept between two slices."""


def timing_of(platform: Machine, timing: str = "") -> Timing:
    """How a platform is simulated, with a timing by name."""
    if not platform.timings:
        others = [other.name for other in described_platforms() if other.timings]
        raise TilewrightError(
            "no-simulator",
            f"there is no simulator for platform '{platform.name}'",
            reasons=["its platform.yaml has no part 'simulator'"],
            help=f"choose one with a simulator: {', '.join(others)}",
        )
    if timing and timing not in platform.timings:
        raise TilewrightError(
            "unknown-timing",
            f"platform '{platform.name}' has no timing '{timing}'",
            help=f"choose {' or '.join(platform.timings)}",
        )
    return platform.timings[timing] if timing else next(iter(platform.timings.values()))


@cache
def simulator_digest() -> str:
    """Of the simulator's own code: results of another one may differ."""
    return hashlib.sha256(Path(_native.__file__).read_bytes()).hexdigest()


def built(machine: Machine, timing: Timing) -> _native.Machine:
    """The native machine of a description, with one of its timings."""
    made = _native.Machine()
    try:
        _describe(made, machine, timing)
    except ValueError as reason:
        raise TilewrightError(
            "bad-platform",
            f"the simulator cannot build this machine: {reason}",
            help=f"change it under `simulator` in the description of '{machine.name}'",
        ) from reason
    except MemoryError as reason:
        # Address space only, several bytes for each of a memory: pages exist once they are touched.
        largest = max(machine.memories.values(), key=lambda memory: memory.length)
        raise TilewrightError(
            "bad-platform",
            f"the simulator cannot reserve memory '{largest.name}' of {largest.length} bytes",
            help=f"make it smaller under `memories` in the description of '{machine.name}'",
        ) from reason
    return made


def _describe(made: _native.Machine, machine: Machine, timing: Timing) -> None:
    for memory in machine.memories.values():
        if memory.base is None:
            made.add_outer_memory(memory.name, memory.length, memory.fill)
        else:
            made.add_memory(
                memory.name, memory.base, memory.length, memory.banks, bool(memory.executable), memory.bank_bytes
            )
    for group in timing.harts.values():
        harts = {
            "count": group.count,
            "first_id": group.first_id,
            "near_banks": int(group.near_banks),
            "outstanding_loads": group.outstanding_loads,
            "early_counters": int(group.early_counters),
            "clock_numerator": group.clock[0],
            "clock_denominator": group.clock[1],
        }
        made.add_harts(
            group.name,
            group.extensions,
            harts,
            dict(group.pipeline),
            dict(group.fetch),
            dict(group.cycles),
            group.near,
            dict(group.tiles or {}),
        )
        for unit in group.units:
            made.add_units(group.name, unit.instructions, unit.count, unit.cycles, unit.round_robin)
    for alias in timing.aliases:
        made.add_alias(alias.memory, alias.base, alias.size, alias.test_and_set, alias.harts)
    for device in timing.devices.values():
        made.add_device(device.kind, device.name, device.base, device.size, dict(device.settings))
    for window in timing.windows:
        made.add_window(window.name, window.device, window.base, window.size, window.offset)
