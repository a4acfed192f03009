"""Language models: checkpoints, tokenizers, reference arithmetic, and the graphs that are compiled of them."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

from tilewright.errors import TilewrightError

COLDEST, HOTTEST = 0.05, 10.0
"""Temperatures besides 0. Here, so that the command line knows them without numpy."""
FEWEST_BITS, USUAL_BITS = 2, 8
"""Of weights in integers."""
MOST_LOSS = 50
"""Percent, of texts."""
CONTEXT = 256
"""Tokens that a decoder remembers whose file leaves that open."""
PREFILL = 64
"""Tokens of a prompt that are read at once."""


@dataclass(frozen=True)
class LeastBits:
    """Weights of as few bits as lose at most this share of the bits that a text takes."""

    loss: float


WeightBits = int | LeastBits | None
"""Of all weights, as few as a loss allows, or the usual ones."""


def weight_bits_of(text: str) -> WeightBits:
    """`5` or `3%`; nothing says nothing."""
    if not text:
        return None
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = nan
    if text.endswith("%") and 0 < number <= MOST_LOSS:
        return LeastBits(number / 100)
    if not text.endswith("%") and number in range(FEWEST_BITS, USUAL_BITS + 1):
        return int(number)
    raise TilewrightError(
        "bad-argument",
        f"--weight-bits is '{text[:40]}'",
        help=f"give {FEWEST_BITS} to {USUAL_BITS}, or a loss like 3%, at most {MOST_LOSS}%",
    )
