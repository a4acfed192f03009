"""Whether calibrations still hold: keys say what cycles depend on, and warnings what has changed since."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import cast

from msgspec import Struct
from msgspec.structs import asdict

from tilewright.machine.calibration import ENGINE, NESTS, STEPS, TIMES
from tilewright.machine.kernel import Kernel
from tilewright.machine.target import Target


def key_of(platform: Target, kernel: Kernel) -> dict[str, str]:
    """What a kernel's cycles depend on, but for the compiler's version."""
    platform = platform.measured_as or platform
    code = [_code(path.read_text()) for path in _files(platform, kernel.path)]
    return {"sources": _digest(code, list(kernel.terms.items())), **_machine_key(platform)}


def operations_key(platform: Target, operations: Iterable[str]) -> dict[str, str]:
    """The same of loop nests, and of steps behind kernels: they call functions of headers."""
    platform = platform.measured_as or platform
    called = {name.removeprefix("alone ") for name in operations}
    texts = {path.name: _code(path.read_text()) for path in platform.headers}
    code = {name: text for name, text in texts.items() if called.intersection(_CALL.findall(text))}
    joined = {"copies": str(platform.copies_joined)} if platform.copies_joined > 1 else {}
    return {"headers": _digest(code), **joined, **_machine_key(platform)}


def engine_key(platform: Target, engine: str) -> dict[str, str]:
    """The same of starts of an engine: its kernels describe jobs, and some come with headers."""
    paths = sorted({kernel.path for kernel in platform.kernels if kernel.engine == engine})
    code = {path.name: _code(path.read_text()) for path in _files(platform, *paths)}
    device = platform.device(engine)
    return {"sources": _digest(code, dict(device.settings) if device is not None else None), **_machine_key(platform)}


CODE = (".c", ".S", ".c.in")
"""Ends of names of a runtime's files that are compiled."""


def times_key(platform: Target) -> dict[str, str]:
    """The same of times: all code of the runtime, and the settings of all devices."""
    first = [path for name, path in platform.runtime.items() if name.endswith(CODE)]
    code = {path.name: _code(path.read_text()) for path in _files(platform, *first)}
    timing = next(iter(platform.timings.values()))
    devices = {name: dict(device.settings) for name, device in timing.devices.items()}
    return {"sources": _digest(code), "devices": _digest(devices), **_machine_key(platform)}


def _machine_key(platform: Target) -> dict[str, str]:
    flags = _digest(platform.build.get("compiler"), platform.build.get("flags"))
    return {"flags": flags, "timing": _digest(_timing(platform))}


def stale(platform: Target, kernel: Kernel, more: Mapping[str, str] = MappingProxyType({})) -> tuple[str, ...]:
    """What has changed since a kernel with terms was calibrated; `more` are parts of the key that are asked for."""
    found = platform.calibrations.get(kernel.path.name)
    if found is None:
        return ("it was never calibrated",)
    key = {**key_of(platform, kernel), **more}
    changed = [f"its {name} changed" for name, value in key.items() if found.key.get(name) != value]
    if set(found.terms) != set(kernel.terms):
        changed.append("its terms have other names")
    return tuple(changed)


def stale_nests(platform: Target, more: Mapping[str, str] = MappingProxyType({})) -> tuple[str, ...]:
    """The same of loop nests, on platforms whose nests are measured."""
    if not platform.timings:
        return ()
    return (
        _stale_operations(platform, NESTS, more) if NESTS in platform.calibrations else ("they were never calibrated",)
    )


def stale_steps(platform: Target, more: Mapping[str, str] = MappingProxyType({})) -> tuple[str, ...]:
    """The same of steps behind kernels; where they were never measured, they take what they do in loop nests."""
    return _stale_operations(platform, STEPS, more) if STEPS in platform.calibrations else ()


