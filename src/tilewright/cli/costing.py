"""`tilewright cost` and `tilewright map`: what networks and layers cost on array machines, mapped how."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace
from rich.tree import Tree

from tilewright.api.costing import NetworkCost, cost, read_network
from tilewright.api.mapping import Mapped, find_machine, search_each
from tilewright.base.files import check_places, write_file
from tilewright.cli import mapping_options as mapopt
from tilewright.cli import options as opt
from tilewright.cli.arguments import network_of, states_of
from tilewright.cli.console import errors, progress_line, results
from tilewright.cli.cost_tables import (
    front_table,
    machines_table,
    nest_table,
    network_table,
    order_text,
    parts_table,
    summary,
    unrolled_text,
)
from tilewright.core.workload import Layer
from tilewright.core.workload_file import equation_layer
from tilewright.errors import TilewrightError
from tilewright.mapping.pinned import print_mappings
from tilewright.price.array import ArrayCost
from tilewright.price.layers import NetworkLayers
from tilewright.price.why import Why, explain
from tilewright.report.costs import area_of, layer_values
from tilewright.report.costs_page import Costed, write_costs

commands = typer.Typer()
COST_EXAMPLES = """
`tilewright cost model.onnx --machine tpu-like` costs every layer with the best mapping for it

`tilewright cost model.onnx --machine all --objective energy --html machines.html` compares all machines
"""
MAP_EXAMPLES = """
`tilewright map "O[m][n] += A[m][k] * B[k][n]" --sizes M=512,N=512,K=512 --machine tpu-like` proves a mapping best

`tilewright map model.onnx --layer conv1 --machine my.yaml --objective pareto` shows what there is to choose from

