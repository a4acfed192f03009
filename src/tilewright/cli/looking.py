"""`tilewright ops`, `tilewright platforms` and `tilewright doctor`: what is there."""

from __future__ import annotations

import json
import platform as machine
import shutil
import subprocess
from dataclasses import asdict, dataclass

import typer
from rich.table import Table

from tilewright.cli import options as opt
from tilewright.cli.console import results, styled
from tilewright.core.platform import load_platform, platform_names
from tilewright.ops import load_folder, operators


@opt.flat
def ops_command(*, as_json: opt.Json = False, code: opt.Code) -> None:
    """Lists every operator, and the code a platform has for it.

    Code is a kernel file, or the loop nest printed from the operator's access maps. `B?` is an optional operand, `X*`
    stands for any number of them.
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
            "kernels": [k.path.name for k in target.kernels if k.op == op.name],
            "loop_nest": op.body is not None,
        }
        for op in operators().values()
    ]
    if as_json:
        print(json.dumps({"operators": rows}))
        return
    table = Table("operator", "inputs -> outputs", "attributes", "code")
    for op in operators().values():
        ways = [*(k.path.name for k in target.kernels if k.op == op.name), *(["loop nest"] if op.body else [])]
        if op.kind == "view":
            ways = ["a view: no code"]
        table.add_row(op.name, f"{op.inputs} -> {op.outputs}", " ".join(sorted(op.attrs)), ", ".join(ways))
    console = results()
    console.print(table)
    console.print(f"{len(rows)} operators; ONNX operators that are functions of these are expanded on import")


def platforms_command(as_json: opt.Json = False) -> None:
    """Lists the platforms that come with Tilewright."""
    found = [load_platform(name) for name in platform_names()]
    if as_json:
        rows = [
            {
                "name": p.name,
                "summary": p.summary,
                "engines": list(p.engines),
                "kernels": len(p.kernels),
                "timings": list(p.machines),
            }
            for p in found
        ]
        print(json.dumps({"platforms": rows}))
        return
    table = Table("platform", "engines", "memories", "kernels", "simulated as", "summary")
    for p in found:
        names = (" ".join(each) for each in (p.engines, p.memories))
        simulated = "qemu" if p.qemu else " ".join(p.machines)
        table.add_row(p.name, *names, str(len(p.kernels)), simulated, p.summary)
    results().print(table)


@dataclass(frozen=True)
class Tool:
    """An outside program: what it is for, whether it is here, how to get it."""

    name: str
    purpose: str
    needed: bool
    path: str | None
    version: str
    install: str


_TOOLS = (
    ("cc", "builds generated C", True, "apt install gcc"),
    ("gcc", "builds generated C", False, "apt install gcc"),
    ("clang", "a second compiler, used by the tests", False, "apt install clang"),
    ("make", "builds a generated project", False, "apt install make"),
    ("cmake", "builds a generated project", False, "apt install cmake"),
    ("riscv64-unknown-elf-gcc", "builds programs for the simulator", False, "apt install gcc-riscv64-unknown-elf"),
    ("arm-none-eabi-gcc", "builds for Cortex-M", False, "apt install gcc-arm-none-eabi libnewlib-arm-none-eabi"),
    ("qemu-system-arm", "runs programs for Cortex-M", False, "apt install qemu-system-arm"),
)


def doctor_command(as_json: opt.Json = False) -> None:
    """Says which tools are found, and how to get the others.

    The exit status is 1 where a needed one is missing.
    """
    tools = [_look(*tool) for tool in _TOOLS]
    missing = [tool for tool in tools if tool.needed and tool.path is None]
    if as_json:
        print(
            json.dumps(
                {"python": machine.python_version(), "tools": [asdict(tool) for tool in tools], "ready": not missing}
            )
        )
    else:
        table = Table("tool", "for", "found", "version or how to get it")
        table.add_row("python", "Tilewright itself", "yes", machine.python_version())
        for tool in tools:
            found = ("yes", "green") if tool.path else ("missing", "red") if tool.needed else ("no", "yellow")
            table.add_row(tool.name, tool.purpose, styled(found), tool.version or tool.install)
        console = results()
        console.print(table)
        console.print("everything needed is here" if not missing else f"needed: {', '.join(t.name for t in missing)}")
    if missing:
        raise typer.Exit(1)


def _look(name: str, purpose: str, needed: bool, install: str) -> Tool:
    path = shutil.which(name)
    version = ""
    if path:
        try:
            done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, errors="replace")
        except OSError as reason:
            version = f"cannot be run: {reason}"
        else:
            version = next(iter(done.stdout.splitlines()), "")
    return Tool(name, purpose, needed, path, version, install)
