"""Programs of networks at little cost: sources that all networks of a platform share are compiled once."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tilewright.api import Compiled
from tilewright.codegen import build, write_project
from tilewright.codegen.project import find_compiler
from tilewright.core.graph import Array
from tilewright.errors import TilewrightError
from tilewright.sim import EmulatedMachine
from tilewright.sim.chip import run_on_chip
from tilewright.sim.host import run_on_host
from tilewright.sim.qemu import run_in_qemu


@cache
def objects_folder() -> tempfile.TemporaryDirectory[str]:
    """Where objects are kept until the process ends that asks first; processes forked from it share them."""
    return tempfile.TemporaryDirectory(prefix="tilewright-objects-")


def _shared_sources(compiled: Compiled) -> list[str]:
    """Sources of the runtime that are no templates."""
    return [name for name in compiled.platform.runtime if name.endswith((".c", ".S"))]


def _shared_objects(compiled: Compiled, project: Path) -> tuple[str, ...]:
    """The objects of such sources in a project that holds them, by all headers but the network's own."""
    platform = compiled.platform
    headers = [name for name in sorted(compiled.files) if name.endswith(".h") and Path(name).stem != "network"]
    flags = platform.build["flags"].split()
    found: list[str] = []
    for source in _shared_sources(compiled):
        content = b"\0".join([*(compiled.files[name] for name in (source, *headers)), *map(str.encode, flags)])
        made = Path(objects_folder().name) / f"{hashlib.sha256(content).hexdigest()}.o"
        if not made.is_file():
            part = made.with_suffix(f".{os.getpid()}")
            places = [f"-I{place}" for place in sorted({".", str(Path(source).parent), *platform.layout.values()})]
            command = [find_compiler(platform.build["compiler"]), *flags, *places, "-c", source, "-o", str(part)]
            done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
            if done.returncode:
                raise TilewrightError("build-failed", done.stderr, help="-")
            part.rename(made)
        found.append(str(made))
    return tuple(found)


def outputs_of(
    compiled: Compiled, inputs: Sequence[Array], folder: Path, flags: Sequence[str], machine: EmulatedMachine | None
) -> tuple[Array, ...]:
    """The outputs of a compiled network on its platform; `flags` are for its own sources."""
    platform, graph, name = compiled.platform, compiled.plan.graph, compiled.program.name
    project = folder / "project"
    write_project(compiled.files, project, name)
    objects = _shared_objects(compiled, project)
    shared = _shared_sources(compiled)
    write_project({file: data for file, data in compiled.files.items() if file not in shared}, project, name)
    program = build(project, platform, name, flags=(*objects, *flags)).executable
    kinds = [graph.types[output] for output in graph.given]
    if platform.qemu:
        return run_in_qemu(program, inputs, kinds, platform, []).outputs
    if platform.timings:
        return run_on_chip(program, inputs, kinds, platform, checks=True).outputs
    return run_on_host(program, inputs, kinds, machine=machine).outputs
