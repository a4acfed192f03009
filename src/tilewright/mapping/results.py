"""How far a search goes, and what it gives."""

from __future__ import annotations

from math import inf

from msgspec import Struct

from tilewright.core.mapping import TemporalMapping


class Effort(Struct, frozen=True):
    """When to stop before the end; the best so far comes with a bound then."""

    seconds: float = inf
    """Of the processor."""
    mappings: float = inf
    """Evaluated; unlike seconds this gives the same result on every machine."""
    steps: float = inf
    """Blocks of partial mappings that are looked at; gives the same result everywhere, too."""
    gap: float = 0.0
    """The part by which the best may be above the bound."""


class Found(Struct, frozen=True):
    """A mapping with its cost."""

    mapping: TemporalMapping
    energy: float
    latency: float


class SearchResult(Struct, frozen=True):
    """What a search found and what it knows about the rest."""

    best: tuple[Found, ...]
    """One mapping, or by increasing latency all that no other one beats; none if a limit cannot be kept."""
    bound: float
    """No mapping is better than this (latency, energy or their product; 0 for `pareto` that was cut short)."""
    proved: bool
    """Whether the search went to its end."""
    covered: int
    """Mappings in the space: orders times ways to cut them, those that do not fit included."""
    evaluated: int
    """Mappings whose cost was worked out in full."""
    steps: int
    """Blocks of partial mappings that were looked at."""
    seconds: float
