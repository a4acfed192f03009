"""The C project of a language model: two entries, one set of weights, and a program that takes text and gives text."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import command_line
from language_models import tiny, written
from tilewright.api.compiling import Options, compile_entries
from tilewright.api.generating import Arithmetic, Language, compile_language, generate, language_graphs, load_language
from tilewright.cli.app import run
from tilewright.core.graph import Array, Graph
from tilewright.core.interpret import interpret
from tilewright.errors import TilewrightError
from tilewright.language.checkpoint import Checkpoint
from tilewright.machine.target import Sizes

PROMPT = "the cat. the"


@pytest.fixture(scope="module")
def language(tmp_path_factory: pytest.TempPathFactory) -> Language:
    return load_language(written(tmp_path_factory.mktemp("model")))


@pytest.fixture(scope="module")
def host(language: Language, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project for this computer."""
    folder = tmp_path_factory.mktemp("host") / "project"
    generate(language, PROMPT, tokens=1, arithmetic=Arithmetic(prefill=3), folder=folder)
    return folder


@pytest.fixture(scope="module")
def chip(language: Language, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project for Siracusa, built by its Makefile."""
    folder = tmp_path_factory.mktemp("chip") / "project"
    compiled = compile_language(language, Options(platform="siracusa", name="story"), Arithmetic(prefill=3))
    compiled["decode"].write(folder)
    subprocess.run(["make", "-s"], cwd=folder, check=True)
    return folder


def fed(graph: Graph, states: list[Array], tokens: list[int], position: int) -> tuple[Array, list[Array]]:
    """Logits and states when tokens are read; what is behind them in a piece of several is noise."""
    rows = graph.types[graph.fed[0]].size
    batch = np.asarray([*tokens, *np.arange(rows - len(tokens)) % 7], np.int32)
    last = [np.asarray([len(tokens) - 1], np.int32)] if len(graph.fed) > 2 else []
    logits, *new = interpret(graph, [batch, np.asarray(position, np.int32), *last, *states])
    return logits[-1:], new


@pytest.mark.parametrize("pieces", [(5, 5, 5), (5, 3, 1, 5), (2, 4)])
def test_many_tokens_at_once_are_one_by_one_to_the_bit(pieces: tuple[int, ...]) -> None:
    graphs = language_graphs(tiny(), Arithmetic(prefill=5))
    tokens = [int(token) for token in np.random.default_rng(3).integers(0, 64, sum(pieces))]
    one: list[Array] = [state.initial for state in graphs["decode"].states]
    many: list[Array] = [state.initial for state in graphs["prefill"].states]
    position = 0
    for count in pieces:
        wanted = np.zeros(0)
        for at in range(position, position + count):
            wanted, one = fed(graphs["decode"], one, tokens[at : at + 1], at)
        found, many = fed(graphs["prefill"], many, tokens[position : position + count], position)
        np.testing.assert_array_equal(found, wanted)
        position += count
        for left, right in zip(one, many, strict=True):
            axis = left.shape.index(tiny().sizes.context)
            np.testing.assert_array_equal(np.take(left, range(position), axis), np.take(right, range(position), axis))


def test_entries_share_weights_and_states() -> None:
    compiled = compile_entries(language_graphs(tiny(), Arithmetic(prefill=3)), Options(name="story"))
    programs = [found.program for found in compiled.values()]
    assert programs[0].constants == programs[1].constants
    alone = compile_entries({"decode": language_graphs(tiny(), Arithmetic(prefill=1))["decode"]}, Options(name="story"))
    assert programs[0].constant_bytes < 1.2 * alone["decode"].program.constant_bytes
    assert (programs[0].states_at, programs[0].arena_bytes) == (programs[1].states_at, programs[1].arena_bytes)
    header = compiled["decode"].files["story.h"].decode()
    for function in ("story_decode", "story_prefill"):
        assert f"void {function}(const void *const *inputs, void *const *outputs);" in header
    assert "void story_reset(void);" in header
    assert [name for name in compiled["decode"].files if name.endswith(".bin")] == ["story_weights.bin"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "usage: story PROMPT"),
        ([""], "the prompt is empty"),
        (["the Cat"], "the prompt has a character that is in no token"),
        ([". " * 20], "the prompt is longer than the model remembers"),
        (["the " * 1000], "the prompt is longer than the model remembers"),
        (["the", "--tokens"], "usage: story PROMPT"),
        (["the", "--tokens", "many"], "usage: story PROMPT"),
        (["the", "--colour", "3"], "usage: story PROMPT"),
        (["the", "--temperature", "0.01"], "--temperature is neither 0 nor between 0.05 and 10"),
        (["the", "--top-p", "1.5"], "--top-p is not above 0 and at most 1"),
    ],
)
def test_what_the_program_refuses(words: list[str], said: str, host: Path) -> None:
    done = subprocess.run([str(host / "story"), *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said)


def test_the_chip_takes_text_and_gives_text(host: Path, chip: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = [PROMPT, "--tokens", "6", "--temperature", "0.9", "--seed", "4"]
    told = subprocess.run([str(host / "story"), *words], capture_output=True, text=True, check=True).stdout
    assert run(["sim", str(chip / "story"), "-p", "siracusa", "--", *words]) == 0
    assert capfd.readouterr().out == told


def test_what_the_chip_refuses(chip: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for words, said in (([], "usage: story PROMPT"), (["the Cat"], "the prompt has a character that is in no token")):
        assert run(["sim", str(chip / "story"), "-p", "siracusa", "--", *words]) == 2
        assert capfd.readouterr().out.startswith(said)


def test_more_words_than_the_chip_has_room_for(chip: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = command_line.refused("bad-argument", capsys, "sim", chip / "story", "-p", "siracusa", "--", "the " * 1000)
    assert "the arguments of 'story' take" in told


def test_memories_that_are_too_small(language: Language, tmp_path: Path) -> None:
    options = Options(platform="siracusa", name="story", sizes=Sizes({"L2": 4096}))
    with pytest.raises(TilewrightError) as caught:
        generate(language, PROMPT, options=options, folder=tmp_path / "project")
    assert caught.value.code == "does-not-fit"
    assert not (tmp_path / "project").exists()


def test_a_platform_without_a_console(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = Path(__file__).parent.parent.parent / "src/tilewright/platforms/generic"
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "platform.yaml").write_text((place / "platform.yaml").read_text().replace("language: [language]\n", ""))
    (folder / "kernels").symlink_to(place / "kernels")
    given = ("generate", written(tmp_path), "--prompt", PROMPT, "--platform", folder)
    assert "has no program for language models" in command_line.refused("bad-argument", capsys, *given)


def test_one_head_and_a_piece_as_long_as_the_context() -> None:
    """Keys and values of one head differ from rows by the place of an axis of one."""
    graphs = language_graphs(tiny(heads=1), Arithmetic(prefill=64))
    assert graphs["prefill"].types[graphs["prefill"].fed[0]].size == tiny().sizes.context
    compile_entries(graphs, Options(name="story"))


def test_weights_that_are_all_zeros() -> None:
    """What a norm gives has a scale in any case, and every token is as likely as the others."""
    model = tiny()
    nothing = Checkpoint(model.sizes, {**model.weights, "emb": np.zeros_like(model.weights["emb"])})
    graph = language_graphs(nothing, Arithmetic(prefill=1))["decode"]
    logits, _ = fed(graph, [state.initial for state in graph.states], [5], 0)
    np.testing.assert_array_equal(logits, 0)


def test_contexts_that_are_hardly_any(tmp_path: Path) -> None:
    """A window of a few tokens: half of them stay."""
    model: Checkpoint = tiny(context=5)
    text = bytearray()
    result = generate(load_language(written(tmp_path, model)), "the", tokens=12, say=text.extend)
    assert text.startswith(b"the")
    assert result.figures.written <= 12
