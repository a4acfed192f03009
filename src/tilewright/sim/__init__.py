"""Running programs: on this machine, in emulators and simulators."""

from __future__ import annotations

from tilewright.base.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
