"""How operations are cut into parts that run by themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Parts: TypeAlias = int | Literal["all"]
"""How many along a loop; `all` for as many as it has steps."""
Loops: TypeAlias = tuple[tuple[str, Parts], ...]


@dataclass(frozen=True)
class OperationSplit:
    """How an operation is cut: across engines, and in time on each of them. Loops that come first run fastest."""

    across: Loops = ()
    within: Loops = ()
