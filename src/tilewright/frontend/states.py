"""States: inputs of a file that are, from run to run, what one of its outputs was."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from tilewright.core.graph import Bound, Graph, State
from tilewright.core.sizes import extents
from tilewright.errors import TilewrightError
from tilewright.frontend.raw import RawModel, Unsupported
from tilewright.frontend.sizes import Axes, grown, with_sizes


def with_states(model: RawModel, given: Mapping[str, str], constants: Collection[str]) -> RawModel:
    """The model with all its states, which are the last of its inputs and outputs."""
    found = {**model.states, **given}
    known = {declared.name: declared for declared in (*model.inputs, *model.defaults)}
    for old, new in found.items():
        if old not in known:
            raise _bad(f"--state names '{old}', which is no input of the network", known)
        if new not in model.outputs:
            raise _bad(f"--state names '{new}', which is no output of the network", model.outputs)
        if old in constants:
            raise TilewrightError(
                "bad-state", f"'{old}' is a state, and --constant fixes it", help="a state changes: leave one away"
            )
    return replace(
        model,
        inputs=(*(d for d in model.inputs if d.name not in found), *(known[name] for name in found)),
        outputs=(*(name for name in model.outputs if name not in found.values()), *found.values()),
        initialisers={name: value for name, value in model.initialisers.items() if name not in found},
        states=found,
    )


def attached(graph: Graph, model: RawModel, original: RawModel, bounds: Sequence[Bound], axes: Axes) -> Graph:
    """The graph with its states and sizes; an error where a state does not have the type of its new value."""
    count = len(model.states)
    graph = with_sizes(graph, bounds, axes, count)
    pairs = list(zip(model.states, graph.inputs[-count:], graph.outputs[-count:], strict=True)) if count else []
    states: list[State] = []
    for name, old, new in pairs:
        graph = graph if graph.types[old] == graph.types[new] else grown(graph, old, new) or graph
        kind, found = graph.types[old], graph.types[new]
        if kind != found:
            raise TilewrightError(
                "bad-state",
                f"state '{name}' is {kind}, its new value '{model.states[name]}' is {found}",
                help=f"both have to be the same: --input-type {name}={found.dtype}"
                if kind.shape == found.shape
                else "both have to be the same, or the new one Concat(state, rows), with --dim NAME=LOW..HIGH for the "
                "length of the state",
            )
        initial = original.initialisers.get(name)
        value = np.zeros(kind.shape) if initial is None or isinstance(initial, Unsupported) else initial
        states.append(State(name, np.asarray(value).astype(kind.dtype.numpy).reshape(kind.shape)))
    made = replace(graph, states=tuple(states))
    # What cannot have such a size is said now.
    extents(made)
    return made


def _bad(what: str, known: Collection[str]) -> TilewrightError:
    return TilewrightError("bad-state", what, help=f"known: {', '.join(known) or 'none'}")
