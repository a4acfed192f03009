"""The example program of the emulated machine runs a tiled network, and ends when the network uses it wrongly."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from tilewright.base.dtype import INT32
from tilewright.codegen.build import SANITIZE, STRICT, build
from tilewright.codegen.project import runtime_files, write_project
from tilewright.core.graph import TensorType
from tilewright.errors import TilewrightError
from tilewright.machine.target import load_platform
from tilewright.sim import EmulatedMachine, HostRun, Moment, host_environment, run_on_host

HERE = Path(__file__).parent
MOMENTS: tuple[Moment, ...] = ("start", "wait", "random")
KIND = TensorType(INT32, (120,))
X = np.arange(120, dtype=np.int32) * 7 - 300


def project(folder: Path) -> Path:
    """A C project with a network written by hand."""
    platform = load_platform("scratchpad")
    files = runtime_files("network", ["network.c"], platform)
    files |= {f"network.{end}": (HERE / f"tiled_network.{end}").read_bytes() for end in ("c", "h")}
    files |= {path.name: path.read_bytes() for path in platform.headers}
    write_project(files, folder)
    return folder


def program(folder: Path, *flags: str) -> Path:
    return build(project(folder), load_platform("scratchpad"), flags=(*STRICT, *flags)).executable


def run(executable: Path, machine: EmulatedMachine, repeat: int = 0) -> HostRun:
    return run_on_host(executable, [X], [KIND], machine=machine, repeat=repeat)


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return program(tmp_path_factory.mktemp("right"), *SANITIZE)


@pytest.mark.parametrize("moment", MOMENTS)
def test_right_network(moment: Moment, right: Path) -> None:
    for seed in range(3):
        ran = run(right, EmulatedMachine(moment, seed), repeat=2)
        assert np.array_equal(ran.outputs[0], X * 3)
        assert ran.nanoseconds


def test_without_options_transfers_copy_when_waited_for(right: Path) -> None:
    assert np.array_equal(run_on_host(right, [X], [KIND]).outputs[0], X * 3)


def test_missing_wait(tmp_path: Path) -> None:
    executable = program(tmp_path, "-DWAITS")
    with pytest.raises(TilewrightError) as caught:
        run(executable, EmulatedMachine())
    assert caught.value.reasons == (
        "dma: two pending transfers write the same bytes",
        "  channel 0: 1 x 1 x 96 bytes to L1+0 from x+192",
        "  channel 0: 1 x 1 x 96 bytes to L1+0 from x+0",
    )


def test_dependence_between_cores(tmp_path: Path) -> None:
    executable = program(tmp_path, "-DCORES")
    assert not np.array_equal(run(executable, EmulatedMachine()).outputs[0], X * 3)


def test_memory_too_small(tmp_path: Path) -> None:
    executable = program(tmp_path, *SANITIZE, "-DLARGE")
    with pytest.raises(TilewrightError) as caught:
        run(executable, EmulatedMachine())
    assert any("heap-buffer-overflow" in line for line in caught.value.reasons)


def test_make(tmp_path: Path) -> None:
    subprocess.run(["make", "-s", "-C", project(tmp_path)], check=True)
    assert np.array_equal(run(tmp_path / "network", EmulatedMachine("random", 5)).outputs[0], X * 3)


@pytest.mark.parametrize("options", [["--dma", "never"], ["--dma"], ["--speed", "3"]])
def test_wrong_options(options: list[str], right: Path, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(X.tobytes())
    done = subprocess.run(
        [right, tmp_path / "x", tmp_path / "y", *options],
        capture_output=True,
        text=True,
        check=False,
        env=host_environment(),
    )
    assert done.returncode == 1
    assert options[0] in done.stderr
