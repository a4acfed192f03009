"""Options that several commands share: said once, the same everywhere, and never ignored."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path

import pytest
import typer

from command_line import refused, relu
from tilewright.cli import options as opt
from tilewright.cli.app import load_command
from tilewright.cli.arguments import options_of
from tilewright.machine import DEFAULT_PLATFORM
from tilewright.machine.target import Sizes
from tilewright.plan import PlanOptions

EMULATED = "scratchpad"


@pytest.mark.parametrize(
    ("text", "count"),
    [("0", 0), ("64000", 64000), ("64K", 65536), ("64 KiB", 65536), ("2m", 2 << 20), ("1GB", 1 << 30), ("7B", 7)],
)
def test_numbers_of_bytes(text: str, count: int) -> None:
    assert opt.byte_count(text) == count


@pytest.mark.parametrize("text", ["", "K", "-1", "64T", "1.5M", "64Kbit"])
def test_what_is_no_number_of_bytes(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        opt.byte_count(text)


def taken(command: str) -> set[str]:
    callback = load_command(command).callback
    assert callback is not None
    return set(inspect.signature(callback).parameters)


@pytest.mark.parametrize("command", ["compile", "run", "test", "plan"])
def test_commands_take_all_shared_options(command: str) -> None:
    shared = {part.name for kind in (opt.NetworkOptions, opt.Code, opt.Shape, opt.Planning) for part in fields(kind)}
    assert shared <= taken(command)
    building = {part.name for part in fields(opt.BuildOptions)}
    assert (building <= taken(command)) == (command in ("run", "test"))


def test_options_reach_the_planner() -> None:
    shape = opt.Shape(l1=1, l2=2, l3=3, weight_memory=4, home="L3", cores=5)
    planning = opt.Planning("2", "off", "off", 0.1, "given", 9.0, 7)
    options = options_of(opt.NetworkOptions(), opt.Code(EMULATED), shape, planning)
    assert options.sizes == Sizes({"L1": 1, "L2": 2, "L3": 3, "W": 4}, "L3", 5)
    assert options.planning == PlanOptions(
        buffers=2, fuse="off", overlap="off", seconds=9.0, seed=7, order="given", max_extra_macs=0.1
    )


def test_defaults_are_those_of_the_compiler() -> None:
    options = options_of(opt.NetworkOptions(), opt.Code(), opt.Shape(), opt.Planning(), build=opt.BuildOptions())
    assert options.platform == DEFAULT_PLATFORM
    assert options.sizes == Sizes()
    assert options.planning == PlanOptions()


@pytest.mark.parametrize(
    "option",
    [["--buffers", "1"], ["--fuse", "off"], ["--max-extra-macs", "0"], ["--cores", "2"], ["--dma", "start"]],
)
def test_nothing_is_ignored(option: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = refused("bad-argument", capsys, "run", relu(tmp_path), *option)
    assert f"{option[0]} is for machines whose cores have a memory of their own" in text


@pytest.mark.parametrize("home", ["L1", "W"])
def test_a_home_that_no_dma_reaches(home: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = refused("bad-argument", capsys, "compile", relu(tmp_path), "-p", EMULATED, "--home", home)
    assert f"--home {home}: no DMA" in text
    assert "help: choose L2 or L3" in text


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--l1", "much"], "'much' is not a number of bytes"),
        (["--cores", "0"], "'--cores'"),
        (["--buffers", "4"], "'--buffers'"),
        (["--dma", "soon"], "'--dma'"),
        (["--max-extra-macs", "-1"], "'--max-extra-macs'"),
    ],
)
def test_values_are_checked(option: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said in refused("bad-argument", capsys, "run", relu(tmp_path), "-p", EMULATED, *option)
