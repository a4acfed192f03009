"""`tilewright ops`: the operators there are."""

from __future__ import annotations

import json

import typer
from rich.table import Table

from tilewright.cli import options as opt
from tilewright.cli.console import results
from tilewright.machine.target import load_platform
from tilewright.ops import load_folder, operators

commands = typer.Typer()


@commands.command("ops")
@opt.flat
def ops_command(*, as_json: opt.Json = False, code: opt.Code) -> None:
    """Code is a kernel file, or the loop nest printed from the operator's access maps. `B?` is an optional operand,
    `X*` stands for any number of them.
    """
    for folder in code.ops:
        load_folder(folder)
    target = load_platform(code.platform, tuple(code.kernels))
    rows = [
        {
            "name": op.name,
            "kind": op.kind,
            "inputs": op.inputs,
            "outputs": op.outputs,
            "attributes": sorted(op.attrs),
            "kernels": [k.path.name for k in target.kernels_of(op.name)],
            "loop_nest": op.body is not None,
        }
        for op in operators().values()
    ]
    if as_json:
        print(json.dumps({"operators": rows}))
        return
    table = Table("operator", "inputs -> outputs", "attributes", "code")
    for op in operators().values():
        ways = [*(k.path.name for k in target.kernels_of(op.name)), *(["loop nest"] if op.body else [])]
        if op.kind == "view":
            ways = ["a view: no code"]
        table.add_row(op.name, f"{op.inputs} -> {op.outputs}", " ".join(sorted(op.attrs)), ", ".join(ways))
    console = results()
    console.print(table)
    console.print(f"{len(rows)} operators; ONNX operators that are functions of these are expanded on import")
