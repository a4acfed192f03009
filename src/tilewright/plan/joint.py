"""Groups, tiles, buffers and what stays in the engine's memory, chosen together.

Nodes run in a given order. At the border behind a position, what matters of the past is which live tensors stay in the
engine's memory: the best way to run the rest depends on nothing else. So the search goes from border to border and
keeps, for each set of resident tensors, the fewest predicted cycles (then the fewest bytes moved) with which it can be
reached. A step runs one group: its workspace gets the room that residents leave, and of its candidates the fastest one
that fits is taken. Bytes are counted, addresses are not; `addresses` finds them afterwards, with exact search where
first fit fails. Where it succeeds at the full capacity, the plan is proven best among those considered, whatever the
length of the network; where it does not, less of the capacity is given away until it does, and the gap is reported.

Tilings of fused runs are looked for where they matter. With more of its tensors in the engine's memory a run moves less
and needs fewer bytes, so its candidates there bound those with fewer of them; and it takes no fewer cycles than its
first nodes alone. The search takes such a bound for what is not known yet, looks for the candidates of what it chose on
that ground, and goes on until all it chose is known.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, combinations
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from tilewright.errors import TilewrightError
from tilewright.plan.addresses import allocate as allocation
from tilewright.plan.fusion import fused, singles
from tilewright.plan.levels import Levels, unloading
from tilewright.plan.menu import Menu
from tilewright.plan.network import Network, NodeRange
from tilewright.plan.options import PlanOptions
from tilewright.plan.tiling.candidates import GAIN, Candidate

# Sets of residents that are followed at a border; networks of a few branches never have as many.
STATES = 256
# A tensor that is needed again only much later does not stay.
LONGEST_STAY = 48
FORCED = (0.5, 0.25, 0.1, 0.0)
"""Where fusion is the only way: shares of the capacity above which a tensor is a reason to fuse."""
FUSION_EFFORT = 40
"""Nodes of fused runs whose candidates are computed in a second of effort."""
# Shares of the capacity tried where addresses cannot be found at all of it.
SHARES = (1.0, 0.97, 0.93, 0.87, 0.8, 0.7, 0.5)

NEVER = 1 << 60
"""Bytes of a run that has no candidates."""

Residents = frozenset[str]
Cost = tuple[int, int]


class Pick(Struct, frozen=True):
    """A run with the candidate chosen for it, and the tensors that are in the engine's memory while it runs."""

    run: NodeRange
    residents: Residents
    """All of them, whether the run touches them or not."""
    near: Residents
    """Those that it touches."""
    candidate: Candidate


class _Front(Struct, frozen=True, dict=True):
    """Candidates of a run with some tensors in the engine's memory, by growing bytes; or a bound on them."""

    candidates: tuple[Candidate, ...]

    @cached_property
    def sizes(self) -> list[int]:
        return [candidate.bytes for candidate in self.candidates]

    def fastest(self, room: int) -> Candidate | None:
        """The fastest one of so many bytes."""
        index = bisect_right(self.sizes, room)
        return self.candidates[index - 1] if index else None

    @cached_property
    def bound(self) -> _Front:
        """What others with fewer tensors there have at best: points between two, or kernels with other strides."""
        return _Front(tuple(replace(candidate, cycles=candidate.cycles * GAIN) for candidate in self.candidates))


class Solution(Struct, frozen=True):
    """Picks in order, addresses of their workspaces and of resident tensors, and a bound on predicted cycles."""

    picks: tuple[Pick, ...]
    workspaces: tuple[int, ...]
    residents: Mapping[str, int]
    bound: float


class _Staying(Struct, frozen=True):
    """Results of a run that stay in the engine's memory, and what that takes."""

    names: Residents
    held: int
    """Bytes of these."""
    leave: int
    """Bytes of the others, which leave it."""
    later: Residents
    """Those of them that are needed behind the run."""


class _Around(Struct, frozen=True):
    """What is outside a run."""

    reads: Residents
    """Tensors that it reads."""
    writes: tuple[str, ...]
    """Tensors that it leaves behind."""
    ways: tuple[_Staying, ...]
    """Which of these may stay."""


