"""Reports: tables and a page that shows what a compilation decided."""

from __future__ import annotations

from tilewright.report.layers import Layer, layers
from tilewright.report.page import render_report, write_report

__all__ = ["Layer", "layers", "render_report", "write_report"]
