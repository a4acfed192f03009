"""Byte-pair encoding, both ways: texts are cut into pieces, bytes of a piece are tokens, and neighbours merge by rank.

Read from files of the `tokenizers` package with a byte-level alphabet. Pieces come from a pattern of alternatives, each
a row of characters or classes with `?`, `*` or `+`; the first alternative that fits takes as much as it can.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Any, cast

from msgspec import Struct

from tilewright.errors import TilewrightError

END = "<|end|>"
"""The token that ends a text, where a tokenizer has it."""
MANY = 1 << 30
_ITEM = re.compile(r"(\[(?:\\.|[^\]\\])+\]|\\.|[^\\\[\](){}|?*+.^$])([?*+]?)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


class ByteSet(Struct, frozen=True):
    """So many bytes of a set."""

    bytes: frozenset[int]
    least: int
    most: int


Pattern = tuple[tuple[ByteSet, ...], ...]
"""Alternatives; without any, a text is one piece."""


class Tokenizer(Struct, frozen=True, eq=False, dict=True):
    """Bytes of every token, pairs that merge with their rank and result, and how texts are cut into pieces."""

    tokens: tuple[bytes, ...]
    merges: Mapping[tuple[int, int], tuple[int, int]]
    pattern: Pattern
    end: int | None

    @cached_property
    def of_byte(self) -> dict[int, int]:
        """The token of each byte that has one."""
        found: dict[int, int] = {}
        for number, text in enumerate(self.tokens):
            if len(text) == 1 and number != self.end:
                found.setdefault(text[0], number)
        return found

    def encode(self, text: str) -> list[int]:
        """The tokens of a prompt; an error where it has none, or a character that no token has."""
        data = text.encode("utf-8", "surrogateescape")
        if not data:
            raise TilewrightError(
                "bad-prompt", "the prompt is empty", help="give some words to begin with, such as 'Once upon a time'"
            )
        unknown = next((index for index, byte in enumerate(data) if byte not in self.of_byte), None)
        if unknown is not None:
            shown = data[unknown:].decode("utf-8", "replace")[:1]
            raise TilewrightError(
                "bad-prompt",
                f"the prompt has the character {shown!r}, which the tokenizer does not know",
                reasons=[f"byte {data[unknown]:#04x} at {unknown} is in no token"],
                help="leave it away",
            )
        return [token for piece in self.pieces(data) for token in self._merged([self.of_byte[b] for b in piece])]

    def decode(self, tokens: Sequence[int]) -> bytes:
        """What tokens stand for."""
        return b"".join(self.tokens[token] for token in tokens)

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Parts of a text inside which tokens merge."""
        at = 0
        while at < len(data):
            size = next((n for n in (_fitting(row, data, at) for row in self.pattern) if n), 0)
            # What no alternative takes is a piece of its own, as far as it goes.
            end = at + size if size else at + 1
            while not size and end < len(data) and not any(_fitting(row, data, end) for row in self.pattern):
                end += 1
            yield data[at:end]
            at = end

    def _merged(self, tokens: list[int]) -> list[int]:
        while True:
            best = min(
                ((self.merges[pair][0], index) for index, pair in enumerate(pairwise(tokens)) if pair in self.merges),
                default=None,
            )
            if best is None:
                return tokens
            at = best[1]
            tokens[at : at + 2] = [self.merges[(tokens[at], tokens[at + 1])][1]]


def _fitting(row: Sequence[ByteSet], data: bytes, at: int) -> int:
    """How many bytes an alternative takes; 0 where it does not fit."""
    start = at
    for item in row:
        count = 0
        while count < item.most and at + count < len(data) and data[at + count] in item.bytes:
            count += 1
        if count < item.least:
            return 0
        at += count
    return at - start


