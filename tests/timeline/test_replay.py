"""Plans followed from their first transfer to their last."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.frontend import load
from tilewright.machine.target import load_platform
from tilewright.passes import run_pipeline
from tilewright.plan import PlanOptions
from tilewright.plan.network import networks_of
from tilewright.plan.scheduler import tiled
from tilewright.timeline import replay
from tilewright.timeline.clock import Passed, State
from tilewright.timeline.parts import GroupPlace

MODEL = Path(__file__).parent.parent.parent / "examples" / "models" / "tiny_cnn_int8.onnx"


def test_what_plans_have_in_common_is_followed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    followed: list[int] = []
    follow = replay.followed_group

    def counted(place: GroupPlace, state: State) -> Passed:
        followed.append(place.part.number)
        return follow(place, state)

    monkeypatch.setattr(replay, "followed_group", counted)
    platform, options = load_platform("siracusa"), PlanOptions()
    (*_, network) = networks_of(run_pipeline(load(MODEL), platform), platform, options)
    draft = tiled(network, options)
    assert draft is not None
    groups = draft.groups
    first = network.timeline(groups, [draft.sources] * len(groups), ())
    assert followed == [*range(len(groups))]
    assert sum(timed.cycles for timed in first.groups) == pytest.approx(first.cycles)
    again = network.timeline(groups, [draft.sources] * len(groups), ())
    assert [timed.passed for timed in again.groups] == [timed.passed for timed in first.groups]
    assert followed == [*range(len(groups))]
    # What one reads is elsewhere, so it may take another time.
    near = {**draft.sources, **dict.fromkeys(network.graph.constants, platform.in_place)}
    network.timeline(groups, [*[draft.sources] * (len(groups) - 1), near], ())
    assert followed[len(groups) :] == [len(groups) - 1]
