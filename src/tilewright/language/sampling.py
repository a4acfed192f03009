"""Which token follows: the likeliest, or one drawn; in whole numbers, so that every machine draws the same.

`codegen` of language models has the same in C (`tilewright_language.h`): what is changed here is changed there.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from tilewright.core.graph import Array
from tilewright.errors import TilewrightError
from tilewright.language import COLDEST, HOTTEST
from tilewright.language.quantised import LOGIT

MASK = (1 << 64) - 1
HIGHEST_SEED = (1 << 31) - 1
OCTAVE = 94_548_462_199_699_106
"""65536 / log(2), in 10^-12."""


class Sampling(Struct, frozen=True):
    """How tokens are chosen; a temperature of 0 takes the likeliest."""

    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0

    def check(self) -> None:
        if self.temperature and not COLDEST <= self.temperature <= HOTTEST:
            raise TilewrightError(
                "bad-argument",
                f"--temperature {self.temperature:g} is neither 0 nor between {COLDEST} and {HOTTEST:g}",
                help="0 takes the likeliest token, 1 the model's own probabilities",
            )
        if not 0 < self.top_p <= 1:
            raise TilewrightError(
                "bad-argument", f"--top-p {self.top_p:g} is not above 0 and at most 1", help="1 leaves no token out"
            )
        if not 0 <= self.seed <= HIGHEST_SEED:
            raise TilewrightError("bad-argument", f"{self.seed} is no seed", help=f"give 0 to {HIGHEST_SEED}")

    @property
    def factor(self) -> int:
        """Octaves of a unit of the logits, in 2^-16; 0 for the likeliest."""
        temperature = billionths(self.temperature)
        return (OCTAVE // LOGIT * 10 + temperature * 5000) // (temperature * 10000) if temperature else 0

    @property
    def share(self) -> int:
        """The part of all probability that tokens are drawn from, in 2^-16."""
        return max(1, (billionths(self.top_p) * 65536 + 500_000_000) // 1_000_000_000)


def billionths(value: float) -> int:
    """A number as programs read it, in 10^-9."""
    return int(f"{value:.9f}".replace(".", ""))


def units(logits: Array) -> Array:
    """Logits as whole numbers."""
    return np.floor(logits.astype(np.float64) * LOGIT + 0.5).astype(np.int64) if logits.dtype.kind == "f" else logits


def octaves() -> Array:
    """2^24 times the powers of one half from 0 to 1, in steps of 1 / 256."""
    return np.rint(2.0**24 * 0.5 ** (np.arange(256) / 256)).astype(np.uint32)


class Sampler:
    """Draws one token after the other."""

    def __init__(self, sampling: Sampling) -> None:
        self._factor, self._share = sampling.factor, sampling.share
        self._state = (sampling.seed * 2 + 1) & MASK
        self._next()

    def _next(self) -> int:
        """32 random bits (PCG: a congruence, whose highest bits say how its others are turned)."""
        old = self._state
        self._state = (old * 6364136223846793005 + 1442695040888963407) & MASK
        mixed, turn = ((old >> 18 ^ old) >> 27) & 0xFFFFFFFF, old >> 59
        return (mixed >> turn | mixed << (-turn & 31)) & 0xFFFFFFFF

    def pick(self, logits: Array) -> int:
        """The next token."""
        whole = units(logits.reshape(-1)).astype(np.int64)
        if not self._factor:
            return int(np.argmax(whole))
        distance = np.minimum(whole.max() - whole, 65535) * self._factor
        weights = octaves()[(distance >> 8) & 255].astype(np.int64) >> np.minimum(distance >> 16, 31)
        least = self._least(weights)
        kept = np.where(weights >= least, weights, 0)
        target = self._next() * int(kept.sum()) >> 32
        return int(np.searchsorted(np.cumsum(kept), target, side="right"))

    def _least(self, weights: Array) -> int:
        """The largest weight down to which tokens have their share of all."""
        wanted = int(weights.sum()) * self._share >> 16
        low, high = 1, 1 << 24
        while low < high:
            middle = (low + high + 1) // 2
            if int(weights[weights >= middle].sum()) >= wanted:
                low = middle
            else:
                high = middle - 1
        return low
