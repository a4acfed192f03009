"""Tries terms of a kernel's header: runs layers for it once and keeps them, then solves as often as the header changes.

`python -m benchmarks.terms matmul_packed_s8 --keep DIR` runs layers where DIR has none of the kernel, then prints the
coefficients, the errors of all layers, and the layers that are furthest off with what each term takes of them.
`tilewright calibrate` does the same and writes the result, but keeps nothing.
"""

from __future__ import annotations

import argparse
import pickle
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec.structs import replace

import benchmarks.prediction as prediction
from tilewright.api.bench import BenchRun
from tilewright.api.calibrating import kernels_with_terms, measured_groups, observed, programs, solution
from tilewright.core.graph import Array
from tilewright.machine.calibration import write_calibrations
from tilewright.machine.kernel import Kernel, parse_kernels
from tilewright.machine.target import Sizes, Target, load_platform, resize
from tilewright.price.terms import FIRST_CALL, Observation, solved
from tilewright.price.tiles import priced


def kept(platform: str, kernel: Kernel, seed: int, folder: Path) -> list[BenchRun]:
    """The programs of a kernel, run now or before."""
    path = folder / f"{kernel.path.stem}_{seed}.programs"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        machine = load_platform(platform)
        found = [replace(ran, plan=prediction.without_weights(ran.plan)) for ran in programs(machine, kernel, seed)]
        path.write_bytes(pickle.dumps(found))
    return pickle.loads(path.read_bytes())


def again(ran: BenchRun, kernel: Kernel) -> list[Observation]:
    """What was seen in a program, by the terms that the kernel has now."""
    return observed(rechosen(ran, kernel))


def rechosen(ran: BenchRun, kernel: Kernel) -> BenchRun:
    choices = tuple(replace(choice, kernel=kernel) if choice.kernel else choice for choice in ran.plan.choices)
    return replace(ran, plan=replace(ran.plan, choices=choices))


def parts_of(one: Observation, coefficients: Array) -> Array:
    """Cycles of a layer by term."""
    return np.sum([row * coefficients for row, _ in one.rows(coefficients)], axis=0)


def summary(title: str, errors: Array, took: Array) -> None:
    """Errors of all layers, and of long ones."""
    size, long = np.abs(errors), took >= prediction.LEAST
    within = np.mean(size[long] <= prediction.LAYER) if long.any() else 1.0
    print(f"{title}: {len(took)} layers: median {np.median(size):.1%}, 90 % {np.quantile(size, 0.9):.1%};")
    print(f"{long.sum()} of {prediction.LEAST} cycles or more, {within:.0%} of them within {prediction.LAYER:.0%}")


def show(kernel: Kernel, seen: Sequence[Observation], labels: Sequence[str], most: int) -> None:
    coefficients = solved(kernel, seen)
    names = (*kernel.terms, *FIRST_CALL)
    for name, value in zip(names, coefficients, strict=True):
        print(f"{value:12.4g}  {name}")
    errors = np.array([one.error(coefficients) for one in seen])
    took = np.array([one.first + one.others for one in seen])
    size = np.abs(errors)
    summary("by terms", errors, took)
    for index in np.argsort(-size)[:most]:
        one = seen[int(index)]
        parts = [
            f"{name} {value:.0f}"
            for name, value in zip(names, parts_of(one, coefficients), strict=True)
            if value > 0.01 * (one.first + one.others)
        ]
        print(
            f"{errors[index]:+.0%} of {one.first + one.others} in {one.steps}: {labels[int(index)]}: {', '.join(parts)}"
        )


def predicted(ran: BenchRun, platform: Target, kernel: Kernel) -> list[float]:
    """Cycles of the cores in each layer of a program, as the planner predicts them with a kernel file."""
    plan = replace(ran.plan, platform=resize_as(platform, ran.plan.platform))
    choices = tuple(replace(choice, kernel=kernel) if choice.kernel else choice for choice in plan.choices)
    found: list[float] = []
    for group, _ in measured_groups(ran):
        one = priced(plan.graph, plan.platform, choices, group, {})
        found.append(one.total(one.works[0]))
    return found


def resize_as(platform: Target, other: Target) -> Target:
    """A platform with as many cores as another one."""
    return resize(platform, Sizes(cores=other.cores.count))


def label(ran: BenchRun, number: int) -> str:
    """A layer in a few words."""
    group, _ = measured_groups(ran)[number]
    node = ran.plan.graph.nodes[group.works[0].step]
    kinds = " ".join(str(ran.plan.graph.types[name]) for name in node.inputs if name)
    given = " ".join(
        f"{k}={v}" for k, v in node.attrs.items() if k in ("strides", "pads", "group", "perm", "dilations", "axis")
    )
    loops = " ".join(f"{loop.dim}/{loop.size}" for loop in group.loops)
    split = f"{group.works[0].split}/{group.works[0].chunk}" if group.works[0].split else "one"
    steps = "+".join(step.op for step in node.epilogue)
    return f"{kinds} {given} [{loops}] {split} {steps}"


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernel")
    parser.add_argument("--platform", default=prediction.PLATFORM)
    parser.add_argument("--keep", type=Path, required=True, help="folder of programs that ran")
    parser.add_argument("--against", type=Path, help="a kernel file of the same name, such as an older one")
    parser.add_argument("--write", action="store_true", help="puts the coefficients into calibration.json")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=12, help="layers to show")
    options = parser.parse_args()
    (kernel,) = kernels_with_terms(load_platform(options.platform), [options.kernel])
    ran = kept(options.platform, kernel, options.seed, options.keep)
    seen = [again(one, kernel) for one in ran]
    labels = [label(one, number) for one, layers in zip(ran, seen, strict=True) for number in range(len(layers))]
    if options.against:
        other = replace(parse_kernels(options.against)[0], engine=kernel.engine)
        machine = load_platform(options.platform)
        guessed = np.array([cycles for one in ran for cycles in predicted(one, machine, other)])
        took = np.array([one.first + one.others for layers in seen for one in layers])
        summary(f"by {options.against}", guessed / took - 1, took)
    if options.write:
        machine = load_platform(options.platform)
        found = solution(machine, kernel, [rechosen(one, kernel) for one in ran]).calibration
        write_calibrations(machine.folder, machine.name, {kernel.path.name: found})
    show(kernel, [one for layers in seen for one in layers], labels, options.most)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
