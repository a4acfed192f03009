"""`tilewright`: one command per job. Errors are one line with a code, reasons and help, and end with status 2."""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from tilewright import __version__
from tilewright.cli import compiling, costing, importing, looking, planning, simulating, testing
from tilewright.cli.console import errors
from tilewright.cli.streams import OutputClosed, guard_streams
from tilewright.errors import TilewrightError

ERROR, INTERNAL, INTERRUPTED, CLOSED = 2, 70, 130, 141
"""Exit statuses: the user can do something about it, nobody but us can, Ctrl-C, and as of a program that the system
ends because nobody reads what it prints."""
DEBUG = "TILEWRIGHT_DEBUG"
"""The variable that makes internal errors print where they come from."""

app = typer.Typer(
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Compiles neural networks in ONNX to bare-metal C, runs them and proves them right; says what they cost on "
    "accelerators.",
    epilog="Start with `tilewright run MODEL.onnx`: it compiles, builds and runs a network on this machine. "
    "`tilewright cost MODEL.onnx --machine tpu-like` says what it takes on an accelerator. "
    "`tilewright COMMAND --help` explains a command. The exit status is 0 where all is well, 1 where a result is "
    "wrong, 2 for an error, which is printed as `error[code]: what`, and 70 for a fault of Tilewright itself.",
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
    guard_streams()
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Runs the command line and returns its exit status, whatever happens; user errors and Ctrl-C end quietly."""
    as_json = "--json" in arguments
    try:
        _check_texts(arguments)
        status: object = app(args=arguments or ["--help"], prog_name="tilewright", standalone_mode=False)
        sys.stdout.flush()
    except OutputClosed:
        return CLOSED
    except KeyboardInterrupt:
        status = INTERRUPTED
    except TilewrightError as error:
        return _fail(error, as_json=as_json)
    except typer.TyperException as misuse:
        return _fail(_misused(arguments, misuse.format_message()), as_json=as_json)
    except MemoryError as reason:
        error = TilewrightError(
            "out-of-memory",
            "this takes more memory than there is",
            reasons=[str(reason)] if str(reason) else [],
            help="make it smaller, or use a larger computer",
        )
        return _fail(error, as_json=as_json)
    except Exception as fault:
        if os.environ.get(DEBUG):
            traceback.print_exception(fault)
        return _fail(_internal(fault), as_json=as_json, status=INTERNAL)
    if status == INTERRUPTED:
        errors().print("interrupted; nothing was left half-written")
    return status if isinstance(status, int) else 0


def _check_texts(arguments: list[str]) -> None:
    """An error for a text that can mean nothing. No option has a use for an empty one, which Python takes for `.`."""
    for index, argument in enumerate(arguments):
        if "\0" in argument:
            raise _misused(arguments, f"'{argument}' has a NUL character in it")
        if not argument or re.fullmatch(r"--[a-z0-9-]+=", argument):
            what = argument.removesuffix("=") or f"the argument behind '{arguments[index - 1] if index else ''}'"
            raise _misused(arguments, f"{what} is empty")


def _misused(arguments: list[str], what: str) -> TilewrightError:
    command = arguments[0] + " " if arguments and not arguments[0].startswith("-") else ""
    known = {found.name for found in app.registered_commands}
    help = f"tilewright {command if command.strip() in known else ''}--help shows what there is"
    return TilewrightError("bad-argument", what, help=help)


def _internal(fault: Exception) -> TilewrightError:
    """A fault of our own, with the line that it comes from."""
    frames = traceback.extract_tb(fault.__traceback__)
    where = [f"in {Path(frame.filename).name}, line {frame.lineno}" for frame in frames[-1:]]
    return TilewrightError(
        "internal-error",
        f"{type(fault).__name__}: {fault}",
        reasons=where,
        help=f"this is a fault of Tilewright: please report it with the command and its files; {DEBUG}=1 shows more",
    )


def _fail(error: TilewrightError, *, as_json: bool, status: int = ERROR) -> int:
    """Prints an error to stderr, under --json as an object to stdout too."""
    errors().print(str(error))
    if as_json:
        parts = {"code": error.code, "what": error.what, "reasons": list(error.reasons), "help": error.help}
        # Where that fails as well, one error is enough.
        with suppress(OutputClosed, TilewrightError):
            print(json.dumps({"error": parts}), flush=True)
    return status
