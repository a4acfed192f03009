"""Plans measured whole: the best few of a network are built and simulated, and the fastest is kept.

The first plan is the planner's own. Then loop nests are unrolled, group by group as far as that pays, as each simulated
run tells what every group took; and other plans of the planner are tried. The last try joins what was best in each
group. What a program took is kept on disk by content, so that nothing is built or simulated twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from tilewright.codegen import build, lower, project_files, project_in
from tilewright.codegen.project import compiler_version
from tilewright.core.cache import Cache, user_cache
from tilewright.core.graph import Array
from tilewright.core.plan import Group, Plan
from tilewright.errors import TilewrightError
from tilewright.machine.kernels import own_kernels
from tilewright.machine.target import Target, described_platforms
from tilewright.plan.options import PlanOptions
from tilewright.sim.chip import run_on_chip
from tilewright.sim.limits import USUAL, Limits
from tilewright.sim.simulator import simulator_digest, timing_of

PACKAGE = Path(__file__).parents[1]
FORMAT = "1"
"""Of what is kept; entries of others are not found."""
FIRST, MOST = 4, 16
"""Turns of loops that are joined at first, and at most."""
PROMISING = 0.9
"""A group that unrolling brought to this share of its cycles is unrolled further, even at the last try."""
WORTH = 0.05
"""Nests that take a smaller share of all cycles than this are unrolled after other plans were tried."""


class Times(Struct, frozen=True):
    """What a plan took."""

    cycles: int
    """Of the inference."""
    groups: tuple[int, ...]
    """Of each group; what passes before the first and behind the last is in none."""


Measure = Callable[[Plan], tuple[str, Times]]
"""Tells what a plan takes, and the key of its program: equal programs have equal keys."""


class Building(Struct, frozen=True):
    """How programs are built and run to be measured."""

    name: str = "network"
    compiler: str = ""
    flags: tuple[str, ...] = ()
    limits: Limits = USUAL


class Meter(Struct, frozen=True):
    """Measures plans of one network."""

    inputs: Sequence[Array]
    building: Building = Building()
    wishes: PlanOptions = PlanOptions()
    """How other plans are asked for."""
    cache: Cache = field(default_factory=user_cache)

    def fastest(self, first: Plan, others: Iterator[Plan], count: int, progress: Callable[[str], None]) -> Plan:
        """The fastest of so many plans (see `fastest`). Where it is the first one, perhaps unrolled, that is kept as
        well, so that others need not be made again to find out."""
        key = _digest(self._key(first, self._files(first)), str(count), repr(self.wishes), *_planner(first.platform))
        factors = _read_factors(self.cache.get(key))
        if factors is not None:
            plan = _unrolled(first, factors)
            return _with_times(plan, self.measured(plan)[1])
        found = fastest(first, others, self.measured, count, progress)
        if found.graph is first.graph and _unrolled(found, {}).choices == first.choices and _alike(found, first):
            chosen = zip(found.graph.nodes, found.choices, strict=True)
            known = {node.made[0]: choice.unroll for node, choice in chosen if choice.unroll > 1}
            self.cache.put(key, json.dumps(known).encode())
        return found

    def measured(self, plan: Plan) -> tuple[str, Times]:
        """What a plan takes, with the key of its program; simulated at most once."""
        files = self._files(plan)
        key = self._key(plan, files)
        found = _read(self.cache.get(key), plan)
        if found is None:
            found = self._simulated(plan, files)
            self.cache.put(key, json.dumps({"cycles": found.cycles, "groups": found.groups}).encode())
        return key, found

    def _files(self, plan: Plan) -> dict[str, bytes]:
        return project_files([lower(plan, self.building.name)], plan.platform)

    def _key(self, plan: Plan, files: Mapping[str, bytes]) -> str:
        """A digest of all that cycles depend on: program, compiler, machine and simulator, and what is fed."""
        mine, told = self.building, plan.platform.build
        compiler = compiler_version(mine.compiler or told["compiler"])
        texts = [
            FORMAT,
            compiler,
            simulator_digest(),
            repr((plan.platform.memories, timing_of(plan.platform))),
            *mine.flags,
        ]
        texts += [
            told["flags"],
            told.get("link", ""),
            told["libraries"],
            *(f"{a.dtype} {a.shape}" for a in self.inputs),
        ]
        fed = (array.tobytes() for array in self.inputs)
        return _digest(*texts, *fed, *(part for named in sorted(files.items()) for part in named))

    def _simulated(self, plan: Plan, files: Mapping[str, bytes]) -> Times:
        mine, graph = self.building, plan.graph
        types = [graph.types[name] for name in graph.given]
        with project_in(None, files, mine.name) as folder:
            built = build(folder, plan.platform, mine.name, compiler=mine.compiler, flags=mine.flags)
            profile = bool(_groups(plan))
            ran = run_on_chip(built.executable, self.inputs, types, plan.platform, profile=profile, limits=mine.limits)
        return Times(sum(ran.cycles), tuple(group.cycles for group in ran.groups))


def _digest(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(f"{len(data)} ".encode() + data)
    return digest.hexdigest()


def _planner(platform: Target) -> Iterator[str]:
    """What other plans follow from, besides the first one: code and kernels, and what is known of the machine."""
    own = {kernel.path for kernel in own_kernels(platform.kernels)}
    for path in sorted((*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.[ch]"), *own)):
        found = path.stat()
        yield f"{path} {found.st_size} {found.st_mtime_ns}"
    terms = {name: dict(part.terms) for name, part in platform.calibrations.items()}
    yield repr((platform.engines, platform.links, dict(platform.operations), platform.fused, terms))


def check_measurable(platform: Target) -> None:
    """An error where nothing tells the cycles of a platform's programs."""
    if platform.timings and platform.home:
        return
    others = [p.name for p in described_platforms() if p.timings and p.home and p.build]
    raise TilewrightError(
        "no-simulator",
        f"plans for platform '{platform.name}' cannot be measured",
        reasons=["its platform.yaml describes no machine with tiles whose cycles Tilewright simulates"],
        help=f"leave --measure away, or choose another platform: {', '.join(others)}",
    )


