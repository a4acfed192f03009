"""Kernel selection: every kernel of the platform is tried on a node, and a rejection keeps its reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import isfinite, prod
from types import MappingProxyType

from tilewright.core.domain import Whole
from tilewright.core.graph import Graph, Node
from tilewright.core.matching import binding_names, why_not, why_not_open
from tilewright.core.op import Call, call_node, is_view
from tilewright.core.plan import Choice, Rejection
from tilewright.errors import TilewrightError
from tilewright.machine.calibration import NESTS
from tilewright.machine.kernel import Kernel, Number, formula, named
from tilewright.machine.target import Target
from tilewright.plan.content import Contents
from tilewright.plan.tiling.candidates import Tiling, fewest_cycles
from tilewright.plan.tiling.frame import Frame
from tilewright.plan.tiling.groups import whole_cycles
from tilewright.plan.tiling.rules import rules
from tilewright.price.device import kernel_cycles
from tilewright.price.grid import Grid
from tilewright.price.nests import pieces_of
from tilewright.price.operations import copies
from tilewright.price.tasks import Task, step_names, task


def select(graph: Graph, node: Node, platform: Target, engine: str = "", contents: Contents | None = None) -> Choice:
    """The cheapest kernel of an engine, by default the cores, that fits a node, or the loop nest.

    An error quotes every rejection if neither does. `contents` know what nodes that are alike take.
    """
    choose = partial(_selected, graph, node, platform, engine, contents)
    return choose() if contents is None else contents.choice(graph, node, engine, choose)


def nest_choice(graph: Graph, node: Node, platform: Target, rejected: tuple[Rejection, ...]) -> Choice:
    """The loop nest printed from a node's access maps. Turns of loops that copy are joined, but not where loops are cut
    where operands begin or end and shared by the cores as well: these have few."""
    domain = call_node(graph, node).domain()
    rows = prod(list(domain.dims.values())[:-1])
    short = pieces_of(call_node(graph, node), domain) and rows < platform.cores.count
    joined = platform.copies_joined if copies(graph, node) and not short else 1
    return Choice(platform.cores.name, None, rejected=rejected, unroll=joined)


def _selected(graph: Graph, node: Node, platform: Target, engine: str, contents: Contents | None) -> Choice:
    call = call_node(graph, node)
    if call.op.kind == "view" and not node.epilogue:
        return Choice("", None)
    names = binding_names(call)
    rejected: list[Rejection] = []
    fitting: list[tuple[Kernel, dict[str, str]]] = []
    wanted = engine or platform.cores.name
    for kernel in (k for k in platform.kernels_of(node.op) if k.engine == wanted):
        variables: dict[str, str] = {}
        reason = why_not(kernel, call, node, graph, names, variables) or why_not_open(graph, node, kernel)
        if not reason and engine:
            reason = _too_large(platform, task(graph, node, kernel))
        if reason:
            rejected.append(Rejection(kernel.where, reason))
        else:
            # A type variable of operands that are all absent may stand for anything.
            chosen = {**{name: allowed[0] for name, allowed in kernel.variables.items()}, **variables}
            fitting.append((kernel, chosen))
    if fitting:
        costs = [0.0]
        if len(fitting) > 1:
            tasks = [task(graph, node, kernel) for kernel, _ in fitting]
            price = partial(_cycles, platform, names)
            costs = [price(mine) if contents is None else contents.cycles(mine, price) for mine in tasks]
        # Of those that take the same, the one with more conditions: it is made for such nodes.
        places = _places(platform, [kernel for kernel, _ in fitting])
        order = [(place, cost, -len(k.when)) for place, cost, (k, _) in zip(places, costs, fitting, strict=True)]
        kernel, variables = fitting[order.index(min(order))]
        with named(kernel, "scratch"):
            scratch = int(formula(kernel.scratch, names))
        chosen = Choice(kernel.engine, kernel, MappingProxyType(variables), scratch, tuple(rejected))
        if not engine and _is_plain(call) and _nest_is_faster(graph, node, platform, chosen, contents):
            return _nest_instead(graph, node, platform, chosen)
        return chosen
    if call.op.body is not None:
        return nest_choice(graph, node, platform, tuple(rejected))
    raise TilewrightError(
        "no-kernel",
        f"{node.op} '{call.name}' has no kernel on '{platform.name}'",
        reasons=[f"{r.kernel:<28} {r.reason}" for r in rejected] or [f"no kernel file declares op: {node.op}"],
        help="cast the tensors to a type a kernel takes, or add a kernel with --kernels DIR (docs/add_a_kernel.md)",
    )


def with_doubtful_nest(graph: Graph, node: Node, platform: Target, chosen: Choice, contents: Contents) -> Choice:
    """The loop nest instead of a kernel of the cores where that is predicted to take fewer cycles, but by no more than
    predictions may be off."""
    kernel = chosen.kernel
    if kernel is None or chosen.engine != platform.cores.name:
        return chosen
    measured = {NESTS, kernel.path.name} <= platform.calibrations.keys()
    if not measured or not _is_plain(call_node(graph, node)):
        return chosen
    nest, other = (_all_at_once(graph, node, platform, code, contents) for code in (None, kernel))
    return _nest_instead(graph, node, platform, chosen) if nest < other else chosen


def _nest_instead(graph: Graph, node: Node, platform: Target, chosen: Choice) -> Choice:
    assert chosen.kernel is not None
    reason = Rejection(chosen.kernel.where, "the loop nest is predicted to take fewer cycles")
    return nest_choice(graph, node, platform, (*chosen.rejected, reason))


def _is_plain(call: Call) -> bool:
    """Whether a loop nest reads operands just where its loops are: of others, predictions say little."""
    try:
        body = call.body
    except TilewrightError:
        return False
    return body is not None and not any(word == "for" or word.endswith("_at") for word in body.words)


def _nest_is_faster(graph: Graph, node: Node, platform: Target, kernel: Choice, contents: Contents | None) -> bool:
    """Whether the loop nest takes fewer cycles than a kernel, where both were measured: kernels are made for layers of
    some size. It has to be less by what nine of ten predictions of nests are off at most and, as tiles may suit kernels
    better than all of it at once, both ways."""
    assert kernel.kernel is not None
    measured = platform.calibrations
    if NESTS not in measured or kernel.kernel.path.name not in measured:
        return False
    most = 1 + measured[NESTS].held_out["p90"]
    nest, other = (_all_at_once(graph, node, platform, code, contents) for code in (None, kernel.kernel))
    if nest * most >= other:
        return False
    size = platform.memories[platform.cores.memory].bytes
    if size is None or platform.home == platform.cores.memory:
        return True
    ways = (nest_choice(graph, node, platform, ()), kernel)
    settings = Tiling(0, 0.0, dict.fromkeys(graph.types, platform.home), size)
    step = next(number for number, other in enumerate(graph.nodes) if other is node)
    nest, other = [fewest_cycles(graph, platform, [step], [way], settings, near=frozenset()) for way in ways]
    return nest * most < other


def _all_at_once(graph: Graph, node: Node, platform: Target, kernel: Kernel | None, contents: Contents | None) -> float:
    """What a node takes by a kernel, or by its loop nest, if it is not cut."""
    price = partial(_cycles, platform, binding_names(call_node(graph, node)))
    mine = task(graph, node, kernel)
    return price(mine) if contents is None else contents.cycles(mine, price)


def _too_large(platform: Target, mine: Task) -> str:
    """Why an engine beside the cores cannot compute a node so: it needs more at once than its memory has; "" if it can.

    Other kernels of it may cut what this one needs whole.
    """
    kernel, member = mine.kernel, mine.member
    assert kernel is not None
    memory, fixed = platform.engines[kernel.engine].memory, rules(mine).fixed
    size, least = platform.memories[memory].bytes, 0
    for use in (use for use in member.uses if not use.pack):
        axes = zip(member.domain.access[use.key], use.type.shape, strict=True)
        kept = (
            n for axis, n in axes if not isinstance(axis, Whole) and fixed.issuperset(name for name, _ in axis.terms)
        )
        least += use.type.dtype.bytes * prod(kept)
    if size is None or least <= size:
        return ""
    return f"needs {', '.join(sorted(fixed))} whole, at least {least} bytes, and {memory} has {size}"


def _places(platform: Target, kernels: Sequence[Kernel]) -> list[int]:
    """Which folder each kernel is from, where some were measured and others not, which cannot be compared; else 0."""
    measured = {k.path.name in platform.calibrations for k in kernels if k.terms}
    folders = [*dict.fromkeys(k.path.parent for k in platform.kernels)] if len(measured) > 1 else []
    return [folders.index(k.path.parent) if folders else 0 for k in kernels]


def node_cycles(graph: Graph, node: Node, choice: Choice, platform: Target, contents: Contents) -> float:
    """What a node takes that is computed at once, without transfers; 0 where it has to be cut."""
    if is_view(node):
        return 0.0
    names = binding_names(call_node(graph, node))
    found = contents.cycles(task(graph, node, choice.kernel), partial(_cycles, platform, names))
    return found if isfinite(found) else 0.0


def _cycles(platform: Target, names: Mapping[str, Number], mine: Task) -> float:
    """What code takes for all of a node with the steps behind it, shared by the cores in the best way."""
    kernel = mine.kernel
    if kernel is None or (platform.cores.count > 1 and platform.beside(kernel) is None):
        return whole_cycles(Frame(platform, [mine], [rules(mine)], Grid([mine.member], [])))
    behind = step_names(platform, mine)
    results = prod(size for name, size in mine.domain.dims.items() if name not in mine.domain.reduction)
    found = kernel_cycles(platform, kernel, lambda text: formula(text, {**names, **behind}))
    return float(found) if kernel.terms else float(found) + results * behind["FUSED"]
