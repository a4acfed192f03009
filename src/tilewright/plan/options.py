"""What a user may say about planning."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class PlanOptions(Struct, frozen=True):
    """How to plan. `seconds` is effort of search, counted in steps so that results do not depend on the machine."""

    buffers: int = 0
    """Slots of every tile buffer that is moved; 0 takes the best for each."""
    fuse: Literal["auto", "off"] = "auto"
    overlap: Literal["auto", "off"] = "auto"
    """Whether other engines may compute nodes while the cores compute others that have nothing to do with these."""
    seconds: float = 2.0
    seed: int = 0
    order: Literal["memory", "time", "given"] = "memory"
    """Few bytes live at once, consumers next to producers, or the order of the file."""
    max_extra_macs: float = 0.4
    """How much may be computed twice when layers are fused, as a fraction of the network's work."""
    joint: bool = True
    """Plan all layers together; else one by one, each with the largest tile that fits."""
