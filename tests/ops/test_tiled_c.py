"""Every example of every operator, cut into its smallest tiles, on an emulated machine, against the reference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ops.test_generated_c import OPERATOR_GROUPS, assert_close, network, operator_samples
from sampling import Sampler
from tilewright.codegen import lower, project_files, write_project
from tilewright.codegen.build import SANITIZE, STRICT, build
from tilewright.core.interpret import interpret
from tilewright.machine.target import Sizes, Target, load_platform, resize
from tilewright.passes.halves import halves
from tilewright.plan import PlanOptions, check, plan
from tilewright.plan.tiling import candidates as tiling
from tilewright.plan.tiling.candidates import Candidate
from tilewright.plan.tiling.groups import Tilings
from tilewright.sim import EmulatedMachine, run_on_host

MACHINE: Target = resize(load_platform("scratchpad"), Sizes({"L1": 1 << 20}, "L2", 3))


def smallest(found: Sequence[Tilings], capacity: int, steps: Sequence[int]) -> tuple[Candidate, ...]:
    """Instead of the largest tile: the one with the fewest bytes."""
    return tiling.front(found, capacity, steps)[:1]


@pytest.mark.parametrize("names", OPERATOR_GROUPS, ids=[f"{names[0]}-{names[-1]}" for names in OPERATOR_GROUPS])
def test_every_example_in_smallest_tiles(
    names: list[str], sampler: Sampler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiling, "largest", smallest)
    samples = operator_samples(names, sampler)
    graph = halves(network(samples), MACHINE)
    planned = plan(graph, MACHINE, PlanOptions(joint=False))
    check(planned)
    write_project(project_files([lower(planned)], MACHINE), tmp_path)
    built = build(tmp_path, MACHINE, flags=(*STRICT, *SANITIZE, "-O0"))
    fed = [array for s in samples for array in s.fed.values()]
    expected = interpret(network(samples), fed)
    types = [graph.types[name] for name in graph.outputs]
    nodes = {output: s.node for s in samples for output in s.node.outputs}
    run = run_on_host(built.executable, fed, types, machine=EmulatedMachine("random", 2))
    for output, found, wanted in zip(graph.outputs, run.outputs, expected, strict=True):
        assert_close(found, wanted, f"{nodes[output].op} {output} {dict(nodes[output].attrs)}")
