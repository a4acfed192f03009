"""`tilewright`: one command per job. Errors are one line with a code, reasons and help, and end with status 2."""

from __future__ import annotations

import gc
import inspect
import json
import os
import re
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command
from typer.models import CommandInfo

from tilewright import __version__
from tilewright.cli.coercion import read_quickly
from tilewright.cli.streams import OutputClosed, guard_streams
from tilewright.errors import TilewrightError

ERROR, INTERNAL, INTERRUPTED, CLOSED = 2, 70, 130, 141
"""Exit statuses: the user can do something about it, nobody but us can, Ctrl-C, and as of a program that the system
ends because nobody reads what it prints."""
MARKUP = "markdown"
DEBUG = "TILEWRIGHT_DEBUG"
"""The variable that makes internal errors print where they come from."""


class _Group(TyperGroup):
    """All commands."""

    def get_help_option(self, ctx: Any) -> Any:
        return _off(super().get_help_option(ctx))


class _Command(TyperCommand):
    """A command."""

    def get_help_option(self, ctx: Any) -> Any:
        return _off(super().get_help_option(ctx))


def _off(option: Any) -> Any:
    """The option `--help`, false where it is not given: for what is no bool typer imports a slow library."""
    if option is not None:
        option.default = False
    return option


app = typer.Typer(
    cls=_Group,
    add_completion=False,
    rich_markup_mode=MARKUP,
    pretty_exceptions_enable=False,
    help="Compiles neural networks in ONNX to bare-metal C, runs them and proves them right; says what they cost on "
    "accelerators.",
    epilog="Start with `tilewright run MODEL.onnx`: it compiles, builds and runs a network on this machine. "
    "`tilewright cost MODEL.onnx --machine tpu-like` says what it takes on an accelerator. "
    "`tilewright COMMAND --help` explains a command. The exit status is 0 where all is well, 1 where a result is "
    "wrong, 2 for an error, which is printed as `error[code]: what`, and 70 for a fault of Tilewright itself.",
)

COMMANDS: dict[str, tuple[str, str]] = {
    "compile": ("compiling", "Compiles an ONNX file to a C project."),
    "run": (
        "running",
        "Compiles, builds and runs a network on this machine, or on the simulated machine of its platform.",
    ),
    "generate": ("generating", "Lets a language model go on with a text, on this machine or on a simulated one."),
    "plan": ("planning", "Shows how a network would run: tiles, buffers, transfers and predicted cycles."),
    "calibrate": (
        "calibrating",
        "Measures what kernels take on a platform's simulator, so that nobody has to type it.",
    ),
    "test": ("testing", "Compiles, builds, runs and compares every case below some folders."),
    "diff": (
        "diffing",
        "Says which layer of a program goes wrong: compares model, network and program tensor by tensor.",
    ),
    "sim": ("simulating", "Runs a program on a simulated machine, cycle by cycle."),
    "cost": (
        "costing",
        "Says what a network costs on array machines: energy, cycles and use of units, layer by layer.",
    ),
    "map": ("costing", "Finds the best mapping of a layer onto an array machine, and proves it."),
    "schedule": (
        "scheduling",
        "Spreads a network over the engines of a machine with many of them, and says when everything runs.",
    ),
    "machines": ("importing", "Lists the machines that come with Tilewright."),
    "import": ("importing", "Makes a description of an array machine, or a file of layers, from another tool's file."),
    "cache": ("caching", "Shows, limits or empties the cache of measurements, which --measure fills."),
    "ops": ("operators", "Lists every operator, and the code a platform has for it."),
    "platforms": ("looking", "Lists the platforms that come with Tilewright."),
    "doctor": ("looking", "Says which tools are found, and how to get the others."),
}
"""Of each command, the module that declares it, and the first sentence of its help; its docstring says the rest."""


class _Deferred(_Command):
    """A command whose module is imported when it runs or explains itself: the list of commands needs none of them."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        declared = load_command(str(self.name))
        assert declared.callback is not None
        alone = typer.Typer(add_completion=False, rich_markup_mode=MARKUP)
        help = f"{COMMANDS[str(self.name)][1]}\n\n{inspect.getdoc(declared.callback) or ''}"
        alone.command(self.name, cls=_Command, help=help, epilog=declared.epilog)(declared.callback)
        command = get_command(alone)
        read_quickly(command)
        return command.make_context(info_name, args, parent, **extra)


def load_command(name: str) -> CommandInfo:
    """A command as its module declares it."""
    declared: typer.Typer = import_module(f"tilewright.cli.{COMMANDS[name][0]}").commands
    return next(command for command in declared.registered_commands if command.name == name)


def _run_later() -> None:
    raise NotImplementedError


for _name, (_, _summary) in COMMANDS.items():
    app.command(_name, cls=_Deferred, help=_summary)(_run_later)


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
    # Plans are many small values that live as long as the command: it is slow to look for dead ones again and again.
    gc.set_threshold(1_000_000, 20, 100)
    guard_streams()
    status = run(sys.argv[1:])
    # Nor is anybody to look for them in all there is while the process ends.
    gc.freeze()
    sys.exit(status)


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
        _print_error("interrupted; nothing was left half-written")
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
    help = f"tilewright {command if command.strip() in COMMANDS else ''}--help shows what there is"
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
    _print_error(str(error))
    if as_json:
        parts = {"code": error.code, "what": error.what, "reasons": list(error.reasons), "help": error.help}
        # Where that fails as well, one error is enough.
        with suppress(OutputClosed, TilewrightError):
            print(json.dumps({"error": parts}), flush=True)
    return status


def _print_error(text: str) -> None:
    # What all goes well without is imported where it does not.
    from tilewright.cli.console import errors

    errors().print(text)
