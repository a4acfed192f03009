"""The emulated machine: its DMA copies right at any moment, and every wrong use is reported."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tilewright.codegen.build import SANITIZE, STRICT
from tilewright.machine.target import load_platform, platform_names
from tilewright.sim import host_environment

HERE = Path(__file__).parent
MOMENTS = ("start", "wait", "random")
WRONG = {
    "written_destination": (
        "the destination was written before the transfer was waited for",
        "channel 0: 1 x 1 x 4 bytes to here+3 from there+0",
    ),
    "changed_source": (
        "the source changed before the transfer was waited for",
        "channel 2: 1 x 1 x 40 bytes to here+0 from there+16",
    ),
    "same_destination": (
        "two pending transfers write the same bytes",
        "channel 1: 1 x 1 x 64 bytes to here+60 from there+64",
        "channel 0: 1 x 1 x 64 bytes to here+0 from there+0",
    ),
    "written_source": (
        "a transfer writes what a pending one reads",
        "channel 1: 1 x 1 x 8 bytes to there+56 from here+128",
        "channel 0: 1 x 1 x 64 bytes to here+0 from there+0",
    ),
    "read_destination": (
        "a transfer reads what a pending one writes",
        "channel 1: 1 x 4 x 8 bytes to there+128, rows 20 apart from here+16, rows 8 apart",
        "channel 0: 1 x 4 x 8 bytes to here+0, rows 32 apart from there+0, rows 8 apart",
    ),
    "self_overlap": (
        "the rows of a destination overlap",
        "channel 0: 1 x 3 x 8 bytes to here+0, rows 7 apart from there+0, rows 8 apart",
    ),
    "onto_itself": ("the destination overlaps the source", "channel 0: 1 x 1 x 8 bytes to here+0 from here+4"),
    "past_the_end": ("a transfer goes beyond a memory", "channel 0: 1 x 1 x 8 bytes to here+508 from there+0"),
    "before_the_start": (
        "a transfer goes beyond a memory",
        "channel 0: 1 x 4 x 8 bytes to here+0, rows 8 apart from there+16, rows -8 apart",
    ),
    "not_waited": ("nobody waited for a transfer", "channel 0: 1 x 1 x 8 bytes to here+0 from there+0"),
    "negative": (
        "a transfer of a negative size",
        "channel 0: 1 x -1 x 8 bytes to here+0 from there+0",
    ),
}

Done = subprocess.CompletedProcess[str]


def built(folder: Path, compiler: str, *flags: str) -> Path:
    machine = HERE.parent.parent / "src" / "tilewright" / "platforms" / "scratchpad"
    program = folder / "machine_cases"
    sources = [HERE / "machine_cases.c", machine / "runtime" / "tilewright_machine.c"]
    subprocess.run([compiler, *STRICT, *flags, "-O1", f"-I{machine / 'kernels'}", *sources, "-o", program], check=True)
    return program


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cases built with sanitizers."""
    return built(tmp_path_factory.mktemp("watched"), "gcc", *SANITIZE)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cases as any compiler builds them."""
    compiler = "clang" if shutil.which("clang") else "gcc"
    return built(tmp_path_factory.mktemp("plain"), compiler)


def run(program: Path, use: str, moment: str = "wait", seed: int = 0) -> Done:
    return subprocess.run(
        [program, use, moment, str(seed)], capture_output=True, text=True, check=False, env=host_environment()
    )


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("use", ["right_copies", "right_neighbours", "right_cores"])
def test_right_use(use: str, moment: str, watched: Path, plain: Path) -> None:
    for seed in range(4):
        for program in (watched, plain):
            done = run(program, use, moment, seed)
            assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("use", WRONG)
def test_wrong_use(use: str, moment: str, watched: Path, plain: Path) -> None:
    for program in (watched, plain):
        done = run(program, use, moment)
        what, *transfers = WRONG[use]
        assert done.returncode == 3
        lines = done.stderr.splitlines()
        assert lines[0] == f"dma: {what}"
        assert [line.strip() for line in lines[1:]] == transfers


@pytest.mark.parametrize("moment", MOMENTS)
def test_early_read_under_the_sanitizer(moment: str, watched: Path) -> None:
    assert "use-after-poison" in run(watched, "early_read", moment).stderr


def test_early_read_of_noise(plain: Path) -> None:
    assert run(plain, "early_read", "start").returncode == 0
    assert run(plain, "early_read", "wait").returncode == 10
    assert {run(plain, "early_read", "random", seed).returncode for seed in range(20)} == {0, 10}


def test_cores_inside_cores(plain: Path) -> None:
    done = run(plain, "nested_cores")
    assert done.returncode == 3
    assert done.stderr.startswith("cores: TW_CORES inside TW_CORES")


def test_seed_decides_the_order_of_cores(plain: Path) -> None:
    orders = [run(plain, "right_cores", seed=seed).stdout for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert len(set(orders[0].splitlines())) == 20


def test_same_seed_same_moments(plain: Path) -> None:
    ends = [[run(plain, "early_read", "random", seed).returncode for seed in range(8)] for _ in range(2)]
    assert ends[0] == ends[1]


def test_every_platform_loads() -> None:
    assert {"generic", "scratchpad"} <= set(platform_names())
    for name in platform_names():
        platform = load_platform(name)
        assert platform.name == name
        if platform.build:
            assert {"CMakeLists.txt", "Makefile.in", "main.c.in"} <= {path.name for path in platform.runtime.values()}


def test_machine_of_the_platform() -> None:
    platform = load_platform("scratchpad")
    cpu = platform.engines["cpu"]
    assert platform.home in platform.memories
    assert platform.headers[0].name == "tilewright_machine.h"
    paths = [{"L1", "L2"}, {"L1"}, {"L2", "L3"}, {"L1", "L3"}]
    assert [{*dma.between} for dma in platform.links.values()] == paths
    assert (cpu.memory, cpu.reads, cpu.count) == ("L1", ("W",), 8)
