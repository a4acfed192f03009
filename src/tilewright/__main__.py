"""`python -m tilewright`."""

from __future__ import annotations

from tilewright.cli import main

main()
