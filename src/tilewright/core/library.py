"""Machines by name: those that come with the package, and files and folders of one's own."""

from __future__ import annotations

import difflib
from pathlib import Path

from tilewright.core.accelerator import ArrayEngine
from tilewright.core.machine import Machine, read_machine_file
from tilewright.errors import TilewrightError

MACHINES = Path(__file__).parent.parent / "machines"


def machine_names() -> tuple[str, ...]:
    """The array machines that come with the package."""
    return tuple(sorted(path.stem for path in MACHINES.glob("*.yaml")))


def load_machine(name: str | Path) -> Machine:
    """The machine of a name or of a file."""
    path = MACHINES / f"{name}.yaml"
    if isinstance(name, Path) or not path.is_file():
        path = Path(name)
    if path.is_file():
        return read_machine_file(path)
    near = difflib.get_close_matches(str(name), machine_names(), 1)
    meant = f"did you mean '{near[0]}'? " if near else ""
    raise TilewrightError(
        "unknown-machine",
        f"there is no machine '{name}', and no file of that name",
        help=f"{meant}machines: {', '.join(machine_names())}; or the path of a YAML file with an engine of kind: array",
    )


def load_array(name: str | Path) -> ArrayEngine:
    """The array of a machine that has one."""
    machine = load_machine(name)
    arrays = [engine for engine in machine.engines.values() if isinstance(engine, ArrayEngine)]
    return arrays[0]
