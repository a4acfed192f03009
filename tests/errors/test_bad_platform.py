"""error[bad-platform]: a platform.yaml with a wrong key, named by its path."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused, relu

GOOD = """
name: mine
summary: A machine of mine.
channels_last: 1
alignment: 16
memories: {arena: {}}
engines: {cpu: {kind: cores, count: 1, memory: arena}}
kernels: []
build: {compiler: cc, flags: -O1, libraries: -lm}
"""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("name: mine", "name: [mine"), "is not YAML"),
        (("alignment: 16", ""), "alignment: is missing"),
        (("alignment: 16", "alignment: 17"), "alignment: 17 is no power of two"),
        (("count: 1", "count: one"), "engines.cpu.count: must be a whole number"),
        (("count: 1", "count: 2, drives: 2"), "engines.cpu.drives: must be less than 2, the number of harts, found 2"),
        (("memory: arena", "memory: flash"), "engines.cpu.memory: 'flash' is not among memories (arena)"),
        (
            ("kind: cores, count: 1", "kind: device, device: npu"),
            "engines.cpu.device: the simulator has no device 'npu'",
        ),
        (("kernels: []", "kernels: [absent]"), "does not exist"),
        (("kernels: []", "kernels: []\nruntime: [absent]"), "does not exist"),
        (("kernels: []", "kernels: []\ncolour: blue"), "colour: is not a known key"),
        (("alignment", "alinement"), "alinement: is not a known key"),
        (("memory: arena", "memmory: arena"), "; did you mean 'memory'?"),
        (("kind: cores", "kind: array, dims: {A: 2}, memories: {}"), "engines.cpu.count: is not a known key"),
        (("kind: cores", "kind: engine"), "engines.cpu.kind: must be one of cores, device, array, found 'engine'"),
        (("memory: arena", "memory: arena, name: x"), "engines.cpu.name: is not a known key"),
        (("kernels: []", "kernels: []\ncode: flash"), "code: 'flash' is not among memories (arena)"),
        (("kernels: []", "kernels: []\nlayout: {header: include}"), "layout.source: is missing"),
        (("kernels: []", "kernels: []\nqemu: {program: qemu, machine: m}"), "qemu.uart: is missing"),
        (("kernels: []", "kernels: []\nqemu: {program: qemu, machine: m, uart: 64}"), "qemu.timer: is missing"),
        (("kernels: []", "kernels: []\nestimate: {base: 1, more: {loads: {share: a}}}"), "share: must be a number"),
        (("kernels: []", "kernels: []\ncycles: {relu.c: 2*}"), "cycles: is not a known key"),
    ],
)
def test_bad_platform(change: tuple[str, str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "platform.yaml").write_text(GOOD.replace(*change))
    assert said in refused("bad-platform", capsys, "compile", relu(tmp_path), "--platform", folder)


def test_a_dma_says_how_fast_it_copies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    links = "links: {dma: {between: [far, arena], rank: 1}}"
    (tmp_path / "platform.yaml").write_text(
        GOOD.replace("memories: {arena: {}}", f"memories: {{arena: {{}}, far: {{}}}}\n{links}")
    )
    said = refused("bad-platform", capsys, "compile", relu(tmp_path), "--platform", tmp_path)
    assert "links.dma.bytes_per_cycle: is missing" in said


@pytest.mark.parametrize("home", ["home: far", "home: arena", ""])
def test_nothing_copies_within_the_memory_of_the_cores(
    home: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    links = "links: {dma: {between: [far, arena], setup: 1, bytes_per_cycle: 1, rank: 1}}"
    text = GOOD.replace("memories: {arena: {}}", f"memories: {{arena: {{}}, far: {{}}}}\n{home}\n{links}")
    (tmp_path / "platform.yaml").write_text(text)
    said = refused("bad-platform", capsys, "compile", relu(tmp_path), "--platform", tmp_path)
    assert "links: nothing copies within arena" in said
    assert "local: {between: [arena, arena], by_cores: true, ...}" in said