def tokenizer_of(text: str, name: str) -> Tokenizer:
    """A tokenizer from the text of its file."""
    try:
        given = json.loads(text)
        model: Any = given["model"]
        if model["type"] != "BPE":
            raise _bad(name, f"its model is {model['type']!r}, not 'BPE'")
        if unknown := [f"'{part}'" for part, found in _parts(given) if found]:
            raise _bad(name, f"it has {', '.join(unknown)}, which changes tokens in a way that is not known")
        vocabulary = cast("dict[str, int]", model["vocab"])
        added = {str(token["content"]): int(token["id"]) for token in given.get("added_tokens") or ()}
        numbers = {**vocabulary, **added}
        if sorted(numbers.values()) != list(range(len(numbers))):
            raise _bad(name, "its tokens are not numbered from 0 on, each once")
        merges = [tuple(pair.split(" ")) if isinstance(pair, str) else tuple(pair) for pair in model["merges"]]
        pattern = _pattern(given.get("pre_tokenizer"), name)
        alphabet = _alphabet()
        tokens = [b""] * len(numbers)
        for word, number in numbers.items():
            tokens[number] = word.encode() if word in added else bytes(alphabet[letter] for letter in word)
        found = {
            (vocabulary[left], vocabulary[right]): (rank, vocabulary[left + right])
            for rank, (left, right) in enumerate(merges)
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as reason:
        raise _bad(name, f"{type(reason).__name__}: {reason}") from reason
    return Tokenizer(tuple(tokens), MappingProxyType(found), pattern, numbers.get(END))


def _parts(given: Any) -> list[tuple[str, object]]:
    """Whatever else of a file would change tokens, were it there."""
    parts = ("ignore_merges", "continuing_subword_prefix", "end_of_word_suffix", "dropout")
    return [("normalizer", given.get("normalizer")), *((part, given["model"].get(part)) for part in parts)]


def _pattern(given: Any, name: str) -> Pattern:
    """How pieces are cut, from the part `pre_tokenizer` of a file."""
    if given is None:
        return ()
    steps: list[Any] = given["pretokenizers"] if given["type"] == "Sequence" else [given]
    found: Pattern = ()
    for step in steps:
        if step["type"] == "Split" and step["behavior"] == "Isolated" and not step["invert"] and not found:
            found = parse(str(step["pattern"]["Regex"]), name)
        elif step["type"] != "ByteLevel" or step.get("use_regex", True) or step.get("add_prefix_space"):
            raise _bad(name, f"it cuts texts in a way that is not known: {json.dumps(step)[:120]}")
    return found


def parse(pattern: str, name: str) -> Pattern:
    """Alternatives of a simple pattern."""
    rows: list[tuple[ByteSet, ...]] = []
    at, row = 0, list[ByteSet]()
    while at <= len(pattern):
        if at == len(pattern) or pattern[at] == "|":
            if _goes_back(row):
                raise _bad(name, f"its pattern {pattern!r} has to try shorter parts in the alternative before {at}")
            rows.append(tuple(row))
            row, at = [], at + 1
            continue
        found = _ITEM.match(pattern, at)
        if found is None:
            raise _bad(name, f"its pattern {pattern!r} has more than characters and classes at {at}")
        limits = {"": (1, 1), "?": (0, 1), "*": (0, MANY), "+": (1, MANY)}[found[2]]
        row.append(ByteSet(_class(found[1], name), *limits))
        if limits[1] == 1 and max(row[-1].bytes) > 127:
            raise _bad(name, f"its pattern {pattern!r} takes single characters of more than a byte at {at}")
        at = found.end()
    return tuple(rows)


def _goes_back(row: Sequence[ByteSet]) -> bool:
    """Whether something may have to take less than it can, so that what is needed behind it has its part."""
    for at, item in enumerate(row):
        if item.least == item.most:
            continue
        for later in row[at + 1 :]:
            if later.least and item.bytes & later.bytes:
                return True
            if later.least:
                break
    return False


def _class(text: str, name: str) -> frozenset[int]:
    inner = text[1:-1] if text.startswith("[") else text
    negated = text.startswith("[^")
    letters: list[str] = re.findall(r"\\.|[^\\]", inner[1:] if negated else inner, re.DOTALL)
    numbers: list[int] = []
    for letter in letters:
        plain = _ESCAPES.get(letter[1], letter[1]) if letter.startswith("\\") else letter
        if ord(plain) > 127 or (letter.startswith("\\") and plain.isalnum()):
            raise _bad(name, f"its pattern has {letter!r}, which is not known")
        numbers.append(ord(plain))
    found: set[int] = set()
    at = 0
    while at < len(numbers):
        if text.startswith("[") and letters[at + 1 : at + 2] == ["-"] and at + 2 < len(numbers):
            found.update(range(numbers[at], numbers[at + 2] + 1))
            at += 3
        else:
            found.add(numbers[at])
            at += 1
    return frozenset(range(256)) - found if negated else frozenset(found)


def _alphabet() -> dict[str, int]:
    """The byte of each letter in the files' byte-level alphabet: printable ones are themselves, others come behind."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}


def _bad(name: str, why: str) -> TilewrightError:
    return TilewrightError(
        "bad-tokenizer",
        f"'{name}' is not a tokenizer that can be used",
        reasons=[why],
        help="docs/language_models.md says which ones can; name another with --tokenizer FILE",
    )
