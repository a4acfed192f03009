"""error[bad-tokenizer]: a tokenizer cannot be read, or is not the model's."""

from __future__ import annotations

from pathlib import Path

import pytest

import command_line
from language_models import tiny_tokenizer, written


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "JSONDecodeError"),
        ("[]", "TypeError"),
        ("{}", "KeyError: 'model'"),
        (tiny_tokenizer().replace('"BPE"', '"Unigram"'), "its model is 'Unigram', not 'BPE'"),
        (tiny_tokenizer().replace('"Split"', '"Digits"'), "it cuts texts in a way that is not known"),
        (tiny_tokenizer().replace("[a-z]+|", "\\\\p{L}+|"), "its pattern"),
        (tiny_tokenizer().replace("[^a-z ]+", "(a|b)"), "has more than characters and classes"),
        (tiny_tokenizer().replace("[^a-z ]+", "[^a-z ]"), "takes single characters of more than a byte"),
        (tiny_tokenizer().replace("[a-z]+|", "[ ]|"), "has to try shorter parts"),
        (tiny_tokenizer().replace('{"added', '{"normalizer": {"type": "Lowercase"}, "added'), "it has 'normalizer'"),
        (tiny_tokenizer().replace('"BPE"', '"BPE", "end_of_word_suffix": "</w>"'), "it has 'end_of_word_suffix'"),
        (tiny_tokenizer().replace('"b": 2', '"b": 200'), "its tokens are not numbered from 0 on"),
    ],
)
def test_files(text: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, other = written(tmp_path), tmp_path / "other.json"
    other.write_text(text)
    given = ("generate", model, "--prompt", "the", "--tokenizer", other)
    assert why in command_line.refused("bad-tokenizer", capsys, *given)


def test_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = written(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    printed = command_line.refused("bad-tokenizer", capsys, "generate", model, "--prompt", "the")
    assert "put the tokenizer beside the model" in printed


def test_another_number_of_tokens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = written(tmp_path)
    (tmp_path / "tokenizer.json").write_text(
        tiny_tokenizer().replace('"added_tokens": [', '"added_tokens": [{"id": 64, "content": "<|more|>"}, ')
    )
    printed = command_line.refused("bad-tokenizer", capsys, "generate", model, "--prompt", "the")
    assert "has 65 tokens" in printed
