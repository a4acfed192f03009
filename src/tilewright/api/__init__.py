"""The jobs behind the command line, for Python: compile, run, test, cost, search."""

from __future__ import annotations

from tilewright.base.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
