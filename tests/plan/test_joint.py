"""The search of groups: what it does not look at would not have been chosen."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from plan.test_scheduler import lowered, machine
from tilewright.plan import PlanOptions
from tilewright.plan.fusion import fused
from tilewright.plan.joint import Joint
from tilewright.plan.levels import first_sources, levels_of
from tilewright.plan.menu import Menu
from tilewright.plan.network import Network, NodeRange, networks_of
from tilewright.plan.tiling.candidates import Candidate


class Counted(Menu):
    """Knows which questions about fused runs were asked."""

    def __init__(self, network: Network, capacity: int) -> None:
        super().__init__(network, PlanOptions(), capacity)
        self.asked: set[tuple[NodeRange, frozenset[str]]] = set()

    def front(self, run: NodeRange, near: frozenset[str], sources: Mapping[str, str]) -> tuple[Candidate, ...]:
        if not run.single:
            self.asked.add((run, near))
        return super().front(run, near, sources)


def network_of(*, residual: bool, l1: int) -> Network:
    (network,) = networks_of(lowered(residual=residual), machine(l1), PlanOptions())
    return network


def searched(l1: int) -> tuple[float, int]:
    """Quick cycles of the groups of a network, and how many questions about fused runs it took."""
    network = network_of(residual=True, l1=l1)
    levels = levels_of(network)
    menu = Counted(network, levels.capacity)
    found = Joint(menu, levels, first_sources(network, levels)).solve(PlanOptions())
    assert found is not None
    return sum(pick.candidate.cycles for pick in found.picks), len(menu.asked)


@pytest.mark.parametrize("l1", [49_152, 65_536])
def test_bounds_leave_out_what_would_not_be_chosen(l1: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cycles, asked = searched(l1)
    monkeypatch.setattr(Joint, "_bounded", Joint._known)  # pyright: ignore[reportPrivateUsage]
    everything = searched(l1)
    assert cycles == everything[0]
    assert asked < everything[1]


def test_what_stays_is_fused_only_where_engines_work_beside_each_other() -> None:
    network = network_of(residual=False, l1=65_536)
    menu = Menu(network, PlanOptions(), 65_536)

    def runs(*beside: int, wanted: frozenset[str] = frozenset()) -> list[NodeRange]:
        # As if some of its convolutions were for another engine.
        vars(network)["beside"] = tuple(position in beside for position in range(len(network.steps)))
        return [run for mine in fused(menu, wanted, effort=1000) for run in mine]

    assert runs() == []
    assert runs(1, 2, 3, 4, 5) == []
    assert runs(1, 3) == [NodeRange(1, 2), NodeRange(3, 4), NodeRange(3, 5)]
    assert NodeRange(1, 3) in runs(1, 2, 3, 4, 5, wanted=frozenset(network.writes[2]))
