"""A model goes on with a text: on this computer as one C program, on a simulated chip token by token, both alike."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from language_models import written
from tilewright.api.compiling import Options
from tilewright.api.generating import Arithmetic, Sampling, generate, language_graphs, load_language
from tilewright.api.telling import words_of
from tilewright.cli.app import run
from tilewright.codegen.build import SANITIZE, STRICT
from tilewright.core.graph import Array, Graph
from tilewright.core.interpret import interpret
from tilewright.errors import TilewrightError
from tilewright.language.checkpoint import Checkpoint
from tilewright.language.reference import Reference
from tilewright.language.sampling import Sampler

PROMPT, TOKENS = "the cat. the", 8
DRAWN = Sampling(0.9, 0.8, 11)


def told(graph: Graph, read: list[int], sampling: Sampling, tokens: int = TOKENS) -> list[int]:
    """What the numpy interpreter of a graph writes, one token at a time; of a full context half stays."""
    context = graph.types[graph.states[0].name].shape[1]
    sampler, found, seen = Sampler(sampling), list[int](), list(read)
    while True:
        states: list[Array] = [state.initial for state in graph.states]
        for position in range(context):
            logits, *states = interpret(graph, [np.asarray([seen[position]]), np.asarray(position), *states])
            if position < len(seen) - 1:
                continue
            token = sampler.pick(logits)
            if token == 0 or len(found) == tokens:
                return found
            found.append(token)
            seen.append(token)
        seen = [0, *seen[1 - context // 2 :]]


@pytest.mark.parametrize("sampling", [Sampling(), DRAWN], ids=["likeliest", "drawn"])
def test_the_program_writes_what_the_interpreter_does(sampling: Sampling, tmp_path: Path) -> None:
    language = load_language(written(tmp_path))
    wanted = told(language_graphs(language.model)["decode"], language.prompt(PROMPT), sampling)
    text = bytearray()
    how = Arithmetic(prefill=3)
    flags = (*STRICT, *SANITIZE)
    result = generate(language, PROMPT, tokens=TOKENS, sampling=sampling, arithmetic=how, flags=flags, say=text.extend)
    assert bytes(text) == PROMPT.encode() + language.tokenizer.decode(wanted) + b"\n"
    assert (result.figures.read, result.figures.written) == (len(language.prompt(PROMPT)), len(wanted))


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("platform", ["generic", "scratchpad", "siracusa", "cortex-m7", "cortex-m55"])
def test_every_machine_writes_what_the_interpreter_does(platform: str, tmp_path: Path) -> None:
    """The prompt is read in several pieces, the text is longer than the context, and whatever is drawn is the same."""
    language, hot = load_language(written(tmp_path)), Sampling(3.0, 1.0, 5)
    wanted = told(language_graphs(language.model)["decode"], language.prompt(PROMPT), hot, 40)
    text = bytearray()
    result = generate(
        language,
        PROMPT,
        tokens=40,
        sampling=hot,
        options=Options(platform=platform, name="story"),
        arithmetic=Arithmetic(prefill=3),
        say=text.extend,
    )
    assert bytes(text) == PROMPT.encode() + language.tokenizer.decode(wanted) + b"\n"
    assert len(wanted) > language.model.sizes.context
    figures = result.figures
    assert figures.reading > 0
    assert figures.writing > 0
    if platform == "siracusa":
        assert figures.joules
        assert len(figures.cycles) < len(language.prompt(PROMPT)) + 2 * len(wanted)


def test_floats_write_what_the_reference_does(tmp_path: Path) -> None:
    language = load_language(written(tmp_path))
    assert isinstance(language.model, Checkpoint)
    reference, tokens = Reference(language.model), language.prompt(PROMPT)
    read = len(tokens)
    logits = reference.logits(np.asarray([tokens]))[0, -1]
    while len(tokens) < read + TOKENS and (token := int(np.argmax(logits))) != 0:
        tokens.append(token)
        logits = reference.logits(np.asarray([[token]]))[0, -1]
    text = bytearray()
    generate(language, PROMPT, tokens=TOKENS, arithmetic=Arithmetic(floats=True), say=text.extend)
    assert bytes(text) == PROMPT.encode() + language.tokenizer.decode(tokens[read:]) + b"\n"


def test_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path, folder = written(tmp_path), tmp_path / "project"
    command = ["generate", str(path), "--prompt", PROMPT, "--tokens", "4", "-o", str(folder)]
    assert run(command) == 0
    printed = capfd.readouterr()
    assert printed.out.startswith(PROMPT)
    assert "tokens read, " in printed.err
    assert "tokens/s" in printed.err
    assert {"story.c", "main.c", "story_words.h", "Makefile"} <= {place.name for place in folder.iterdir()}
    assert run([*command, "--json"]) == 0
    values = json.loads(capfd.readouterr().out)
    assert values["text"] == printed.out
    assert values["written"] == 4


def test_weights_of_fewer_bits(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = ["generate", str(written(tmp_path)), "--prompt", PROMPT, "--tokens", "2", "--prefill", "3"]
    found: list[float] = []
    for bits in ("4", "2.5%"):
        assert run([*command, "--weight-bits", bits, "--json"]) == 0
        found.append(json.loads(capfd.readouterr().out)["weight_bits"])
    assert found[0] == 4
    assert 2 < found[1] < 8
    assert run([*command, "--weight-bits", "4"]) == 0
    assert "weights of 4 bits, " in capfd.readouterr().err


@pytest.mark.parametrize("bits", ["1", "9", "4.5", "many", "0%", "60%", "-3%", "nan%", "%"])
def test_bits_that_no_weights_have(bits: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["generate", str(written(tmp_path)), "--prompt", PROMPT, f"--weight-bits={bits}"]) == 2
    assert f"--weight-bits is '{bits}'" in capfd.readouterr().err


def test_floats_have_no_bits_to_choose(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["generate", str(written(tmp_path)), "--prompt", PROMPT, "--float", "--weight-bits", "4"]) == 2
    assert "leave --weight-bits away" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("options", "away"), [(["--context", "8"], "--context"), (["--float", "--prefill", "3"], "--prefill")]
)
def test_options_without_effect_are_refused(
    options: list[str], away: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["generate", str(written(tmp_path)), "--prompt", PROMPT, *options]) == 2
    assert f"leave {away} away" in capfd.readouterr().err


def test_programs_are_given_numbers_that_they_read() -> None:
    assert words_of(PROMPT, 3, Sampling(-0.0, 1e-30))[-4:] == ["--temperature", "0.000000000", "--top-p", "0.000000001"]


@pytest.mark.parametrize(("tokens", "seed"), [(-1, 0), (1, -1), (1, 1 << 31)])
def test_numbers_that_no_program_reads(tokens: int, seed: int, tmp_path: Path) -> None:
    with pytest.raises(TilewrightError, match="bad-argument"):
        generate(load_language(written(tmp_path)), PROMPT, tokens=tokens, sampling=Sampling(seed=seed))
