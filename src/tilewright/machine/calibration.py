"""What kernels and loop nests take, as measured: `calibration.json` beside a platform's kernels, or a user's own.

For each platform and kernel it holds a coefficient for every term of the header, what the first call takes more, how
far predictions are off for shapes that were held out, and a key: what the numbers depend on. Of loop nests it holds
the cycles of each kind of operation. `staleness.py` says whether keys still hold.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from tilewright.base.files import is_file, write_file
from tilewright.errors import TilewrightError

if TYPE_CHECKING:
    from tilewright.machine.kernel_files import KernelFile

FILE = "calibration.json"
NESTS = "loop nests"
"""Their part of the file, among those of kernels."""
STEPS = "steps behind kernels"
"""The same of steps that are fused behind kernels."""
ENGINE = "engine "
"""What the names of their parts begin with that are of engines beside the cores."""
TIMES = "times"
"""The part of what it takes to start transfers and to wait for them, and of what else programs for that show."""
START_TERMS = ("fork", "begin", "go", "turn", "uneven")
"""What is measured of these, as in descriptions of machines."""
COMPILER = "compiler"
"""The part of a key that costs a call of the compiler, so that planning does not ask for it."""


class Calibration(Struct, frozen=True):
    """Of one kernel on one platform, of loop nests, of steps behind kernels, of starts of an engine, or of times."""

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
    several: float = 0.0
    """Cycles more of the first call where others call the same code, which is for all of them then."""

    def operations(self, name: str) -> dict[str, float]:
        """Its part of a platform's `operations`."""
        begin = self.begin + self.several
        more = {f"again {name}": self.again, f"several {name}": self.several}
        return {f"begin {name}": begin, f"begin {name} fused": begin + self.fused, **more}


PARTS = (NESTS, STEPS)
"""Names in the file that are none of kernels."""
Calibrations = Mapping[str, Calibration]
"""By the name of the kernel's file."""


def read_calibrations(platform: str, folder: Path, own: Iterable[Path], files: Iterable[KernelFile]) -> Calibrations:
    """What was measured of loop nests, steps and kernels; that of files in a user's `own` folders lies beside them."""
    places = {place: _read(place / FILE, platform) for place in (*own, folder)}
    found = dict[str, Calibration]()
    for file in files:
        one = places.get(file.path.parent, places[folder]).get(file.path.name)
        if one is not None and file.has_terms:
            found[file.path.name] = one
    found |= {name: places[folder][name] for name in PARTS if name in places[folder]}
    return MappingProxyType(found)


def read_own(platform: str, folder: Path) -> Calibrations:
    """What was measured of a machine itself, and of none that is like it: times, and starts of engines."""
    found = _read(folder / FILE, platform).items()
    return MappingProxyType({name: one for name, one in found if name == TIMES or name.startswith(ENGINE)})


def times_of_own(own: Calibrations) -> dict[str, float]:
    """What they say, by links and engines: `mchan.issue`."""
    parts = {name: f"{name.removeprefix(ENGINE)}." if name.startswith(ENGINE) else "" for name in own}
    return {f"{parts[name]}{term}": cycles for name, one in own.items() for term, cycles in one.terms.items()}


def measured(calibrations: Calibrations) -> dict[str, float]:
    """What they say of a platform's times: cycles of first calls, and of all that nests are made of."""
    kernels = {name: one for name, one in calibrations.items() if name not in PARTS}
    first = {key: cycles for name, one in kernels.items() for key, cycles in one.operations(name).items()}
    return {**first, **part_of(calibrations, NESTS)}


def part_of(calibrations: Calibrations, name: str) -> Mapping[str, float]:
    """What a part says that is none of a kernel; nothing where it was not measured."""
    return calibrations[name].terms if name in calibrations else {}


def behind(calibrations: Calibrations, operations: Mapping[str, float]) -> Mapping[str, float]:
    """What operations take behind kernels: where that was measured, those that were not take as long as elsewhere."""
    return {**operations, **part_of(calibrations, STEPS)} if STEPS in calibrations else {}


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


FIRST_CALL = ("begin", "fused", "again", "several")
"""What only kernels have."""


def _plain(found: Calibration) -> dict[str, Any]:
    values = {name: getattr(found, name) for name in FIRST_CALL}
    first = values if any(values.values()) else {}
    counts = {"shapes": found.shapes, "held_out": dict(found.held_out)}
    return {"key": dict(found.key), "terms": dict(found.terms), **first, **counts}