def fastest(first: Plan, others: Iterator[Plan], measure: Measure, count: int, progress: Callable[[str], None]) -> Plan:
    """The fastest of so many plans, with measured cycles. `others` are made as they are needed."""
    search = _Search(first, others)
    unit = first.platform.unit
    while len(search.measured) < count:
        number = len(search.measured) + 1
        progress(f"measuring plan {number} of {count}{search.best_text(unit)}")
        plan = search.next(last=number == count)
        if plan is None:
            break
        try:
            key, times = measure(plan)
        except TilewrightError:
            # One that does not build or run is no choice, but for the first.
            if not search.measured:
                raise
            search.refuse(plan)
            continue
        search.learn(key, plan, times)
        progress(f"plan {number} of {count}: {times.cycles:,} {unit}{search.best_text(unit)}")
    return search.best


class _Search:
    """What was measured, and what comes next."""

    def __init__(self, first: Plan, others: Iterator[Plan]) -> None:
        self.measured: dict[str, Times] = {}
        self._first, self._others = first, others
        self._loops = _Unrolling(first)
        self._fastest: tuple[int, Plan] | None = None

    @property
    def best(self) -> Plan:
        assert self._fastest is not None
        return self._fastest[1]

    def best_text(self, unit: str) -> str:
        return f", best {self._fastest[0]:,} {unit}" if self._fastest else ""

    def next(self, *, last: bool) -> Plan | None:
        """The plan to measure; None where nothing is left to try."""
        if self._fastest is None:
            return self._first
        loops_first = self._loops.share >= WORTH
        unrolled = self._loops.next(last=last) if loops_first else None
        other = None if unrolled else next(self._others, None)
        return unrolled or (self._loops.carried(other) if other else self._loops.next(last=last))

    def learn(self, key: str, plan: Plan, times: Times) -> None:
        """Takes note of what a plan took."""
        self.measured[key] = times
        faster = self._fastest is None or times.cycles < self._fastest[0]
        if faster:
            self._fastest = times.cycles, _with_times(plan, times)
        if faster and not self._loops.knows(plan):
            self._loops = _Unrolling(plan)
        if self._loops.knows(plan):
            self._loops.learn(plan, times)

    def refuse(self, plan: Plan) -> None:
        """A plan that gave no program: nothing like it is tried again."""
        if self._loops.knows(plan):
            self._loops.give_up()


