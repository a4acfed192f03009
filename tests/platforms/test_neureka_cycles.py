"""What headers of NEUREKA's kernels say that a job takes, against the cycles of the simulated one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sim.neureka_reference import TCDM_BASE, Addresses, Job, Padding, registers
from sim.test_neureka import Machine
from tilewright.core.kernel import formula
from tilewright.core.platform import load_platform

MOST = 0.015
"""Cycles may be off by this share: one channel alone in a depthwise tile waits elsewhere, all others are exact."""
JOBS = 40
MEGABYTE = 1 << 20


def simulated(job: Job) -> int:
    machine = Machine(np.zeros(MEGABYTE, np.uint8), np.zeros(MEGABYTE, np.uint8))
    return machine.run(registers(job, Addresses(TCDM_BASE, TCDM_BASE, 0, *(TCDM_BASE,) * 3))).cycles


def job_of(mode: str, rng: np.random.Generator, *, scaled: bool) -> Job:
    rows, columns, inputs, outputs = (
        int(rng.integers(low, high)) for low, high in ((1, 16), (1, 16), (1, 90), (1, 90))
    )
    ends = Padding() if mode == "1x1" else Padding(*(int(rng.integers(0, 2)) for _ in range(4)))
    return Job(
        mode,
        rows + 2,
        columns + 2,
        outputs if mode == "dw" else inputs,
        outputs,
        8 if mode == "1x1" else int(rng.integers(2, 9)),
        output_bits=8 if scaled else 32,
        quantise=scaled,
        bias=scaled,
        padding=ends,
        weights_in_weight_memory=True,
        prefetch=True,
    )


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(("mode", "kernel"), [("1x1", "pointwise"), ("3x3", "dense"), ("dw", "depthwise")])
def test_jobs_take_what_headers_say(mode: str, kernel: str, *, scaled: bool) -> None:
    name = f"neureka_{kernel}{'_requant' if scaled else ''}"
    cycles = next(found.cycles for found in load_platform("siracusa").kernels if found.function == name)
    rng = np.random.default_rng(4)
    for _ in range(JOBS):
        job = job_of(mode, rng, scaled=scaled)
        sizes = {
            "OH": job.rows,
            "OW": job.columns,
            "C": job.input_channels,
            "F": job.output_channels,
            "G": job.output_channels,
            "weight_planes": job.weight_bits,
            "pads_2": job.padding.bottom,
            "pads_3": job.padding.right,
            # Pixels that are not side by side are taken as the image has them.
            "strides_0": 2,
            "strides_1": 2,
        }
        assert formula(cycles, sizes) == pytest.approx(simulated(job), rel=MOST), job


@pytest.mark.parametrize("scaled", [False, True])
def test_rows_take_what_headers_say(*, scaled: bool) -> None:
    name = f"neureka_matmul{'_requant' if scaled else ''}"
    cycles = next(found.cycles for found in load_platform("siracusa").kernels if found.function == name)
    for rows, inputs, outputs in ((1, 64, 64), (6, 33, 40), (36, 128, 70), (72, 30, 96), (3, 256, 5)):
        job = Job("1x1", max(rows // 6, 1), min(rows, 6), inputs, outputs, weights_in_weight_memory=True, prefetch=True)
        job = replace(job, output_bits=8 if scaled else 32, quantise=scaled, bias=scaled)
        sizes = {"ROWS": rows, "K": inputs, "N": outputs}
        assert formula(cycles, sizes) == pytest.approx(simulated(job), rel=MOST), job
