"""What kernels and loop nests take, as measured: `calibration.json` beside a platform's kernels, or a user's own.

For each platform and kernel it holds a coefficient for every term of the header, what the first call takes more, how
far predictions are off for shapes that were held out, and a key: what the numbers depend on. Of loop nests it holds
the cycles of each kind of operation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct
from msgspec.structs import asdict

from tilewright.base.files import is_file, write_file
from tilewright.errors import TilewrightError
from tilewright.machine.kernel import Kernel

if TYPE_CHECKING:
    from tilewright.machine.kernel_files import KernelFile
    from tilewright.machine.target import Target

FILE = "calibration.json"
NESTS = "loop nests"
"""Their part of the file, among those of kernels."""
ENGINE = "engine "
"""What the names of their parts begin with that are of engines beside the cores."""
START_TERMS = ("fork", "begin")
"""What is measured of these, as in descriptions of machines."""
COMPILER = "compiler"
"""The part of a key that costs a call of the compiler, so that planning does not ask for it."""


class Calibration(Struct, frozen=True):
    """Of one kernel on one platform, of loop nests, or of starts of an engine."""

    key: Mapping[str, str]
    """What it was measured with: sources, flags, timing and compiler."""
    terms: Mapping[str, float]
    """Cycles by term of the header, or by kind of operation."""
    shapes: int
    held_out: Mapping[str, float]
    """Relative errors for layers that the coefficients were not solved for: median, p90 and worst."""
    begin: float = 0.0
    """Cycles more at its first call, when its code comes into the caches."""
    fused: float = 0.0
    """Cycles more of these where something is fused behind it."""
    again: float = 0.0
    """What is left of both where the same code ran before."""

    def operations(self, name: str) -> dict[str, float]:
        """Its part of a platform's `operations`."""
        begin = {f"begin {name}": self.begin, f"begin {name} fused": self.begin + self.fused}
        return {**begin, f"again {name}": self.again}


Calibrations = Mapping[str, Calibration]
"""By the name of the kernel's file."""


def read_calibrations(platform: str, folder: Path, own: Iterable[Path], files: Iterable[KernelFile]) -> Calibrations:
    """What was measured of loop nests and kernels; that of files in a user's `own` folders lies beside them."""
    places = {place: _read(place / FILE, platform) for place in (*own, folder)}
    found = dict[str, Calibration]()
    for file in files:
        one = places.get(file.path.parent, places[folder]).get(file.path.name)
        if one is not None and file.has_terms:
            found[file.path.name] = one
    if NESTS in places[folder]:
        found[NESTS] = places[folder][NESTS]
    return MappingProxyType(found)


def read_engines(platform: str, folder: Path) -> Calibrations:
    """What was measured of engines beside the cores, by their names."""
    found = _read(folder / FILE, platform).items()
    return MappingProxyType({name.removeprefix(ENGINE): one for name, one in found if name.startswith(ENGINE)})


def started(engines: Calibrations) -> dict[str, float]:
    """What they say of starts of engines, by engine and term."""
    return {f"{name}.{term}": cycles for name, one in engines.items() for term, cycles in one.terms.items()}


def measured(calibrations: Calibrations) -> dict[str, float]:
    """What they say of a platform's times: cycles of first calls, and of all that nests are made of."""
    kernels = {name: one for name, one in calibrations.items() if name != NESTS}
    first = {key: cycles for name, one in kernels.items() for key, cycles in one.operations(name).items()}
    return {**first, **(calibrations[NESTS].terms if NESTS in calibrations else {})}


def _read(path: Path, platform: str) -> Calibrations:
    if not is_file(path):
        return {}
    try:
        return {name: _calibration(part) for name, part in _document(path).get(platform, {}).items()}
    except (ValueError, TypeError, KeyError, AttributeError) as reason:
        raise TilewrightError(
            "bad-calibration",
            f"'{path}' is no file of calibrations: {type(reason).__name__}: {reason}",
            help=f"delete it, and run `tilewright calibrate --platform {platform}`, which writes it",
        ) from reason


def write_calibrations(folder: Path, platform: str, found: Calibrations) -> None:
    """Puts calibrations into a folder's file; others in it stay."""
    path = folder / FILE
    document = _document(path) if is_file(path) else {}
    kernels = {**document.get(platform, {}), **{name: _plain(one) for name, one in found.items()}}
    document[platform] = {name: kernels[name] for name in sorted(kernels)}
    text = json.dumps({name: document[name] for name in sorted(document)}, indent=1)
    write_file(path, text.encode() + b"\n")


def _document(path: Path) -> dict[str, dict[str, Any]]:
    found = json.loads(path.read_bytes())
    if not isinstance(found, dict):
        raise ValueError("it is not a mapping of platforms")
    return cast("dict[str, dict[str, Any]]", found)


def _calibration(part: Mapping[str, Any]) -> Calibration:
    return Calibration(
        MappingProxyType({str(name): str(text) for name, text in part["key"].items()}),
        MappingProxyType({str(name): float(value) for name, value in part["terms"].items()}),
        int(part["shapes"]),
        MappingProxyType({str(name): float(value) for name, value in part["held_out"].items()}),
        **{name: float(part[name]) for name in FIRST_CALL if name in part},
    )


FIRST_CALL = ("begin", "fused", "again")
"""What only kernels have."""


def _plain(found: Calibration) -> dict[str, Any]:
    first = {name: getattr(found, name) for name in FIRST_CALL if found.begin or found.again}
    counts = {"shapes": found.shapes, "held_out": dict(found.held_out)}
    return {"key": dict(found.key), "terms": dict(found.terms), **first, **counts}


# Keys


def key_of(platform: Target, kernel: Kernel) -> dict[str, str]:
    """What a kernel's cycles depend on, but for the compiler's version."""
    platform = platform.measured_as or platform
    code = [_code(path.read_text()) for path in _files(platform, kernel.path)]
    return {"sources": _digest(code, list(kernel.terms.items())), **_machine_key(platform)}


def nests_key(platform: Target, operations: Iterable[str]) -> dict[str, str]:
    """The same of loop nests: they call functions of headers."""
    platform = platform.measured_as or platform
    called = {*operations}
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
    found = platform.calibrations.get(NESTS)
    if not platform.timings:
        return ()
    if found is None:
        return ("they were never calibrated",)
    key = {**nests_key(platform, found.terms), **more}
    return tuple(f"their {name} changed" for name, value in key.items() if found.key.get(name) != value)


def stale_engine(platform: Target, engine: str, more: Mapping[str, str] = MappingProxyType({})) -> tuple[str, ...]:
    """The same of starts of an engine."""
    found = platform.engine_calibrations.get(engine)
    if found is None:
        return ("it was never calibrated",)
    key = {**engine_key(platform, engine), **more}
    return tuple(f"its {name} changed" for name, value in key.items() if found.key.get(name) != value)


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
    return tuple(
        f"predicted cycles of {NESTS if how == '--nests' else how.split()[1]} are not to be relied on: "
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
    from hashlib import sha256  # lists of platforms do without it, and a cold start is felt

    return sha256(json.dumps(parts, sort_keys=True, default=_listed).encode()).hexdigest()[:16]


def _listed(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    return asdict(value) if isinstance(value, Struct) else str(value)
