"""Generated C and predicted cycles of some networks, to see that a change of the compiler changes neither.

`--json FILE` writes a digest of each; `--against FILE` compares with those of another run and says what differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from tilewright.api.compiling import Options, compile_model
from tilewright.machine.target import Sizes
from tilewright.plan import PlanOptions
from tilewright.timeline.replay import plan_timeline

EXAMPLES = Path(__file__).parent.parent / "examples" / "models"
CORES = ("neureka",)
WAYS: dict[str, tuple[Options, ...]] = {
    "scratchpad": (
        Options("scratchpad", sizes=Sizes({"L1": 10240}, home="L3")),
        Options("scratchpad", sizes=Sizes({"L1": 32768}, home="L2", cores=3), planning=PlanOptions(buffers=1)),
    ),
    "siracusa": (
        Options("siracusa", sizes=Sizes({"L1": 64000})),
        Options("siracusa", sizes=Sizes({"L1": 24000}, without=CORES)),
        Options("siracusa", sizes=Sizes({"L1": 64000}, home="L3")),
    ),
}


def digests(model: Path, platforms: list[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Of one network, each way it is compiled."""
    for platform in platforms:
        for number, options in enumerate(WAYS[platform]):
            made = compile_model(model, options)
            schedule = made.plan.schedule
            assert schedule is not None
            timeline = plan_timeline(made.plan, schedule)
            bars = [timeline.bars(number, 3) for number in range(len(schedule.groups))]
            texts = {
                "code": "".join(f"{name}\n{made.files[name]!r}\n" for name in sorted(made.files)),
                "cycles": repr([group.cycles for group in schedule.groups]),
                "bars": repr(bars),
            }
            digest = {kind: hashlib.sha256(text.encode()).hexdigest()[:16] for kind, text in texts.items()}
            yield f"{model.parent.name}/{model.stem} {platform} {number}", digest


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks same_code", description=__doc__)
    parser.add_argument("--cases", type=Path, action="append", help="an ONNX file, or a folder of them")
    parser.add_argument("--platform", choices=WAYS, action="append", help="all of them, unless given")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--against", type=Path)
    given = parser.parse_args()
    known: dict[str, dict[str, str]] = json.loads(given.against.read_text()) if given.against else {}
    models = [
        m for path in given.cases or [EXAMPLES] for m in ([path] if path.is_file() else sorted(path.rglob("*.onnx")))
    ]
    found: dict[str, dict[str, str]] = {}
    changed = 0
    for model in models:
        for name, digest in digests(model, given.platform or [*WAYS]):
            found[name] = digest
            before = known.get(name)
            other = [] if before is None else [kind for kind in digest if digest[kind] != before.get(kind)]
            changed += bool(other)
            print(
                f"{name}: {', '.join(other) + ' differ' if other else 'new' if before is None else 'same'}", flush=True
            )
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))
    return int(changed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
