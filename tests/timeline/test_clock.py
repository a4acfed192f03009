"""The clock: who works when, given what the core that drives does."""

from __future__ import annotations

from tilewright.timeline.clock import (
    CORES,
    START,
    Await,
    Bar,
    Clock,
    Issue,
    Spend,
    Start,
    Statement,
    Wait,
    Work,
    arrived,
    exact,
    passed,
)

A, B = (0, 0, 0), (0, 1, 0)


def took(*body: Statement, slows: float = 0.0) -> float:
    return passed(body, START, slows).cycles


def load(cycles: float, channel: tuple[int, int, int] = A, issue: float = 10) -> Issue:
    return Issue(channel, "dma", issue, cycles)


def test_cores_and_transfers_run_at_once() -> None:
    assert took(Work(1000, (load(400), Wait(A, 5, 7)))) == 1000
    # 10 to start it, 1500 of the DMA, 7 until it is seen.
    assert took(Work(1000, (load(1500), Wait(A, 5, 7)))) == 1517


def test_what_is_complete_takes_a_look() -> None:
    assert took(load(20), Spend(100), Wait(A, 5, 7)) == 115
    assert took(Wait(A, 5, 7)) == 5


def test_a_dma_does_one_transfer_after_the_other() -> None:
    assert took(load(100), load(50, B), Wait(B, 0)) == 160
    assert took(load(100), Issue(B, "dma out", 10, 50), Wait(B, 0)) == 70


def test_who_drives_waits_for_room_in_a_queue() -> None:
    """One command runs, two wait for it: a fourth one comes in when the second begins."""
    many = [Issue((0, n, 0), "dma", 10, 100, room=2) for n in range(4)]
    assert took(*many[:3]) == 30
    assert took(*many) == 110
    # A transfer of several commands is the same.
    assert took(Issue(A, "dma", 40, 400, commands=4, room=2)) == 110
    assert took(Issue(A, "dma", 40, 400, commands=4, room=2), Wait(A, 0)) == 410
    assert took(Issue(A, "dma", 40, 400, commands=4)) == 40
    # What waits there goes on in the next turn.
    left = passed(many[:3], START, 0.0).state
    assert left[4] == (("dma", (80.0, 180.0)),)
    assert passed(many[3:], left, 0.0).cycles == 80


def test_who_drives_holds_up_the_cores() -> None:
    assert took(Work(15, (load(1), load(1, B), Spend(30)))) == 50


def test_another_core_takes_time_to_start_a_transfer() -> None:
    asked = [Issue(channel, "far", 10, 20, latency=400, request=480) for channel in (A, B)]
    assert took(asked[0], Wait(A, 0)) == 430
    # The second one begins 480 behind the first.
    assert took(*asked, Wait(B, 0)) == 910


def test_what_comes_to_a_memory_in_between_is_sent_on() -> None:
    assert took(Issue(A, "far", 10, 100, passing=60), Spend(500), Wait(A, 0)) == 570


def test_an_engine_works_on_one_job_after_the_other() -> None:
    jobs = [Start("array", 10, 100), Start("array", 10, 100)]
    assert took(*jobs, Await("array", True, 0)) == 210
    assert took(*jobs, Await("array", False, 0)) == 110


def test_a_group_starts_its_job_before_that_of_the_last_one_is_awaited() -> None:
    first = passed((Start("array", 10, 100), Await("array", True, 5, 7, ends=True), Wait(A, 5)), START, 0.0)
    assert first.cycles == 15
    assert passed((Wait(A, 5), Start("array", 30, 100)), first.state, 0.0).cycles == 102
    assert passed((Start("array", 30, 100), Await("array", True, 5, 7)), first.state, 0.0).cycles == 202
    # What comes before it, or is done elsewhere, comes behind the first job.
    assert passed((load(20), Start("array", 30, 100)), first.state, 0.0).cycles == 142
    assert passed((Start("other", 30, 100),), first.state, 0.0).cycles == 132


