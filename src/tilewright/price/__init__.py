"""Cost models: what plans are compared by."""

from __future__ import annotations

from tilewright.price.tiles import Cost, group_cost

__all__ = ["Cost", "group_cost"]
