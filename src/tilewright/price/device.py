"""Cycles of a kernel: by the formula of its header or, where it starts jobs of a device, by the simulator's own timing.

A header says which jobs there are, the platform's `simulator` section how long a device takes for their parts. So a
prediction and a run ask the same code about the same numbers. A job is priced as the first one of an idle device; what
one leaves behind for the next (NEUREKA's depthwise tiles of a single channel do, a few cycles) is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from msgspec import Struct

from tilewright import _native
from tilewright.errors import TilewrightError
from tilewright.machine.kernel import MODE, Kernel, named
from tilewright.machine.target import Target
from tilewright.price.formulas import Numbers
from tilewright.price.grid import Array


class Jobs(Struct, frozen=True):
    """What jobs of a kind of device are told, and how long they take."""

    modes: tuple[str, ...]
    fields: Mapping[str, int | None]
    """With what holds where a job does not say; None where it has to."""
    between: str
    """The setting with the cycles between a trigger and the idle status besides those of jobs."""
    busy: Callable[..., Array]
    """Cycles of each of many jobs, from mode, settings and fields."""


NEUREKA = Jobs(
    ("pointwise", "dense", "depthwise"),
    MappingProxyType(
        dict.fromkeys(("height", "width", "inputs", "outputs"))
        | {"bottom": 0, "right": 0, "weight_bits": 8, "scaled": 0, "prefetch": 1}
    ),
    "job",
    _native.neureka_busy,
)
ITA = Jobs(
    ("linear", "attention"),
    MappingProxyType(dict.fromkeys(("rows", "columns", "inner")) | {"bias": 1, "output": 1}),
    "next_cycles",
    _native.ita_busy,
)
ITA_UNITS = Jobs(
    ("head",),
    MappingProxyType(dict.fromkeys(("rows", "embedding", "projection"))),
    "drain_cycles",
    _native.ita_units_busy,
)
KINDS: Mapping[str, Jobs] = MappingProxyType({"neureka": NEUREKA, "ita": ITA, "ita_units": ITA_UNITS})
"""By the kind of the simulated device."""


def kernel_cycles(platform: Target, kernel: Kernel, value: Callable[[str], Numbers]) -> Numbers:
    """What a call takes, for many tiles at once; `value` is that of a formula of the header."""
    if not kernel.jobs:
        with named(kernel, "cycles"):
            return value(kernel.cycles)
    device = platform.device(kernel.engine)
    if device is None or device.kind not in KINDS:
        raise _bad(
            kernel,
            f"engine '{kernel.engine}' of '{platform.name}' is no simulated device with jobs",
            "say its cycles, or which device of the simulator the engine is (device in platform.yaml)",
        )
    settings = {name: number for name, number in device.settings.items() if isinstance(number, int)}
    kind = KINDS[device.kind]
    # A job that waits for another one starts at once.
    found: Numbers = settings[kind.between]
    for job in kernel.jobs:
        _check(kernel, kind, job)
        with named(kernel, "jobs"):
            fields = {name: value(job[name]) if name in job else known for name, known in kind.fields.items()}
        arrays = np.broadcast_arrays(*(np.asarray(field, np.int64) for field in fields.values()))
        busy = kind.busy(job[MODE], settings, *(np.ascontiguousarray(array).reshape(-1) for array in arrays))
        found = found + busy.reshape(arrays[0].shape)
    return found


def _check(kernel: Kernel, kind: Jobs, job: Mapping[str, str]) -> None:
    missing = [name for name, known in kind.fields.items() if known is None and name not in job]
    unknown = [name for name in job if name != MODE and name not in kind.fields]
    why = f"there is no field '{unknown[0]}'" if unknown else f"{missing[0]} is missing" if missing else ""
    if job[MODE] not in kind.modes:
        why = f"mode: '{job[MODE]}' is none of {', '.join(kind.modes)}"
    if why:
        raise _bad(kernel, why, f"fields are mode, {', '.join(kind.fields)}")


def _bad(kernel: Kernel, why: str, help: str) -> TilewrightError:
    return TilewrightError("bad-kernel", f"kernel '{kernel.path.name}': jobs: {why}", help=help)
