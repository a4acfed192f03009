"""Generate: a language model is compiled and goes on with a text, token by token."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tilewright.api.arrays import read_named
from tilewright.api.compiling import Compiled, Observer, Options, compile_model
from tilewright.codegen import build, written_project
from tilewright.core.graph import Array, Graph
from tilewright.errors import TilewrightError
from tilewright.language.checkpoint import Checkpoint, checkpoint_of
from tilewright.language.graphs import float_graph, integer_graph
from tilewright.language.quantised import Choices, quantised
from tilewright.language.ranges import own_texts, watched
from tilewright.language.sampling import Sampler, Sampling
from tilewright.language.story import story_files
from tilewright.language.tokenizer import Tokenizer, tokenizer_of
from tilewright.machine.target import Target
from tilewright.sim.chip import Chip
from tilewright.sim.host import host_environment
from tilewright.sim.limits import USUAL, Limits, Printed, refuse_cycles
from tilewright.sim.processes import Running
from tilewright.sim.statistics import statistics_of

TOKENIZER = "tokenizer.json"
EXAMPLE = ("main.c", "tilewright_example.h")
"""The example program of a project, which gives way to the one that tells stories."""

Say = Callable[[bytes], object]
"""Takes parts of the text as they come."""


@dataclass(frozen=True, eq=False)
class Language:
    """A model with its tokenizer."""

    model: Checkpoint
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


@dataclass(frozen=True)
class Told:
    """What came of a prompt."""

    compiled: Compiled
    read: int
    """Tokens of the prompt."""
    written: int
    seconds: float
    """In which tokens were written, of this computer or of the simulated chip."""
    cycles: tuple[int, ...] = ()
    """Of each token, read or written, on a simulated chip."""
    joules: float | None = None
    """For the tokens that were written, by the energy model of the chip."""


def load_language(model: Path, tokenizer: Path | None = None) -> Language:
    """A checkpoint, and the tokenizer of its folder or another one."""
    found = checkpoint_of(
        read_named(model, code="bad-checkpoint", help="docs/language_models.md says what a checkpoint holds"),
        str(model),
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


def decode_graph(model: Checkpoint, *, floats: bool = False, choices: Choices | None = None) -> Graph:
    """One token at a time: in integers that are fitted to what the model writes by itself, or in floats."""
    return float_graph(model) if floats else integer_graph(quantised(model, watched(model, own_texts(model)), choices))


def generate(
    language: Language,
    prompt: str,
    *,
    tokens: int = 256,
    sampling: Sampling | None = None,
    options: Options | None = None,
    floats: bool = False,
    folder: Path | None = None,
    compiler: str = "",
    flags: tuple[str, ...] = (),
    limits: Limits = USUAL,
    say: Say = lambda _text: None,
    progress: Observer = lambda _stage: None,
) -> Told:
    """Compiles a model for a platform and lets it go on with a prompt, with up to so many tokens.

    The text, prompt included, is said as it comes. On the platform of this computer a C program does it all, from text
    to text; a simulated chip is given one token after the other.
    """
    chosen, how = replace(options or Options(), name=(options or Options(name="story")).name), sampling or Sampling()
    how.check()
    read = language.prompt(prompt)
    progress("fit")
    graph = decode_graph(language.model, floats=floats)
    compiled = compile_model(graph, chosen, progress=progress)
    platform, name = compiled.platform, compiled.program.name
    on_chip = bool(platform.timings)
    if not on_chip:
        _check_host(platform)
        logits = graph.types[graph.given[0]].dtype
        kept = {place: data for place, data in compiled.files.items() if place not in EXAMPLE}
        story = story_files(name, language.model.sizes, language.tokenizer, logits)
        compiled = replace(compiled, files={**kept, **story})
    with (
        tempfile.TemporaryDirectory(prefix="tilewright-") as scratch,
        written_project(compiled.files, target := folder or Path(scratch) / "project", name),
    ):
        progress("build")
        executable = build(target, platform, name, compiler=compiler, flags=flags).executable
        progress("write")
        if on_chip:
            return _on_chip(executable, compiled, language, prompt, read, tokens, how, limits, say)
        return _on_host(executable, compiled, prompt, tokens, how, limits, say)


def _check_host(platform: Target) -> None:
    if platform.qemu or platform.links:
        raise TilewrightError(
            "bad-argument",
            f"programs of '{platform.name}' cannot be given one token after the other",
            help="choose the platform of this computer, or one that Tilewright simulates, with --platform",
        )


def _on_host(
    executable: Path, compiled: Compiled, prompt: str, tokens: int, how: Sampling, limits: Limits, say: Say
) -> Told:
    refuse_cycles(limits, "on this computer")
    command = [str(executable), prompt, "--tokens", str(tokens), "--seed", str(how.seed)]
    command += ["--temperature", repr(how.temperature), "--top-p", repr(how.top_p)]
    messages = bytearray()
    printed, complained = Printed(executable.name, limits, say), Printed(executable.name, limits, messages.extend)
    with Running(
        command,
        executable.name,
        limits,
        output=printed.take,
        messages=complained.take,
        environment=host_environment(),
    ) as running:
        status = running.finish()
    words = messages.decode("utf-8", "backslashreplace").split()
    if status or words[::2][:3] != ["read", "written", "nanoseconds"]:
        raise TilewrightError(
            "run-failed",
            f"'{executable.name}' ended with status {status}",
            reasons=messages.decode("utf-8", "backslashreplace").splitlines()[:20],
        )
    return Told(compiled, int(words[1]), int(words[3]), float(words[5]) / 1e9)


def _on_chip(
    executable: Path,
    compiled: Compiled,
    language: Language,
    prompt: str,
    read: list[int],
    tokens: int,
    how: Sampling,
    limits: Limits,
    say: Say,
) -> Told:
    graph, sampler, context = compiled.plan.graph, Sampler(how), language.model.sizes.context
    chip = Chip(
        executable,
        len(graph.fed),
        [graph.types[name] for name in graph.given],
        compiled.platform,
        steps=context + 1,
        checks=True,
        limits=limits,
    )
    cycles: list[int] = []

    def follow(token: int) -> Array:
        """What the model says behind a token at the next position."""
        (logits,) = chip.run([np.asarray([token], np.int32), np.asarray(len(cycles), np.int32)])
        cycles.append(chip.cycles)
        return logits

    say(prompt.encode("utf-8", "surrogateescape"))
    for number in read[:-1]:
        follow(number)
    logits, written = follow(read[-1]), 0
    begin = statistics_of(chip.simulator).joules
    while written < tokens and (number := sampler.pick(logits)) != language.tokenizer.end:
        say(language.tokenizer.tokens[number])
        written += 1
        if len(cycles) == context:
            break
        logits = follow(number)
    say(b"\n")
    joules = statistics_of(chip.simulator).joules - begin
    seconds = sum(cycles[len(read) :]) / chip.simulator.timing.hertz
    return Told(compiled, len(read), written, seconds, tuple(cycles), joules)
