"""Tilings of groups: right numbers, a front, the fewest bytes, and nothing that the validator refuses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product

import pytest
from msgspec import structs
from msgspec.structs import replace

from passes.build import Builder
from plan.tiled import Network, Walk, machine
from plan.tiled_networks import FUSED, SINGLE, chain, convolution, elementwise, residual
from tilewright.core.expr import Expr, Var, larger, variable
from tilewright.core.matching import tile_names
from tilewright.core.op import call_node, is_view
from tilewright.core.plan import Plan
from tilewright.core.tiles import Extent, TileLoop, Trace, member, trace
from tilewright.machine.kernel import Kernel, formula
from tilewright.machine.target import Target
from tilewright.plan.tiling.candidates import Candidate, Tiling, candidates
from tilewright.plan.validator.groups import group_problems, open_group
from tilewright.plan.validator.kernels import work_problems
from tilewright.price import group_cost


def steps_of(network: Network) -> list[int]:
    return [step for step, node in enumerate(network.graph.nodes) if not is_view(node)]


def runs(network: Network) -> Iterator[list[int]]:
    """Runs of nodes whose inner tensors nothing else reads."""
    steps, users = steps_of(network), network.graph.users()
    for first, last in product(range(len(steps)), repeat=2):
        run = steps[first : last + 1]
        inside = [network.graph.nodes[step] for step in run]
        if run and all(n.outputs[0] in users and all(u in inside for u in users[n.outputs[0]]) for n in inside[:-1]):
            yield run


def tiled(
    network: Network, run: list[int], platform: Target, *, near: frozenset[str] = frozenset(), **settings: float
) -> tuple[Candidate, ...]:
    source = {name: memory for name, memory in network.source.items() if name not in near}
    asked = Tiling(
        int(settings.get("buffers", 0)), settings.get("extra", 0.5), source, int(settings.get("capacity", 1 << 40))
    )
    return candidates(network.graph, platform, run, [network.choices[step] for step in run], asked, near=near)


def validator(network: Network, platform: Target, candidate: Candidate) -> list[str]:
    """What the validator says about a group alone."""
    graph, cores = network.graph, next(iter(platform.engines.values())).count
    plan = Plan(graph, platform, network.choices, {}, (), {}, 0, 0, False)
    opened, problems = open_group(plan, 0, candidate.group, ahead=candidate.group.ahead)
    if opened is None:
        return problems
    problems = list(group_problems(opened))
    for position, work in enumerate(candidate.group.works):
        problems += work_problems(opened, position, graph, network.choices[work.step], cores)
    return problems


def every(networks: tuple[Callable[[], Network], ...]) -> Iterator[tuple[Network, list[int]]]:
    for build in networks:
        network = build()
        for run in runs(network):
            yield network, run


@pytest.mark.parametrize("cores", [1, 8])
def test_numbers_are_those_of_all_steps(cores: int) -> None:
    platform = machine(cores)
    checked = 0
    for network, run in every((*SINGLE, *FUSED)):
        for candidate in tiled(network, run, platform)[::3]:
            walk = Walk(network, platform, candidate.group)
            cycles, moved, macs = walk.cycles(network.source)
            assert candidate.cycles == pytest.approx(cycles)
            assert (candidate.moved, candidate.macs) == (moved, macs)
            for index, buffer in enumerate(candidate.group.buffers):
                assert buffer.bytes == -(-walk.room(index) // platform.alignment) * platform.alignment
            ends = [buffer.end for buffer in candidate.group.buffers]
            ends += [w.sums_at(cores) + w.sums for w in candidate.group.works]
            assert max(ends) == candidate.bytes
            checked += 1
    assert checked > 50


@pytest.mark.parametrize("cores", [1, 8])
def test_the_validator_accepts_every_tiling(cores: int) -> None:
    platform = machine(cores)
    for network, run in every((*SINGLE, *FUSED)):
        nodes = [network.graph.nodes[step] for step in run]
        for near in (frozenset[str](), frozenset(nodes[0].inputs[:1]), frozenset(nodes[-1].outputs)):
            for candidate in tiled(network, run, platform, near=near)[::3]:
                assert validator(network, platform, candidate) == []


def test_the_front_is_one() -> None:
    for network, run in every((*SINGLE, *FUSED)):
        found = tiled(network, run, machine())
        assert found or len(run) > 1
        for before, after in pairwise(found):
            assert before.bytes < after.bytes
            assert before.cycles > after.cycles


def numbers(found: Sequence[Candidate]) -> list[tuple[float, ...]]:
    """What candidates say of themselves."""
    return [(each.bytes, each.cycles, each.moved, each.macs) for each in found]


def test_the_same_question_has_the_same_answer() -> None:
    for network, run in every(FUSED):
        assert numbers(tiled(network, run, machine())) == numbers(tiled(network, run, machine()))


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("build", SINGLE)
def test_no_tile_needs_fewer_bytes(build: Callable[[], Network]) -> None:
    """All tile sizes of a node that is alone, with one slot and on one core."""
    network, platform = build(), machine(1)
    for step in steps_of(network):
        node, kernel = network.graph.nodes[step], network.choices[step].kernel
        mine = member(network.graph, node, kernel)
        least = min(c.bytes for c in tiled(network, [step], platform))
        domain = mine.domain
        parts = [n for n in kernel.accumulate if domain.dims[n] > 1] if kernel is not None else []
        names = [*(name for name in domain.parallel if domain.dims[name] > 1), *parts]
        blocks = blocks_of(kernel)
        possible: list[int] = []
        for sizes in product(*(range(1, domain.dims[name] + 1) for name in names)):
            if any(size % blocks.get(n, 1) and size < domain.dims[n] for n, size in zip(names, sizes, strict=True)):
                continue
            loops = [TileLoop(n, size, -(-domain.dims[n] // size)) for n, size in zip(names, sizes, strict=True)]
            possible.append(needed(network, step, loops, platform))
        assert least == min(possible)


def blocks_of(kernel: Kernel | None) -> dict[str, int]:
    packed = " ".join(kernel.pack.values()) if kernel is not None else ""
    return {name: int(block) for name, block in re.findall(r"(\w+)/(\d+)", packed)}


def test_reductions_are_cut_innermost() -> None:
    cut = 0
    for network, run in every((*SINGLE, *FUSED)):
        for candidate in tiled(network, run, machine()):
            domain = member(network.graph, network.graph.nodes[run[-1]], network.choices[run[-1]].kernel).domain
            inner = [loop.dim in domain.reduction for loop in candidate.group.loops]
            assert inner == sorted(inner)
            assert any(inner) == any(work.sums for work in candidate.group.works)
            assert len(run) == 1 or not any(inner)
            cut += any(inner)
    assert cut > 10


def needed(network: Network, step: int, loops: list[TileLoop], platform: Target) -> int:
    """Bytes of one slot of every operand with the largest tile, where operands share nothing."""
    mine = member(network.graph, network.graph.nodes[step], network.choices[step].kernel)
    largest: dict[str, int] = {}
    scratch = 0
    for at in product(*({0, 1, loop.count // 2, loop.count - 1} & {*range(loop.count)} for loop in loops)):
        found = trace([mine], loops, {}, at)
        regions = found.regions[0]
        scratch = max(scratch, scratch_of(network, step, found))
        for use in mine.uses:
            size = use.type.dtype.bytes
            for part in regions[use.key]:
                assert isinstance(part.size, int)
                size *= part.size
            largest[use.key] = max(largest.get(use.key, 0), size)
    if any(loop.dim in mine.domain.reduction and loop.count > 1 for loop in loops):
        result = call_node(network.graph, mine.node).outputs[0].dtype.bytes
        largest["sums"] = largest[mine.output.key] // mine.output.type.dtype.bytes * result
    tensors = {use.tensor: use.key for use in mine.uses}
    inplace = mine.output.key if elementwise_in_place(network, step) else ""
    sizes = [scratch, largest.get("sums", 0), *(largest[key] for key in tensors.values() if key != inplace)]
    return sum(-(-size // platform.alignment) * platform.alignment for size in sizes)


def scratch_of(network: Network, step: int, found: Trace) -> int:
    kernel, call = network.choices[step].kernel, call_node(network.graph, network.graph.nodes[step])
    names = tile_names(call, call.domain(), found.ranges[0])
    return int(formula(kernel.scratch, {k: v for k, v in names.items() if not isinstance(v, Expr)})) if kernel else 0


def test_dimensions_that_are_walked_as_one_have_a_stride_on_tiles_of_any_size() -> None:
    b = Builder()
    graph = b.graph(b.op("Concat", b.input("x", "int8[1,24,24,8]"), b.input("y", "int8[1,24,24,8]"), axis=3))
    call = call_node(graph, graph.nodes[0])
    start = larger(variable("i", 6) * 4 - 1, 0)
    pixels = Extent(start, Expr(((Var("end", 5, 24), 1),)))
    names = tile_names(call, call.domain(), {"D1": Extent(0, 3), "D2": pixels})
    assert names["concat_result_sOUTER"] == 16
    assert names["inputs0_sOUTER"] == 8


def elementwise_in_place(network: Network, step: int) -> bool:
    node, kernel = network.graph.nodes[step], network.choices[step].kernel
    same = any(network.graph.types[n] == network.graph.types[node.outputs[0]] for n in node.inputs if n)
    return same and (bool(kernel.inplace) if kernel else node.op == "Mul")


@pytest.mark.parametrize("buffers", [1, 2])
def test_the_search_asks_for_the_price_that_groups_have_in_the_end(buffers: int) -> None:
    """With a DMA that copies both ways at once, and code that starts transfers and waits for them."""
    simple = machine()
    both_ways = structs.replace(simple.links["cluster"], duplex=True, issue=40, queue=1)
    costs = {"transfer": 1.1, "arrive": 100.0, "leave": 50.0, "turns": 30.0, "turn": 10.0}
    platform = replace(simple, links={**simple.links, "cluster": both_ways}, operations={**simple.operations, **costs})
    for build in (*SINGLE, *FUSED):
        network = build()
        for candidate in tiled(network, steps_of(network), platform, buffers=buffers)[::3]:
            cost = group_cost(network.graph, platform, network.choices, candidate.group, network.source)
            # Behind what is loaded once, more of the first results is hidden in the end.
            assert candidate.cycles == pytest.approx(cost.cycles, rel=0.03)


def test_kept_lines_cost_no_points() -> None:
    network = chain()
    run = steps_of(network)
    points = sum(member(network.graph, network.graph.nodes[s], network.choices[s].kernel).domain.points() for s in run)
    found = tiled(network, run, machine(), extra=0.0)
    assert {candidate.macs for candidate in found} == {points}
    assert any(candidate.group.keep for candidate in found)
    assert all(candidate.group.loops for candidate in found if candidate.group.keep)
    again = tiled(network, run, machine(), extra=1.0)
    assert max(candidate.macs for candidate in again) <= 2 * points
    assert min(candidate.bytes for candidate in again) <= min(candidate.bytes for candidate in found)


def test_wide_windows_are_exact() -> None:
    """Edges that reach further than the two tiles next to them."""
    network, platform = chain(kernel=7), machine(1)
    run = steps_of(network)
    for candidate in tiled(network, run, platform, extra=10.0):
        walk = Walk(network, platform, candidate.group)
        assert candidate.cycles == pytest.approx(walk.cycles(network.source)[0])
        assert validator(network, platform, candidate) == []


def test_only_the_smallest_is_larger_than_the_capacity() -> None:
    network = convolution()
    step = steps_of(network)[-1:]
    everything = tiled(network, step, machine())
    few = tiled(network, step, machine(), capacity=everything[1].bytes)
    assert numbers(few) == numbers(everything[:2])
    assert numbers(tiled(network, step, machine(), capacity=1)) == numbers(everything[:1])


def test_the_number_of_slots_can_be_fixed() -> None:
    network = convolution()
    step = steps_of(network)[-1:]
    for buffers in (1, 2, 3):
        for candidate in tiled(network, step, machine(), buffers=buffers):
            assert {buffer.slots for buffer in candidate.group.buffers} <= {1, buffers}


def test_results_take_the_bytes_of_operands() -> None:
    network = elementwise()
    for candidate in tiled(network, steps_of(network), machine()):
        inputs, outputs = (
            [b for b in candidate.group.buffers if (b.tensor in network.graph.outputs) is written]
            for written in (False, True)
        )
        assert outputs[0].offset in {buffer.offset for buffer in inputs}


def test_readers_of_a_tensor_share_a_buffer() -> None:
    """What a residual adds is part of what its branch reads, unless only new lines of that are read."""
    network = residual()
    found = tiled(network, steps_of(network), machine())
    numbers = {
        (bool(c.group.keep), len([b for b in c.group.buffers if b.tensor in network.graph.inputs])) for c in found
    }
    assert numbers == {(False, 1), (True, 2)}


def test_near_tensors_need_no_buffer_where_kernels_find_them_dense() -> None:
    network = convolution()
    step = steps_of(network)[-1]
    node = network.graph.nodes[step]
    near = frozenset((node.inputs[0], node.outputs[0]))
    for candidate in tiled(network, [step], machine(), near=near):
        buffered = {buffer.tensor for buffer in candidate.group.buffers}
        cut = {loop.dim for loop in candidate.group.loops}
        assert buffered & near or not cut & {"OW", "F"}
        assert cut & {"OW", "F"} or not buffered & near
