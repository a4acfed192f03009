"""What the simulator's checks found in a program, with the names that its ELF file gives to addresses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tilewright import _native
from tilewright.sim.program import ElfProgram, SourcePlace


class TransferOf(Struct, frozen=True):
    """The transfer that a finding is about."""

    what: str
    hart: str
    """That started it."""
    place: SourcePlace
    """The instruction that did."""
    started: int
    finished: int | None
    """None: it still ran."""
    range: tuple[int, int] | None
    """Those of its bytes that hold the finding's address: begin and end."""

    def __str__(self) -> str:
        end = "still running" if self.finished is None else f"ended in cycle {self.finished}"
        held = "" if self.range is None else f", bytes 0x{self.range[0]:08x}..0x{self.range[1]:08x}"
        return f"{self.what}{held}, started by {self.hart} at {self.place} in cycle {self.started}, {end}"


class OtherAccess(Struct, frozen=True):
    """What another hart did with the same bytes."""

    hart: str
    place: SourcePlace | None
    """The instruction, where it is still known."""
    calls: tuple[SourcePlace, ...]
    """That led there, the last one first."""

    @property
    def lines(self) -> list[str]:
        return [f"{self.hart} at {self.place or 'an instruction that is not known any more'}", *_called(self.calls)]


class Finding(Struct, frozen=True):
    """A mistake in the program, or (a warning) something it had better not do."""

    kind: str
    warning: bool
    message: str
    hart: str
    """The first that did it."""
    place: SourcePlace
    """The instruction."""
    data: SourcePlace
    """What it was about."""
    time: int
    """Cycle of the machine, when it happened first."""
    count: int
    """How often the line of source did it."""
    transfer: TransferOf | None
    calls: tuple[SourcePlace, ...] = ()
    """That led to the instruction, the last one first."""
    other: OtherAccess | None = None
    """Of a race: what it races with, where that is another hart."""
    missing: str = ""
    """Of a race: what would have put it in order."""

    def __str__(self) -> str:
        again = "" if self.count == 1 else f", {self.count} times"
        lines = [
            f"{self.hart} at {self.place}, cycle {self.time}{again}",
            *_called(self.calls),
            *(self.other.lines if self.other is not None else ()),
            f"address {self.data}",
        ]
        if self.transfer is not None:
            lines.append(f"transfer: {self.transfer}")
        if self.missing:
            lines.append(f"missing: {self.missing}")
        return "\n  ".join([f"{self.kind}: {self.message}", *lines])


def _called(calls: Iterable[SourcePlace]) -> list[str]:
    return [f"  called from {place}" for place in calls]


def findings_of(machine: _native.Machine, program: ElfProgram, hart_names: Sequence[str]) -> tuple[Finding, ...]:
    """All findings, errors before warnings, each in the order of time; what stopped the machine is the last error.

    A line of source is named once for each kind of finding, however many instructions it has.
    """
    found = [_finding(each, program, hart_names) for each in machine.findings()]
    if (fault := machine.fault()) is not None:
        found.append(_of_fault(fault, program, hart_names))
    return tuple(sorted(_joined(found), key=lambda each: (each.warning, each.time)))


def _joined(found: Iterable[Finding]) -> Iterable[Finding]:
    lines: dict[tuple[str, str], Finding] = {}
    for each in found:
        key = each.kind, f"{each.place.function} {each.place.line}" if each.place.line else str(each.place)
        first = lines.setdefault(key, each)
        if first is not each:
            lines[key] = replace(first, count=first.count + each.count)
    return lines.values()


def _finding(found: _native.Finding, program: ElfProgram, hart_names: Sequence[str]) -> Finding:
    transfer, other = found["transfer"], found["other"]
    return Finding(
        found["kind"],
        found["warning"],
        found["message"],
        hart_names[found["hart"]],
        program.place(found["pc"]),
        _data(program, found["address"]),
        found["time"],
        found["count"],
        None if transfer is None else _transfer(transfer, found["range"], program, hart_names),
        tuple(map(program.place, found["stack"])),
        None if other is None else _other(other, program, hart_names),
        found["missing"],
    )


def _other(other: _native.OtherAccess, program: ElfProgram, hart_names: Sequence[str]) -> OtherAccess:
    place = program.place(other["pc"]) if other["pc"] else None
    return OtherAccess(hart_names[other["hart"]], place, tuple(map(program.place, other["stack"])))


def _transfer(
    transfer: _native.Transfer, held: tuple[int, int] | None, program: ElfProgram, hart_names: Sequence[str]
) -> TransferOf:
    return TransferOf(
        transfer["what"],
        hart_names[transfer["hart"]],
        program.place(transfer["pc"]),
        transfer["started"],
        None if transfer["finished"] < 0 else transfer["finished"],
        held,
    )


def _of_fault(fault: _native.Fault, program: ElfProgram, hart_names: Sequence[str]) -> Finding:
    return Finding(
        fault["kind"],
        False,
        fault["message"],
        hart_names[fault["hart"]],
        program.place(fault["pc"]),
        _data(program, fault["address"]),
        fault["time"],
        1,
        None,
    )


def _data(program: ElfProgram, address: int) -> SourcePlace:
    """The variable or function that an address lies in."""
    for symbol in program.all_symbols:
        if symbol.address <= address < symbol.address + symbol.size:
            return SourcePlace(address, symbol.name, address - symbol.address)
    return SourcePlace(address)
