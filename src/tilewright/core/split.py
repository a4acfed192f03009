"""How operations are cut into parts that run by themselves."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

Parts: TypeAlias = int | Literal["all"]
"""How many along a loop; `all` for as many as it has steps."""
Loops: TypeAlias = tuple[tuple[str, Parts], ...]


class OperationSplit(Struct, frozen=True):
    """How an operation is cut: across engines, and in time on each of them. Loops that come first run fastest."""

    across: Loops = ()
    within: Loops = ()
