"""What networks cost on array machines, with the best mapping of each layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tilewright.api.compiling import Observer
from tilewright.api.mapping import (
    SHORT,
    Known,
    Machine,
    MapOptions,
    Mapped,
    Task,
    as_wanted,
    best_of_each,
    find_machine,
    rank,
)
from tilewright.core.graph import Array, Graph
from tilewright.core.workload import Layer, Workload
from tilewright.core.workload_file import read_workload_file
from tilewright.errors import TilewrightError
from tilewright.frontend import load
from tilewright.machine import DEFAULT_PLATFORM
from tilewright.machine.array import ArrayEngine, Arrays
from tilewright.machine.target import load_platform
from tilewright.passes import FIRST, batch_norm, dead_code
from tilewright.price.layers import NetworkLayers, NodeLayers, narrow, network_layers
from tilewright.price.locality import local_engines
from tilewright.quantize import to_integers

RECOGNISING = (*FIRST, batch_norm, dead_code)
"""The passes that a network goes through before it is costed. Those that lay out and fuse for the compiler's machines
are not among them: each operator is costed as the network has it, under its own name."""


class NodeCost(Struct, frozen=True):
    """An operator of a network; a view has no layers and costs nothing."""

    name: str
    op: str
    layers: tuple[Mapped, ...]

    @property
    def energy(self) -> float:
        return sum(mapped.cost.energy for mapped in self.layers)

    @property
    def cycles(self) -> float:
        return sum(mapped.cost.cycles for mapped in self.layers)

    @property
    def operations(self) -> int:
        return sum(mapped.layer.operations for mapped in self.layers)


class NetworkCost(Struct, frozen=True):
    """All operators of a network on one machine, one after another."""

    network: str
    machine: Arrays
    nodes: tuple[NodeCost, ...]
    searched: int
    """Layers whose mapping was searched; equal ones are searched once."""
    narrowed: bool
    """Whether elements are wider than what the machine computes with, and were taken as narrow."""

    @property
    def layers(self) -> tuple[Mapped, ...]:
        return tuple(mapped for node in self.nodes for mapped in node.layers)

    @property
    def energy(self) -> float:
        """In picojoules."""
        return sum(node.energy for node in self.nodes)

    @property
    def cycles(self) -> float:
        return sum(node.cycles for node in self.nodes)

    @property
    def operations(self) -> int:
        return sum(node.operations for node in self.nodes)

    @property
    def product(self) -> float:
        """Energy times delay."""
        return self.energy * self.cycles

    @property
    def proved(self) -> bool:
        return all(mapped.proved for mapped in self.layers)


def read_network(
    model: str | Path | Graph | Workload | Layer,
    *,
    dims: Mapping[str, int | tuple[int, int]] | None = None,
    input_types: Mapping[str, str] | None = None,
    constants: Mapping[str, Array] | None = None,
    max_bytes: int | None = None,
    states: Mapping[str, str] | None = None,
    data_folders: Sequence[Path] = (),
) -> NetworkLayers:
    """The layers of an ONNX file, of a YAML file of equations, or of what is one of these already."""
    if isinstance(model, Layer):
        model = Workload(model.name, (model,))
    if isinstance(model, str | Path) and Path(model).suffix in (".yaml", ".yml"):
        model = read_workload_file(Path(model))
    if isinstance(model, Workload):
        nodes = tuple(NodeLayers(layer.name, layer.kind, (layer.name,)) for layer in model.layers)
        return NetworkLayers(model, nodes)
    return network_layers(recognised(model, dims, input_types, constants, max_bytes, states, data_folders))


def recognised(
    model: str | Path | Graph,
    dims: Mapping[str, int | tuple[int, int]] | None = None,
    input_types: Mapping[str, str] | None = None,
    constants: Mapping[str, Array] | None = None,
    max_bytes: int | None = None,
    states: Mapping[str, str] | None = None,
    data_folders: Sequence[Path] = (),
) -> Graph:
    """A network as it is costed: integers where it is quantised, and what exporters spell out as one operator."""
    if not isinstance(model, Graph):
        model = load(
            Path(model),
            dims=dims or {},
            states=states or {},
            input_types=input_types or {},
            constants=constants or {},
            max_bytes=max_bytes,
            data_folders=data_folders,
        )
    platform = load_platform(DEFAULT_PLATFORM)
    graph = to_integers(model, platform)
    for step in RECOGNISING:
        graph = step(graph, platform)
    return graph


def cost(
    model: str | Path | Graph | Workload | NetworkLayers | Layer,
    machine: Machine,
    options: MapOptions | None = None,
    *,
    progress: Observer = lambda _stage: None,
    known: Known | None = None,
) -> NetworkCost:
    """What a network costs on a machine, every layer with the best mapping for it.

    `known` is for several networks on the same machine with the same options: a dictionary, empty at first, that keeps
    what was found, so that layers of one shape are searched once for all of them.
    """
    chosen = options or MapOptions()
    chosen = replace(chosen, effort=chosen.effort or SHORT)
    if chosen.objective == "pareto":
        raise TilewrightError(
            "bad-argument", "a network has one mapping for each layer", help="search one layer for its Pareto front"
        )
    network = model if isinstance(model, NetworkLayers) else read_network(model)
    arrays = find_machine(machine)
    tasks = [task for mode in arrays.modes for task in _tasks(network.workload, mode, chosen)]
    found, searched = best_of_each(tasks, chosen, progress, known)
    best: dict[str, Mapped] = {}
    for (layer, _), (mapped, *_) in zip(tasks, found, strict=True):
        best[layer.name] = min(best.get(layer.name, mapped), mapped, key=lambda one: rank(one.cost, chosen.objective))
    return NetworkCost(
        network=network.workload.name,
        machine=arrays,
        nodes=tuple(NodeCost(n.name, n.op, tuple(best[name] for name in n.layers)) for n in network.nodes),
        searched=searched // len(arrays.modes),
        narrowed=any(
            narrow(layer, chosen.bits or mode.precision) != layer
            for mode in arrays.modes
            for layer in network.workload.layers
        ),
    )


def _tasks(workload: Workload, mode: ArrayEngine, options: MapOptions) -> list[Task]:
    """All layers on one array."""
    layers = tuple(as_wanted(layer, mode, options) for layer in workload.layers)
    engines = local_engines(replace(workload, layers=layers), mode) if options.locality else {}
    return [(layer, engines.get(layer.name, mode)) for layer in layers]