class _BestWay(Struct, frozen=True):
    """The best way found to a border."""

    cost: Cost
    pick: Pick | None
    before: _BestWay | None


def fits_layer_by_layer(menu: Menu, levels: Levels, sources: Mapping[str, str]) -> bool:
    """Whether every node alone fits the engine's memory, and everything between nodes into the others."""
    count = len(menu.network.steps)
    away = [0] * count
    for life in menu.network.lives.values():
        for position in range(life.first, life.last + 1):
            away[position] += life.bytes
    if max(away, default=0) > levels.total:
        return False
    return all(smallest(menu, levels, sources, position) <= levels.capacity for position in range(count))


def smallest(menu: Menu, levels: Levels, sources: Mapping[str, str], position: int) -> int:
    """The fewest bytes of the engine's memory with which a node runs alone."""
    front = menu.front(NodeRange(position, position), levels.direct, sources)
    return front[0].bytes if front else NEVER


def layer_by_layer(menu: Menu, levels: Levels, sources: Mapping[str, str]) -> Solution:
    """Every node alone with the largest tile that fits; nothing stays."""
    picks: list[Pick] = []
    for position in range(len(menu.network.steps)):
        run = NodeRange(position, position)
        fitting = [c for c in menu.front(run, levels.direct, sources) if c.bytes <= levels.capacity]
        picks.append(Pick(run, frozenset(), frozenset(), fitting[-1]))
    return Solution(tuple(picks), (0,) * len(picks), {}, 0.0)


