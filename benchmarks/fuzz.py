"""Random networks on all platforms and damaged files, for as long as there is time: `--minutes N --seed S`.

Network i of seed S is the same everywhere; `--networks nodes` makes models of one node of any operator, NNSmith makes
others (`--networks nnsmith`). They are compared with onnxruntime, or with an oracle of their own, and with the
interpreter; files are mutated ONNX, YAML, npz and ELF files. Everything runs in forked processes with limits of time
and memory. What is wrong is kept below --output with its message, and reduced; where a campaign ended, the next one of
the same seed tries again what was found, and goes on. The exit status is 1 where anything was found.
"""

from __future__ import annotations

import argparse
import os

from msgspec import Struct, field
from msgspec.structs import asdict

# Read by libraries when they are imported: threads do not survive a fork.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import json
import time
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.fuzzing import TESTS as TESTS
from benchmarks.fuzzing.files import Files
from benchmarks.fuzzing.findings import keep_file, keep_network
from benchmarks.fuzzing.networks import BATCH, GENERIC, LEVELS, Source, on_generic, on_platform, warm
from benchmarks.fuzzing.smith import smith_sample
from benchmarks.fuzzing.workers import Judge, Verdict, judged
from samples import node_sample, sample

FILES = "files"
TARGETS = (*LEVELS, FILES)
MAKERS = {"own": sample, "nodes": node_sample, "nnsmith": smith_sample}
AT_ONCE = {GENERIC: 4 * BATCH, FILES: 1000}
"""Items of one process; the first ones pay for what is loaded late."""
USUAL_AT_ONCE = 60
SAVED_EVERY = 30.0
"""Seconds; what was done since is done again by the next campaign."""


class Progress(Struct):
    """How far a campaign on one target has come."""

    next: int = 0
    seconds: float = 0.0
    counts: dict[str, int] = field(default_factory=dict[str, int])
    refusals: dict[str, int] = field(default_factory=dict[str, int])
    findings: list[str] = field(default_factory=list[str])

    def take(self, verdict: Verdict) -> None:
        self.next = max(self.next, verdict.index + 1)
        self.counts[verdict.status] = self.counts.get(verdict.status, 0) + 1
        if verdict.status == "refused":
            self.refusals[verdict.detail] = self.refusals.get(verdict.detail, 0) + 1


class Campaign:
    """Targets by turns, each with the same share of time; what was done is written after every turn."""

    def __init__(self, seed: int, maker: str, targets: Sequence[str], folder: Path, console: Console) -> None:
        self.folder, self.console = folder, console
        self.source: Source = partial(MAKERS[maker], seed)
        self._series = f"{seed}" if maker == "own" else f"{maker}_{seed}"
        self._state = folder / f"seed_{self._series}.json"
        self._files = Files(seed) if FILES in targets else None
        self.progress = {target: Progress() for target in targets}
        for target in targets:
            if target != FILES:
                warm(target)
        if self._state.is_file():
            for target, kept in json.loads(self._state.read_text()).items():
                self.progress[target] = Progress(**kept)

    def judge(self, target: str) -> Judge:
        if target == FILES and self._files:
            return self._files.judge
        if target == GENERIC:
            return partial(on_generic, self.source)
        return partial(on_platform, target, self.source)

    def turn(self, target: str, end: float, most: int) -> None:
        """Some more items of a target."""
        done = self.progress[target]
        start = time.monotonic()
        size = min(AT_ONCE.get(target, USUAL_AT_ONCE), most - done.next)
        items = range(done.next, done.next + size)
        for count, verdict in enumerate(judged(self.judge(target), items), 1):
            done.take(verdict)
            if not verdict.fine:
                self.found(target, verdict)
            # Of a batch, what is refused comes first.
            whole = done.next == items.start + count
            if whole and time.monotonic() > end:
                break
            if whole and time.monotonic() > start + SAVED_EVERY:
                done.seconds += time.monotonic() - start
                start = time.monotonic()
                self.save()
        done.seconds += time.monotonic() - start
        self.save()

    def again(self) -> None:
        """What was found before, once more: it may be mended."""
        for target, done in self.progress.items():
            before, done.findings = done.findings, []
            for name, status, _ in (text.split(": ", 2) for text in before):
                done.counts[status] -= 1
                for verdict in judged(self.judge(target), [int(name.rpartition("_")[2])]):
                    done.take(verdict)
                    if not verdict.fine:
                        self.found(target, verdict)
            self.save()

    def save(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        everything = {name: asdict(progress) for name, progress in self.progress.items()}
        self._state.write_text(json.dumps(everything, indent=1) + "\n")

    def found(self, target: str, verdict: Verdict) -> None:
        name = f"{target}_{self._series}_{verdict.index}"
        self.progress[target].findings.append(f"{name}: {verdict.status}: {verdict.detail}")
        self.console.print(f"{name}: {verdict.status}: {verdict.detail}", markup=False, style="red")
        place = self.folder / name
        if target == FILES and self._files:
            keep_file(place, *self._files.content(verdict.index), verdict)
        else:
            keep_network(place, target, self.source(verdict.index), verdict)

    def run(self, seconds: float, count: int) -> None:
        end = time.monotonic() + seconds
        told = time.monotonic()
        self.again()
        open_targets = {target: progress for target, progress in self.progress.items() if progress.next < count}
        while open_targets and time.monotonic() < end:
            target = min(open_targets, key=lambda name: open_targets[name].seconds)
            self.turn(target, end, count)
            if open_targets[target].next >= count:
                del open_targets[target]
            if time.monotonic() - told > 60:
                told = time.monotonic()
                done = ", ".join(f"{name} {progress.next}" for name, progress in self.progress.items())
                self.console.print(f"{(end - told) / 60:.0f} minutes left: {done}", markup=False)

    def table(self) -> Table:
        table = Table("target", "items", "right", "refused", "found", "s each")
        for name, done in self.progress.items():
            right, refused = (done.counts.get(status, 0) for status in ("right", "refused"))
            total = sum(done.counts.values())
            each = f"{done.seconds / total:.2f}" if total else ""
            table.add_row(name, *map(str, (total, right, refused, total - right - refused)), each)
        return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (default: 10)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--networks",
        choices=MAKERS,
        default="own",
        help="who makes them (default: own); nnsmith comes with the extra 'bench'",
    )
    parser.add_argument("--count", type=int, default=20_000, help="items of each target at most (default: 20000)")
    parser.add_argument(
        "--platform",
        action="append",
        choices=TARGETS,
        help=f"a platform, or '{FILES}' for damaged files; may be repeated",
    )
    parser.add_argument("--output", type=Path, default=Path("build/fuzz"), help="where findings and progress are kept")
    options = parser.parse_args()
    console = Console(soft_wrap=True)
    targets = options.platform or TARGETS
    if options.networks == "nnsmith" and not find_spec("nnsmith"):
        parser.error("--networks nnsmith: NNSmith is not installed; pip install -e .[bench]")
    if options.networks == "nnsmith":
        targets = [target for target in targets if target != FILES]
    campaign = Campaign(options.seed, options.networks, targets, options.output, console)
    campaign.run(60 * options.minutes, options.count)
    console.print(campaign.table())
    for done in campaign.progress.values():
        for code, count in sorted(done.refusals.items(), key=lambda pair: -pair[1])[:12]:
            console.print(f"  {count} refused: {code}", markup=False)
    findings = [text for done in campaign.progress.values() for text in done.findings]
    console.print(*findings, f"{len(findings)} findings", sep="\n", markup=False)
    return 1 if findings else 0
