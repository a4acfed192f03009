"""`tilewright platforms` and `tilewright doctor`: what is there."""

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
from tilewright.machine.target import described_platforms

commands = typer.Typer()


@commands.command("platforms")
def platforms_command(as_json: opt.Json = False) -> None:
    found = described_platforms()
    if as_json:
        rows = [
            {
                "name": p.name,
                "summary": p.summary,
                "engines": list(p.engines),
                "kernels": len(p.kernels),
                "timings": list(p.timings),
            }
            for p in found
        ]
        print(json.dumps({"platforms": rows}))
        return
    table = Table("platform", "engines", "memories", "simulated as", "summary")
    table.columns[0].no_wrap = True
    table.columns[-1].ratio = 1
    for p in found:
        # One below the other, so that there is room for the summary.
        names = ("\n".join(each) for each in (p.engines, p.memories))
        simulated = "qemu" if p.qemu else "\n".join(p.timings)
        table.add_row(p.name, *names, simulated, p.summary)
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


@commands.command("doctor")
def doctor_command(as_json: opt.Json = False) -> None:
    """The exit status is 1 where a needed one is missing."""
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
