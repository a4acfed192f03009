"""What `python -m benchmarks language` does, with a tiny model: the same tokens everywhere, and C written by hand."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from language_models import script, tiny
from tilewright.language.graphs import integer_graph
from tilewright.language.quantised import quantised
from tilewright.language.ranges import own_texts, watched
from tilewright.language.reference import Reference

LANGUAGE = script("benchmarks/language.py")


@pytest.mark.parametrize("platform", ["generic", "siracusa", "cortex-m55"])
def test_the_same_tokens(platform: str) -> None:
    model = tiny()
    graph = integer_graph(quantised(model, watched(model, own_texts(model))))
    texts = [LANGUAGE.written(graph, prompt, 6, model.sizes.context) for prompt in ([0, 3, 9], [0, 40])]
    found, _ = LANGUAGE.compiled(graph, [text.tokens for text in texts], platform)
    for logits, text in zip(found, texts, strict=True):
        np.testing.assert_array_equal(logits, text.logits)


def test_the_one_written_by_hand(tmp_path: Path) -> None:
    model = tiny()
    tokens = own_texts(model, 1, 3)[0]
    command = [*LANGUAGE.by_hand(model, ["-O2"], tmp_path), *map(str, tokens)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    wanted = np.argmax(Reference(model).logits(tokens[None])[0], axis=-1)
    assert [*map(int, said)] == wanted.tolist()
