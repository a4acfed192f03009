"""Diff: runs a network as given, behind its passes, and on its target, and says where these part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from tilewright.api.as_given import Given, as_given
from tilewright.api.causes import CauseSearch, LikelyCause, cause_in_model, cause_in_passes
from tilewright.api.compiling import Compiled, Observer, Options, compile_model
from tilewright.api.differences import ErrorFigures, figures
from tilewright.api.feeding import fit, noise
from tilewright.api.locating import Fault, locate_in_model, locate_in_passes, locate_in_program
from tilewright.api.measuring import Building
from tilewright.api.observing import Observed, Runner
from tilewright.api.reproducing import Reproducer, Trial, differ
from tilewright.api.running import compare
from tilewright.core.graph import Array, Graph, Node
from tilewright.core.interpret import interpret_all
from tilewright.core.op import is_view
from tilewright.errors import TilewrightError
from tilewright.sim.limits import USUAL, Limits
from tilewright.sim.settings import EmulatedMachine

CHAIN = 8
"""How many layers behind one of its name the counterpart of a tensor may be."""


class ComparedLayer(Struct, frozen=True):
    """A layer as it is compiled."""

    layer: str
    op: str
    tensor: str
    type: str
    code: str
    """What computes it."""
    passes: ErrorFigures | None
    """How its result, behind passes and in integers, differs from that of the model as given, where there is one."""
    program: ErrorFigures | None
    """How what the program made differs from that, where it was seen."""


class FoundFault(Struct, frozen=True, eq=False, dict=True):
    """A fault, with what can be found out about it, which takes some more programs."""

    fault: Fault
    search: Callable[[], tuple[Reproducer, LikelyCause]]

    @cached_property
    def _known(self) -> tuple[Reproducer, LikelyCause]:
        return self.search()

    @property
    def reproducer(self) -> Reproducer:
        return self._known[0]

    @property
    def cause(self) -> LikelyCause:
        return self._known[1]


class Diff(Struct, frozen=True, eq=False):
    """Three runs of a network, layer by layer."""

    compiled: Compiled
    given: Given
    rows: tuple[ComparedLayer, ...]
    faults: tuple[FoundFault, ...]
    """In the order of the runs between which they are."""
    notes: tuple[str, ...]
    """What differs, and is meant to."""

    @property
    def same(self) -> bool:
        return not self.faults


def diff_model(
    model: Path | Graph,
    options: Options | None = None,
    *,
    inputs: Sequence[Array] | None = None,
    compiler: str = "",
    flags: tuple[str, ...] = (),
    seed: int = 0,
    machine: EmulatedMachine | None = None,
    limits: Limits = USUAL,
    progress: Observer = lambda _stage: None,
) -> Diff:
    """Compares a model as given, the network behind its passes, and the program on its target, tensor by tensor."""
    chosen = options or Options()
    building = Building(chosen.name, compiler, flags, limits)
    stages: list[tuple[str, Graph]] = []
    compiled = compile_model(
        model,
        chosen,
        samples=inputs,
        building=building,
        progress=progress,
        show=lambda stage, graph: stages.append((stage, graph)),
    )
    _check(compiled)
    graph = compiled.plan.graph
    fed = fit(inputs, graph) if inputs is not None else noise(graph, seed)
    trial = Trial(chosen, building, machine or EmulatedMachine())
    job = _Job(compiled, (*stages, ("plan", graph)), fed, trial, progress)
    return job.diff(model)


def _check(compiled: Compiled) -> None:
    bounds = compiled.plan.graph.bounds
    if bounds:
        raise TilewrightError(
            "bad-argument",
            f"networks are compared at fixed sizes, and '{bounds[0].name}' is known when the network runs",
            help=f"fix it, e.g. --dim {bounds[0].name}={bounds[0].high}",
        )


class _Job(Struct, frozen=True):
    """One comparison."""

    compiled: Compiled
    stages: Sequence[tuple[str, Graph]]
    fed: Sequence[Array]
    trial: Trial
    progress: Observer
    notes: list[str] = field(default_factory=list[str])

    def diff(self, model: Path | Graph) -> Diff:
        source, graph = self.compiled.source, self.compiled.plan.graph
        initial = [state.initial for state in source.states]
        inputs = [*self.fed, *initial]
        self.progress("model as given")
        given = as_given(model, source, self.fed)
        self.progress("network behind passes")
        first, exact = interpret_all(source, inputs), interpret_all(graph, inputs)
        faults = [
            *self._in_model(given, first),
            *self._in_passes(inputs, first, exact),
        ]
        self.progress("program")
        observed, more = self._in_program(inputs, exact)
        rows = _rows(self.compiled, {**first, **given.tensors}, exact, observed)
        return Diff(self.compiled, given, rows, (*faults, *more), tuple(self.notes))

    def _in_model(self, given: Given, first: Mapping[str, Array]) -> list[FoundFault]:
        source = self.compiled.source
        if not all(name in given.tensors for name in source.given):
            return []
        theirs = [given.tensors[name] for name in source.given]
        if self._right([first[name] for name in source.given], theirs):
            return []
        fault, meant = locate_in_model(source, given.tensors)
        for node in meant[:1]:
            self.notes.append(f"{node.op} '{node.label}' in integers is not what {given.by} computes in floats")
        if fault is None:
            return []
        # It needs no program to be shown.
        alone = self.trial.alone(source, fault, {**first, **given.tensors})
        return [FoundFault(fault, lambda: (alone, cause_in_model(fault, given.by)))]

    def _right(self, got: Sequence[Array], expected: Sequence[Array]) -> bool:
        return not any(c.wrong for c in compare(self.compiled, self.fed, got, expected))

    def _in_passes(
        self, inputs: Sequence[Array], first: Mapping[str, Array], exact: Mapping[str, Array]
    ) -> list[FoundFault]:
        source, graph = self.compiled.source, self.compiled.plan.graph
        right = [first[name] for name in source.given]

        def wrong(outputs: Sequence[Array]) -> bool:
            return not self._right(list(outputs[: len(right)]), right)

        if not wrong([exact[name] for name in graph.outputs]):
            return []
        self.progress("passes")
        fault = locate_in_passes([("import", source), *self.stages], inputs, first, wrong)
        if fault is None:
            return []
        # Names of layers are kept by passes, so that the layer is found in the network as it was imported.
        origin = _origin(source, fault)
        there = replace(fault, node=origin, tensor=origin.made[0])
        return [FoundFault(fault, lambda: (self.trial.found(source, there, first), cause_in_passes(fault)))]

    def _in_program(self, inputs: Sequence[Array], exact: Mapping[str, Array]) -> tuple[Observed, list[FoundFault]]:
        graph = self.compiled.plan.graph
        runner = Runner(self.compiled, self.fed, self.trial.building, self.trial.machine)
        told: tuple[str, ...] = ()
        outputs: tuple[Array, ...] = ()
        try:
            outputs = runner.run()
        except TilewrightError as error:
            if error.code != "run-failed":
                raise
            told = (error.what, *error.reasons)
        self.progress("program, observed")
        observed = runner.observe()
        if told and not observed.outputs and not observed.made:
            raise TilewrightError(
                "run-failed",
                "the program ends before its first layer",
                reasons=told,
                help="look at the first reason; nothing can be compared",
            )
        if not outputs:
            outputs = observed.outputs
        self.progress("compare")
        fault = locate_in_program(graph, inputs, observed, outputs)
        if fault is None and told:
            raise TilewrightError(
                "run-failed",
                "every layer is right this time, but the program does what it must not",
                reasons=told,
                help="repair the first reason first: with another timing, results may be wrong",
            )
        if fault is None:
            return observed, []
        return observed, [FoundFault(fault, lambda: self._explained(runner, fault, told, exact))]

    def _explained(
        self, runner: Runner, fault: Fault, told: tuple[str, ...], exact: Mapping[str, Array]
    ) -> tuple[Reproducer, LikelyCause]:
        graph = self.compiled.plan.graph
        self.progress("reproduce")
        reproducer = self.trial.found(graph, fault, {**exact, **fault.operands})
        self.progress("find the cause")
        expected = [exact[name] for name in graph.given]

        def right_with(building: Building) -> bool:
            try:
                return not differ(replace(runner, building=building).run(), expected)
            except TilewrightError:
                return False

        return reproducer, CauseSearch(self.compiled.plan, fault, reproducer, self.trial, told, right_with).cause()


def _origin(source: Graph, fault: Fault) -> Node:
    """The layer of a network as imported that a layer behind passes was made from."""
    by_name = [node for node in source.nodes if node.label == fault.layer]
    makers = [node for node in source.nodes if set(node.made) & {fault.tensor, *fault.node.made}]
    return next(iter([*by_name, *makers]), source.nodes[-1])


# The table


def _rows(
    compiled: Compiled, given: Mapping[str, Array], exact: Mapping[str, Array], observed: Observed
) -> tuple[ComparedLayer, ...]:
    graph, counterparts = compiled.plan.graph, _Counterparts(compiled.source, given)
    rows: list[ComparedLayer] = []
    for node, choice in zip(graph.nodes, compiled.plan.choices, strict=True):
        if is_view(node):
            continue
        name = node.made[0]
        counterpart = counterparts.of(name, exact[name])
        shown = observed.made.get(name)
        rows.append(
            ComparedLayer(
                node.label,
                "+".join([node.op, *(step.op for step in node.epilogue)]),
                name,
                str(graph.types[name]),
                choice.kernel.function if choice.kernel else "loop nest",
                figures(exact[name], counterpart) if counterpart is not None else None,
                figures(shown.array, exact[name], shown.known) if shown is not None else None,
            )
        )
    return tuple(rows)


class _Counterparts:
    """Tensors of a model as given that those behind the passes stand for."""

    def __init__(self, source: Graph, given: Mapping[str, Array]) -> None:
        self._given, self._users = given, source.users()
        self._known = {node.label: node.made[0] for node in source.nodes}

    def of(self, name: str, array: Array) -> Array | None:
        """That of a tensor, in the order of its axes: of its name, or behind the layer that its name begins with."""
        layers = [label for label in self._known if name.startswith(label)]
        for start in (name, *(self._known[label] for label in sorted(layers, key=len)[-1:])):
            tensor = start
            for _ in range(CHAIN):
                found = self._given.get(tensor)
                turned = _turned(found, array) if found is not None and found.dtype == array.dtype else None
                if turned is not None:
                    return turned
                behind = self._users.get(tensor, [])
                if len(behind) != 1:
                    break
                tensor = behind[0].made[0]
        return None


def _turned(found: Array, like: Array) -> Array | None:
    if found.shape == like.shape:
        return found
    last = np.moveaxis(found, 1, -1) if found.ndim > 2 else found
    if last.shape == like.shape:
        return last
    same = [e for e in found.shape if e > 1] == [e for e in like.shape if e > 1]
    return found.reshape(like.shape) if same else None