def _stale_operations(platform: Target, part: str, more: Mapping[str, str]) -> tuple[str, ...]:
    found = platform.calibrations[part]
    key = {**operations_key(platform, found.terms), **more}
    return tuple(f"their {name} changed" for name, value in key.items() if found.key.get(name) != value)


def stale_engine(platform: Target, engine: str, more: Mapping[str, str] = MappingProxyType({})) -> tuple[str, ...]:
    """The same of starts of an engine."""
    found = platform.own_calibrations.get(f"{ENGINE}{engine}")
    if found is None:
        return ("it was never calibrated",)
    key = {**engine_key(platform, engine), **more}
    return tuple(f"its {name} changed" for name, value in key.items() if found.key.get(name) != value)


def stale_times(platform: Target, more: Mapping[str, str] = MappingProxyType({})) -> tuple[str, ...]:
    """The same of times; where they were never measured, its description says them."""
    found = platform.own_calibrations.get(TIMES)
    if found is None:
        return ()
    key = {**times_key(platform), **more}
    return tuple(f"their {name} changed" for name, value in key.items() if found.key.get(name) != value)


def warnings(platform: Target, kernels: Iterable[Kernel | None]) -> tuple[str, ...]:
    """A line for each kernel whose cycles are not what was measured, on platforms that can measure them.

    Nodes without a kernel are loop nests; where these were never measured, cycles of all are a guess.
    """
    if not (platform.timings or platform.qemu):
        return ()
    measured_once = NESTS in platform.calibrations
    used = {kernel and kernel.path.name: kernel for kernel in kernels if kernel is None or kernel.terms}
    reasons = {f"--kernel {name}": stale(platform, k) for name, k in used.items() if name and k}
    reasons = dict(sorted(reasons.items())) | (
        {"--nests": stale_nests(platform)} if None in used and measured_once else {}
    )
    if any(kernel and any("FUSED" in text for text in kernel.terms.values()) for kernel in used.values()):
        reasons["--steps"] = stale_steps(platform)
    reasons["--times"] = stale_times(platform)
    parts = {"--nests": NESTS, "--steps": STEPS, "--times": "transfers"}
    return tuple(
        f"predicted cycles of {parts.get(how) or how.split()[1]} are not to be relied on: "
        f"{' and '.join(why)}; run `tilewright calibrate --platform {platform.name} {how}`"
        for how, why in reasons.items()
        if why
    )


def _timing(platform: Target) -> object:
    """How long instructions take on the machine that counts them."""
    if platform.qemu is not None:
        return platform.qemu.machine
    timing = next(iter(platform.timings.values()), None)
    return [_in_use(asdict(harts)) for harts in timing.harts.values()] if timing is not None else None


def _in_use(values: Mapping[str, object]) -> dict[str, object]:
    """Without what a machine does not have, so that things which only others have change nothing."""
    found = {name: value for name, value in values.items() if value}
    return {
        name: _in_use(cast("Mapping[str, object]", value)) if isinstance(value, Mapping) else value
        for name, value in found.items()
    }


_INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.MULTILINE)
_CALL = re.compile(r"\btw_\w+(?=\()")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def _files(platform: Target, *first: Path) -> list[Path]:
    """Files, and all that they include."""
    known = {path.name: path for path in (*platform.runtime.values(), *platform.headers)}
    found = {path.name: path for path in first}
    waiting = [*first]
    while waiting:
        for name in _INCLUDE.findall(waiting.pop().read_text()):
            if name in known and name not in found:
                found[name] = known[name]
                waiting.append(known[name])
    return [found[name] for name in sorted(found)]


def _code(text: str) -> str:
    """C without comments, headers of kernels among them, and white space."""
    return " ".join(_COMMENT.sub(" ", text).split())


def _digest(*parts: object) -> str:
    return sha256(json.dumps(parts, sort_keys=True, default=_listed).encode()).hexdigest()[:16]


def _listed(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    return asdict(value) if isinstance(value, Struct) else str(value)
