"""How exact the outputs of a quantised network can be."""

from __future__ import annotations

import numpy as np

from tilewright.core.graph import Graph
from tilewright.core.op import REGISTRY


def quantisation_step(graph: Graph, name: str) -> float:
    """The step of an output that leaves the network through a dequantisation; 0 where it does not."""
    producers = graph.producer()
    while name in producers:
        node = producers[name]
        source, *parameters = node.inputs
        scale = graph.constants.get(parameters[0]) if parameters else None
        if node.op == "DequantizeLinear" and scale is not None:
            return float(np.max(scale))
        if REGISTRY[node.op].kind not in ("view", "move"):
            return 0.0
        name = source
    return 0.0
