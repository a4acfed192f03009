"""The platforms of many small cores: one description, three sizes."""

from __future__ import annotations

import pytest

from tilewright.machine.target import load_platform


@pytest.mark.parametrize(
    ("name", "cores", "tiles"), [("mempool", 256, 64), ("mempool-16", 16, 4), ("mempool-1024", 1024, 128)]
)
def test_sizes(name: str, cores: int, tiles: int) -> None:
    platform = load_platform(name)
    group = platform.timings["rtl"].harts["pool"]
    assert group.tiles is not None
    assert (platform.cores.count, group.count, group.tiles["tiles"]) == (cores, cores, tiles)
    # What tiles have for themselves is not for networks.
    assert platform.memories["L1"].reserved == tiles * group.tiles["own_bytes"]
