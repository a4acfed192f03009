"""`tilewright machines` and `tilewright import`: the array machines there are, and descriptions from other tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.table import Table

from tilewright.api.mapping import find_machine
from tilewright.cli import options as opt
from tilewright.cli.console import errors, results
from tilewright.core.array_file import ENGINE
from tilewright.core.files import write_file
from tilewright.core.library import load_machine, machine_names
from tilewright.core.machine import Machine, print_machine
from tilewright.core.workload_file import print_workload
from tilewright.frontend.zigzag_machine import load_yaml, read_machine
from tilewright.frontend.zigzag_workload import read_yaml_workload
from tilewright.report.costs import area_of

commands = typer.Typer()
EXAMPLES = """
`tilewright import zigzag accelerator.yaml -o machine.yaml`, then `tilewright cost model.onnx --machine machine.yaml`
"""


@commands.command("machines")
def machines_command(as_json: opt.Json = False) -> None:
    found = [(load_machine(name), find_machine(name)) for name in machine_names()]
    if as_json:
        rows = [
            {
                "name": machine.name,
                "dims": dict(array.dims),
                "memories": {memory.name: memory.bits for memory in array.memories},
                "area": area_of(array),
                "summary": machine.summary,
                "provenance": machine.provenance,
            }
            for machine, array in found
        ]
        print(json.dumps({"machines": rows}))
        return
    table = Table("machine", "array", "memories, from the array outwards", "summary")
    for machine, array in found:
        dims = " ".join(f"{name}={size}" for name, size in array.dims.items())
        table.add_row(machine.name, dims, " ".join(m.name for m in array.memories), machine.summary)
    results().print(table)


@commands.command("import", epilog=EXAMPLES)
def import_command(
    source: Annotated[Literal["zigzag"], typer.Argument(metavar="zigzag", help="The tool that it is for.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Its accelerator or workload file.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write.", show_default=False)],
) -> None:
    """What the other tool's parser drops without a word, such as keys that stand there twice, is said as a warning."""
    del source
    if isinstance(load_yaml(file)[0], list):
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
