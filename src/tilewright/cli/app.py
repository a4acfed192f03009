"""`tilewright`: one command per job. Errors are one line with a code, reasons and help, and end with status 2."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

from tilewright import __version__
from tilewright.cli import compiling, looking, testing
from tilewright.errors import TilewrightError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    help="Compiles neural networks in ONNX to bare-metal C, runs them and proves them right.",
    epilog="Start with `tilewright run MODEL.onnx`: it compiles, builds, runs and reports in one go.",
)
app.command("compile")(compiling.compile_command)
app.command("run")(compiling.run_command)
app.command("test")(testing.test_command)
app.command("ops")(looking.ops_command)
app.command("platforms")(looking.platforms_command)
app.command("doctor")(looking.doctor_command)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"tilewright {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Compiles neural networks in ONNX to bare-metal C, runs them and proves them right."""
    del version


def main() -> None:
    """The entry point: user errors and Ctrl-C end quietly, with a status a script can use."""
    try:
        app()
    except TilewrightError as error:
        Console(stderr=True, soft_wrap=True, markup=False, highlight=False).print(str(error))
        sys.exit(2)
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted; nothing was left half-written")
        sys.exit(130)
