"""Networks on the simulated Siracusa whose inputs, outputs and weights are in L3, which no core can address."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from passes.build import Builder
from tilewright.api import Options, Ran, compile_model, run_model
from tilewright.core.graph import Array, Graph
from tilewright.core.interpret import interpret
from tilewright.core.plan import Schedule
from tilewright.errors import TilewrightError
from tilewright.machine.target import Sizes


def random(kind: str, *shape: int, seed: int = 0) -> Array:
    limits = np.iinfo(kind)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(kind)


def sizes(home: str, memories: Mapping[str, int]) -> Sizes:
    """Without NEUREKA, whose weights are in a memory of their own."""
    return Sizes(memories, home, without=("neureka",))


def run(graph: Graph, **memories: int) -> tuple[Ran, Schedule]:
    """Runs it with checks and compares with the references."""
    fed = [random(graph.types[n].dtype.name, *graph.types[n].shape, seed=i) for i, n in enumerate(graph.inputs)]
    ran = run_model(graph, Options(platform="siracusa", sizes=sizes("L3", memories)), inputs=fed)
    for name, found, wanted in zip(graph.outputs, ran.outputs, interpret(graph, fed), strict=True):
        np.testing.assert_array_equal(found, wanted, err_msg=name)
    assert ran.compiled.plan.schedule is not None
    return ran, ran.compiled.plan.schedule


def requantised(b: Builder, x: str) -> str:
    return b.op("RequantShift", x, np.asarray(9, np.int32), np.asarray(-5000, np.int32), div=1 << 14)


def layers(rows: int, width: int, count: int) -> Graph:
    b = Builder()
    x = b.input("x", f"int8[{rows},{width}]")
    for number in range(count):
        x = requantised(b, b.op("MatMul", x, random("int8", width, width, seed=number)))
    return b.graph(x)


def test_weights_come_while_layers_before_compute() -> None:
    """Layers that take longer than their weights hide them."""
    graph = layers(96, 160, 4)
    far, schedule = run(graph, L1=65536)
    assert far.compiled.program.sections == (".l3",)
    assert schedule.used["L3"] >= 4 * 160 * 160
    assert sum(stage.start < stage.first for stage in schedule.stages) >= 3
    near = run_model(graph, Options(platform="siracusa", sizes=sizes("L2", {"L1": 65536})))
    assert far.cycles is not None
    assert near.cycles is not None
    # A byte takes a cycle. The input, the output and the first weights have nothing to hide behind.
    assert far.cycles - near.cycles < 2 * 96 * 160 + 160 * 160 + 10_000


def test_tensors_between_layers_that_do_not_fit_l2() -> None:
    """They pass L2 tile by tile, both ways, and with gaps between rows."""
    b = Builder()
    x = b.input("x", "int8[48,48,32]")
    turned = b.op("Transpose", x, perm=(1, 0, 2))
    back = b.op("Slice", turned, np.asarray([5]), np.asarray([43]), np.asarray([1]))
    _, schedule = run(b.graph(b.op("Add", back, back), back), L1=8192, L2=24000)
    assert schedule.used["L2"] <= 24000


def test_many_small_constants() -> None:
    """More copies than the queue of the uDMA or the channels of the runtime hold."""
    b = Builder()
    x = b.input("x", "int32[8]")
    for number in range(80):
        x = b.op("Add", x, random("int32", 8, seed=number) >> 8)
        x = b.op("Transpose", b.op("Reshape", x, np.asarray([2, 4])), perm=(1, 0))
        x = b.op("Reshape", x, np.asarray([8]))
    run(b.graph(x), L1=4096)


def test_what_passes_l2_has_to_fit_there() -> None:
    with pytest.raises(TilewrightError, match=r"needs at least [0-9]+ bytes of L2"):
        run(layers(8, 64, 2), L1=16384, L2=8192)


def test_weights_of_the_accelerator_are_elsewhere() -> None:
    """What NEUREKA reads in place is in its own memory; everything else is in L3."""
    graph = layers(96, 160, 2)
    fed = [random("int8", 96, 160)]
    ran = run_model(graph, Options(platform="siracusa", sizes=Sizes({"L1": 65536}, "L3")), inputs=fed)
    np.testing.assert_array_equal(ran.outputs[0], interpret(graph, fed)[0])
    assert set(ran.compiled.program.sections) <= {".l3", ".wmem"}
    assert ".wmem" in ran.compiled.program.sections


def test_plans_do_not_depend_on_those_made_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates are kept for the whole process: where the home is another one, waiting takes longer."""
    graph = layers(1024, 32, 4)

    def planned(*homes: str) -> list[float]:
        monkeypatch.setattr("tilewright.plan.menu._FRONTS", {})
        found: list[float] = []
        for home in homes:
            plan = compile_model(graph, Options(platform="siracusa", sizes=sizes(home, {"L1": 8_000}))).plan
            assert plan.schedule is not None
            found = [group.cycles for group in plan.schedule.groups]
        return found

    assert planned("L2", "L3") == planned("L3")
    assert planned("L3", "L2") == planned("L2")
