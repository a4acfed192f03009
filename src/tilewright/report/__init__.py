"""Reports: tables and a page that shows what a compilation decided."""

from __future__ import annotations

from tilewright.report.groups import BufferRow, GroupRow, GroupTable, Totals, group_table
from tilewright.report.layers import LayerRow, layers
from tilewright.report.page import render_report, write_report

__all__ = [
    "BufferRow",
    "GroupRow",
    "GroupTable",
    "LayerRow",
    "Totals",
    "group_table",
    "layers",
    "render_report",
    "write_report",
]
