"""`tilewright generate`: a language model goes on with a text."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.cli import options as opt
from tilewright.cli.console import errors, progress_line
from tilewright.errors import TilewrightError
from tilewright.language import HOTTEST

if TYPE_CHECKING:
    from tilewright.api.generating import Told

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
    floats: Annotated[
        bool, typer.Option("--float", help="Computes in floats, and not in integers fitted to the model.")
    ] = False
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Keeps the C project in this folder.")
    ] = None


@commands.command("generate", epilog=EXAMPLES)
@opt.flat
def generate_command(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="The language model, an .npz checkpoint.", show_default=False)
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
    from tilewright.api.generating import Sampling, generate, load_language
    from tilewright.cli.arguments import options_of

    if not telling.prompt:
        raise TilewrightError("bad-prompt", "there is no prompt", help='give one with --prompt "Once upon a time"')
    sampling = Sampling(telling.temperature, telling.top_p, planning.seed)
    sampling.check()
    text = bytearray()

    def say(part: bytes) -> None:
        text.extend(part)
        if not as_json:
            sys.stdout.buffer.write(part)
            sys.stdout.flush()

    language = load_language(model, telling.tokenizer)
    language.prompt(telling.prompt)
    options = options_of(opt.NetworkOptions(), code, shape, planning, build=build, name="story")
    with progress_line(f"generate {model.name}", quiet=True) as progress:
        told = generate(
            language,
            telling.prompt,
            tokens=telling.tokens,
            sampling=sampling,
            options=options,
            floats=telling.floats,
            folder=telling.output,
            compiler=build.cc,
            flags=tuple(build.cflag),
            limits=limiting.chosen,
            say=say,
            progress=progress,
        )
    if as_json:
        print(json.dumps({"text": text.decode("utf-8", "replace"), **_figures(told)}))
    else:
        errors().print(_summary(told))


def _figures(told: Told) -> dict[str, object]:
    rate = told.written / told.seconds if told.seconds else None
    found: dict[str, object] = {"read": told.read, "written": told.written, "tokens_per_second": rate}
    if told.joules is not None:
        found |= {"cycles": told.cycles, "joules": told.joules}
    return found


def _summary(told: Told) -> str:
    said = f"{told.read} tokens read, {told.written} written"
    if told.seconds and told.written:
        said += f", {told.written / told.seconds:,.1f} tokens/s"
    if told.joules is not None and told.written:
        platform = told.compiled.platform.name
        said += f", {told.joules / told.written * 1e6:,.1f} uJ a token on the simulated {platform}"
    return said