class _Unrolling:
    """How many turns of loops are joined in each group of a plan: what was tried, and what comes next."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._open = plan, True
        self._tried: set[tuple[int, ...]] = set()
        self._times: list[dict[int, int]] = [{} for _ in _groups(plan)]
        """Of each group its cycles, by how many turns were joined."""

    def knows(self, plan: Plan) -> bool:
        """Whether a plan differs in nothing else."""
        return plan.schedule is self._plan.schedule

    def learn(self, plan: Plan, times: Times) -> None:
        found = tuple(_joined(plan, group) for group in _groups(plan))
        self._tried.add(found)
        for known, factor, cycles in zip(self._times, found, times.groups, strict=True):
            known[factor] = min(known.get(factor, cycles), cycles)

    def give_up(self) -> None:
        self._open = False

    @property
    def share(self) -> float:
        """Of all cycles, those of groups with loop nests."""
        best = [min(known.values()) for known in self._times]
        nests = sum(
            cycles for cycles, group in zip(best, _groups(self._plan), strict=True) if _nests(self._plan, group)
        )
        return nests / max(sum(best), 1)

    def next(self, *, last: bool) -> Plan | None:
        """With other turns joined. At last every group has what was best for it, or more where that is promising."""
        groups = [*zip(_groups(self._plan), self._times, strict=True)]
        nests = [bool(_nests(self._plan, group)) for group, _ in groups]
        settled = tuple(_settled(known) if nest else 1 for nest, (_, known) in zip(nests, groups, strict=True))
        explored = tuple(_explored(known) if nest else 1 for nest, (_, known) in zip(nests, groups, strict=True))
        for factors in (settled, explored) if last else (explored, settled):
            if self._open and factors not in self._tried:
                return _unrolled(self._plan, self._by_name(factors))
        return None

    def carried(self, other: Plan) -> Plan:
        """Another plan of the network, with as many turns joined of each nest as was best here."""
        return _unrolled(other, self._by_name([_best(known) for known in self._times]))

    def _by_name(self, factors: Sequence[int]) -> dict[str, int]:
        """How many turns are joined for each nest, by the name of its result."""
        found = zip(_groups(self._plan), factors, strict=True)
        return {
            self._plan.graph.nodes[step].made[0]: factor
            for group, factor in found
            for step in _nests(self._plan, group)
        }


def _best(known: Mapping[int, int]) -> int:
    return min(known, key=lambda factor: (known[factor], factor))


def _explored(known: Mapping[int, int]) -> int:
    """What to try next for a group: more as long as that helps, then less; the best where all was tried."""
    best = _best(known)
    if len(known) == 1 and best < FIRST:
        return FIRST
    if best == max(known) and best < MOST:
        return best * 2
    return 2 if best == 1 and 2 not in known else best


def _settled(known: Mapping[int, int]) -> int:
    """The best for a group, or more where the last step helped much."""
    best = _best(known)
    less = [factor for factor in known if factor < best]
    further = best == max(known) and best < MOST and less and known[best] < PROMISING * known[max(less)]
    return best * 2 if further else best


def _groups(plan: Plan) -> tuple[Group, ...]:
    return plan.schedule.groups if plan.schedule else ()


def _nests(plan: Plan, group: Group) -> list[int]:
    """Steps of a group that are loop nests."""
    return [work.step for work in group.works if plan.choices[work.step].kernel is None]


def _joined(plan: Plan, group: Group) -> int:
    return max((plan.choices[step].unroll for step in _nests(plan, group)), default=1)


def _unrolled(plan: Plan, factors: Mapping[str, int]) -> Plan:
    choices = [
        replace(choice, unroll=factors.get(node.made[0], 1)) if choice.kernel is None and node.made else choice
        for node, choice in zip(plan.graph.nodes, plan.choices, strict=True)
    ]
    return replace(plan, choices=tuple(choices))


def _with_times(plan: Plan, times: Times) -> Plan:
    """A plan with what was measured in place of what was predicted; no bound is known of that."""
    assert plan.schedule is not None
    rest = times.cycles - sum(times.groups)
    groups = tuple(
        replace(group, cycles=float(cycles + rest * (not number)))
        for number, (group, cycles) in enumerate(zip(_groups(plan), times.groups, strict=True))
    )
    return replace(plan, schedule=replace(plan.schedule, groups=groups, bound=0.0, measured=True))


def _alike(a: Plan, b: Plan) -> bool:
    """Whether groups differ in nothing but their cycles."""
    return [replace(group, cycles=0.0) for group in _groups(a)] == [replace(group, cycles=0.0) for group in _groups(b)]


def _read_factors(data: bytes | None) -> dict[str, int] | None:
    """How many turns of which nests are joined; None where that is not kept."""
    try:
        return {str(name): min(max(int(factor), 1), MOST) for name, factor in json.loads(data or b"").items()}
    except (ValueError, TypeError, AttributeError):
        return None


def _read(data: bytes | None, plan: Plan) -> Times | None:
    """What is kept of a plan; None where that is something else."""
    try:
        found = json.loads(data or b"")
        times = Times(int(found["cycles"]), tuple(int(cycles) for cycles in found["groups"]))
    except (ValueError, KeyError, TypeError):
        return None
    return times if len(times.groups) == len(_groups(plan)) else None
