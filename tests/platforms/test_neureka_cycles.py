"""Predicted cycles of NEUREKA's jobs are those of the simulated ones: each job, and all jobs that programs start."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from platforms.test_neureka_kernels import given_slow_cores, kernels, requantised
from platforms.test_siracusa_conv_kernels import Layer, conv, layer, network
from sim.neureka_reference import TCDM_BASE, Addresses, Job, Padding, registers
from sim.test_neureka import TIMING, Machine
from tilewright import _native
from tilewright.api import Options, run_model
from tilewright.core.plan import Plan
from tilewright.machine.kernel import MODE, formula
from tilewright.machine.target import Sizes, Target, load_platform
from tilewright.machine.timing import Timing
from tilewright.price.device import NEUREKA
from tilewright.price.grid import Cut, Grid
from tilewright.price.tasks import task
from tilewright.price.tiles import work_cycles
from tilewright.price.transfers import due
from tilewright.sim import simulator

JOBS = 60
LAYERS = 4
MEGABYTE = 1 << 20
"""More than all operands of a job take."""
MODES = {"1x1": "pointwise", "3x3": "dense", "dw": "depthwise"}


# Single jobs


def simulated(job: Job) -> int:
    machine = Machine(np.zeros(MEGABYTE, np.uint8), np.zeros(MEGABYTE, np.uint8))
    return machine.run(registers(job, Addresses(TCDM_BASE, TCDM_BASE, 0, *(TCDM_BASE,) * 3))).cycles


def random_job(mode: str, rng: np.random.Generator) -> Job:
    rows, columns, inputs, outputs = (
        int(rng.integers(low, high)) for low, high in ((1, 21), (1, 21), (1, 90), (1, 145))
    )
    scaled = bool(rng.integers(2))
    return Job(
        mode,
        rows + 1,
        columns + 1,
        outputs if mode == "dw" else inputs,
        outputs,
        8 if mode == "1x1" else int(rng.integers(2, 9)),
        output_bits=8 if scaled else 32,
        quantise=scaled,
        bias=scaled,
        padding=Padding() if mode == "1x1" else Padding(*(int(rng.integers(0, 2)) for _ in range(4))),
        weights_in_weight_memory=True,
        prefetch=bool(rng.integers(2)),
    )


@pytest.mark.parametrize("mode", MODES)
def test_jobs_take_what_simulated_ones_do(mode: str) -> None:
    rng = np.random.default_rng(4)
    jobs = [random_job(mode, rng) for _ in range(JOBS)]
    sizes: list[Callable[[Job], int]] = [
        lambda job: job.rows,
        lambda job: job.columns,
        lambda job: job.input_channels,
        lambda job: job.output_channels,
        lambda job: job.padding.bottom,
        lambda job: job.padding.right,
        lambda job: job.weight_bits,
        lambda job: job.quantise,
        lambda job: job.prefetch,
    ]
    found = _native.neureka_busy(
        MODES[mode], TIMING, *(np.array([size(job) for job in jobs], np.int64) for size in sizes)
    )
    assert [int(cycles) + TIMING["job"] for cycles in found] == [simulated(job) for job in jobs]


def test_jobs_of_no_size_are_not_started() -> None:
    fields = {name: np.array([0, 4]) if name == "width" else np.array([4, 4]) for name in NEUREKA.fields}
    found = _native.neureka_busy("pointwise", TIMING, *fields.values())
    assert found[0] == 0 < found[1]


@pytest.mark.parametrize("count", [1, 4, 5, 6, 7, 9, 15, 16, 20, 25, 35, 36, 37, 49, 64, 80, 100, 1000])
def test_rows_are_cut_into_the_fewest_tiles(count: int) -> None:
    """All of them are in a job, and no other width of up to six needs fewer tiles of 6 x 6."""
    kernel = next(k for k in load_platform("siracusa").kernels if k.function == "neureka_matmul")
    names = {"ROWS": count}
    jobs = [(formula(job["height"], names), formula(job["width"], names)) for job in kernel.jobs]
    assert sum(height * width for height, width in jobs) == count
    tiles = sum(-(-height // 6) for height, width in jobs if width)
    widths = [w for w in range(1, 7) if count >= w]
    assert tiles == min(-(-(count // w) // 6) + (count % w > 0) for w in widths)


# Programs


def random_layers(kind: str, rng: np.random.Generator) -> list[Layer]:
    """Some of which are cut into tiles. Depthwise tiles of one channel are left out: they delay the job behind them."""

    def drawn(low: int, high: int) -> int:
        return int(rng.integers(low, high))

    def one() -> Layer:
        height, width, inputs, outputs = drawn(3, 24), drawn(3, 24), drawn(1, 90), drawn(1, 70)
        dtype = "int8" if drawn(0, 2) else "uint8"
        if kind == "matmul":
            return layer("MatMul", (drawn(1, 200), inputs), dtype, ((inputs, outputs), "int8"))
        if kind == "pointwise":
            return conv((1, inputs, height, width), outputs, (1, 1), dtype, strides=(drawn(1, 3), drawn(1, 3)))
        pads = tuple(drawn(0, 2) for _ in range(4))
        if kind == "dense":
            return conv((1, inputs, height, width), outputs, (3, 3), dtype, pads=pads)
        channels = 4 * drawn(1, 16)
        return conv((1, channels, height, width), channels, (3, 3), dtype, group=channels, pads=pads)

    return [one() for _ in range(LAYERS)]


def predicted(made: Plan) -> int:
    """Cycles of all jobs of a plan."""
    assert made.schedule is not None
    total = 0.0
    for group in made.schedule.groups:
        tasks = [task(made.graph, made.graph.nodes[work.step], made.choices[work.step].kernel) for work in group.works]
        cuts = [Cut(loop.dim, tasks[-1].member.domain.dims[loop.dim], (loop.size,)) for loop in group.loops]
        grid = Grid([mine.member for mine in tasks], cuts, group.keep, len(cuts) - 1)
        for position, (work, mine) in enumerate(zip(group.works, tasks, strict=True)):
            if mine.kernel is None or mine.kernel.engine != "neureka":
                continue
            cycles = work_cycles(grid, made.platform, position, mine, work.split, work.chunk) - TIMING["job"]
            moves = grid.moves(tuple(grid.projection.ranges[position].values()))
            total += float(grid.total(due(grid, moves, range(grid.rank)) * cycles).sum())
    return int(total)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("kind", ["pointwise", "dense", "depthwise", "matmul"])
def test_programs_start_the_jobs_that_are_predicted(
    kind: str, *, scaled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines: list[_native.Machine] = []

    def built(machine: Target, timing: Timing) -> _native.Machine:
        machines.append(original(machine, timing))
        return machines[-1]

    original = simulator.built
    monkeypatch.setattr(simulator, "built", built)
    monkeypatch.setattr("tilewright.api.compiling.load_platform", given_slow_cores)
    graph, fed = network(random_layers(kind, np.random.default_rng(24)))
    if scaled:
        graph = requantised(graph, 1 << 12)
    ran = run_model(graph, Options(platform="siracusa", sizes=Sizes({"L1": 24_000})), inputs=fed)
    assert kernels(ran.compiled.plan) == {f"neureka_{kind}{'_requant' if scaled else ''}"}
    assert predicted(ran.compiled.plan) == machines[-1].statistics()["neureka"]["busy"]


def test_headers_say_jobs_and_no_cycles() -> None:
    found = [k for k in load_platform("siracusa").kernels if k.engine == "neureka"]
    assert len(found) == 11
    assert all(kernel.cycles == "0" and {job[MODE] for job in kernel.jobs} <= {*MODES.values()} for kernel in found)
