"""Layers that are loop nests with seams (Concat, Pad, Split, windows): time on the host and cycles on a simulated chip.

`--json FILE` writes the figures; `--against FILE` shows those of another run beside them, as ratios.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from math import prod
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.siracusa import Chain
from tilewright.api.compiling import Options
from tilewright.api.running import run_model
from tilewright.core.interpret import interpret
from tilewright.core.plan import Plan
from tilewright.machine.target import Sizes

L1 = 65536
REPEATS = 200
BUILDS: Mapping[str, tuple[str, ...]] = {"-O2": ("-O2",), "-O3 haswell": ("-O3", "-march=haswell")}


def layers() -> dict[str, Chain]:
    """Single layers, and short chains of them."""

    def image(channels: int, size: int, dtype: str = "float32") -> Chain:
        return Chain((1, channels, size, size), dtype)

    def beside(chain: Chain, *shapes: tuple[int, ...], dtype: str = "float32", axis: int = 1) -> Chain:
        return chain.add("Concat", [chain.noise(shape, dtype) for shape in shapes], axis=axis)

    border = np.array([0, 0, 1, 1, 0, 0, 1, 1])
    return {
        "Concat of channels, float32": beside(image(16, 32), (1, 16, 32, 32), (1, 8, 32, 32)),
        "Concat of pairs, float32": beside(Chain((64, 36, 2), "float32"), (64, 36, 2)),
        "Concat of columns, float32": beside(image(16, 32), (1, 16, 32, 3), axis=3),
        "Concat of columns, int8": beside(image(16, 32, "int8"), (1, 16, 32, 3), dtype="int8", axis=3),
        "Concat of 16, float32": beside(Chain((32, 4, 8), "float32"), *[(32, 4, 8)] * 15),
        "Pad of images, float32": image(16, 32).add("Pad", [border, np.array(0, np.float32)]),
        "Pad of images, int8": image(16, 32, "int8").add("Pad", [border, np.array(3, np.int8)]),
        "Pad of channels, int8": Chain((1, 32, 32, 12), "int8").add("Pad", [np.array([0, 0, 0, 0, 0, 0, 0, 4])]),
        "Pad of rows, float32": Chain((64, 100), "float32").add("Pad", [np.array([2, 0, 2, 0])]),
        "CenterCropPad, float32": image(8, 40).add("CenterCropPad", [np.array([32, 48])], axes=(2, 3)),
        "MaxPool 3x3, int16": image(8, 32, "int16").add("MaxPool", kernel_shape=(3, 3), pads=(1, 1, 1, 1)),
        "LpPool 3x3, float32": image(8, 32).add("LpPool", kernel_shape=(3, 3), pads=(1, 1, 1, 1)),
        "ConvTranspose 3x3 by 2": image(4, 16).add(
            "ConvTranspose", [Chain((1,), "float32").noise((4, 4, 3, 3), "float32")], strides=(2, 2), pads=(1, 1, 1, 1)
        ),
        "Pad, Concat, Pad": beside(image(8, 24).add("Pad", [border]), (1, 8, 26, 26)).add("Pad", [border]),
    }


def predicted(plan: Plan) -> float:
    return sum(group.cycles for group in plan.schedule.groups) if plan.schedule is not None else 0.0


def figures(chain: Chain) -> dict[str, float]:
    """Nanoseconds of each build on the host; cycles on the chip, and those that were predicted."""
    graph, fed = chain.graph(), [chain.x]
    expected = interpret(graph, fed)
    found: dict[str, float] = {"elements": float(prod(expected[0].shape))}
    for name, flags in BUILDS.items():
        ran = run_model(graph, Options(), inputs=fed, expected=expected, repeat=REPEATS, flags=flags)
        found[name] = ran.nanoseconds or 0.0
        found["right"] = found.get("right", 1.0) * ran.right
    chip = Options(platform="siracusa", sizes=Sizes({"L1": L1}, without=("neureka",)))
    ran = run_model(graph, chip, inputs=fed, expected=expected)
    found |= {"chip": float(ran.cycles or 0), "predicted": predicted(ran.compiled.plan)}
    found["right"] *= ran.right
    return found


def main() -> int:
    """Runs the benchmark; the exit status is 1 where a result is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="writes the figures to this file")
    parser.add_argument("--against", type=Path, help="figures of another run")
    parser.add_argument("--only", default="", help="part of the names of layers to run")
    options = parser.parse_args()
    rows = {name: figures(chain) for name, chain in layers().items() if options.only in name}
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    others: dict[str, dict[str, float]] = (
        json.loads(options.against.read_text(encoding="utf-8")) if options.against else {}
    )
    table = Table("", title="layers with seams")
    for heading in (*(f"ns {name}" for name in BUILDS), "cycles", "predicted / cycles", "right"):
        table.add_column(heading, justify="right")
    for name, row in rows.items():
        cells: list[str] = []
        for key in (*BUILDS, "chip"):
            ratio = f" ({row[key] / others[name][key]:.2f}x)" if name in others and others[name][key] else ""
            cells.append(f"{row[key]:,.0f}{ratio}")
        table.add_row(name, *cells, f"{row['predicted'] / max(row['chip'], 1):.2f}", "yes" if row["right"] else "NO")
    Console(width=150).print(table)
    return 0 if all(row["right"] for row in rows.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
