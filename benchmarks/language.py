"""Language models as they are compiled: the same tokens everywhere, quality, speed against C written by hand.

    python -m benchmarks language [MODEL.npz ...] [--prompts 10] [--tokens 256] [--platform NAME ...] [--text FILE]

For every prompt a numpy interpreter of the integer model writes so many tokens; the compiled program of every platform
is then given the same tokens, one by one and the first ones at once, and has to give the same logits to the bit. TEXT
is what bits per character are measured on: an .npz with token ids `stories`, else stories of the examples' grammar. The
exit status is 1 where a logit differs.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from tilewright.api.compiling import Options
from tilewright.api.generating import Arithmetic, Language, generate, load_language
from tilewright.api.language_page import measured_tokens
from tilewright.api.running import run_model
from tilewright.core.graph import Array, Graph
from tilewright.core.interpret import interpret
from tilewright.language import PREFILL, weight_bits_of
from tilewright.language.checkpoint import PARTS, Checkpoint
from tilewright.language.graphs import integer_graph
from tilewright.language.quantised import LOGIT, IntegerModel
from tilewright.language.reference import Reference, bits
from tilewright.language.weight_bits import integer_logits, integer_model, stored_bits

EXAMPLE = Path(__file__).parents[1] / "examples" / "language_model"
PLATFORMS = ("generic", "siracusa", "cortex-m55")
PROMPTS = (
    "Once upon a time",
    "One day",
    "There once was a little fox",
    "Long ago, in a forest far away,",
    "In a small house lived a brave girl.",
    "The sun was shining",
    "Ben had a red kite.",
    "A clever mouse",
    "It was a cold morning",
    "Her name was Nora",
)
FLAGS = (("-O3",), ("-Ofast", "-march=native"))
"""Of C compilers, for programs on this computer."""
HERTZ = {"cortex-m55": 400e6, "cortex-m7": 480e6}
"""Clocks of usual parts, at which instructions of an emulator are told as a rate."""


class Written(Struct, frozen=True):
    """What the interpreter wrote behind a prompt, prompt included, and the logits of every position."""

    tokens: Array
    logits: Array


def written(graph: Graph, prompt: Sequence[int], count: int, context: int) -> Written:
    """The likeliest tokens one after the other, as many as asked for or as there is room for."""
    states: list[Array] = [state.initial for state in graph.states]
    tokens, logits = list(prompt), list[Array]()
    while len(logits) < min(len(prompt) + count, context):
        found, *states = interpret(graph, [np.asarray([tokens[len(logits)]]), np.asarray(len(logits)), *states])
        logits.append(found.reshape(-1))
        if len(logits) >= len(tokens):
            tokens.append(int(np.argmax(found)))
    return Written(np.asarray(tokens[: len(logits)], np.int32), np.stack(logits))


def compiled(graph: Graph, texts: Sequence[Array], platform: str) -> tuple[list[Array], list[tuple[int, ...]]]:
    """The logits of a compiled program for every token of texts, and the cycles of each token where they are known.

    Texts follow each other without a reset: at position 0 nothing of the cache is read.
    """
    lengths = [len(text) for text in texts]
    tokens, positions = np.concatenate(texts), np.concatenate([np.arange(n) for n in lengths])
    fed = [tokens.astype(np.int32).reshape(-1, 1), positions.astype(np.int32)]
    ran = run_model(graph, Options(platform=platform), inputs=fed, steps=len(tokens))
    each = ran.step_cycles or ((ran.cycles // len(tokens),) * len(tokens) if ran.cycles else ())
    logits = ran.outputs[0].reshape(len(tokens), -1)
    ends = np.cumsum(lengths)
    return (
        [logits[end - n : end] for n, end in zip(lengths, ends, strict=True)],
        [each[end - n : end] for n, end in zip(lengths, ends, strict=True)],
    )


def read_at_once(prefill: Graph, text: Written, platform: str) -> tuple[bool, int]:
    """Whether a compiled program that reads many tokens at once gives the same logits behind the last; its cycles."""
    count = prefill.types[prefill.fed[0]].size
    fed = [text.tokens[:count].astype(np.int32), np.asarray(0, np.int32), np.asarray([count - 1], np.int32)]
    ran = run_model(prefill, Options(platform=platform), inputs=fed)
    return bool((ran.outputs[0].reshape(-1) == text.logits[count - 1]).all()), ran.cycles or 0


def story_tokens(language: Language, count: int) -> Array:
    """Stories of the examples' grammar that the model has not seen."""
    spec = importlib.util.spec_from_file_location("stories", EXAMPLE / "stories.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tokens: list[int] = []
    end = language.tokenizer.end
    for text in islice(module.stories(seed=1), count):
        # Longer ones than the context are read in windows.
        tokens += ([] if end is None else [end]) + language.tokenizer.encode(text)
        if len(tokens) >= count:
            break
    return np.asarray(tokens[:count])


def bits_per_character(language: Language, tokens: Array, logits_of: Callable[[Array], Array]) -> float:
    """In windows as long as the context."""
    taken, characters = 0.0, 0
    for begin in range(0, len(tokens), language.model.sizes.context):
        window = tokens[begin : begin + language.model.sizes.context]
        taken += float(bits(logits_of(window)[:-1], window[1:]).sum())
        characters += len(language.tokenizer.decode(window[1:].tolist()))
    return taken / characters


def checkpoint_of(language: Language) -> Checkpoint:
    """The floats of a model; decoders in ONNX have no reference here."""
    if not isinstance(language.model, Checkpoint):
        raise SystemExit("a checkpoint (.npz) is needed, not a decoder in ONNX")
    return language.model


def quality(language: Language, fitted: IntegerModel, text: Array) -> tuple[float, float, float]:
    """Bits per character of floats, of the interpreter of the integer model, and of its C."""
    return (
        bits_per_character(language, text, lambda w: Reference(checkpoint_of(language)).logits(w[None])[0]),
        bits_per_character(language, text, lambda w: integer_logits(fitted, w[None])[0]),
        bits_per_character(language, text, lambda w: compiled(integer_graph(fitted), [w], "generic")[0][0] / LOGIT),
    )


def by_hand(model: Checkpoint, flags: Sequence[str], folder: Path) -> list[str]:
    """The command of the C written by hand, without tokens."""
    program, file = folder / "llama", folder / "model"
    source = str(Path(__file__).parent / "llama.c")
    subprocess.run(["cc", "-std=c11", *flags, "-o", str(program), source, "-lm"], check=True)
    sizes = model.sizes
    numbers = (sizes.dim, sizes.layers, sizes.heads, sizes.ffn, sizes.vocab, sizes.context)
    parts = [f"{layer}.{part}" for layer in range(sizes.layers) for part in PARTS]
    with file.open("wb") as out:
        out.write(np.asarray(numbers, np.int32).tobytes() + np.asarray([sizes.theta, sizes.eps], "f4").tobytes())
        for name in ("emb", *parts):
            out.write(model.weights[name].astype(np.float32).tobytes())
    return [str(program), str(file)]


def same(
    language: Language, fitted: IntegerModel, prompts: Sequence[str], tokens: int, platforms: Sequence[str]
) -> Table:
    """Tokens of all prompts on all platforms, and the first ones of the first prompt at once; whether all are the same.

    What is read at once is compared with as many tokens one by one, from the first position on.
    """
    graph, context = integer_graph(fitted), language.model.sizes.context
    texts = [written(graph, language.prompt(prompt), tokens, context) for prompt in prompts]
    rows = min(PREFILL, context, len(texts[0].tokens))
    prefill = integer_graph(fitted, rows, only_last=True)
    table = Table(
        "platform", "tokens", "same", "tokens/s", "token 10", "token 250", "ratio", f"{rows} at once", "faster"
    )
    for platform in platforms:
        found, cycles = compiled(graph, [text.tokens for text in texts], platform)
        good = sum(int((f == text.logits).all(axis=1).sum()) for f, text in zip(found, texts, strict=True))
        total = sum(len(text.tokens) for text in texts)
        right, taken = read_at_once(prefill, texts[0], platform)
        told = "all" if right and good == total else f"{good:,}" if right else "not at once"
        one_by_one = sum(cycles[0][:rows])
        reading = [f"{taken:,}", f"{one_by_one / taken:.2f}"] if one_by_one and taken else ["", ""]
        table.add_row(platform, f"{total:,}", told, *_speed(platform, cycles), *reading)
    return table


def _speed(platform: str, cycles: Sequence[tuple[int, ...]]) -> list[str]:
    longest = max(cycles, key=len)
    if not longest:
        return ["", "", "", ""]
    hertz = HERTZ.get(platform, 360e6)
    mean = sum(map(sum, cycles)) / sum(map(len, cycles))
    if platform in HERTZ:
        return [f"{hertz / mean:,.0f} ({mean:,.0f} instructions at {hertz / 1e6:g} MHz)", "", "", ""]
    early, late = longest[min(10, len(longest) - 1)], longest[min(250, len(longest) - 1)]
    return [f"{hertz / mean:,.0f}", f"{early:,}", f"{late:,}", f"{late / early:.2f}"]


def seconds(command: Sequence[str]) -> float:
    """CPU time of a program, the least of some runs: on a busy machine the time of day says little."""
    found: list[float] = []
    for _ in range(5):
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"{command[0]} ended with status {child.returncode}")
        found.append(used.ru_utime + used.ru_stime)
    return min(found)


