"""A network of one layer or two that shows a fault, with its data: what is sent to whoever can mend it."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tilewright.api.compiling import Compiled, Options, compile_model
from tilewright.api.differences import figures
from tilewright.api.locating import Fault
from tilewright.api.measuring import Building
from tilewright.api.observing import Runner
from tilewright.core.graph import Array, Graph, Node
from tilewright.core.interpret import interpret
from tilewright.errors import TilewrightError
from tilewright.frontend import save
from tilewright.sim.settings import EmulatedMachine

MODEL, INPUTS, OUTPUTS = "network.onnx", "inputs.npz", "outputs.npz"
"""The files of a case, as `tilewright test` wants them."""


class Reproducer(Struct, frozen=True, eq=False):
    """Some layers of a network, alone."""

    graph: Graph
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    """As they should be."""
    shows: bool
    """Whether it shows the fault."""

    @property
    def layers(self) -> int:
        return len(self.graph.nodes)


def alone(graph: Graph, nodes: Sequence[Node], wanted: str) -> Graph:
    """Some nodes of a graph as a network, whose only output is one of the tensors that they make."""
    made = {name for node in nodes for name in node.made}
    read = dict.fromkeys(name for node in nodes for name in node.reads if name not in made)
    inputs = tuple(name for name in read if name not in graph.constants)
    names = {*read, *made}
    return replace(
        graph,
        inputs=inputs,
        outputs=(wanted,),
        nodes=tuple(nodes),
        types=MappingProxyType({n: t for n, t in graph.types.items() if n in names}),
        constants=MappingProxyType({n: a for n, a in graph.constants.items() if n in names}),
        states=(),
    )


class Trial(Struct, frozen=True):
    """How a part of a network is tried by itself."""

    options: Options
    building: Building
    machine: EmulatedMachine

    def found(self, graph: Graph, fault: Fault, tensors: Mapping[str, Array]) -> Reproducer:
        """The smallest part of a graph, of one layer or two around a fault, that shows it; else the layer alone."""
        tried: list[Reproducer] = []
        for nodes in _around(graph, fault.node):
            part = alone(graph, nodes, fault.tensor if fault.tensor in nodes[-1].made else nodes[-1].made[0])
            if all(name in tensors for name in part.inputs):
                inputs = tuple(tensors[name] for name in part.inputs)
                tried.append(self.tried(part, inputs, fault))
                if tried[-1].shows:
                    break
        return tried[-1] if tried[-1].shows else tried[0]

    def alone(self, graph: Graph, fault: Fault, tensors: Mapping[str, Array]) -> Reproducer:
        """The layer alone, with what it should give; nothing is tried."""
        part = alone(graph, (fault.node,), fault.tensor)
        return Reproducer(part, tuple(tensors[name] for name in part.inputs), (fault.expected,), shows=True)

    def tried(self, part: Graph, inputs: Sequence[Array], fault: Fault) -> Reproducer:
        """Some layers alone, compiled as the network was; a fault of a pass shows without a program."""
        expected = interpret(part, inputs)
        mine = Reproducer(part, tuple(inputs), tuple(expected), shows=False)
        options = replace(self.options, constants={}, input_types={}, dims={}, states={}, dump_stages=None, measure=0)
        try:
            compiled = _from_file(part, options, inputs)
            if fault.where == "passes":
                got = tuple(interpret(compiled.plan.graph, inputs))
            else:
                got = Runner(compiled, inputs, self.building, self.machine).run()
        except TilewrightError as error:
            # Programs that fail, or that checks tell on, show it too; others cannot be made.
            return replace(mine, shows=error.code == "run-failed")
        return replace(mine, shows=differ(got, expected))


def differ(got: Sequence[Array], expected: Sequence[Array]) -> bool:
    """Whether outputs differ by more than rounding."""
    return any(figures(a.reshape(b.shape), b).wrong for a, b in zip(got, expected, strict=True))


def _from_file(part: Graph, options: Options, inputs: Sequence[Array]) -> Compiled:
    """Compiles what whoever gets the reproducer will compile: the file."""
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        save(part, Path(folder) / MODEL)
        return compile_model(Path(folder) / MODEL, options, samples=list(inputs))


def fill_reproducer(found: Reproducer, place: Path, folder: Path, options: Options, building: Building) -> str:
    """Fills a folder, which will be called `folder`, with a case; returns the command that shows the fault."""
    command = _command(folder, options, building)
    save(found.graph, place / MODEL)
    for name, kind, arrays in ((INPUTS, "input", found.inputs), (OUTPUTS, "output", found.outputs)):
        named: dict[str, Any] = {f"{kind}_{number}": array for number, array in enumerate(arrays)}
        np.savez(place / name, **named)
    (place / "command.txt").write_text(command + "\n", encoding="utf-8")
    return command


def _command(folder: Path, options: Options, building: Building) -> str:
    words = ["tilewright", "run", str(folder / MODEL), "--platform", options.platform]
    words += ["--inputs", str(folder / INPUTS), "--expected", str(folder / OUTPUTS)]
    words += [word for path in options.kernels for word in ("--kernels", str(path))]
    words += [word for path in options.ops for word in ("--ops", str(path))]
    words += [word for name, size in options.sizes.memories.items() for word in (f"--{name.lower()}", str(size))]
    words += ["--cc", building.compiler] if building.compiler else []
    words += [f"--cflag={flag}" for flag in building.flags]
    return shlex.join(words)


def _around(graph: Graph, node: Node) -> Iterator[tuple[Node, ...]]:
    """A node alone, with each that makes an operand of it, and with each that reads its result."""
    yield (node,)
    producers, users = graph.producer(), graph.users()
    before = dict.fromkeys(producers[name].made[0] for name in node.reads if name in producers)
    behind = dict.fromkeys(user.made[0] for name in node.made for user in users.get(name, ()))
    yield from ((producers[name], node) for name in before)
    yield from ((node, producers[name]) for name in behind)
