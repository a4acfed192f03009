"""Quantised networks: QDQ models become integer graphs."""

from __future__ import annotations

from tilewright.quantize.qdq import to_integers
from tilewright.quantize.tolerance import quantisation_step

__all__ = ["quantisation_step", "to_integers"]