def rate(program: Callable[[int], Sequence[str]], tokens: int) -> float:
    """Tokens per second of a program that is told how many to write; what it takes to start does not count."""
    return (tokens - 1) / max(seconds(program(tokens)) - seconds(program(1)), 1e-9)


def host(language: Language, prompt: str, tokens: int) -> Table:
    """Tokens per second of this computer: C written by hand, generated in floats, generated in integers."""
    table = Table("flags", "by hand", "floats", "ratio", "integers", "ratio")
    read = language.prompt(prompt)
    reference, text = Reference(checkpoint_of(language)), list(read)
    logits = reference.logits(np.asarray([read]))[0, -1]
    while len(text) < min(len(read) + tokens, language.model.sizes.context):
        if (token := int(np.argmax(logits))) == language.tokenizer.end:
            break
        text.append(token)
        logits = reference.logits(np.asarray([text[-1:]]))[0, -1]
    count = len(text) - len(read)
    for flags in FLAGS:
        with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
            hand = by_hand(checkpoint_of(language), flags, Path(folder))
            said = subprocess.run([*hand, *map(str, text)], capture_output=True, text=True, check=True).stdout.split()
            if [*map(int, said)][len(read) - 1 : -1] != text[len(read) :]:
                print("the C written by hand says something else than the reference", file=sys.stderr)
            wanted = rate(lambda n, hand=hand: [*hand, *map(str, text[: len(read) + n])], count)
            rates: list[float] = []
            for floats in (True, False):
                place = Path(folder) / f"project{floats}"
                generate(
                    language, prompt, tokens=count, arithmetic=Arithmetic(floats=floats), flags=flags, folder=place
                )
                story = [str(place / "story"), prompt, "--tokens"]
                said = subprocess.run([*story, str(count)], capture_output=True, text=True, check=True).stderr.split()
                # It may end its text before.
                rates.append(rate(lambda n, story=story: [*story, str(n)], int(said[said.index("written") + 1])))
        table.add_row(
            " ".join(flags), f"{wanted:,.0f}", *(t for r in rates for t in (f"{r:,.0f}", f"{r / wanted:.2f}"))
        )
    return table


