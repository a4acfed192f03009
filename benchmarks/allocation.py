"""Packs published allocation instances and prints how well: `python benchmarks/allocation.py --cases DIR`.

DIR holds CSV files with columns id, lower, upper, size, named NAME.CAPACITY.csv (as google/minimalloc publishes them).
The exit status is 1 when a capacity is not met.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tilewright.errors import TilewrightError
from tilewright.plan.addresses.allocate import BufferRequest, allocate


def instance(path: Path) -> tuple[list[BufferRequest], int]:
    """The buffers of one file and the capacity in its name."""
    with path.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    buffers = [
        BufferRequest(row["id"], int(row["size"]), int(row["lower"]), int(row["upper"]), align=1) for row in rows
    ]
    return buffers, int(path.name.split(".")[-2])


def main() -> int:
    """Packs every instance of a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, required=True, help="folder of CSV files")
    parser.add_argument("--seconds", type=float, default=10.0, help="search effort per instance")
    arguments = parser.parse_args()
    columns = ("instance", "buffers", "capacity", "peak", "lower bound", "status", "CPU s")
    table = Table(*columns, title="Static memory allocation")
    met, total = True, 0.0
    for path in sorted(arguments.cases.glob("*.csv")):
        buffers, capacity = instance(path)
        began = time.process_time()
        try:
            result = allocate(buffers, capacity=capacity, seconds=arguments.seconds)
            figures = (str(result.peak), str(result.lower_bound), result.status)
        except TilewrightError as error:
            met, figures = False, ("-", "-", error.code)
        spent = time.process_time() - began
        total += spent
        table.add_row(path.stem, str(len(buffers)), str(capacity), *figures, f"{spent:.2f}")
    table.add_section()
    table.add_row("all", *[""] * 5, f"{total:.2f}")
    Console().print(table)
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
