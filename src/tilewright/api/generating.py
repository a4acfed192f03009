"""Generate: a language model is compiled and goes on with a text, token by token."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from tilewright.api.arrays import read_named
from tilewright.api.compiling import Compiled, Observer, Options, compile_entries
from tilewright.api.telling import Figures, Say, tell, words_of
from tilewright.codegen import build, project_in
from tilewright.core.graph import Graph
from tilewright.errors import TilewrightError
from tilewright.frontend.decoders import Decoder, load_decoder
from tilewright.language import CONTEXT, PREFILL, WeightBits
from tilewright.language.checkpoint import Checkpoint, checkpoint_of
from tilewright.language.graphs import float_graph, integer_graph
from tilewright.language.sampling import Sampling
from tilewright.language.story import Reading, story_files
from tilewright.language.tokenizer import Tokenizer, tokenizer_of
from tilewright.language.weight_bits import integer_model, stored_bits
from tilewright.machine.target import Target, load_platform
from tilewright.sim.limits import USUAL, Limits

TOKENIZER = "tokenizer.json"


class Language(Struct, frozen=True, eq=False):
    """A model with its tokenizer."""

    model: Checkpoint | Decoder
    tokenizer: Tokenizer

    def prompt(self, text: str) -> list[int]:
        """The tokens of a prompt, behind the one that ends a text; an error where there is no room for another."""
        tokens = self.tokenizer.encode(text)
        tokens = tokens if self.tokenizer.end is None else [self.tokenizer.end, *tokens]
        if len(tokens) >= self.model.sizes.context:
            raise TilewrightError(
                "bad-prompt",
                f"the prompt has {len(tokens)} tokens, and the model remembers {self.model.sizes.context}",
                help="give a shorter one",
            )
        return tokens


class Told(Struct, frozen=True):
    """What came of a prompt."""

    compiled: Mapping[str, Compiled]
    """By entry."""
    figures: Figures

    @property
    def weight_bits(self) -> float | None:
        """Of a weight on average, where weights are integers."""
        return stored_bits(self.compiled["decode"].source)


def load_language(model: Path, tokenizer: Path | None = None, *, context: int | None = None) -> Language:
    """A checkpoint or a decoder in ONNX, and the tokenizer of its folder or another one.

    `context` is how many tokens a decoder remembers whose file leaves that open, 256 where nothing is said.
    """
    help = "docs/language_models.md says what a checkpoint holds"
    found = (
        load_decoder(model, context or CONTEXT)
        if model.suffix == ".onnx"
        else checkpoint_of(read_named(model, code="bad-checkpoint", help=help), str(model))
    )
    if context not in (None, found.sizes.context):
        raise TilewrightError(
            "bad-argument",
            f"'{model}' remembers {found.sizes.context} tokens, whatever --context says",
            help="leave --context away",
        )
    place = tokenizer or model.parent / TOKENIZER
    try:
        text = place.read_text(encoding="utf-8")
    except (OSError, ValueError) as reason:
        raise TilewrightError(
            "bad-tokenizer",
            f"'{place}' cannot be read",
            reasons=[str(reason)],
            help="put the tokenizer beside the model, or name it with --tokenizer FILE",
        ) from reason
    words = tokenizer_of(text, str(place))
    if len(words.tokens) != found.sizes.vocab:
        raise TilewrightError(
            "bad-tokenizer",
            f"'{place}' has {len(words.tokens)} tokens, and '{model}' {found.sizes.vocab}",
            help="take the tokenizer that the model was trained with, with --tokenizer FILE",
        )
    return Language(found, words)


class Arithmetic(Struct, frozen=True):
    """How a checkpoint is computed."""

    floats: bool = False
    weight_bits: WeightBits = None
    """Of integers."""
    prefill: int | None = None
    """Tokens of a prompt that are read at once: 64 in integers, where nothing is said, and otherwise always one."""


def language_graphs(
    model: Checkpoint | Decoder, how: Arithmetic | None = None, *, progress: Observer = lambda _stage: None
) -> dict[str, Graph]:
    """By entry: one token at a time, and, where that is more than one, some tokens at once.

    In integers that are fitted to what the model writes by itself, or in floats, which are read one at a time. A
    decoder is computed as its file says.
    """
    how = how or Arithmetic()
    if how.weight_bits is not None and (how.floats or isinstance(model, Decoder)):
        raise TilewrightError(
            "bad-argument",
            "weights have fewer bits only where a checkpoint is computed in integers",
            help="leave --weight-bits away",
        )
    if (how.prefill or 1) > 1 and (how.floats or isinstance(model, Decoder)):
        raise TilewrightError(
            "bad-argument",
            "tokens are read at once only where a checkpoint is computed in integers",
            help="leave --prefill away",
        )
    if isinstance(model, Decoder):
        return {"decode": model.graph}
    if how.floats:
        return {"decode": float_graph(model)}
    rows = min(PREFILL if how.prefill is None else how.prefill, model.sizes.context)
    fitted = integer_model(model, how.weight_bits, progress)
    found = {"decode": integer_graph(fitted)}
    return found if rows < 2 else {**found, "prefill": integer_graph(fitted, rows, only_last=True)}


def generate(
    language: Language,
    prompt: str,
    *,
    tokens: int = 256,
    sampling: Sampling | None = None,
    options: Options | None = None,
    arithmetic: Arithmetic | None = None,
    folder: Path | None = None,
    compiler: str = "",
    flags: tuple[str, ...] = (),
    limits: Limits = USUAL,
    say: Say = lambda _text: None,
    progress: Observer = lambda _stage: None,
) -> Told:
    """Compiles a model for a platform and lets it go on with a prompt, with up to so many tokens.

    The text, prompt included, is said as it comes. One program does it all, from text to text, on this computer, a
    simulated chip or an emulated board.
    """
    chosen, how = replace(options or Options(), name=(options or Options(name="story")).name), sampling or Sampling()
    how.check()
    if tokens < 0:
        raise TilewrightError("bad-argument", f"{tokens} tokens cannot be written", help="give how many it may write")
    language.prompt(prompt)
    _check_platform(load_platform(chosen.platform))
    progress("fit")
    compiled = compile_language(language, chosen, arithmetic, progress=progress)
    decode = compiled["decode"]
    platform, name = decode.platform, decode.program.name
    with project_in(folder, decode.files, name) as target:
        progress("build")
        executable = build(target, platform, name, compiler=compiler, flags=flags).executable
        progress("write")
        return Told(compiled, tell(executable, platform, words_of(prompt, tokens, how), say, limits))


def compile_language(
    language: Language,
    options: Options,
    arithmetic: Arithmetic | None = None,
    *,
    progress: Observer = lambda _stage: None,
) -> dict[str, Compiled]:
    """The C project of a model, from text to text, by the entries that it has."""
    graphs = language_graphs(language.model, arithmetic, progress=progress)
    compiled = compile_entries(graphs, options, progress=progress)
    decode = compiled["decode"]
    logits = decode.source.types[decode.source.given[0]].dtype
    places = (Path(place) for place in decode.files)
    main = next(place.parent for place in places if place.name == "main.c")
    story = story_files(options.name, language.model.sizes, language.tokenizer, logits, _reading(compiled), main)
    files = MappingProxyType({**decode.files, **story})
    return {entry: replace(found, files=files) for entry, found in compiled.items()}


def _reading(compiled: Mapping[str, Compiled]) -> Reading:
    """A run of many rows takes the same time for fewer tokens: from how many on it is faster than one by one.

    Without prices, a row counts as much as a token.
    """
    if "prefill" not in compiled:
        return Reading()
    many, one = compiled["prefill"], compiled["decode"]
    rows = many.source.types[many.source.fed[0]].size
    if many.plan.schedule is None or one.plan.schedule is None or not one.plan.schedule.cycles:
        return Reading(rows, rows)
    return Reading(rows, min(rows, ceil(many.plan.schedule.cycles / one.plan.schedule.cycles)))


def _check_platform(platform: Target) -> None:
    if not platform.language:
        raise TilewrightError(
            "bad-argument",
            f"platform '{platform.name}' has no program for language models",
            reasons=["its platform.yaml has no 'language', the folder with tilewright_console.h"],
            help="choose another one with --platform",
        )
