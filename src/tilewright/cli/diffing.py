"""`tilewright diff`: where a program's results part from those of the model."""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import to_builtins
from rich.table import Table

from tilewright.cli import options as opt
from tilewright.cli.compiling import title_of
from tilewright.cli.console import progress_line, results, styled

if TYPE_CHECKING:
    from tilewright.api.compiling import Options
    from tilewright.api.differences import ErrorFigures
    from tilewright.api.diffing import ComparedLayer, Diff, FoundFault
    from tilewright.api.measuring import Building

commands = typer.Typer()
EXAMPLES = """
`tilewright diff model.onnx --platform cortex-m4 --inputs inputs.npz`

`tilewright diff model.onnx --cflag=-Ofast --output found` writes `found/diff.html` and, where a
layer is wrong, `found/reproducer`
"""
BETWEEN = {
    "model": "the operator as declared and the model as given",
    "passes": "the model and the network behind its passes",
    "program": "the network behind its passes and the program",
}
PAGE, REPRODUCER = "diff.html", "reproducer"


@commands.command("diff", epilog=EXAMPLES)
@opt.flat
def diff_command(
    model: opt.Model,
    *,
    inputs: Annotated[
        Path | None, typer.Option("--inputs", metavar="FILE", help="Inputs as .npz in graph order, or one as .npy.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Where diff.html goes, and the reproducer of a fault. Without it they are written only where there is "
            "a fault, to MODEL_diff.",
            show_default=False,
        ),
    ] = None,
    as_json: opt.Json = False,
    network: opt.NetworkOptions,
    code: opt.Code,
    shape: opt.Shape,
    planning: opt.Planning,
    build: opt.BuildOptions,
    limiting: opt.Limiting,
) -> None:
    """It runs the model as given (by onnxruntime where that is installed, else by the numpy references of the
    operators), the network behind all passes in integers, and the compiled program on its target, and compares every
    tensor. The program is looked at while it runs, so that tensors of fused layers are seen, too, tile by tile.

    Each layer is judged by the operands that it had: errors that add up are not held against the last layer. The first
    layer that differs by more than rounding is named, with its largest error, a likely cause, and a reproducer of one
    layer or two with data. The exit status is 1 where there is one. Without `--inputs` seeded noise is fed.
    """
    from tilewright.api.arrays import read_arrays
    from tilewright.api.diffing import diff_model
    from tilewright.api.measuring import Building
    from tilewright.cli.arguments import options_of

    options = options_of(network, code, shape, planning, build=build)
    with progress_line(f"diff {model.name}", quiet=as_json) as progress:
        found = diff_model(
            model,
            options,
            inputs=read_arrays(inputs, "input") if inputs else None,
            compiler=build.cc,
            flags=tuple(build.cflag),
            seed=planning.seed,
            machine=build.machine(planning.seed),
            limits=limiting.chosen,
            progress=progress,
        )
        folder = output or (Path(f"{model.stem}_diff") if found.faults else None)
        building = Building(options.name, build.cc, tuple(build.cflag), limiting.chosen)
        written = _write(found, folder, title_of(model), options, building) if folder else []
    if as_json:
        print(json.dumps(_object(found, folder, written)))
    else:
        _print(found, folder, written)
    if found.faults:
        raise typer.Exit(1)


def _write(found: Diff, folder: Path, title: str, options: Options, building: Building) -> list[str]:
    """Writes the page and the reproducers; returns the commands that show the faults."""
    from tilewright.api.reproducing import fill_reproducer
    from tilewright.base.folders import write_folder
    from tilewright.report.diff_page import LayerError, render_diff

    wrong = {one.fault.tensor for one in found.faults}
    layers = [
        LayerError(r.layer, r.op, r.code, _relative(r.passes), _relative(r.program), r.tensor in wrong)
        for r in found.rows
    ]
    page = render_diff(title, _about(found), layers, [[_sentence(one), *_details(one)] for one in found.faults])
    names = [REPRODUCER + (f"_{n + 1}" if n else "") for n in range(len(found.faults))]
    commands: list[str] = []

    def fill(place: Path) -> None:
        (place / PAGE).write_bytes(page.encode())
        commands.clear()
        for name, one in zip(names, found.faults, strict=True):
            (place / name).mkdir()
            commands.append(fill_reproducer(one.reproducer, place / name, folder / name, options, building))

    write_folder(folder, fill)
    return commands


