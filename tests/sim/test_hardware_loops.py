"""Hardware loops: how often bodies run, how many cycles that takes, and what stands at their ends."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from sim import machines
from sim.encoder import encode, word_bytes
from tilewright import _native

A0, A1, A2, A3 = 10, 11, 12, 13
COUNT_REGISTERS = (5, 6)
OUTER_ONLY, INNER, BEHIND = 20, 21, 22
"""Registers that count how often the parts of nested loops run."""
CSR_START, CSR_END, CSR_COUNT = 0x7B0, 0x7B1, 0x7B2
STAY = encode("jal")
LONG = 1_000_000


def counting(register: int) -> int:
    return encode("addi", d=register, s=register, o=1)


def started(program: Sequence[int], pipeline: dict[str, int] | None = None) -> _native.Machine:
    """A machine that is to run a program, which then stays where it ends."""
    made = machines.machine(pipeline=machines.PIPELINE | (pipeline or {}))
    made.write(machines.CODE, word_bytes(*program, STAY))
    made.start(0, machines.CODE, 0)
    return made


def end_of(program: Sequence[int]) -> int:
    return machines.CODE + len(word_bytes(*program))


def cycles_of(program: Sequence[int], pipeline: dict[str, int] | None = None) -> int:
    made = started(program, pipeline)
    while made.pc(0) != end_of(program):
        assert made.step(0) == "cycle-limit"
    return made.counters(0)["cycles"]


@dataclass(frozen=True)
class Loop:
    """A hardware loop around some instructions, set up in one of the ways there are."""

    number: int
    count: int
    setup: str
    body: tuple[int, ...]

    def program(self) -> list[int]:
        register = COUNT_REGISTERS[self.number]
        length = len(word_bytes(*self.body))
        to_last = length - len(word_bytes(self.body[-1]))
        if self.setup == "setup":
            return [
                encode("addi", d=register, o=self.count),
                encode("lp_setup", L=self.number, s=register, b1=4 + to_last),
                *self.body,
            ]
        if self.setup == "setupi":
            return [encode("lp_setupi", L=self.number, j=self.count, b2=4 + to_last), *self.body]
        head = [encode("addi", d=register, o=self.count)] if self.setup == "count" else []
        head += [encode("lp_starti", L=self.number, b1=12), encode("lp_endi", L=self.number, b1=8 + to_last)]
        if self.setup == "count":
            head.append(encode("lp_count", L=self.number, s=register))
        else:
            head.append(encode("lp_counti", L=self.number, j=self.count))
        return [*head, *self.body]


COMPRESSED_COUNTING = 0x0A85
"""c.addi s5,1: register 21 counts the runs of the inner body."""


def random_loop(choice: random.Random, number: int, body: Sequence[int]) -> Loop:
    fits = len(word_bytes(*body)) + 4 <= 62  # what lp.setupi can reach
    ways = ["setup", "count", "counti", *(["setupi"] if fits else [])]
    return Loop(number, choice.choice([0, 1, 2, 3, choice.randrange(40)]), choice.choice(ways), tuple(body))


@pytest.mark.parametrize("seed", range(60))
def test_nested_loops(seed: int) -> None:
    choice = random.Random(seed)
    counter = choice.choice([counting(INNER), COMPRESSED_COUNTING])
    inner = random_loop(choice, 0, [counter] * choice.randrange(1, 6))
    before, behind = choice.randrange(3), choice.randrange(3)
    body = [counting(OUTER_ONLY)] * before + inner.program() + [counting(BEHIND)] * behind
    outer = random_loop(choice, 1, body)
    program = outer.program()
    made = started(program)
    made.run(LONG)
    assert made.pc(0) == end_of(program)
    rounds = max(outer.count, 1)
    assert made.register(0, OUTER_ONLY) == rounds * before
    assert made.register(0, INNER) == rounds * max(inner.count, 1) * len(inner.body)
    assert made.register(0, BEHIND) == rounds * behind


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("length", [1, 2, 3, 9])
@pytest.mark.parametrize("count", [0, 1, 2, 100])
def test_a_loop_costs_its_setup_and_nothing_for_the_way_back(number: int, length: int, count: int) -> None:
    loop = Loop(number, count, "setupi", (counting(A0),) * length)
    assert cycles_of(loop.program()) == 1 + max(count, 1) * length


def test_nested_loops_cost_nothing_for_the_way_back() -> None:
    inner = Loop(0, 10, "setupi", (counting(INNER),))
    outer = Loop(1, 10, "setupi", (*inner.program(), counting(BEHIND), counting(BEHIND)))
    assert cycles_of(outer.program()) == 1 + 10 * (1 + 10 + 2)


@pytest.mark.parametrize(
    ("body", "behind", "stalls"),
    [
        ([("addi", A1, A0), ("lw", A0, A2)], ("addi", A3, A3), 9),  # the first instruction waits for the last one
        ([("addi", A1, A0), ("lw", A0, A2)], ("addi", A3, A0), 10),  # and so does the one behind the loop
        ([("addi", A1, A3), ("lw", A0, A2)], ("addi", A3, A0), 1),
        ([("lw", A0, A2), ("addi", A1, A0)], ("addi", A3, A0), 10),
        ([("lw", A2, A2)], ("addi", A3, A3), 9),  # a body that waits for itself
        ([("addi", A1, A3), ("lw", A0, A2)], ("addi", A3, A3), 0),
    ],
)
def test_stalls_over_the_way_back(body: list[tuple[str, int, int]], behind: tuple[str, int, int], stalls: int) -> None:
    instructions = tuple(encode(name, d=rd, s=rs1) for name, rd, rs1 in body)
    rounds = 10
    name, rd, rs1 = behind
    program = [*Loop(0, rounds, "setupi", instructions).program(), encode(name, d=rd, s=rs1)]
    made = started(program, {"load_use": 1})
    made.set_register(0, A2, machines.DATA)
    made.write(machines.DATA, machines.DATA.to_bytes(4, "little"))
    while made.pc(0) != end_of(program):
        made.step(0)
    counters = made.counters(0)
    assert counters["stall_use"] == stalls
    assert counters["cycles"] == 1 + rounds * len(body) + 1 + stalls


def test_harts_count_for_themselves() -> None:
    made = machines.machine(harts=4)
    body = (counting(A0), encode("lw", d=A1, s=A2))
    made.write(machines.CODE, word_bytes(encode("lp_setup", L=0, s=A3, b1=8), *body, STAY))
    for hart in range(4):
        made.set_register(hart, A2, machines.DATA)
        made.set_register(hart, A3, 10 * hart)
        made.start(hart, machines.CODE, 0)
    made.run(LONG)
    assert [made.register(hart, A0) for hart in range(4)] == [1, 10, 20, 30]


def test_steps_go_from_the_last_instruction_to_the_first() -> None:
    program = Loop(0, 3, "setupi", (counting(A0), counting(A1))).program()
    made = started(program)
    visited: list[int] = []
    while made.pc(0) != end_of(program):
        visited.append(made.pc(0) - machines.CODE)
        made.step(0)
    assert visited == [0, 4, 8, 4, 8, 4, 8]


def test_a_long_loop_lets_others_go_on() -> None:
    made = machines.machine(harts=2)
    made.write(
        machines.CODE,
        word_bytes(encode("lp_setup", L=0, s=A0, b1=4), counting(A1), STAY, counting(A1), STAY),
    )
    made.set_register(0, A0, 0xFFFFFFFF)
    made.start(0, machines.CODE, 0)
    made.start(1, machines.CODE + 12, 0)
    assert made.run(20_000) == "cycle-limit"
    assert made.register(1, A1) == 1
    assert 10_000 < made.register(0, A1) < 40_000


def test_a_jump_at_the_end_of_a_body_links_to_what_is_behind() -> None:
    program = [encode("lp_setupi", L=0, j=0, b2=4), encode("jal", d=1, a=8), counting(A0), counting(A1)]
    made = started(program)
    made.run(LONG)
    assert made.register(0, 1) == machines.CODE + 8
    assert (made.register(0, A0), made.register(0, A1)) == (0, 1)


def test_a_hart_may_sleep_at_the_end_of_a_body() -> None:
    """Two harts meet at barriers; the second one is late each time."""
    port, event, both, rounds = 0x20000800, 4, 3, 5
    made = machines.machine(harts=2)
    made.add_device(
        kind="event_unit",
        name="events",
        base=port - 0x800,
        size=0x1000,
        settings={"first_hart": 0, "harts": 2, "barriers": 1, "mutexes": 1, "dispatch_depth": 1}
        | {"barrier_event": event, "mutex_event": event + 1, "dispatch_event": event + 2},
    )
    own_mask, trigger_mask, target_mask, trigger_wait_clear = 0x00, 0x200, 0x20C, 0x21C
    prepare = [
        encode("sw", t=A1, s=A2, q=own_mask),
        encode("sw", t=A3, s=A2, q=trigger_mask),
        encode("sw", t=A3, s=A2, q=target_mask),
    ]
    wait = encode("p_elw", d=A1, s=A2, o=trigger_wait_clear)
    for hart, work in enumerate((1, 20)):
        program = [*prepare, *Loop(0, rounds, "setup", (*[counting(A0)] * work, wait)).program(), STAY]
        made.write(machines.CODE + 0x1000 * hart, word_bytes(*program))
        for register, value in ((A1, 1 << event), (A2, port), (A3, both)):
            made.set_register(hart, register, value)
        made.start(hart, machines.CODE + 0x1000 * hart, 0)
    made.run(LONG)
    assert [made.register(hart, A0) for hart in range(2)] == [rounds, rounds * 20]
    assert [made.register(hart, A1) for hart in range(2)] == [1 << event] * 2
    assert made.counters(0)["asleep"] > rounds * 10


def test_loops_are_control_registers() -> None:
    read = [encode("csrrs", d=20 + i, E=CSR_START + i) for i in range(3)]
    program = [
        encode("csrrw", E=CSR_START, s=A0),
        encode("csrrw", E=CSR_END, s=A1),
        encode("csrrw", E=CSR_COUNT, s=A2),
        counting(A3),
        *read,
    ]
    made = started(program)
    last = machines.CODE + 12
    for register, value in ((A0, last), (A1, last), (A2, 7)):
        made.set_register(0, register, value)
    made.run(LONG)
    assert made.register(0, A3) == 7
    assert [made.register(0, 20 + i) for i in range(3)] == [last, last, 0]


def test_code_may_change_within_a_loop() -> None:
    """After fence.i, the body is decoded again, and the loop goes on."""
    body = (counting(A0), encode("sw", t=A1, s=A2, q=4), encode("fence_i"))
    program = Loop(0, 5, "setupi", body).program()
    made = started(program)
    made.set_register(0, A1, encode("addi", d=A0, s=A0, o=100))
    made.set_register(0, A2, machines.CODE)
    made.run(LONG)
    assert made.pc(0) == end_of(program)
    assert made.register(0, A0) == 1 + 4 * 100


def test_a_start_without_memory() -> None:
    program = [
        encode("csrrw", E=CSR_START, s=A0),
        encode("csrrw", E=CSR_END, s=A1),
        encode("lp_counti", L=0, j=2),
        counting(A3),
    ]
    made = started(program)
    made.set_register(0, A0, 0x40)
    made.set_register(0, A1, machines.CODE + 12)
    assert made.run(LONG) == "fault"
    fault = made.fault()
    assert fault is not None
    assert fault["kind"] == "illegal-instruction"
