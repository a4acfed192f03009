"""Machines by name: those that come with the package, and files and folders of one's own."""

from __future__ import annotations

import difflib
from pathlib import Path

from tilewright.base.files import is_file
from tilewright.errors import TilewrightError
from tilewright.machine.array import ArrayEngine, Arrays
from tilewright.machine.machine import Machine, read_machine_file
from tilewright.machine.parts import Device
from tilewright.machine.target import DESCRIPTION, Target, load_platform, platform_names

MACHINES = Path(__file__).parent.parent / "machines"


def machine_names() -> tuple[str, ...]:
    """The array machines that come with the package."""
    return tuple(sorted(path.stem for path in MACHINES.glob("*.yaml")))


def load_machine(name: str | Path) -> Machine:
    """The machine of a name, of a file, or of a platform's folder."""
    path = MACHINES / f"{name}.yaml"
    if isinstance(name, Path) or not is_file(path):
        path = Path(name)
    if is_file(path) and path.name != DESCRIPTION:
        return read_machine_file(path)
    if _is_machine(name):
        return load_platform(path.parent if is_file(path) else name)
    known = (*machine_names(), *platform_names())
    near = difflib.get_close_matches(str(name), known, 1)
    meant = f"did you mean '{near[0]}'? " if near else ""
    raise TilewrightError(
        "unknown-machine",
        f"there is no machine '{name}', and no file of that name",
        help=f"{meant}machines: {', '.join(known)}; or the path of a YAML file with an engine of kind: array",
    )


def _is_machine(name: str | Path) -> bool:
    path = Path(name)
    known = str(name) in (*machine_names(), *platform_names())
    return known or is_file(path) or is_file(path / DESCRIPTION)


def load_arrays(name: str | Path) -> Arrays:
    """What layers can be mapped onto, of a machine or of one engine of it: `siracusa/neureka`."""
    parent, _, last = str(name).rpartition("/")
    of_one = not _is_machine(name) and _is_machine(parent)
    machine = load_machine(parent if of_one else name)
    if of_one and last not in machine.engines:
        raise TilewrightError(
            "unknown-engine",
            f"machine '{machine.name}' has no engine '{last}'",
            help=f"it has {', '.join(machine.engines)}",
        )
    names = (last,) if of_one else tuple(machine.engines)
    modes = (_modes(machine, key) for key in names)
    found = Arrays("/".join([machine.name, *names[:of_one]]), tuple(each for each in modes if each))
    if not found.engines:
        raise TilewrightError(
            "unknown-engine",
            f"'{name}' has no engine that layers could be mapped onto",
            reasons=["it has no array, and no device that says what its modes are"],
            help=f"choose one of {', '.join(machine_names())}",
        )
    return found


def _modes(machine: Machine, name: str) -> tuple[ArrayEngine, ...]:
    """An array, or all that a device can be."""
    engine = machine.engines[name]
    if isinstance(engine, ArrayEngine):
        return (engine,)
    modes = engine.modes if isinstance(engine, Device) else ()
    folder = machine.folder if isinstance(machine, Target) else Path()
    files = (folder / mode if is_file(folder / mode) else mode for mode in modes)
    return tuple(mode for file in files for mode in load_arrays(file).modes)


def load_array(name: str | Path) -> ArrayEngine:
    """The array of a machine that has one."""
    modes = load_arrays(name).modes
    if len(modes) != 1:
        raise TilewrightError(
            "unknown-engine",
            f"'{name}' has several arrays",
            help=f"name one of {', '.join(mode.name for mode in modes)}",
        )
    return modes[0]
