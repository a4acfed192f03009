"""Programs that are built for GVSoC give its DMA only commands that it understands, and these copy what they should."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np

from passes.build import Builder
from sim.device_programs import DEVICES
from sim.faults import FLAGS, PROGRAMS, START, compiler
from sim.stock_mchan import given_commands
from tilewright.api import Options
from tilewright.api.compiling import compile_model
from tilewright.codegen import build, write_project
from tilewright.core.graph import Graph
from tilewright.core.interpret import interpret
from tilewright.machine.target import Sizes, load_platform
from tilewright.sim.gvsoc import GVSOC_FLAGS, given_files
from tilewright.sim.simulator import Look, Simulator

MOST_CYCLES = 5_000_000
AREA, NEAR = 0x4000, 0x10000000
RUNTIME = START.parent


def shapes(folder: Path, flags: tuple[str, ...]) -> Simulator:
    """The runtime's copies of all shapes, in memories that are filled."""
    program = folder / "shapes.elf"
    runtime = [RUNTIME / name for name in ("start.S", "tilewright_machine.c", "tilewright_udma.c")]
    sources = [*runtime, PROGRAMS / "main.c", DEVICES / "shapes.c"]
    options = ["-DCORES=2", f"-I{PROGRAMS}", f"-I{DEVICES}", f"-I{load_platform('siracusa').folder / 'kernels'}"]
    command = [compiler(), *FLAGS, *flags, *options, "-T", str(RUNTIME / "link.ld"), *map(str, sources)]
    subprocess.run([*command, "-o", str(program)], check=True)
    simulator = Simulator("siracusa", "gvsoc", look=Look(checks=True))
    simulator.load(program)
    assert simulator.run_until("filled", MOST_CYCLES) == "breakpoint"
    return simulator


def test_copies_of_all_shapes(tmp_path: Path) -> None:
    simulator = shapes(tmp_path, GVSOC_FLAGS)
    far = simulator.symbol("far").address
    memory = {start + i: byte for start in (NEAR, far) for i, byte in enumerate(simulator.read(start, AREA))}
    dma = given_commands(simulator, MOST_CYCLES)
    assert dma.unknown == []
    assert dma.complete
    assert {command.form for command in dma.commands} == {"run", "lines outside"}
    assert len(dma.commands) == simulator.native.statistics()["mchan"]["transfers"]
    # What the runtime was asked for is what GVSoC's DMA would copy, and what ours has copied.
    dma.copy(memory)
    for start in (NEAR, far):
        assert simulator.read(start, AREA) == bytes(memory[start + i] for i in range(AREA))
    line = [simulator.read(NEAR + 0x400 + 64 * row, 16) for row in range(4)]
    assert line == [bytes((i * 7 + (i >> 8)) & 255 for i in range(at, at + 16)) for at in range(0x400, 0x590, 100)]
    assert [str(finding) for finding in simulator.findings() if not finding.warning] == []


def test_other_builds_are_told_apart(tmp_path: Path) -> None:
    simulator = shapes(tmp_path, ())
    assert simulator.run(MOST_CYCLES) == "fault"
    assert [finding.kind for finding in simulator.findings() if not finding.warning] == ["unknown-command"]


def network() -> Graph:
    """Transposed and joined: tiles of short lines that lie apart on both sides."""
    b = Builder()
    x, y = b.input("x", "int8[24,40,16]"), b.input("y", "int8[40,24,5]")
    return b.graph(b.op("Concat", b.op("Transpose", x, perm=(1, 0, 2)), y, axis=2))


def test_a_network(tmp_path: Path) -> None:
    graph = network()
    rng = np.random.default_rng(0)
    fed = [rng.integers(-128, 128, graph.types[name].shape).astype(np.int8) for name in graph.inputs]
    compiled = compile_model(graph, Options(platform="siracusa", sizes=Sizes({"L1": 8192})))
    write_project({**compiled.files, **given_files(fed)}, tmp_path)
    built = build(tmp_path, compiled.platform, compiled.program.name, flags=GVSOC_FLAGS)
    simulator = Simulator(compiled.platform, "gvsoc", look=Look(checks=True))
    simulator.load(built.executable)
    dma = given_commands(simulator, MOST_CYCLES)
    assert dma.unknown == []
    assert dma.complete
    assert len(dma.commands) == simulator.native.statistics()["mchan"]["transfers"]
    assert {command.form for command in dma.commands} == {"run", "lines outside"}
    lines = [line.split()[2] for line in simulator.output.decode().splitlines() if line.startswith("tw_output 0")]
    wanted = interpret(graph, fed)[0]
    assert bytes.fromhex("".join(lines)) == wanted.tobytes()
