"""Tilewright: compiles neural networks to bare-metal C, and answers what they cost."""

from __future__ import annotations

from tilewright.base.lazy import lazy_names

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