class Joint:
    """Searches the plans of one network."""

    def __init__(self, menu: Menu, levels: Levels, sources: Mapping[str, str]) -> None:
        self._menu, self._levels, self._sources = menu, levels, sources
        self._network: Network = menu.network
        self._runs = singles(menu.network)
        self._fronts: dict[NodeRange, dict[Residents, _Front]] = {}
        """Those that are known."""
        self._bounds: dict[tuple[NodeRange, Residents], _Front] = {}
        self._surroundings: dict[NodeRange, _Around] = {}
        self._may_stay = frozenset(
            name
            for name, life in self._network.lives.items()
            if life.bytes <= levels.capacity and life.last - life.first <= LONGEST_STAY
        )
        self._live = _live_bytes(self._network)
        self._room = levels.total
        self._exact = True
        """Whether no set of residents was dropped."""

    def solve(self, options: PlanOptions) -> Solution | None:
        """The best plan whose addresses were found; None where nothing fits."""
        picks = self.picks(self._levels.capacity)
        # A node that does not fit alone does not fit beside others either.
        if options.fuse == "auto" and (picks is not None or self._each_fits()):
            picks = self._with_fusion(picks, options)
        if picks is None:
            return None
        bound = self._bound(picks)
        for share in SHARES:
            smaller = picks if share == 1.0 else self.picks(int(self._levels.capacity * share))
            if smaller is None:
                break
            packed = pack(self._network, smaller, self._levels.capacity, seconds=options.seconds, seed=options.seed)
            if packed is not None:
                return Solution(smaller, *packed, bound)
        return None

    def _each_fits(self) -> bool:
        positions = range(len(self._network.steps))
        needs = (smallest(self._menu, self._levels, self._sources, position) for position in positions)
        return all(need <= self._levels.capacity for need in needs)

    def _bound(self, picks: Sequence[Pick]) -> float:
        """No choice among the runs considered takes fewer cycles, even if everything fitted the fastest memory."""
        ideal = dict.fromkeys(self._sources, self._levels.far[0]) if self._levels.far else self._sources
        if ideal != self._sources:
            other = Joint(self._menu, self._levels, ideal)
            other._runs = self._runs
            best = other.picks(self._levels.capacity)
            picks, self._exact = best or picks, self._exact and other._exact
        moving = unloading(self._network, self._levels)
        return max(moving, sum(pick.candidate.cycles for pick in picks)) if self._exact else moving

    def _with_fusion(self, picks: tuple[Pick, ...] | None, options: PlanOptions) -> tuple[Pick, ...] | None:
        """Tries groups of several nodes around the tensors that would leave the engine's memory, or around all."""
        if picks is None:
            return self._forced()
        stay = frozenset[str]().union(*(pick.residents for pick in picks))
        leave = frozenset(self._network.lives) - stay
        more = fused(self._menu, leave, effort=int(options.seconds * FUSION_EFFORT))
        return self._tried(more) if any(more) else picks

    def _forced(self) -> tuple[Pick, ...] | None:
        """Groups around tensors that are too large beside others; then around ever smaller ones, until all fits."""
        lives, capacity = self._network.lives, self._levels.capacity
        seen: frozenset[str] = frozenset()
        for share in FORCED:
            wanted = frozenset(name for name, life in lives.items() if life.bytes > capacity * share)
            if wanted == seen:
                continue
            seen = wanted
            picks = self._tried(fused(self._menu, wanted, effort=None))
            if picks is not None:
                return picks
        return None

    def _tried(self, more: Sequence[Sequence[NodeRange]]) -> tuple[Pick, ...] | None:
        """The best picks with further runs, of which all together compute no more twice than is allowed."""
        self._runs = [[*mine, *further] for mine, further in zip(singles(self._network), more, strict=True)]
        allowed = self._menu.extra
        picks = self.picks(self._levels.capacity)
        while picks is not None and self._twice(picks) > allowed:
            self._menu.extra /= 2
            self._fronts.clear()
            self._bounds.clear()
            picks = self.picks(self._levels.capacity)
        return picks

    def _twice(self, picks: Sequence[Pick]) -> float:
        return sum(pick.candidate.macs for pick in picks) - sum(self._menu.points)

    def picks(self, capacity: int) -> tuple[Pick, ...] | None:
        """The fastest picks for which the bytes at every moment are at most the capacity."""
        while True:
            found = self._cheapest(capacity)
            guessed = [pick for pick in found or () if pick.near not in self._fronts.get(pick.run, {})]
            if not guessed:
                return found
            for pick in guessed:
                self._known(pick.run, pick.near if pick.run in self._fronts else self._widest(pick.run))
            self._bounds.clear()

    def _cheapest(self, capacity: int) -> tuple[Pick, ...] | None:
        """The same by what is known of runs, and bounds on the rest."""
        count = len(self._network.steps)
        borders: list[dict[Residents, _BestWay]] = [{} for _ in range(count + 1)]
        borders[0][frozenset()] = _BestWay((0, 0), None, None)
        for position in range(count):
            for state, way in self._kept(borders[position]):
                for run in self._runs[position]:
                    self._step(borders[run.last + 1], state, way, run, capacity)
            borders[position].clear()
        last = borders[count].get(frozenset())
        if last is None:
            return None
        found: list[Pick] = []
        while last is not None and last.pick is not None:
            found.append(last.pick)
            last = last.before
        return tuple(reversed(found))

    def _kept(self, border: dict[Residents, _BestWay]) -> list[tuple[Residents, _BestWay]]:
        ways = sorted(border.items(), key=lambda item: (item[1].cost, sorted(item[0])))
        if len(ways) <= STATES:
            return ways
        self._exact = False
        return ways[:STATES]

    def _step(
        self, border: dict[Residents, _BestWay], state: Residents, way: _BestWay, run: NodeRange, capacity: int
    ) -> None:
        """What can be done with a run: its inputs are where they are, its results stay or do not."""
        lives, around = self._network.lives, self._around(run)
        taken = sum([lives[name].bytes for name in state])
        room, far = capacity - taken, self._room - (self._live[run.first] - taken)
        near = state & around.reads
        later = frozenset([name for name in state if lives[name].last > run.last])
        for stay in around.ways:
            if stay.held > room or stay.leave > far:
                continue
            behind = later | stay.later
            known = border.get(behind)
            if known is not None and known.cost <= way.cost:
                continue  # whatever the run takes
            touched = near | stay.names
            candidate = self._fastest(run, touched, room - stay.held)
            if candidate is None:
                continue
            cost = (way.cost[0] + round(candidate.cycles), way.cost[1] + candidate.moved)
            if known is None or cost < known.cost:
                border[behind] = _BestWay(cost, Pick(run, state | stay.names, touched, candidate), way)

    def _around(self, run: NodeRange) -> _Around:
        found = self._surroundings.get(run)
        if found is None:
            network = self._network
            inside = {name for position in range(run.first, run.last) for name in network.writes[position]}
            reads = {name for position in range(run.first, run.last + 1) for name in network.reads[position]}
            writes = network.writes[run.last]
            subsets = _subsets([name for name in writes if name in self._may_stay])
            ways = tuple(self._staying(run, stay) for stay in subsets)
            found = self._surroundings[run] = _Around(frozenset(reads - inside), writes, ways)
        return found

    def _staying(self, run: NodeRange, stay: tuple[str, ...]) -> _Staying:
        lives = self._network.lives
        held = sum(lives[name].bytes for name in stay)
        leave = sum(lives[name].bytes for name in self._network.writes[run.last]) - held
        return _Staying(frozenset(stay), held, leave, frozenset(name for name in stay if lives[name].last > run.last))

    def _fastest(self, run: NodeRange, near: Residents, room: int) -> Candidate | None:
        found = self._bounds.get((run, near))
        if found is None:
            found = self._bounds[run, near] = self._bounded(run, near)
        return found.fastest(room)

    def _bounded(self, run: NodeRange, near: Residents) -> _Front:
        """The candidates of a run, or a bound by those with more tensors near, or by those of its first two nodes."""
        known = self._fronts.get(run, {})
        if run.single or near in known:
            return self._known(run, near)
        more = min((other for other in known if near <= other), key=len, default=None)
        pair = NodeRange(run.first, run.first + 1)
        if more is None and run != pair:
            least = self._known(pair, self._widest(pair)).candidates[-1:]
            if least:
                return _Front((replace(least[0], bytes=0, cycles=least[0].cycles * GAIN, moved=0),))
        widest = self._known(run, more or self._widest(run))
        return widest.bound if widest.candidates else self._known(run, near)

    def _widest(self, run: NodeRange) -> Residents:
        """All that may stay of what a run reads and writes."""
        around = self._around(run)
        return self._may_stay & (around.reads | {*around.writes})

    def _known(self, run: NodeRange, near: Residents) -> _Front:
        known = self._fronts.setdefault(run, {})
        if near not in known:
            known[near] = _Front(self._menu.front(run, near | self._levels.direct, self._sources))
        return known[near]


