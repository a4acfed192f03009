"""Which members of large families of tests run.

A parametrised test marked `sample(every=6)` is a family. With `--sample-seed N` one in six of its members runs, and
with N + 1 another sixth, so that every member runs once in six days where the seed is the day. `by` names arguments
every value of which keeps at least one member. Tests that name the same `family` are one: what they all run over is
spread among them. Without the option all members run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar
from zlib import crc32

import pytest

T = TypeVar("T")
TODAY = "today"


def seed_of(text: str) -> int:
    """A whole number, or that of this day in UTC."""
    return datetime.now(UTC).toordinal() if text == TODAY else int(text)


@dataclass(frozen=True)
class Sampler:
    """`sampler(members, every=6, family="name")` gives the members that run."""

    seed: int | None
    """None where all do."""

    def __call__(self, members: Sequence[T], *, every: int, family: str) -> list[T]:
        """Families begin at different members, so that what many of them run over is run by some of them each day."""
        if self.seed is None or not members:
            return [*members]
        period = min(every, len(members))
        return [*members[(self.seed + crc32(family.encode())) % period :: period]]


EVERYTHING = Sampler(None)


def left_out(items: Sequence[pytest.Item], sampler: Sampler) -> list[pytest.Item]:
    """The members of marked families that do not run."""
    families: dict[tuple[str, ...], list[pytest.Item]] = defaultdict(list)
    periods: dict[tuple[str, ...], int] = {}
    for item in items:
        marker = item.get_closest_marker("sample")
        if marker is not None:
            family = _family(item, **marker.kwargs)
            families[family].append(item)
            periods[family] = marker.kwargs["every"]
    run = {
        item.nodeid
        for family, members in families.items()
        for item in sampler(members, every=periods[family], family=" ".join(family))
    }
    return [item for members in families.values() for item in members if item.nodeid not in run]


def _family(item: pytest.Item, *, every: int, by: tuple[str, ...] = (), family: str = "") -> tuple[str, ...]:
    del every
    function: Any = item
    values: dict[str, Any] = function.callspec.params if by else {}
    return (family or item.nodeid.partition("[")[0], *(_label(values[name]) for name in by))


def _label(value: Any) -> str:
    """The same in all processes and on all machines, so none with an address or the place of a file."""
    label = str(getattr(value, "__name__", getattr(value, "name", value)))
    assert " at 0x" not in label, f"`by` of a sample cannot tell {label} from others"
    return label
