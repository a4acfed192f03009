"""Channels of transfers: those that are started and awaited together have one."""

from __future__ import annotations

from plan.test_overlap import branches, planned
from plan.tiled_plans import schedule_of
from tilewright.codegen.channels import Channels


def test_loads_that_are_started_and_awaited_together_share_one() -> None:
    schedule = schedule_of(planned(network=branches))
    channels = Channels(schedule.groups, schedule.moves)
    first = [move for move in schedule.moves if move.kind == "load" and move.tiles == "first"]
    early = {
        (move.group, move.buffer): (move.group, move.issue, move.wait)
        for move in first
        if move.issue.group < move.group
    }
    found = {key: channels.prefetch(*key) for key in early}
    assert len(set(early.values())) < len(early)
    for one in early:
        for other in early:
            if one[0] == other[0]:
                assert (found[one] == found[other]) == (early[one] == early[other])
