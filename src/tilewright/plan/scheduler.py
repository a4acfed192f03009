"""The planner of machines whose engine has a memory of its own: groups of nodes run tile by tile.

Order and kernels first, then which memories are there (`plan.levels`), which runs of nodes may be fused
(`plan.fusion`), the joint choice of groups, tiles and residents (`plan.joint`), and the places of what leaves the
engine's memory. What comes of that is a plan, which `STEPS` make a better one, each in a file of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from tilewright.core.graph import Graph
from tilewright.core.plan import Place, Plan
from tilewright.errors import TilewrightError
from tilewright.machine.target import Target
from tilewright.plan.draft import PlanDraft, finished, spans_of
from tilewright.plan.impossible import why_impossible
from tilewright.plan.inside_results import inside_results
from tilewright.plan.joint import Joint, fits_layer_by_layer, layer_by_layer
from tilewright.plan.levels import first_sources, levels_of, place
from tilewright.plan.menu import Menu
from tilewright.plan.network import Network, networks_of
from tilewright.plan.options import PlanOptions
from tilewright.plan.overlap import overlap
from tilewright.plan.prefetch import prefetch
from tilewright.plan.shapes import Shape, shape_of
from tilewright.plan.single_step import single_step
from tilewright.plan.stages import stage
from tilewright.price.copies import route

DOUBT = 0.1
"""Share of a plan's cycles that predictions may be off by: engines that save less are compared with the cores alone."""

FURTHER = 3
"""How often other tiles are looked for."""

STEPS: tuple[Callable[[PlanDraft], PlanDraft], ...] = (stage, single_step, inside_results, prefetch, overlap)
"""What is done to a plan whose groups are chosen."""


def schedule(graph: Graph, platform: Target, options: PlanOptions) -> Plan:
    """Places a lowered graph on a machine with several memories."""
    if graph.bounds and any(dma.through for dma in route(platform, platform.home)):
        raise TilewrightError(
            "bad-size",
            f"sizes that are known when the network runs are inputs, and no core of '{platform.name}' reads "
            f"{platform.home}, where these are",
            help="choose another home for inputs and weights with --home",
        )
    networks = networks_of(graph, platform, options)
    saved = [network.saved for network in networks if network.saved]
    best: tuple[Plan, Network] | None = None
    for network in networks:
        if best is None or network.saved or min(saved) < DOUBT * _cycles(best[0]):
            best = _better(best, network, options)
    if best is None:
        raise why_impossible(networks[0], options, lambda other: _fits(networks, other.platform, options))
    return _side_by_side(best, options)[0]


def _better(best: tuple[Plan, Network] | None, network: Network, options: PlanOptions) -> tuple[Plan, Network] | None:
    """The faster one of a plan and that of a network."""
    made = _planned(network, options)
    found = [best] if best is not None else []
    found += [(made, network)] if made is not None else []
    return min(found, key=lambda each: _cycles(each[0]), default=None)


def _side_by_side(best: tuple[Plan, Network], options: PlanOptions) -> tuple[Plan, Network]:
    """The same plan, or one in an order that lets engines work at the same time."""
    free = options.overlap == "auto" and options.order == "memory" and options.joint
    other = best[1].interleaved if free else None
    return best if other is None else _better(best, other, options) or best


def other_schedules(graph: Graph, platform: Target, options: PlanOptions) -> Iterator[Plan]:
    """Plans beside that of `schedule`, the fewest cycles first: with other engines, with loop nests instead of kernels
    that may be slower, and with tiles that come next.

    Tiles are chosen before it is known what can be loaded early, so these may even be predicted to be faster.
    """
    networks = networks_of(graph, platform, options)
    plans = [(plan, network) for network in networks if (plan := _planned(network, options)) is not None]
    best, network = _side_by_side(min(plans, key=lambda each: _cycles(each[0])), options)
    found = [plan for plan, _ in plans if plan is not best]
    shapes = _shapes(best)
    for _ in range(FURTHER):
        made = _planned(replace(network, avoided=shapes), options)
        if made is None:
            break
        found.append(made)
        shapes |= _shapes(made)
    likely = [plan for plan in found if _cycles(plan) <= (1 + DOUBT) * _cycles(best)]
    nests = network.with_doubtful_nests
    # Predictions of nests are the ones most in doubt.
    if nests is not None and (made := _planned(nests, options)) is not None:
        likely.append(made)
    yield from sorted(likely, key=_cycles)


def _shapes(plan: Plan) -> frozenset[Shape]:
    return frozenset(shape_of(group) for group in plan.schedule.groups) if plan.schedule else frozenset()


def _fits(networks: Sequence[Network], platform: Target, options: PlanOptions) -> bool:
    """Whether a machine is large enough, with one choice of engines or another."""
    return any(tiled(replace(network, platform=platform), options) is not None for network in networks)


def _planned(network: Network, options: PlanOptions) -> Plan | None:
    """The plan of a network whose engines are chosen; None where some memory is too small."""
    made = _attempt(network, options)
    if options.joint and made is not None and made.schedule is not None and made.schedule.stages:
        # Copies from a slow home are chosen after the groups, so simpler groups may come out ahead.
        simple = _attempt(network, replace(options, joint=False))
        if simple is not None and simple.schedule is not None and _cycles(simple) < _cycles(made):
            return replace(simple, schedule=replace(simple.schedule, bound=made.schedule.bound))
    return made


def _cycles(plan: Plan) -> float:
    return sum(group.cycles for group in plan.schedule.groups) if plan.schedule is not None else 0.0


def _attempt(network: Network, options: PlanOptions) -> Plan | None:
    """The plan; None where some memory is too small."""
    draft = tiled(network, options)
    if draft is None:
        return None
    for step in STEPS:
        draft = step(draft)
    return finished(draft)


def tiled(network: Network, options: PlanOptions) -> PlanDraft | None:
    """Groups and tiles, with places for what is between groups; None where some memory is too small."""
    levels = levels_of(network)
    if any(room < 0 for room in levels.room.values()):
        return None
    sources = first_sources(network, levels)
    menu = Menu(network, options, levels.capacity)
    joint = options.joint or not fits_layer_by_layer(menu, levels, sources)
    solution = Joint(menu, levels, sources).solve(options) if joint else layer_by_layer(menu, levels, sources)
    if solution is None:
        return None
    far = [span for span in spans_of(network, solution.picks) if span.tensor not in solution.residents]
    found = place(far, levels, network.platform.alignment, seconds=options.seconds, seed=options.seed)
    if found is None:
        return None
    near = {name: Place(levels.near, offset) for name, offset in solution.residents.items()}
    return PlanDraft(options, menu, levels, solution, {**found, **near})
