"""Cycles of one transfer: the setup of its descriptors and its bytes at the DMA's speed, and what it takes to start it.

Between memories, and of what is kept of a tile within one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.core.graph import TensorType
from tilewright.core.tiles import Use
from tilewright.machine.kernel import Kernel
from tilewright.machine.parts import Link
from tilewright.machine.target import Target
from tilewright.price.grid import Array, Box, Grid, Value


def route(platform: Target, memory: str) -> tuple[Link, ...]:
    """The DMAs between a memory and the engine's, or what copies inside that."""
    own = platform.cores.memory
    direct = platform.link(memory, own)
    if direct is not None:
        return (direct,)
    for between in platform.memories:
        first, second = platform.link(memory, between), platform.link(between, own)
        if first is not None and second is not None:
            return (first, second)
    return ()


def descriptors(grid: Grid, box: Box, shape: Sequence[int], rank: int) -> Value:
    """How many transfers of a DMA of some rank bring a part of a tensor, over classes."""
    result: Value = 1
    used: Value = 1
    stride = 1
    span: Value = 1
    for part, extent in zip(reversed(box), reversed(shape), strict=True):
        size = grid.size(part)
        if not isinstance(size, np.ndarray) and size == 1:
            stride *= extent
            continue
        if isinstance(size, np.ndarray) or isinstance(span, np.ndarray):
            many = np.asarray(size) != 1
            used = used + (many & (span != stride))
            span = np.where(many, size * stride, span)
            result = result * np.where(used > rank, size, 1)
        else:
            used, span = used + (span != stride), size * stride
            beyond = used > rank
            result = result * (np.where(beyond, size, 1) if isinstance(beyond, np.ndarray) else size if beyond else 1)
        stride *= extent
    return result


def copied(dma: Link, amounts: Sequence[int]) -> float:
    """Cycles of a DMA for runs of so many bytes, one after the other: behind the last one nothing is asked for."""
    each = [dma.setup + amount / dma.bytes_per_cycle for amount in amounts]
    idle = [max(dma.request - cycles, 0.0) for cycles in each]
    return sum(each) + sum(idle) - max(idle, default=0.0)


def transfer(
    grid: Grid, box: Box, kind: TensorType, dmas: Sequence[Link], *, store: bool = False, cores: int = 1
) -> Array:
    """Cycles to bring or take a part of a tensor, over classes.

    Requests for runs of a load go ahead of its bytes; a store is done with a run before it begins the next one. Where
    cores copy, each does some of the runs.
    """
    amount = grid.elements(box) * kind.dtype.bytes
    cycles: Value | float = 0.0
    for dma in dmas:
        runs = descriptors(grid, box, kind.shape, 1)
        alone = amount / dma.bytes_per_cycle
        if dma.by_cores:
            bytes_cycles = alone / cores + np.ceil(np.asarray(runs) / cores) * dma.run
        else:
            bytes_cycles = alone + runs * dma.run / 2 if store and dma.duplex else np.maximum(alone, runs * dma.run)
        cycles = cycles + descriptors(grid, box, kind.shape, dma.rank) * float(dma.setup) + bytes_cycles
        if dma.row:
            cycles = cycles + (runs - 1) * dma.row
    return grid.product([]) * np.where(np.asarray(amount) > 0, cycles, 0.0)


def issued(grid: Grid, box: Box, kind: TensorType, dmas: Sequence[Link]) -> Array:
    """Cycles to start such a transfer, over classes."""
    empty = np.asarray(grid.elements(box)) == 0
    counts: Value | float = 0.0
    for dma in dmas:
        commands = descriptors(grid, box, kind.shape, dma.rank)
        by_rows = np.asarray(descriptors(grid, box, kind.shape, 1)) > commands
        counts = counts + commands * (dma.issue + dma.issue_rows * by_rows)
    return grid.product([]) * np.where(empty, 0.0, counts)


def wait_cycles(platform: Target) -> float:
    """Cycles to wait for a transfer that is complete. Where some come by way of another memory, who waits looks for
    these, too.
    """
    far = any(dma.through for dma in route(platform, platform.home))
    return platform.operations.get("wait", 0.0) + (platform.operations.get("wait far", 0.0) if far else 0.0)


def far_wake(platform: Target) -> float:
    """Cycles from the end of a transfer from or to a slow home until who waits for it goes on; loads by way of another
    memory have their own."""
    way = next((dma for dma in route(platform, platform.home) if dma.through), None)
    slow = platform.link(platform.home, way.through) if way is not None else None
    return slow.wake if slow is not None else 0.0


def slowed(platform: Target, kernels: Sequence[Kernel | None]) -> float:
    """How much longer transfers take beside cores at work, which wait for memory now and then: kernels differ in how
    often they load.
    """
    usual = platform.operations.get("transfer", 1.0)
    each = [platform.operations.get(f"transfer {k.path.name}", usual) if k is not None else usual for k in kernels]
    return sum(each) / len(each) if each else usual


def kept_lines(grid: Grid, use: Use) -> Array:
    """Elements of an inner tensor that are kept from the step before, over classes."""
    axis = grid.keep.get(use.tensor)
    if axis is None or use.tensor not in grid.projection.held:
        return np.zeros((1,) * grid.rank, int)
    held, wanted = grid.projection.held[use.tensor], grid.projection.wanted[use.tensor]
    kept = grid.size(held[axis]) - grid.size(wanted[axis])
    return grid.product([kept, *(grid.size(span) for i, span in enumerate(held) if i != axis)])


def kept_cycles(grid: Grid, platform: Target, use: Use) -> Array:
    """Cycles to move kept lines of an inner tensor to the start of its buffer, over classes."""
    lines = kept_lines(grid, use)
    speed = min((dma.bytes_per_cycle for dma in route(platform, platform.cores.memory)), default=1.0)
    return lines * (use.type.dtype.bytes / speed)
