"""`python -m benchmarks [NAME] [OPTIONS]`: without a name, lists the benchmarks and runs all but the long ones."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

BENCHMARKS = {
    "standard_networks": "time and memory of generated C against onnxruntime and another generator",
    "compile_time": "CPU time of the command line from a cold start",
    "growth": "CPU time of the command line as networks grow (takes a quarter of an hour, so only when named)",
    "allocation": "static memory allocation of published instances",
    "planning": "predicted cycles and bytes moved of joint plans against layer by layer",
    "seams": "layers that are cut where an operand begins or ends: time here, cycles on a simulated chip",
    "simulator": "simulated instructions per second against an emulator without timing",
    "siracusa": "cycles of single layers and networks on a simulated chip",
    "mempool": "use of the cores of MemPool by products and convolutions of bytes",
    "snitch": "use of the FPUs of a simulated cluster with streams",
    "ita": "use of ITA by layers and encoders of known sizes, GOp/s and GOp/J (takes ten minutes, so only when named)",
    "engines": "branches and heads on two engines of a simulated chip at the same time",
    "gvsoc": "cycles with units that cores share against those of GVSoC",
    "cortexm": "instructions, flash and RAM on emulated Cortex-M boards against another generator",
    "language": "language models: same tokens everywhere, quality, speed (takes half an hour, so only when named)",
    "mapping": "mapping search for array accelerators beside zigzag-dse",
    "zigzag_results": "every layer of ZigZag's results beside the exact search (takes an hour, so only when named)",
    "schedule": "networks cut into nodes and scheduled over many engines, as they grow",
    "lab": "searches for schedules over many engines beside Stream's (takes ten minutes, so only when named)",
    "cost": "networks on every array machine of the library (takes half an hour, so only when named)",
    "measured": "the fastest of measured plans against the predicted best (takes half an hour, so only when named)",
    "accuracy": "predicted cycles of layers and networks made from a seed (takes half an hour, so only when named)",
    "prediction": "predicted against simulated cycles of every layer (takes hours, so only when named)",
    "same_code": "whether generated C and predicted cycles are those of another run (only when named)",
    "scratchpad_matrix": "results on scratchpads of many sizes (takes hours, so only when named)",
    "dropped_waits": "synchronisations dropped from programs, and which of them the checks find (only when named)",
    "planted_faults": "faults in kernels, passes, plans and flags, and the layers that `diff` names (only when named)",
    "fuzz": "random networks on all platforms and damaged files, for --minutes N (only when named)",
    "real_models": "ONNX models of published packages against onnxruntime (takes an hour, so only when named)",
    "reduce": "the fewest nodes and flags with which a network still goes wrong (only when named)",
    "chip_matrix": "results on simulated chips in all configurations (takes hours, so only when named)",
}
FOLDERS = {
    "standard_networks": ("standard_networks",),
    "compile_time": ("deeploy",),
    "growth": (),
    "allocation": ("minimalloc",),
    "planning": ("deeploy", "standard_networks"),
    "measured": ("deeploy", "standard_networks"),
    "prediction": ("deeploy", "standard_networks"),
    "same_code": (),
    "scratchpad_matrix": ("deeploy", "standard_networks"),
    "dropped_waits": (),
    "planted_faults": (),
    "fuzz": (),
    "real_models": (),
    "reduce": (),
    "chip_matrix": ("deeploy", "standard_networks"),
    "seams": (),
    "simulator": (),
    "siracusa": ("standard_networks",),
    "mempool": (),
    "snitch": (),
    "ita": (),
    "engines": (),
    "gvsoc": ("standard_networks", "deeploy"),
    "cortexm": ("standard_networks",),
    "language": (),
    "mapping": ("zigzag",),
    "zigzag_results": ("zigzag",),
    "accuracy": (),
    "schedule": (),
    "lab": (),
    "cost": ("standard_networks", "deeploy/Models/microLlama"),
}
"""Where below TILEWRIGHT_CASES each benchmark finds its cases."""
LONG = frozenset(name for name, summary in BENCHMARKS.items() if "only when named" in summary)


def run(name: str, options: list[str]) -> int:
    """Runs one benchmark; without --cases it takes its folders of TILEWRIGHT_CASES, unless it needs none."""
    root = os.environ.get("TILEWRIGHT_CASES", "")
    if FOLDERS[name] and not {"--cases", "--again", "--random", "-h", "--help"} & {*options}:
        if not root:
            print(f"{name}: no cases; give --cases DIR or set TILEWRIGHT_CASES", file=sys.stderr)
            return 2
        options = [*(text for folder in FOLDERS[name] for text in ("--cases", str(Path(root) / folder))), *options]
    sys.argv = [f"python -m benchmarks {name}", *options]
    return int(importlib.import_module(f"benchmarks.{name}").main())


def main() -> int:
    """Runs the named benchmark, or all that do not take long."""
    name, *options = sys.argv[1:] or [""]
    if name in BENCHMARKS:
        return run(name, options)
    for known, summary in BENCHMARKS.items():
        print(f"  {known:18} {summary}")
    if name:
        print(f"there is no benchmark '{name}'", file=sys.stderr)
        return 2
    return max([run(known, []) for known in BENCHMARKS if known not in LONG])


if __name__ == "__main__":
    raise SystemExit(main())
