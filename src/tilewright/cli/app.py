"""`tilewright`: one command per job. Errors are one line with a code, reasons and help, and end with status 2."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from tilewright import __version__
from tilewright.cli import compiling, costing, importing, looking, planning, simulating, testing
from tilewright.cli.console import errors
from tilewright.errors import TilewrightError

INTERRUPTED = 130

app = typer.Typer(
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Compiles neural networks in ONNX to bare-metal C, runs them and proves them right; says what they cost on "
    "accelerators.",
    epilog="Start with `tilewright run MODEL.onnx`: it compiles, builds and runs a network on this machine. "
    "`tilewright cost MODEL.onnx --machine tpu-like` says what it takes on an accelerator. "
    "`tilewright COMMAND --help` explains a command. The exit status is 0 where all is well, 1 where a result is wrong "
    "and 2 for an error, which is printed as `error[code]: what`.",
)
app.command("compile", epilog=compiling.COMPILE_EXAMPLES)(compiling.compile_command)
app.command("run", epilog=compiling.RUN_EXAMPLES)(compiling.run_command)
app.command("plan", epilog=planning.PLAN_EXAMPLES)(planning.plan_command)
app.command("test", epilog=testing.TEST_EXAMPLES)(testing.cases_command)
app.command("sim")(simulating.sim_command)
app.command("cost", epilog=costing.COST_EXAMPLES)(costing.cost_command)
app.command("map", epilog=costing.MAP_EXAMPLES)(costing.map_command)
app.command("machines")(importing.machines_command)
app.command("import", epilog=importing.IMPORT_EXAMPLES)(importing.import_command)
app.command("ops")(looking.ops_command)
app.command("platforms")(looking.platforms_command)
app.command("doctor")(looking.doctor_command)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"tilewright {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Prints the version.")
    ] = False,
) -> None:
    """Compiles neural networks in ONNX to bare-metal C, runs them and proves them right."""
    del version


def main() -> None:
    """The entry point."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Runs the command line and returns its exit status; user errors and Ctrl-C end quietly."""
    try:
        status: object = app(args=arguments or ["--help"], prog_name="tilewright", standalone_mode=False)
    except TilewrightError as error:
        return _fail(error, as_json="--json" in arguments)
    except typer.TyperException as misuse:
        command = arguments[0] + " " if arguments and not arguments[0].startswith("-") else ""
        known = {found.name for found in app.registered_commands}
        help = f"tilewright {command if command.strip() in known else ''}--help shows what there is"
        return _fail(TilewrightError("bad-argument", misuse.format_message(), help=help), as_json="--json" in arguments)
    if status == INTERRUPTED:
        errors().print("interrupted; nothing was left half-written")
    return status if isinstance(status, int) else 0


def _fail(error: TilewrightError, *, as_json: bool) -> int:
    """Prints an error to stderr, under --json as an object to stdout too."""
    errors().print(str(error))
    if as_json:
        parts = {"code": error.code, "what": error.what, "reasons": list(error.reasons), "help": error.help}
        print(json.dumps({"error": parts}))
    return 2
