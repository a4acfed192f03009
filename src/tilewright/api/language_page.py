"""Tokens of a language model on a simulated chip, measured for a page: at some positions, with and without engines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from tilewright.api.compiling import Observer, Options, compile_model
from tilewright.codegen import build, project_in
from tilewright.core.graph import Graph
from tilewright.errors import TilewrightError
from tilewright.language.kinds import KINDS, kind_of
from tilewright.machine.target import Target, load_platform
from tilewright.report.groups import group_table
from tilewright.report.language_page import MeasuredTokens, write_language
from tilewright.sim.chip import Chip
from tilewright.sim.limits import USUAL, Limits
from tilewright.sim.marks import Profiler
from tilewright.sim.statistics import statistics_of

POSITIONS = 8
"""At which a token is measured, from the first to the last."""


def check_page(options: Options) -> Target:
    """The platform; an error where nothing simulates it cycle by cycle."""
    platform = load_platform(options.platform)
    if not platform.timings:
        raise TilewrightError(
            "bad-argument",
            f"--report is about simulated chips, which '{platform.name}' is not",
            help="choose another platform with --platform, or leave the option away",
        )
    return platform


def language_page(
    path: Path,
    title: str,
    graph: Graph,
    options: Options,
    *,
    limits: Limits = USUAL,
    progress: Observer = lambda _stage: None,
) -> None:
    """Measures a graph that takes a token and its position in all configurations, and writes the page."""
    found: list[MeasuredTokens] = []
    for name, chosen in _configurations(options, check_page(options)):
        progress(name)
        found.append(measured_tokens(name, graph, chosen, limits))
    write_language(path, title, found, KINDS)


def _configurations(options: Options, platform: Target) -> Iterator[tuple[str, Options]]:
    """The one that was asked for, and what it would be without the memory or the engines beside the cores."""
    yield "as asked for", options
    sizes, others = options.sizes, [name for name, e in platform.engines.items() if e != platform.cores]
    left = [name for name in others if name not in sizes.without]
    memory = platform.in_place
    if left and memory and sizes.memories.get(memory) != 0:
        yield f"without {memory}", replace(options, sizes=replace(sizes, memories={**sizes.memories, memory: 0}))
    if left:
        yield f"without {', '.join(left)}", replace(options, sizes=replace(sizes, without=tuple(others)))


def measured_tokens(name: str, graph: Graph, options: Options, limits: Limits = USUAL) -> MeasuredTokens:
    """What tokens take on one configuration of a chip."""
    compiled = compile_model(graph, options)
    plan, platform = compiled.plan, compiled.platform
    assert plan.schedule is not None
    last = graph.bounds[0].high
    middle = last // 2
    # The token that is looked into comes last, so that everything is as it is in the middle of a text.
    positions = [*dict.fromkeys(last * step // (POSITIONS - 1) for step in range(POSITIONS)), middle]
    with project_in(None, compiled.files, compiled.program.name) as target:
        executable = build(target, platform, compiled.program.name).executable
        kinds = [plan.graph.types[given] for given in plan.graph.given]
        chip = Chip(executable, 2, kinds, platform, steps=len(positions), checks=True, limits=limits)
        cycles: list[tuple[int, int]] = []
        for position in positions[:-1]:
            chip.run([np.asarray([1], np.int32), np.asarray(position, np.int32)])
            cycles.append((position, chip.cycles))
        before = statistics_of(chip.simulator).joules_by_component()
        profiler = Profiler(chip.simulator, platform)
        chip.run([np.asarray([1], np.int32), np.asarray(middle, np.int32)])
        after = statistics_of(chip.simulator).joules_by_component()
        spent: dict[str, float] = {}
        for row, group in zip(group_table(plan, plan.schedule).rows, profiler.groups(), strict=True):
            kind = kind_of(plan.graph, [plan.graph.nodes[step] for step in row.steps])
            spent[kind] = spent.get(kind, 0.0) + group.cycles
        joules = {component: used - before.get(component, 0.0) for component, used in after.items()}
        return MeasuredTokens(name, chip.simulator.timing.hertz, tuple(cycles), middle, spent, joules)
