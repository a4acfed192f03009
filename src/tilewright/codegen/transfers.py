"""Regions -> DMA transfers: neighbouring axes that both sides walk as one are merged, and what is left is strided."""

from __future__ import annotations

from tilewright.codegen.works import HeldRegion
from tilewright.core.expr import Size, bounds_of, plain
from tilewright.core.graph import TensorType
from tilewright.core.program import Copy, If, Pointer, Statement, Test
from tilewright.core.tiles import Region


def copy(
    channel: Size, to: HeldRegion, source: HeldRegion, part: Region, kind: TensorType, rank: int
) -> list[Statement]:
    """Starts to copy a part of a tensor from one place to another."""
    if not kind.bytes:
        return []
    width = kind.dtype.bytes
    axes: list[tuple[Size, Size, Size]] = []
    for extent, near, far in zip(part, to.strides(), source.strides(), strict=True):
        if extent.size == 1:
            continue
        if axes:
            count, to_stride, source_stride = axes[-1]
            joined = plain(to_stride - near * extent.size) == 0 and plain(source_stride - far * extent.size) == 0
            if joined:
                axes[-1] = (plain(count * extent.size), near, far)
                continue
        axes.append((extent.size, near, far))
    run: Size = 1
    if axes and axes[-1][1] == 1 and axes[-1][2] == 1:
        run = axes.pop()[0]
    started = Copy(
        channel,
        Pointer(to.place, "void", False, plain(to.offset + to.at(part) * width)),
        Pointer(source.place, "void", True, plain(source.offset + source.at(part) * width)),
        plain(run * width),
        tuple(count for count, _, _ in axes),
        tuple(plain(near * width) for _, near, _ in axes),
        tuple(plain(far * width) for _, _, far in axes),
        rank,
    )
    tests = tuple(Test(extent.size, ">", 0) for extent in part if bounds_of(extent.size)[0] < 1)
    return [If(tests, (started,))] if tests else [started]
