"""`tilewright generate`: a language model goes on with a text."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.base.files import check_places
from tilewright.cli import options as opt
from tilewright.cli.console import errors, progress_line
from tilewright.errors import TilewrightError
from tilewright.language import CONTEXT, FEWEST_BITS, HOTTEST, PREFILL, USUAL_BITS, weight_bits_of

if TYPE_CHECKING:
    from tilewright.api.generating import Told
    from tilewright.machine.target import Target

commands = typer.Typer()
EXAMPLES = """
`tilewright generate model.npz --prompt "Once upon a time"` on this computer

`tilewright generate model.npz --prompt "Once upon a time" --tokens 64 --temperature 0.8 --top-p 0.9 --seed 7`
"""


@dataclass(frozen=True)
class Telling:
    """What is told, and how words are chosen."""

    prompt: Annotated[str, typer.Option("--prompt", metavar="TEXT", help="The text to go on with.")] = ""
    tokens: Annotated[
        int, typer.Option("--tokens", metavar="N", min=1, max=10**6, help="How many tokens it may write.")
    ] = 256
    temperature: Annotated[
        float,
        typer.Option(
            "--temperature",
            metavar="T",
            min=0.0,
            max=HOTTEST,
            help="0 takes the likeliest token, 1 draws by the probabilities.",
        ),
    ] = 0.0
    top_p: Annotated[
        float,
        typer.Option(
            "--top-p",
            metavar="P",
            min=0.0,
            max=1.0,
            help="Draws from the likeliest tokens that have this share of all.",
        ),
    ] = 1.0
    tokenizer: Annotated[
        Path | None,
        typer.Option(
            "--tokenizer", metavar="FILE", help="The tokenizer; tokenizer.json beside the model is the default."
        ),
    ] = None
    context: Annotated[
        int | None,
        typer.Option(
            "--context",
            metavar="N",
            min=8,
            max=1 << 16,
            help=f"How many tokens a decoder in ONNX remembers whose file leaves that open; {CONTEXT} is the default.",
            show_default=False,
        ),
    ] = None
    floats: Annotated[
        bool,
        typer.Option(
            "--float",
            help="Computes in floats, and not in integers fitted to the model. A decoder in ONNX is computed as it is.",
        ),
    ] = False
    weight_bits: Annotated[
        str,
        typer.Option(
            "--weight-bits",
            metavar="N|P%",
            help=f"Bits of weights in integers: {FEWEST_BITS} to {USUAL_BITS} for all, or for each as few as make a "
            f"text take at most P percent more bits. {USUAL_BITS}, or those of a checkpoint in whole numbers, is the "
            "default.",
        ),
    ] = ""
    prefill: Annotated[
        int | None,
        typer.Option(
            "--prefill",
            metavar="N",
            min=1,
            max=1024,
            help=f"How many tokens of the prompt are read at once in integers ({PREFILL}); 1 reads one by one.",
            show_default=False,
        ),
    ] = None
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Keeps the C project in this folder.")
    ] = None
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="Writes a page: speed against position, where a token's cycles and energy go, engines compared.",
        ),
    ] = None


@commands.command("generate", epilog=EXAMPLES)
@opt.flat
def generate_command(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="The language model: an .npz checkpoint, or a decoder in ONNX.", show_default=False
        ),
    ],
    *,
    telling: Telling,
    as_json: opt.Json = False,
    code: opt.Code,
    shape: opt.Shape,
    planning: opt.Planning,
    build: opt.BuildOptions,
    limiting: opt.Limiting,
) -> None:
    """The text appears as it is written, on this computer or on a simulated chip; how fast that was follows on stderr.
    `--seed` also seeds the choice of words.
    """
    # Who only asks for help does without the compiler.
    from tilewright.api.generating import Arithmetic, Sampling, generate, load_language
    from tilewright.api.language_page import check_page, language_page
    from tilewright.cli.arguments import options_of

    if not telling.prompt:
        raise TilewrightError("bad-prompt", "there is no prompt", help='give one with --prompt "Once upon a time"')
    sampling = Sampling(telling.temperature, telling.top_p, planning.seed)
    sampling.check()
    bits = weight_bits_of(telling.weight_bits)
    text = bytearray()

    def say(part: bytes) -> None:
        text.extend(part)
        if not as_json:
            sys.stdout.buffer.write(part)
            sys.stdout.flush()

    language = load_language(model, telling.tokenizer, context=telling.context)
    language.prompt(telling.prompt)
    options = options_of(opt.NetworkOptions(), code, shape, planning, build=build, name="story")
    if telling.report:
        check_page(options)
        check_places(telling.report)
    with progress_line(f"generate {model.name}", quiet=True) as progress:
        told = generate(
            language,
            telling.prompt,
            tokens=telling.tokens,
            sampling=sampling,
            options=options,
            arithmetic=Arithmetic(telling.floats, bits, telling.prefill),
            folder=telling.output,
            compiler=build.cc,
            flags=tuple(build.cflag),
            limits=limiting.chosen,
            say=say,
            progress=progress,
        )
        if telling.report:
            graph = told.compiled["decode"].source
            language_page(telling.report, model.stem, graph, options, limits=limiting.chosen, progress=progress)
    if as_json:
        print(json.dumps({"text": text.decode("utf-8", "replace"), **_figures(told)}))
    else:
        errors().print(_summary(told))


def _figures(told: Told) -> dict[str, object]:
    figures, clock = told.figures, _has_clock(told)
    found: dict[str, object] = {"read": figures.read, "written": figures.written}
    found["tokens_per_second"] = figures.written / figures.writing if clock and figures.writing else None
    if (stored := told.weight_bits) is not None:
        found["weight_bits"] = stored
    found |= {"reading": figures.reading, "writing": figures.writing, "unit": "s" if clock else _platform(told).unit}
    if figures.joules is not None:
        found |= {"cycles": figures.cycles, "joules": figures.joules}
    return found


def _summary(told: Told) -> str:
    figures = told.figures
    said = f"{figures.read} tokens read, {figures.written} written"
    if (stored := told.weight_bits) is not None:
        said = f"weights of {stored:.3g} bits, {said}"
    if not figures.writing or not figures.written:
        return said
    if not _has_clock(told):
        platform = _platform(told)
        return f"{said}, {figures.writing / figures.written:,.0f} {platform.unit} a token on {platform.name}"
    said += f", {figures.written / figures.writing:,.1f} tokens/s"
    if figures.joules is not None:
        said += f", {figures.joules / figures.written * 1e6:,.1f} uJ a token on the simulated {_platform(told).name}"
    return said


def _platform(told: Told) -> Target:
    return next(iter(told.compiled.values())).platform


def _has_clock(told: Told) -> bool:
    """Whether times are in seconds."""
    return not _platform(told).qemu
