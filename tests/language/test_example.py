"""The model of the examples: its files fit each other, and it tells stories of the kind it was trained on."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np

from language_models import script
from tilewright.api.generating import load_language
from tilewright.language.checkpoint import Checkpoint
from tilewright.language.reference import Reference, bits

FOLDER = Path(__file__).parents[2] / "examples" / "language_model"


def test_the_model_expects_what_the_stories_say() -> None:
    language = load_language(FOLDER / "model.npz")
    assert isinstance(language.model, Checkpoint)
    texts: list[str] = list(islice(script("examples/language_model/stories.py").stories(seed=99), 8))
    taken = 0.0
    for text in texts:
        tokens = np.asarray([language.prompt(text)])
        taken += float(bits(Reference(language.model).logits(tokens[:, :-1]), tokens[:, 1:]).sum())
    assert taken / sum(map(len, texts)) < 0.1


def test_the_files_are_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir() if path.is_file()) < 700_000
