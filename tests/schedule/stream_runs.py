"""Recorded runs of Stream of April 2023: their machine, networks, costs of nodes and what came out."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from msgspec.structs import replace

from tilewright.api.scheduling import ScheduleOptions
from tilewright.core.equation import LayerText
from tilewright.core.split import OperationSplit
from tilewright.frontend.stream_mapping import StreamEntry, StreamMapping
from tilewright.machine.array import FROM_HIGH, FROM_LOW, TO_HIGH, TO_LOW, ArrayEngine, MemoryLevel, Port
from tilewright.machine.machine import Machine
from tilewright.machine.parts import AccessEnergy, Channel, Memory
from tilewright.schedule.costs import GivenCost, given_costs
from tilewright.schedule.fabric import Fabric, fabric_of
from tilewright.schedule.network import OperationGraph, network_of_equations
from tilewright.schedule.nodes import Nodes, split_network
from tilewright.schedule.scheduling import NodeCosts

WAYS = {"fh": FROM_HIGH, "tl": TO_LOW, "fl": FROM_LOW, "th": TO_HIGH}


@dataclass(frozen=True)
class Run:
    """What a file holds."""

    data: dict[str, Any]
    fabric: Fabric
    network: OperationGraph
    nodes: Nodes
    costs: NodeCosts
    machine: Machine
    given: tuple[GivenCost, ...]

    @property
    def options(self) -> ScheduleOptions:
        """What a user says to have it scheduled again."""
        loops = tuple((dim, parts) for dim, parts in self.data["hint_loops"])
        return ScheduleOptions(split=loops, costs=self.given, rules="stream")

    @property
    def mapping(self) -> StreamMapping:
        """With the allocation of the run."""
        entries = {
            f"layer {layer}": StreamEntry((f"core{cores[0]}",)) for layer, cores in self.data["allocation"].items()
        }
        return StreamMapping(entries)

    def number(self, node: int) -> tuple[int, int]:
        """A node as Stream numbers it: its layer, and which part of it."""
        operation = int(self.nodes.operation[node])
        layer = self.network.operations[operation].name.rpartition(" ")[2]
        return int(layer), node - int(self.nodes.first[operation])

    def places(self, cores: dict[str, list[int]]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Of an allocation by number of layer."""
        numbers = [cores[layer.rpartition(" ")[2]][0] for layer, _ in self.nodes.groups]
        return np.array([self.fabric.places.index(f"core{number}") for number in numbers], np.int64)

    def changed(self, cores: list[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Of an allocation of the layers that could go anywhere."""
        whole = dict(self.data["allocation"])
        for layer, core in zip(self.data["flexible_layers"], cores, strict=True):
            whole[str(layer)] = [core]
        return self.places(whole)


def load(folder: Path, name: str) -> Run:
    with gzip.open(folder / f"{name}.json.gz", "rt") as file:
        data = json.load(file)
    file = folder / "inputs" / "accelerator_heterogeneous_quadcore.yaml"
    machine, fabric = _machine(yaml.safe_load(file.read_text(encoding="utf-8"))), _fabric(file)
    workload = data["workload"].rpartition(".")[2]
    known = {
        "onnx": "workload_resnet18",
        "duplicated_resnet18_layer": "workload_duplicated",
        "duplicated_resnet18_layer_fixed": "workload_duplicated_fixed",
        "duplicated_resnet18_layer_fixed_nodep": "workload_duplicated_fixed_nodep",
    }
    network = network_of(folder / "inputs" / f"{known[workload]}.yaml")
    loops = tuple((dim, parts) for dim, parts in data["hint_loops"])
    splits = {
        operation.name: OperationSplit(within=tuple(loop for loop in loops if loop[0] in operation.domain.parallel))
        for operation in network.operations
    }
    nodes = split_network(network, splits, fabric.slots, padded=True)
    given = _costs(data, network)
    return Run(data, fabric, network, nodes, given_costs(nodes, fabric, given), machine, given)


def network_of(path: Path) -> OperationGraph:
    layers = {str(layer["id"]): layer for layer in yaml.safe_load(path.read_text(encoding="utf-8"))}

    def source(number: object) -> str:
        layer = layers[str(number)]
        return f"layer {number}" if "equation" in layer else source(layer["predecessors"][0])

    return network_of_equations(
        path.stem,
        [
            LayerText(
                name=f"layer {number}",
                kind=layer["op_type"],
                equation=layer["equation"],
                dims=layer["loop_dim_size"],
                relations=tuple(layer["dimension_relations"]),
                bits=layer["operand_precision"],
                sources={name: (source(made),) for name, made in layer["operand_source"].items() if made != []},
                slots=layer["memory_operand_links"],
                padding={axis: tuple(pads) for axis, pads in layer["padding"].items()},
            )
            for number, layer in layers.items()
            if "equation" in layer
        ],
    )


def _fabric(path: Path) -> Fabric:
    """With the ways that Stream takes, of several shortest ones."""
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    fabric = fabric_of(_machine(data))
    link = {tuple(pair): number for number, link in enumerate(data["links"]) for pair in link["pairs"]}
    ways = {
        (f"core{way[0]}", f"core{way[-1]}"): tuple(link[pair] for pair in pairwise(way))
        for way in data["routes"].values()
    }
    assert {pair: len(way) for pair, way in fabric.routes.items()} == {pair: len(way) for pair, way in ways.items()}
    return replace(fabric, routes=ways)


def _machine(data: dict[str, Any]) -> Machine:
    home = data["offchip_core_id"]
    outside = next(core for core in data["cores"] if core["id"] == home)["memories"][0]
    order = list(dict.fromkeys(number for route in data["routes"].values() for number in route[:1]))
    cores = {core["id"]: core for core in data["cores"]}
    memory = Memory(
        name=f"core{home}",
        bytes=outside["size_bits"] // 8,
        word=outside["r_bw"],
        energy=AccessEnergy(read=outside["r_cost_pJ_per_word"], write=outside["w_cost_pJ_per_word"]),
    )
    channels = [_channel(link) for link in data["links"]]
    return Machine(
        data["name"],
        memories={memory.name: memory},
        channels={channel.name: channel for channel in channels},
        engines={f"core{number}": _engine(cores[number]) for number in order if number != home},
        home=memory.name,
    )


def _channel(link: dict[str, Any]) -> Channel:
    bits = link["bandwidth_bits_per_cycle"]
    finite = bits not in ("inf", float("inf"))
    return Channel(
        link["name"],
        tuple(dict.fromkeys(f"core{pair[0]}" for pair in link["pairs"])),
        tuple(dict.fromkeys(f"core{pair[1]}" for pair in link["pairs"])),
        bits if finite else None,
        link["unit_energy_per_active_cycle"] / bits if finite else 0.0,
    )


def _engine(core: dict[str, Any]) -> ArrayEngine:
    levels: list[MemoryLevel] = []
    for number, memory in enumerate(core["memories"]):
        moves: dict[str, list[tuple[str, str]]] = {}
        for slot, ports in zip(memory["operands"], memory["port_alloc"], strict=True):
            for short, port in ports.items():
                if port:
                    moves.setdefault(port, []).append((slot, WAYS[short]))
        ports = tuple(_port(name, memory, tuple(moved)) for name, moved in moves.items())
        levels.append(
            MemoryLevel(
                f"{memory['name']} {number}",
                memory["size_bits"],
                tuple(memory["operands"]),
                ports,
                tuple(memory["served_dimensions"]),
                memory["r_cost_pJ_per_word"],
                memory["w_cost_pJ_per_word"],
            )
        )
    return ArrayEngine(f"core{core['id']}", core["dims"], tuple(levels), core["unit_cost_pJ"])


def _port(name: str, memory: dict[str, Any], moves: tuple[tuple[str, str], ...]) -> Port:
    kind = "read_write" if name.startswith("rw") else "read" if name.startswith("r") else "write"
    bits = memory["w_bw"] if kind == "write" else memory["r_bw"]
    return Port(name, kind, bits, bits, moves)


def _costs(data: dict[str, Any], network: OperationGraph) -> tuple[GivenCost, ...]:
    found: list[GivenCost] = []
    for entry in data["cost_table"]:
        name = f"layer {entry['node'][0]}"
        operation = network.operation(name)
        slots = {access.operand: access.slot for access in (*operation.reads, *operation.writes)}
        outside = sum(
            entry["energy_breakdown"][operand][-1] for operand, slot in slots.items() if slot in entry["too_large"]
        )
        on_chip, large = entry["energy_total"] - outside, tuple(entry["too_large"])
        found.append(GivenCost(name, f"core{entry['core']}", entry["latency_total1"], on_chip, outside, large))
    return tuple(found)