def main() -> int:
    """Measures the given models, or the example."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL", default=[EXAMPLE / "model.npz"])
    parser.add_argument("--prompts", type=int, default=len(PROMPTS))
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--platform", action="append", help="as often as wanted; all three otherwise")
    parser.add_argument("--no-host", action="store_true", help="without the C written by hand")
    parser.add_argument("--weight-bits", default="", metavar="N|P%%", help="as `tilewright generate` has it")
    parser.add_argument("--text", type=Path)
    parser.add_argument("--text-tokens", type=int, default=2048)
    given = parser.parse_args()
    console, wrong = Console(width=120), False
    for path in given.models:
        language = load_language(path)
        model = checkpoint_of(language)
        fitted = integer_model(model, weight_bits_of(given.weight_bits))
        graph = integer_graph(fitted)
        console.print(f"{path}: {model.parameters / 1e6:.2f} million parameters, {stored_bits(graph):.3g} bits each")
        if given.prompts:
            table = same(language, fitted, PROMPTS[: given.prompts], given.tokens, given.platform or PLATFORMS)
            wrong |= any(cell != "all" for cell in table.columns[2].cells)
            console.print(table)
        if given.text_tokens:
            text = np.load(given.text)["stories"] if given.text else story_tokens(language, given.text_tokens)
            floats, whole, c = quality(language, fitted, text[: given.text_tokens])
            wrong |= c != whole
            console.print(
                f"bits a character: floats {floats:.4f}, integers {whole:.4f} ({whole / floats - 1:+.1%}), ", end=""
            )
            console.print("the same in C" if c == whole else f"in C {c:.4f}")
        if not given.no_host:
            console.print(host(language, PROMPTS[0], given.tokens))
        if "siracusa" in (given.platform or PLATFORMS):
            one = measured_tokens("siracusa", graph, Options(platform="siracusa"))
            spent = 1e6 * sum(one.joules.values())
            console.print(f"siracusa: {one.rate:,.0f} tokens/s over the context, {spent:.1f} uJ for token {one.at}")
    return int(wrong)