def _relative(found: ErrorFigures | None) -> float | None:
    return None if found is None else found.relative


def _about(found: Diff) -> str:
    why = f" ({found.given.why})" if found.given.why else ""
    runs = f"The model as given was run by {found.given.by}{why}; the program on {found.compiled.platform.name}."
    return " ".join([runs, *(f"{note}." for note in found.notes)])


def _sentence(one: FoundFault) -> str:
    fault = one.fault
    return f"{fault.node.op} '{fault.layer}' is the first layer that differs, between {BETWEEN[fault.where]}"


def _details(one: FoundFault) -> list[str]:
    fault, f = one.fault, one.fault.figures
    about = fault.overwritten or fault.tensor
    lines = [f"'{about}': {f.wrong:,} of {f.size:,} elements wrong, largest error {f.worst:.6g}, mean {f.mean:.3g}"]
    if f.wrong:
        index = ",".join(map(str, f.index))
        lines.append(f"element [{index}]: expected {f.expected:.9g}, got {f.got:.9g}")
    return [*lines, f"likely cause: {one.cause.what}", *one.cause.evidence]


def _print(found: Diff, folder: Path | None, written: list[str]) -> None:
    console = results()
    console.print(_table(found))
    console.print(_about(found))
    for one, command in zip(found.faults, written, strict=True):
        console.print(styled((_sentence(one), "bold red")))
        for line in _details(one):
            console.print(styled(f"  {line}"), soft_wrap=True)
        layers = "one layer" if one.reproducer.layers == 1 else "two layers"
        shows = "shows it" if one.reproducer.shows else "is right alone; the fault needs the whole network"
        console.print(styled(f"  reproducer of {layers}, which {shows}: {command}"), soft_wrap=True)
    if not found.faults:
        console.print(styled(("no layer differs by more than rounding", "green")))
    if folder:
        console.print(f"{folder / PAGE} shows errors layer by layer")


def _table(found: Diff) -> Table:
    table = Table("layer", "operators", "code", title="Largest errors", title_justify="left")
    table.add_column("behind passes", justify="right")
    table.add_column("program", justify="right")
    wrong = {one.fault.tensor for one in found.faults}
    for row in found.rows:
        style = "red" if row.tensor in wrong else None
        table.add_row(row.layer, row.op, row.code, _error(row.passes), _error(row.program), style=style)
    return table


def _error(found: ErrorFigures | None) -> str:
    if found is None:
        return ""
    return f"{found.worst:.2g} of {found.scale:.3g}" if found.worst else "0"


def _object(found: Diff, folder: Path | None, written: list[str]) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "same": found.same,
        "platform": found.compiled.platform.name,
        "model_by": found.given.by,
        "notes": list(found.notes),
        "layers": [_row(row) for row in found.rows],
        "faults": [_fault(one, command) for one, command in zip(found.faults, written, strict=True)],
        "output": str(folder) if folder else None,
    }


def _row(row: ComparedLayer) -> dict[str, Any]:
    both = {"passes": row.passes, "program": row.program}
    return {**to_builtins(row), **{name: _finite(to_builtins(f)) if f else None for name, f in both.items()}}


def _fault(one: FoundFault, command: str) -> dict[str, Any]:
    fault = one.fault
    return {
        "between": fault.where,
        "layer": fault.layer,
        "op": fault.node.op,
        "tensor": fault.tensor,
        "pass": fault.stage or None,
        "overwritten": fault.overwritten or None,
        **_finite(to_builtins(fault.figures)),
        "cause": one.cause.what,
        "evidence": list(one.cause.evidence),
        "reproducer": {"layers": one.reproducer.layers, "shows": one.reproducer.shows, "command": command},
    }


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinities: these are texts."""
    return {k: str(v) if isinstance(v, float) and not isfinite(v) else v for k, v in values.items()}
