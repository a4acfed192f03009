"""error[bad-prompt]: there is nothing to go on with."""

from __future__ import annotations

from pathlib import Path

import pytest

import command_line
from language_models import tiny_tokenizer, written
from tilewright.errors import TilewrightError
from tilewright.language.tokenizer import tokenizer_of


def refused(prompt: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    output = folder / "project"
    given = ("generate", written(folder), "--prompt", prompt, "-o", output)
    printed = command_line.refused("bad-prompt", capsys, *given)
    assert not output.exists()
    return printed


def test_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = command_line.refused("bad-prompt", capsys, "generate", written(tmp_path))
    assert "there is no prompt" in printed


def test_empty() -> None:
    with pytest.raises(TilewrightError) as caught:
        tokenizer_of(tiny_tokenizer(), "tiny").encode("")
    assert (caught.value.code, caught.value.what) == ("bad-prompt", "the prompt is empty")


@pytest.mark.parametrize("prompt", ["the Cat", "caf\u00e9", "a\nb"])
def test_characters_that_no_token_has(prompt: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = next(letter for letter in prompt if letter not in "abcdefghijklmnopqrstuvwxyz .")
    assert f"the prompt has the character {odd!r}" in refused(prompt, tmp_path, capsys)


def test_longer_than_the_context(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "tokens, and the model remembers 24" in refused(". " * 20, tmp_path, capsys)
