"""Generated C means the same whatever it is compiled with: own networks, random ones and external cases.

Each test is one compilation of a program that holds many networks. A network that differs is reduced to the fewest
nodes, and the flags to the fewest, before it is told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from batches import Batch, BatchError, Member
from compilers import Combination, combinations
from onnx_networks import FLOAT_NETWORKS, integer_cnn
from reduction import Network, smallest, smallest_network
from samples import Sample, differences, sample
from support import cases_folder, find_cases
from tilewright.api import Options, compile_model, load_case
from tilewright.api.feeding import fit
from tilewright.api.running import compare
from tilewright.core.graph import Array
from tilewright.core.interpret import interpret
from tilewright.core.text import print_graph

SEED, RANDOM = 11, 24
CASES_AT_ONCE = 8
LARGEST = 4 << 20
"""Bytes of a file: larger cases hold more weights than a matrix of compilations is worth."""
OWN, RANDOMS = "own", "random"


@dataclass(frozen=True)
class Judged:
    """A member of a batch, and what is wrong with outputs of it."""

    name: str
    member: Member
    wrong: Callable[[Sequence[Array]], list[str]]
    network: Network | None = None
    """As it can be reduced."""


def external() -> list[Path]:
    top = cases_folder()
    found = find_cases(top, ()) if top else []
    return [case.network for case in found if case.network.stat().st_size < LARGEST]


CASES = [f"cases {start}" for start in range(0, len(external()), CASES_AT_ONCE)]


def by_references(name: str, model: Path | Sample, prefix: str, folder: Path) -> Judged:
    """A network whose references say what is right."""
    made = model if isinstance(model, Sample) else None
    path = made.write(folder) if made else Path(str(model))
    inputs = made.inputs if made else []
    compiled = compile_model(path, Options(name=prefix), samples=inputs or None)
    fed = fit(inputs, compiled.plan.graph)
    expected = interpret(compiled.plan.graph, fed)

    def wrong(outputs: Sequence[Array]) -> list[str]:
        if made is not None and made.kind != OWN:
            return differences(made, compiled, outputs, expected)
        compared = compare(compiled, fed, tuple(outputs), expected)
        return [f"{c.name}: {c.wrong} of {c.size} wrong, worst {c.worst:.4g}" for c in compared if c.wrong]

    network = (made.model, made.fed) if made and made.known is None else None
    return Judged(name, Member(compiled, fed), wrong, network)


def by_case(place: Path, prefix: str) -> Judged:
    case = load_case(place.parent.name, place)
    compiled = compile_model(case.model, Options(name=prefix), samples=case.inputs)
    fed = fit(case.inputs, compiled.plan.graph)

    def wrong(outputs: Sequence[Array]) -> list[str]:
        compared = compare(compiled, fed, tuple(outputs), case.expected, case.rule)
        return [f"{c.name}: {c.wrong} of {c.size} wrong, worst {c.worst:.4g}" for c in compared if c.wrong]

    return Judged(str(place), Member(compiled, fed), wrong)


@cache
def members(group: str, folder: Path) -> tuple[Judged, ...]:
    """The networks of a group, compiled once for all compilers."""
    if group == OWN:
        builders = {**FLOAT_NETWORKS, "integer_cnn": integer_cnn}
        networks = {name: build() for name, build in builders.items()}
        own = [
            Sample(name, OWN, model, {port.name: array for port, array in zip(model.graph.input, fed, strict=True)})
            for name, (model, fed) in networks.items()
        ]
        return tuple(by_references(made.name, made, f"n{i}", folder) for i, made in enumerate(own))
    if group == RANDOMS:
        randoms = [sample(SEED, index) for index in range(RANDOM)]
        return tuple(by_references(made.name, made, f"n{i}", folder) for i, made in enumerate(randoms))
    start = int(group.split()[1])
    return tuple(by_case(place, f"n{i}") for i, place in enumerate(external()[start : start + CASES_AT_ONCE]))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compiled")


@pytest.mark.sample(every=60, by=("group",))
@pytest.mark.parametrize("combination", combinations(), ids=str)
@pytest.mark.parametrize("group", [OWN, RANDOMS])
def test_results_are_the_same(group: str, combination: Combination, compiled: Path, tmp_path: Path) -> None:
    assert_same(group, combination, compiled, tmp_path)


@pytest.mark.cases
@pytest.mark.sample(every=400)
@pytest.mark.parametrize("combination", combinations(), ids=str)
@pytest.mark.parametrize("group", CASES)
def test_results_of_cases_are_the_same(group: str, combination: Combination, compiled: Path, tmp_path: Path) -> None:
    assert_same(group, combination, compiled, tmp_path)


def assert_same(group: str, combination: Combination, compiled: Path, folder: Path) -> None:
    """Fails unless a program of all networks of a group computes what is right."""
    judged = members(group, compiled)
    batch = Batch([each.member for each in judged], folder)
    batch.build(combination.compiler, combination.flags)
    found = {each.name: wrong for at, each in enumerate(judged) if (wrong := each.wrong(batch.run(at)))}
    told = [explained(each, found[each.name], combination, folder) for each in judged if each.name in found]
    assert not told, "\n".join(told)


def explained(judged: Judged, wrong: list[str], combination: Combination, folder: Path) -> str:
    """What differs, with the fewest flags and nodes that still do."""

    def differs(each: Judged, flags: Sequence[str]) -> bool:
        batch = Batch([each.member], folder)
        try:
            batch.build(combination.compiler, flags)
            return bool(each.wrong(batch.run(0)))
        except BatchError:
            return True

    flags = smallest(combination.flags, lambda some: differs(judged, some))
    lines = [f"{judged.name}: {'; '.join(wrong)}", f"with {combination.compiler} {' '.join(flags)}"]
    if judged.network is not None:

        def part_differs(network: Network) -> bool:
            return differs(by_references("part", Sample("part", OWN, *network), "part", folder), flags)

        model, fed = smallest_network(judged.network, part_differs)
        part = by_references("part", Sample("part", OWN, model, fed), "part", folder)
        lines.append(print_graph(part.member.compiled.source))
    return "\n".join(lines)


def test_what_differs_is_reduced(compiled: Path, tmp_path: Path) -> None:
    """A compiler flag that changes what the code means is named, with the operator that it changes."""
    judged = next(each for each in members(RANDOMS, compiled) if "sinf(" in each.member.source)
    combination = Combination("gcc", ("-O1", "-Dsinf=cosf", "-ffp-contract=off"))
    batch = Batch([judged.member], tmp_path)
    batch.build(combination.compiler, combination.flags)
    wrong = judged.wrong(batch.run(0))
    assert wrong
    told = explained(judged, wrong, combination, tmp_path)
    assert "with gcc -Dsinf=cosf\n" in told
    graph = told.partition("cosf\n")[2]
    assert "Sin" in graph
    assert len(graph.splitlines()) < 8, graph