`tilewright map model.onnx --layer conv1 --machine tpu-like --export best.json` keeps a mapping; `--mapping best.json`
costs it again, on this machine or another one
"""
WIDE = 140
"""Columns of tables that go into a file."""
What = Annotated[
    str,
    typer.Argument(metavar="NETWORK", help="An ONNX file, or a YAML file of layers as equations.", show_default=False),
]
Thing = Annotated[
    str,
    typer.Argument(
        metavar="LAYER|NETWORK",
        help="An equation, an ONNX file, or a YAML file of layers as equations.",
        show_default=False,
    ),
]
Explained = Annotated[
    str, typer.Option("--why", metavar="LAYER", help="Shows how the numbers of a layer come about.", show_default=False)
]
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Writes a page with plots.", show_default=False),
]


@commands.command("cost", epilog=COST_EXAMPLES)
@opt.flat
def cost_command(
    network: What,
    *,
    machine: mapopt.Machines = [],  # noqa: B006  # typer copies it
    objective: mapopt.One = "edp",
    locality: mapopt.Locality = False,
    why: Explained = "",
    html: Html = None,
    as_json: opt.Json = False,
    about: opt.NetworkOptions,
    mapping: mapopt.Mapping,
) -> None:
    """Each layer gets the mapping that is proved best for it. Every operator costs something, softmax, norms, pooling
    and copies included; views cost nothing, since no byte moves.
    """
    names = mapopt.machines(machine)
    options = replace(mapopt.map_options(objective, mapping), locality=locality)
    dims, types, constants = network_of(about)
    layers = read_network(
        network,
        dims=dims,
        input_types=types,
        constants=constants,
        max_bytes=about.max_bytes,
        states=states_of(about),
        data_folders=about.external_data,
    )
    asked = _find(layers.workload.layers, why).name if why else ""
    check_places(mapping.export, html)
    found: list[NetworkCost] = []
    for name in names:
        arrays = find_machine(name)
        with progress_line(arrays.name, quiet=as_json) as progress:
            found.append(cost(layers, arrays, options, progress=progress))
    _export(mapping, [mapped for one in found for mapped in one.layers])
    if html is not None:
        write_costs(html, layers.workload.name, [_costed(one) for one in found])
    if as_json:
        print(json.dumps({"network": layers.workload.name, "machines": [_network_values(one) for one in found]}))
        return
    console = results(WIDE)
    if len(found) == 1:
        console.print(network_table(found[0]))
    else:
        console.print(machines_table(found))
    for one in found:
        _notes(one)
        if asked:
            _explain(next(mapped.cost for mapped in one.layers if mapped.layer.name == asked))


def _costed(found: NetworkCost) -> Costed:
    nodes = tuple((node.name, tuple(m.cost for m in node.layers)) for node in found.nodes if node.layers)
    return Costed(found.network, found.machine, nodes)


def _notes(found: NetworkCost) -> None:
    """What a reader of the numbers has to know."""
    views = sum(not node.layers for node in found.nodes)
    lines = [f"{found.machine.name}: {len(found.layers)} layers, {found.searched} of them different"]
    if views:
        lines.append("1 operator is a view and moves nothing" if views == 1 else f"{views} are views and move nothing")
    if found.narrowed:
        bits = ", ".join(f"{slot} {count}" for slot, count in found.machine.precision.items())
        lines.append(f"elements are taken as narrow as its units want them ({bits} bits)" if bits else "")
    lines.append("all mappings proved best" if found.proved else "not all mappings are proved best")
    errors().print("; ".join(line for line in lines if line))


def _network_values(found: NetworkCost) -> dict[str, object]:
    return {
        "machine": found.machine.name,
        "energy": found.energy,
        "cycles": found.cycles,
        "operations": found.operations,
        "area": area_of(found.machine),
        "proved": found.proved,
        "narrowed": found.narrowed,
        "views": [node.name for node in found.nodes if not node.layers],
        "layers": [
            {"node": node.name, "mode": mapped.cost.engine.name, **_values(mapped)}
            for node in found.nodes
            for mapped in node.layers
        ],
    }


def _values(mapped: Mapped) -> dict[str, object]:
    known = {"proved": mapped.proved, "covered": mapped.covered, "evaluated": mapped.evaluated}
    return {**layer_values(mapped.cost), **known}


@commands.command("map", epilog=MAP_EXAMPLES)
@opt.flat
def map_command(
    what: Thing,
    *,
    machine: mapopt.Machines = [],  # noqa: B006  # typer copies it
    layer: Annotated[
        str, typer.Option("--layer", metavar="NAME", help="One layer of a network.", show_default=False)
    ] = "",
    sizes: Annotated[
        list[str],
        typer.Option("--sizes", metavar="M=512,N=64", help="Sizes of the dimensions of an equation."),
    ] = [],  # noqa: B006  # typer copies it
    objective: mapopt.Any = "edp",
    why: Annotated[bool, typer.Option("--why", help="Shows how the numbers come about.")] = False,
    html: Html = None,
    as_json: opt.Json = False,
    about: opt.NetworkOptions,
    mapping: mapopt.Mapping,
    limits: mapopt.MappingLimits,
) -> None:
    """All orders of all loop factors are searched, with every way to keep tiles in memories. Of a network, one layer
    can be named; otherwise the mapping of each is shown.

    In an equation, operands begin with a capital letter and loops stand in brackets; a loop that the result does not
    have is summed up. An axis that two loops index together is said behind a comma: `O[k][x] += I[c][ix] * W[k][c][f],
    ix = 2*x + f`. The last input is the weights.
    """
    names = mapopt.machines(machine)
    options = mapopt.map_options(objective, mapping, limits)
    layers = _layers(what, layer, sizes, about)
    check_places(mapping.export, html)
    found: list[tuple[Mapped, ...]] = []
    for name in names:
        arrays = find_machine(name)
        with progress_line(arrays.name, quiet=as_json) as progress:
            found += search_each(layers.workload.layers, arrays, options, progress=progress)
    _export(mapping, [mapped for one in found for mapped in one])
    if html is not None:
        write_costs(html, layers.workload.name, [], [[mapped.cost for mapped in one] for one in found])
    if as_json:
        print(json.dumps({"mappings": [[_values(each) for each in one] for one in found]}))
        return
    _show(found, why=why)


def _export(mapping: mapopt.Mapping, found: Sequence[Mapped]) -> None:
    """Writes the mappings that were found, where they are wanted."""
    if mapping.export is not None:
        text = print_mappings(mapping.export, [mapped.cost for mapped in found])
        write_file(mapping.export, text.encode())


def _show(found: list[tuple[Mapped, ...]], *, why: bool) -> None:
    console = results(WIDE)
    for best, *others in found:
        if others:
            console.print(front_table([best, *others]))
            continue
        if len(found) > 3:
            console.print(f"{best.layer.name} on {best.cost.engine.name}", highlight=False)
            console.print(f"  unrolled {unrolled_text(best.cost)}; loops {order_text(best.cost)}", highlight=False)
        else:
            console.print(nest_table(best.cost))
            console.print(parts_table(best.cost))
        console.print(summary(best), highlight=False, soft_wrap=True)
        if why:
            _explain(best.cost)


def _layers(what: str, name: str, sizes: list[str], about: opt.NetworkOptions) -> NetworkLayers:
    """The layers that are meant."""
    if "=" in what and "[" in what:
        if name:
            raise TilewrightError("bad-argument", "an equation is one layer", help="leave --layer away")
        return read_network(equation_layer(what, mapopt.sizes("--sizes", sizes)))
    if sizes:
        raise TilewrightError("bad-argument", "--sizes are those of an equation", help="leave --sizes away")
    dims, types, constants = network_of(about)
    network = read_network(
        what,
        dims=dims,
        input_types=types,
        constants=constants,
        max_bytes=about.max_bytes,
        states=states_of(about),
        data_folders=about.external_data,
    )
    if not name:
        return network
    chosen = _find(network.workload.layers, name)
    return replace(network, workload=replace(network.workload, layers=(chosen,)))


def _find(layers: Sequence[Layer], name: str) -> Layer:
    """The layer of a name."""
    for layer in layers:
        if layer.name == name:
            return layer
    near = difflib.get_close_matches(name, [layer.name for layer in layers], 3)
    shown = near or [layer.name for layer in layers[:8]]
    raise TilewrightError("unknown-layer", f"the network has no layer '{name}'", help=f"it has {', '.join(shown)}")


def _explain(cost: ArrayCost) -> None:
    """Prints where the numbers of a layer come from."""
    results(WIDE).print(_tree(explain(cost)), highlight=False)


def _tree(why: Why) -> Tree:
    branch = Tree(str(why))
    for part in why.parts:
        branch.add(_tree(part))
    return branch
