"""What programs on simulated machines are called with: words in a variable of theirs, before they start."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.errors import TilewrightError
from tilewright.sim.program import ElfProgram

VARIABLE = "tw_arguments"
"""How many words, in 32 bits, then the words, each with a zero behind it."""


def given_words(program: ElfProgram, words: Sequence[str], room: int | None = None) -> tuple[int, bytes]:
    """The address of the variable, and what belongs there, or to where it points; it has `room`, or its own size."""
    name, found = program.path.name, program.symbols.get(VARIABLE)
    if found is None:
        raise TilewrightError(
            "bad-argument",
            f"'{name}' takes no arguments: it has no variable '{VARIABLE}'",
            help="leave them away, or build the program from the files of `tilewright generate`",
        )
    data = len(words).to_bytes(4, "little")
    data += b"".join(word.encode("utf-8", "surrogateescape") + b"\0" for word in words)
    most = found.size if room is None else room
    if len(data) > most:
        raise TilewrightError(
            "bad-argument",
            f"the arguments of '{name}' take {len(data)} bytes, and it has room for {most}",
            help="give shorter ones",
        )
    return found.address, data
