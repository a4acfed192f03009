"""A model goes on with a text: on this computer as one C program, on a simulated chip token by token, both alike."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from language_models import written
from tilewright.api.compiling import Options
from tilewright.api.generating import Sampling, decode_graph, generate, load_language
from tilewright.cli.app import run
from tilewright.codegen.build import SANITIZE, STRICT
from tilewright.core.graph import Array, Graph
from tilewright.core.interpret import interpret
from tilewright.language.reference import Reference
from tilewright.language.sampling import Sampler

PROMPT, TOKENS = "the cat. the", 8
DRAWN = Sampling(0.9, 0.8, 11)


def told(graph: Graph, read: list[int], sampling: Sampling) -> list[int]:
    """What the numpy interpreter of a graph writes."""
    states: list[Array] = [state.initial for state in graph.states]
    sampler, found = Sampler(sampling), list[int]()
    for position in range(len(read) + TOKENS):
        token = read[position] if position < len(read) else found[-1]
        logits, *states = interpret(graph, [np.asarray([token]), np.asarray(position), *states])
        if position >= len(read) - 1:
            found.append(sampler.pick(logits))
            if found[-1] == 0:
                return found[:-1]
    return found[:TOKENS]


@pytest.mark.parametrize("sampling", [Sampling(), DRAWN], ids=["likeliest", "drawn"])
def test_the_program_writes_what_the_interpreter_does(sampling: Sampling, tmp_path: Path) -> None:
    language = load_language(written(tmp_path))
    wanted = told(decode_graph(language.model), language.prompt(PROMPT), sampling)
    text = bytearray()
    result = generate(language, PROMPT, tokens=TOKENS, sampling=sampling, flags=(*STRICT, *SANITIZE), say=text.extend)
    assert bytes(text) == PROMPT.encode() + language.tokenizer.decode(wanted) + b"\n"
    assert (result.read, result.written) == (len(language.prompt(PROMPT)), len(wanted))


def test_the_chip_writes_what_the_interpreter_does(tmp_path: Path) -> None:
    language = load_language(written(tmp_path))
    wanted = told(decode_graph(language.model), language.prompt(PROMPT), DRAWN)
    text = bytearray()
    options = Options(platform="siracusa", name="story")
    result = generate(language, PROMPT, tokens=TOKENS, sampling=DRAWN, options=options, say=text.extend)
    assert bytes(text) == PROMPT.encode() + language.tokenizer.decode(wanted) + b"\n"
    assert result.joules
    assert result.joules > 0
    assert len(result.cycles) == result.read + result.written


def test_floats_write_what_the_reference_does(tmp_path: Path) -> None:
    language = load_language(written(tmp_path))
    reference, tokens = Reference(language.model), language.prompt(PROMPT)
    read = len(tokens)
    logits = reference.logits(np.asarray([tokens]))[0, -1]
    while len(tokens) < read + TOKENS and (token := int(np.argmax(logits))) != 0:
        tokens.append(token)
        logits = reference.logits(np.asarray([[token]]))[0, -1]
    text = bytearray()
    generate(language, PROMPT, tokens=TOKENS, floats=True, say=text.extend)
    assert bytes(text) == PROMPT.encode() + language.tokenizer.decode(tokens[read:]) + b"\n"


def test_a_text_ends_where_the_context_does(tmp_path: Path) -> None:
    language = load_language(written(tmp_path))
    result = generate(language, PROMPT, tokens=1000, sampling=Sampling(10.0, 1.0, 3))
    assert result.read + result.written <= language.model.sizes.context + 1


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
