"""Names from files in C text: as comments, as strings and in identifiers. Nothing else of them gets there."""

from __future__ import annotations

import re

LONGEST = 48
"""Letters of a name in an identifier: of C's, the first 63 have to count."""
PLAIN = frozenset(chr(code) for code in range(ord(" "), ord("~") + 1)) - {'"', "\\", "?"}
"""Characters that stand for themselves in a string; question marks may be part of a trigraph."""


def comment(text: str) -> str:
    """A comment, in which nothing ends it, begins another one or is a trigraph."""
    kept = "".join(c if " " <= c <= "~" else "_" for c in text)
    return f"/* {re.sub(r'(?<=[*])(?=/)|(?<=/)(?=[*])|(?<=[?])(?=[?])', ' ', kept)} */"


def string(text: str) -> str:
    """A string literal of the bytes of a text in UTF-8."""
    octal = ("".join(f"\\{byte:03o}" for byte in c.encode()) for c in text)
    return '"' + "".join(c if c in PLAIN else code for c, code in zip(text, octal, strict=True)) + '"'


def identifier(text: str) -> str:
    """The letters and digits of a text, for names to which something else makes a difference."""
    return re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")[:LONGEST]
