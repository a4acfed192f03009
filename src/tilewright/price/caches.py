"""Code in the caches: what is left of it when other code has run."""

from __future__ import annotations

from collections.abc import Iterable
from math import exp, factorial

from tilewright.machine.kernel import Kernel
from tilewright.machine.target import Target


def still_there(platform: Target, lines: float) -> float:
    """The share of some code that is still in a cache when so many other lines came, which fall on sets at random."""
    sets, ways = platform.operations.get("sets", 1.0), int(platform.operations.get("ways", 0.0))
    load = lines / sets
    return exp(-load) * sum(load**n / factorial(n) for n in range(ways))


def lines_of(platform: Target, kernels: Iterable[Kernel | None]) -> float:
    """Lines of the code of kernels."""
    costs = platform.operations
    line = costs.get("line", 0.0)
    begins = sum(costs.get(f"begin {kernel.path.name}", 0.0) for kernel in kernels if kernel is not None)
    return begins / line if line else 0.0
