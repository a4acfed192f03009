"""Quantised networks: QDQ models become integer graphs."""

from __future__ import annotations

from tilewright.quantize.qdq import to_integers

__all__ = ["to_integers"]
