"""`tilewright machines` and `tilewright import`: the machines there are, and descriptions from other tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.table import Table

from tilewright.cli import options as opt
from tilewright.cli.console import errors, results
from tilewright.machine.array import ArrayEngine
from tilewright.machine.library import load_machine, machine_names
from tilewright.machine.machine import Machine, print_machine
from tilewright.machine.parts import Engine
from tilewright.machine.target import described_platforms

commands = typer.Typer()
WIDTH = 140
EXAMPLES = """
`tilewright import zigzag accelerator.yaml -o machine.yaml`, then `tilewright cost model.onnx --machine machine.yaml`
"""


@commands.command("machines")
def machines_command(as_json: opt.Json = False) -> None:
    found = (*map(load_machine, machine_names()), *described_platforms())
    if as_json:
        print(json.dumps({"machines": [_machine_values(machine) for machine in found]}))
        return
    table = Table("machine", "engines", "memories, from the engines outwards", "summary")
    for machine in found:
        engines = ", ".join(_engine_text(key, engine) for key, engine in machine.engines.items())
        table.add_row(machine.name, engines, " ".join(_memory_bits(machine)), machine.summary)
    results(WIDTH).print(table)


def _engine_text(name: str, engine: Engine | ArrayEngine) -> str:
    if isinstance(engine, ArrayEngine):
        return f"{name} {' '.join(f'{dim}={size}' for dim, size in engine.dims.items())}"
    return f"{name} x {engine.count}" if engine.count > 1 else name


def _memory_bits(machine: Machine) -> dict[str, int | None]:
    """Sizes of all memories; None of those that are as large as needed."""
    arrays = (engine for engine in machine.engines.values() if isinstance(engine, ArrayEngine))
    levels = {memory.name: memory.bits for array in arrays for memory in array.memories}
    return levels | {name: m.length * 8 if m.bytes is not None else None for name, m in machine.memories.items()}


def _machine_values(machine: Machine) -> dict[str, object]:
    # The table does without the cost model.
    from tilewright.api.mapping import find_machine
    from tilewright.report.costs import area_of

    arrays = {key: engine for key, engine in machine.engines.items() if isinstance(engine, ArrayEngine)}
    return {
        "name": machine.name,
        "engines": {key: dict(arrays[key].dims) if key in arrays else {} for key in machine.engines},
        "memories": _memory_bits(machine),
        "area": area_of(find_machine(machine.name)) if arrays else None,
        "summary": machine.summary,
        "provenance": machine.provenance,
    }


@commands.command("import", epilog=EXAMPLES)
def import_command(
    source: Annotated[
        Literal["zigzag", "stream"], typer.Argument(metavar="zigzag|stream", help="The tool that it is for.")
    ],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Its accelerator or workload file.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write.", show_default=False)],
) -> None:
    """What the other tool's parser drops without a word, such as keys that stand there twice, is said as a warning."""
    from tilewright.base.files import write_file
    from tilewright.core.workload_file import print_workload
    from tilewright.frontend.stream_machine import read_stream_machine
    from tilewright.frontend.zigzag_machine import load_yaml, read_machine
    from tilewright.frontend.zigzag_workload import read_yaml_workload
    from tilewright.machine.array_file import ENGINE

    if source == "stream":
        machine, warnings = read_stream_machine(file)
        text, what = print_machine(machine), f"{machine.name}, {len(machine.engines)} engines"
    elif isinstance(load_yaml(file)[0], list):
        workload, warnings = read_yaml_workload(file)
        text, what = print_workload(workload), f"{len(workload.layers)} layers"
    else:
        array, warnings = read_machine(file)
        about = f"ZigZag accelerator file {file.name}"
        text = print_machine(Machine(array.name, provenance=about, engines={ENGINE: array}))
        what = f"{array.name}, {array.units:,} units, {len(array.memories)} memories"
    for warning in warnings:
        errors().print(f"warning: {warning}")
    write_file(out, text.encode())
    results().print(f"{out}: {what}")
