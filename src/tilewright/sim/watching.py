"""Looks into the memory of a simulated chip wherever its program has computed a node.

The program has an instruction without effect there, which a section that is not loaded names (`codegen.observing`).
Cores meet behind what they compute together, so that all of it is there when the first of them comes to that place;
what another engine computes is there when the core that drives it comes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from tilewright.core.graph import Array, TensorType
from tilewright.core.plan import Place
from tilewright.machine.target import Target
from tilewright.sim.chip import Chip
from tilewright.sim.limits import USUAL, Limits
from tilewright.sim.marks import marks_of
from tilewright.sim.simulator import Stop


class Watched(Struct, frozen=True):
    """Bytes to look at, and whether only the core that drives knows when they are there."""

    spans: tuple[tuple[Place, int], ...]
    beside: bool


Tell = Callable[[tuple[int, int], Sequence[bytes]], None]
"""Takes the mark (group and number) and what is there."""


def watch_on_chip(
    executable: Path,
    inputs: Sequence[Array],
    outputs: Sequence[TensorType],
    platform: Target,
    memories: Sequence[str],
    watched: Mapping[tuple[int, int], Watched],
    tell: Tell,
    limits: Limits = USUAL,
) -> tuple[Array, ...]:
    """Feeds arrays to a program, tells what is seen as it runs, and reads its results back.

    `memories` are those that the program uses, in its order.
    """
    chip = Chip(executable, len(inputs), outputs, platform, steps=1, limits=limits)
    simulator, program = chip.simulator, chip.simulator.program
    assert program is not None
    places = {
        address: (mark.group, mark.number)
        for address, marks in marks_of(program).items()
        for mark in marks
        if mark.name == "made" and (mark.group, mark.number) in watched
    }
    starts = dict(zip(memories, simulator.read_words("memory", len(memories)), strict=True))
    driver = simulator.timing.first_hart(platform.cores.name) + platform.driver
    came: Counter[tuple[tuple[int, int], int]] = Counter()
    seen: Counter[tuple[int, int]] = Counter()

    def address(place: Place) -> int:
        match place.space:
            case "input":
                return chip.inputs[place.index] + place.offset
            case "output":
                return chip.outputs[place.index] + place.offset
            case "state":
                return starts[memories[-1]] + place.offset
            case memory:
                return starts[memory] + place.offset

    def look(hart: int, mark: tuple[int, int]) -> None:
        came[mark, hart] += 1
        if came[mark, hart] > seen[mark] and (hart == driver or not watched[mark].beside):
            seen[mark] += 1
            tell(mark, [simulator.read(address(place), size) for place, size in watched[mark].spans])

    def go() -> Stop:
        # Several harts may come there in the same cycle: a stop names one of them, passages all.
        for hart in range(len(simulator.timing.hart_names)):
            simulator.native.mark(hart, list(places))
        simulator.native.break_at(list(places))
        try:
            while (stop := simulator.run()) == "breakpoint":
                _, harts, addresses, _ = simulator.native.take_passages()
                for hart, passed in zip(harts.tolist(), addresses.tolist(), strict=True):
                    look(hart, places[passed])
        finally:
            simulator.native.break_at([])
        return stop

    return chip.run(inputs, go)
