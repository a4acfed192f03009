"""Planning: which kernel computes each node, in which order, and where every tensor lives."""

from __future__ import annotations

from tilewright.base.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