def _live_bytes(network: Network) -> list[int]:
    """Bytes of the tensors that are live from before each position."""
    found = [0] * len(network.steps)
    for life in network.lives.values():
        for position in range(life.first + 1, life.last + 1):
            found[position] += life.bytes
    return found


def _subsets(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return chain.from_iterable(combinations(names, size) for size in range(len(names) + 1))


def pack(
    network: Network,
    picks: Sequence[Pick],
    capacity: int,
    *,
    seconds: float,
    seed: int,
    ends: Mapping[int, int] = MappingProxyType({}),
    begins: Mapping[int, int] = MappingProxyType({}),
) -> tuple[tuple[int, ...], dict[str, int]] | None:
    """Addresses of workspaces and of residents; None where none were found. Groups that another engine computes beside
    later ones need theirs up to the last of these, `ends`; some have theirs from an earlier group on, `begins`, to be
    filled meanwhile."""
    align = network.platform.alignment
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for index, pick in enumerate(picks):
        for name in sorted(pick.residents):
            first.setdefault(name, index)
            last[name] = max(last.get(name, 0), (ends.get(index, index) if name in pick.near else index) + 1)
    buffers = [
        allocation.BufferRequest(f"tensor {name}", network.lives[name].bytes, first[name], last[name], align)
        for name in first
        if network.lives[name].bytes
    ]
    buffers += [
        allocation.BufferRequest(
            f"group {index}", pick.candidate.bytes, begins.get(index, index), ends.get(index, index) + 1, align
        )
        for index, pick in enumerate(picks)
        if pick.candidate.bytes
    ]
    try:
        result = allocation.allocate(buffers, capacity=capacity, seconds=seconds, seed=seed)
    except TilewrightError:
        return None
    offsets = {name: placement.offset for name, placement in result.offsets.items()}
    workspaces = tuple(offsets.get(f"group {index}", 0) for index in range(len(picks)))
    return workspaces, {name: offsets.get(f"tensor {name}", 0) for name in first}
