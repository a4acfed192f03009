"""What a network may take at most. Checked as its types become known, before anything of that size is made."""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from math import prod
from pathlib import Path

from tilewright.core.graph import TensorType
from tilewright.errors import TilewrightError

CONTAINER = Path("/sys/fs/cgroup/memory.max")
"""Where Linux says how much memory this group of processes may have."""

RANK_LIMIT = 32
"""Axes of a tensor. Arrays have at most 64, and some operators split every axis in two."""

NODE_LIMIT = 20_000
"""Nodes that come from functions, loops and branches. More would not make a program that anybody wants."""

DAMAGE = (ArithmeticError, LookupError, ValueError, TypeError, AttributeError, MemoryError, RecursionError)
"""What comes of operands and attributes that no rule of an operator foresees."""


def default_max_bytes() -> int:
    """Half of this machine's memory, or of as much as this process may have of it."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), *resource.getrlimit(resource.RLIMIT_AS)]
    with suppress(OSError, ValueError):
        # Containers have less than the machine; "max" is no number.
        limits.append(int(CONTAINER.read_text()))
    return min(limit for limit in limits if limit > 0) // 2


class Budget:
    """How much there is already of what is limited."""

    def __init__(self, max_bytes: int | None) -> None:
        self._max_bytes = default_max_bytes() if max_bytes is None else max_bytes
        self._constant_bytes = 0
        self._nodes = 0

    def tensor(self, name: str, kind: TensorType) -> None:
        """An error for a tensor that cannot be, or is too large by itself."""
        if min(kind.shape, default=0) < 0:
            raise TilewrightError("bad-model", f"tensor '{name}' is {kind}", help="an extent is at least 0")
        if kind.rank > RANK_LIMIT:
            raise TilewrightError(
                "too-large",
                f"tensor '{name}' has {kind.rank} axes",
                help=f"a tensor has at most {RANK_LIMIT}; leave out those of one element",
            )
        if _bytes(kind) > self._max_bytes:
            raise self._too_large(f"tensor '{name}' is {kind}: {_bytes(kind):,} bytes")

    def constant(self, name: str, kind: TensorType) -> None:
        """The same for a constant, all of which are held at once."""
        self.tensor(name, kind)
        self._constant_bytes += _bytes(kind)
        if self._constant_bytes > self._max_bytes:
            raise self._too_large(f"with '{name}', constants take {self._constant_bytes:,} bytes")

    def node(self) -> None:
        """One more node that does not stand in the file itself."""
        self._nodes += 1
        self.room_for(0)

    def room_for(self, nodes: int) -> None:
        """An error where that many more nodes would be too many."""
        if self._nodes + nodes > NODE_LIMIT:
            raise TilewrightError(
                "too-large",
                f"the network has more than {NODE_LIMIT:,} nodes once functions, loops and branches are written out",
                help="fewer steps of its loops, or fewer calls of functions that call others, make it smaller",
            )

    def _too_large(self, what: str) -> TilewrightError:
        return TilewrightError(
            "too-large",
            f"{what}, {self._max_bytes:,} are allowed",
            help="check the shapes of the network; --max-bytes SIZE allows more",
        )


def _bytes(kind: TensorType) -> int:
    # An array must be able to have its shape even where it has no element.
    return prod(max(extent, 1) for extent in kind.shape) * kind.dtype.bytes


def senseless(node: str, reason: Exception) -> TilewrightError:
    """The error for a node, by operator and name, that a rule could not follow."""
    if isinstance(reason, MemoryError):
        return TilewrightError(
            "too-large",
            f"{node} takes more memory than there is",
            reasons=[str(reason)] if str(reason) else (),
            help="check the shapes of the network",
        )
    return TilewrightError(
        "bad-model",
        f"{node} has operands or attributes that make no sense together",
        reasons=[f"{type(reason).__name__}: {reason}"],
        help="compare the node with the operator's definition in the ONNX standard",
    )
