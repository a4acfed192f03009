"""What was changed of a network's numbers, because its user allows it, and how much that does to its outputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from tilewright.api.feeding import fit, noise
from tilewright.core.graph import Array, Graph
from tilewright.core.interpret import interpret
from tilewright.machine.permissions import ITA_SOFTMAX


class Change(Struct, frozen=True):
    """Layers whose arithmetic is another one than the network's."""

    allowed: str
    """The permission for it."""
    layers: tuple[str, ...]
    replaced: tuple[str, ...]
    """Operators that are not computed as the network says."""
    worst: float
    """Largest difference of an output."""
    noise: bool
    """Whether that is on noise, as no inputs were given."""

    @property
    def text(self) -> str:
        layers = f"{len(self.layers)} layer{'s' if len(self.layers) > 1 else ''}"
        inputs = "noise" if self.noise else "the inputs given"
        replaced = " and ".join(self.replaced)
        return f"{self.allowed}: ITA's softmax for {replaced} in {layers}; outputs differ by {self.worst:g} on {inputs}"


def change(source: Graph, compiled: Graph, samples: Sequence[Array] | None, seed: int) -> Change | None:
    """What a permission changed between the network and the graph that code is made of; None where nothing."""
    replaced = {node.label: str(node.attrs["replaces"]) for node in compiled.nodes if node.attrs.get("replaces")}
    if not replaced:
        return None
    fed = noise(source, seed) if samples is None else fit(samples, source)
    states = [state.initial for state in source.states]
    pairs = zip(interpret(source, [*fed, *states]), interpret(compiled, [*fed, *states]), strict=True)
    worst = max(float(np.abs(a.astype(np.float64) - b).max(initial=0.0)) for a, b in pairs)
    return Change(ITA_SOFTMAX, tuple(replaced), tuple(dict.fromkeys(replaced.values())), worst, samples is None)
