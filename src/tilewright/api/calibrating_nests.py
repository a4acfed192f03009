"""Calibrate: what loop nests take that are printed from expressions, measured on layers that no kernel fits."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
from msgspec.structs import replace

from tilewright.api.bench import Bench, BenchRun, Progress, compiler_of, quantiles, quiet, rounded
from tilewright.api.sampled_layers import SampledLayer, draw_nest, network
from tilewright.core.op import Operator, arrays_of, call_example, call_node
from tilewright.errors import TilewrightError
from tilewright.machine.calibration import COMPILER, NESTS, Calibration
from tilewright.machine.staleness import operations_key
from tilewright.machine.target import Target, with_times
from tilewright.ops import operators
from tilewright.price.least_squares import S
from tilewright.price.nest_terms import NestSeen, nest_seen, solved_nests
from tilewright.price.operations import functions
from tilewright.price.tiles import OPERATIONS

LAYERS = 4
"""Of each operator."""
TOGETHER = 8
"""Layers of a program."""
HELD_OUT = 5
"""In so many turns, each so many-th program is not used to solve, and its errors are told."""
START = 100.0
"""Cycles to start a nest that plans of programs assume."""


def measured_nests(platform: Target, seed: int, progress: Progress = quiet) -> Calibration:
    """Samples, runs and solves."""
    return nests_solution(platform, nest_programs(platform, seed, progress))


def nest_programs(platform: Target, seed: int, progress: Progress = quiet) -> list[BenchRun]:
    """Layers without kernels, as they ran. What was measured before plays no part in how they are planned."""
    start = {"call": START, f"{platform.cores.name}.fork": START}
    plain = with_times(replace(platform, kernels=(), operations=MappingProxyType(OPERATIONS)), start)
    layers = _layers(platform, seed)
    found: list[BenchRun] = []
    with tempfile.TemporaryDirectory(prefix="tilewright-") as scratch:
        bench = Bench(Path(scratch))
        for number, first in enumerate(range(0, len(layers), TOGETHER)):
            progress(NESTS, first, len(layers))
            mine = layers[first : first + TOGETHER]
            # Where a memory is too small, the next program has a larger one.
            ran = bench.run(plain, mine, number) or bench.run(plain, mine, number + 1)
            if ran is not None:
                found.append(ran)
    progress(NESTS, len(layers), len(layers))
    if len(found) < HELD_OUT:
        raise TilewrightError(
            "no-samples",
            f"loop nests of '{platform.name}' cannot be calibrated: hardly any layer fits its memory",
            reasons=[f"{len(found)} programs ran"],
            help="give the cores more memory in platform.yaml",
        )
    return found


def _layers(platform: Target, seed: int) -> list[SampledLayer]:
    """Some of each operator in any order, then those for functions that none of these calls."""
    random = np.random.default_rng(seed)
    ops = [op for _, op in sorted(operators().items()) if op.body is not None]
    wanted = [ops[int(number)] for _ in range(LAYERS) for number in random.permutation(len(ops))]
    found: list[SampledLayer] = []
    called: set[str] = set()

    def draw(op: Operator) -> None:
        layer = draw_nest(op, platform.kernels, random, f"layer{len(found)}")
        if layer is not None:
            found.append(layer)
            called.update(_functions(layer))

    for op in wanted:
        draw(op)
    for op in ops:
        for spec in op.examples:
            if set(functions(call_example(op, spec, arrays_of(spec)))) - called:
                draw(replace(op, examples=(spec,)))
    return found


def _functions(layer: SampledLayer) -> Iterable[str]:
    graph = network([layer])
    return (name for node in graph.nodes for name in functions(call_node(graph, node)))


def nests_solution(platform: Target, ran: Sequence[BenchRun]) -> Calibration:
    """What follows from programs that ran."""
    return operations_solution(platform, [observed_nests(one) for one in ran], solved_nests, HELD_OUT)


def operations_solution(
    platform: Target, seen: Sequence[Sequence[S]], solve: Callable[[Sequence[S]], dict[str, float]], turns: int
) -> Calibration:
    """Cycles of operations from what was seen program by program. In so many turns some programs are held out."""
    every = [one for mine in seen for one in mine]
    errors: list[float] = []
    for turn in range(turns):
        apart = solve([one for number, mine in enumerate(seen) if number % turns != turn for one in mine])
        errors += [one.error(apart) for mine in seen[turn::turns] for one in mine]
    costs = {name: rounded(value) for name, value in sorted(solve(every).items())}
    return Calibration(
        MappingProxyType(operations_key(platform, costs) | {COMPILER: compiler_of(platform)}),
        MappingProxyType(costs),
        shapes=len(every),
        held_out=MappingProxyType(quantiles(errors)),
    )


def observed_nests(ran: BenchRun) -> list[NestSeen]:
    """What was seen of each nest."""
    planned = ran.plan
    assert planned.schedule is not None
    return [
        nest_seen(planned.graph, planned.platform, planned.choices, group, [tile.kernel for tile in profile.tiles])
        for group, profile in zip(planned.schedule.groups, ran.groups, strict=True)
    ]
