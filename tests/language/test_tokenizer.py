"""Byte-pair encoding, both ways."""

from __future__ import annotations

import re

import numpy as np
import pytest

from language_models import tiny_tokenizer
from tilewright.language.tokenizer import parse, tokenizer_of


@pytest.mark.parametrize("text", ["the cat", "  the", "tthe.the", " the the. ", "a", "..", "zthe"])
def test_there_and_back(text: str) -> None:
    tokenizer = tokenizer_of(tiny_tokenizer(), "tiny")
    assert tokenizer.decode(tokenizer.encode(text)).decode() == text


def test_pairs_merge_by_rank() -> None:
    tokenizer = tokenizer_of(tiny_tokenizer(), "tiny")
    assert [tokenizer.tokens[token] for token in tokenizer.encode("the the th e")] == [
        *(b"the", b" the", b" ", b"th", b" ", b"e")
    ]
    assert tokenizer.end == 0


def test_pieces_are_those_of_the_pattern() -> None:
    tokenizer = tokenizer_of(tiny_tokenizer(), "tiny")
    known = re.compile(rb" ?[a-z]+| ?[^a-z ]+|[ ]")
    random = np.random.default_rng(0)
    for _ in range(200):
        text = bytes(random.choice(list(b"ab .,Z "), size=9).tolist())
        assert list(tokenizer.pieces(text)) == known.findall(text)


def test_what_no_alternative_takes_is_a_piece() -> None:
    tokenizer = tokenizer_of(tiny_tokenizer().replace("| ?[^a-z ]+|[ ]", ""), "tiny")
    assert list(tokenizer.pieces(b"ab..c ")) == [b"ab", b"..", b"c", b" "]


def test_escapes_and_ranges() -> None:
    ((first, second),) = parse(r"[\n\]A-C-]?\|", "tiny")
    assert sorted(first.bytes) == sorted(b"\n]ABC-")
    assert (first.least, second.bytes) == (0, frozenset(b"|"))
