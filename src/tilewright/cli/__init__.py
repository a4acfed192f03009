"""The command line."""

from __future__ import annotations

from tilewright.cli.app import main

__all__ = ["main"]
