"""Executes instructions one after another, each with registers and memory of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sim import machines
from sim.encoder import word_bytes
from tilewright import _native

LINK = 1


def no_registers() -> dict[int, int]:
    return {}


@dataclass(frozen=True)
class Start:
    """Code and the state before it; code of several instructions may return by x1."""

    words: Sequence[int]
    x: Mapping[int, int] = field(default_factory=no_registers)
    f: Mapping[int, int] = field(default_factory=no_registers)
    fcsr: int = 0
    memory: tuple[int, bytes] | None = None
    """An address and bytes there."""


def run_each(starts: Sequence[Start], data_bytes: int = 0x10000) -> Iterator[_native.Machine]:
    """The machine after each; memory for data is behind the code, where `data_address` says."""
    codes = [word_bytes(*start.words) for start in starts]
    image = b"".join(codes)
    machine = machines.machine(size=data_address(starts) - machines.BASE + data_bytes)
    machine.write(machines.CODE, image)
    machine.start(0, machines.CODE, 0)
    behind = machines.CODE
    for start, code in zip(starts, codes, strict=True):
        behind += len(code)
        set_state(machine, start)
        if len(start.words) > 1:
            machine.set_register(0, LINK, behind)
        while True:
            stop = machine.step(0)
            assert stop == "cycle-limit", (machine.fault(), start)
            if machine.pc(0) == behind:
                break
        yield machine


def data_address(starts: Sequence[Start]) -> int:
    size = sum(len(word_bytes(*start.words)) for start in starts)
    return machines.CODE + size + -size % 0x1000


def set_state(machine: _native.Machine, start: Start) -> None:
    for number, value in start.x.items():
        machine.set_register(0, number, value)
    for number, value in start.f.items():
        machine.set_float_register(0, number, value)
    machine.set_fcsr(0, start.fcsr)
    if start.memory is not None:
        machine.write(*start.memory)