def test_a_group_lasts_until_what_it_ends_with_is_over() -> None:
    first = passed((Start("array", 10, 100), Await("array", True, 5, 7, ends=True)), START, 0.0)
    assert first.cycles == 10
    # It goes on for 107 cycles of the next group, unless that starts its own job first.
    assert passed((Wait(A, 5), load(20), Spend(1)), first.state, 0.0).owed == 107
    assert passed((Start("array", 30, 100), Spend(1)), first.state, 0.0).owed == 0
    # Nothing but waits: it is not over yet.
    assert passed((Wait(A, 5),), first.state, 0.0).owed is None
    assert passed((load(20),), START, 0.0).owed == 0


def test_a_group_lasts_until_the_first_job_of_the_next_one_is_described() -> None:
    job = Start("array", 10, 100, described=40)
    assert passed((job,), START, 0.0).owed == 40
    assert passed((load(20), job), START, 0.0).owed == 0
    # There was time for some of that while it waited for the DMA.
    first = passed((load(10), Wait(A, 5)), START, 0.0)
    assert passed((job,), first.state, 0.0).owed == 40 - 5
    ended = passed((Start("array", 10, 100), Await("array", True, 5, 7, ends=True)), START, 0.0)
    assert passed((Wait(A, 5), job), ended.state, 0.0).owed == 5 + 40


def test_jobs_are_described_before_the_waits_that_they_come_behind() -> None:
    job, done = Start("array", 10, 100, described=40), Await("array", True, 0)
    assert took(job, done) == 150
    assert took(load(100), Wait(A, 5, 7), job, done) == 117 + 110
    assert took(Work(1000, (load(20),)), job, done) == 1000 + 110
    # There is less time than that takes.
    assert took(Work(35, ()), job, done) == 40 + 110
    # It is not moved to before something else than waits, nor is that time there twice.
    assert took(load(100), Wait(A, 5, 7), Spend(1), job, done) == 118 + 150
    assert took(Work(1000, ()), job, done, job, done) == 1000 + 110 + 110
    # Groups that come one behind the other are alike.
    first = passed((Work(1000, ()),), START, 0.0)
    assert passed((job, done), first.state, 0.0).cycles == 110


def test_engines_slow_cores_down() -> None:
    assert took(Start("array", 0, 100), Work(1000, ()), slows=0.5) == 1050


def test_what_is_left_goes_on_in_the_next_turn() -> None:
    first = passed((load(100), Issue(B, "far", 0, 5, passing=60)), START, 0.0)
    assert first.cycles == 10
    assert first.state == ((("dma", 100.0), ("far", 5.0)), (), ((A, 100.0, 0), (B, 5.0, 60)), (), (), None, 0.0)
    assert passed((Wait(A, 0),), first.state, 0.0).cycles == 100
    # What was complete leaves nothing but what has to be sent on.
    later = passed((Spend(500),), first.state, 0.0)
    assert later.state == ((), (), ((B, 0.0, 60),), (), (), None, 0.0)
    assert passed((Wait(B, 0),), later.state, 0.0).cycles == 60


def test_turns_that_begin_alike_end_alike() -> None:
    """Sums of rounded cycles are exact, so a steady state comes again number for number."""
    body = (Wait(A, 3.25), Work(exact(100.3), (load(exact(117.7)),)))
    state, seen = START, list[object]()
    for _ in range(6):
        state = passed(body, state, 0.0).state
        seen.append(state)
    assert seen[2] == seen[3] == seen[5]


def test_bars_say_what_ran() -> None:
    clock = arrived(START, bars=[])
    clock.run((Work(50, (load(100),)), Wait(A, 0)), 3)
    assert isinstance(clock, Clock)
    assert clock.bars == [Bar(CORES, "compute", "", 0, 50, 3), Bar("dma", "load", "", 10, 110, 3)]
    assert clock.busy == {CORES: 50, "dma": 100}


def test_an_engine_takes_a_second_job_while_it_works() -> None:
    """Who drives waits to start a third one; beside cores at work that holds up nobody."""
    jobs = [Start("array", 10, 100) for _ in range(3)]
    assert took(*jobs) == 120
    assert took(*jobs, Await("array", recent=True, cycles=0)) == 310
    assert took(Work(1000, (*jobs, Await("array", recent=True, cycles=0)))) == 1000
