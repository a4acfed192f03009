"""Machines: memories, links and engines, kernels, and machines that networks are compiled for."""

from __future__ import annotations

DEFAULT_PLATFORM = "generic"
"""Here, where nothing else is imported: the help of commands names it."""
