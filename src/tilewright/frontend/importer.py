"""From a file to a Graph: reads, types the inputs, builds, and gathers all that is not supported into one error."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from tilewright.base.dtype import DTYPES, FLOAT32, DType
from tilewright.core.graph import Array, Bound, Graph, TensorType
from tilewright.core.op import HELP
from tilewright.errors import TilewrightError
from tilewright.frontend import inputs as given
from tilewright.frontend.builder import Builder, NeedsValues
from tilewright.frontend.inputs import Dims
from tilewright.frontend.integers import IntegerTypes, is_integer_network, stays_float
from tilewright.frontend.limits import Budget
from tilewright.frontend.proto import read_model
from tilewright.frontend.raw import Declared, RawModel, Unsupported, alive
from tilewright.frontend.sizes import check_sizes
from tilewright.frontend.states import attached, with_states


@contextmanager
def _helped() -> Generator[None]:
    """Errors of what is done within say a way out."""
    try:
        yield
    except TilewrightError as error:
        if error.help:
            raise
        raise TilewrightError(error.code, error.what, reasons=error.reasons, help=HELP) from error


@_helped()
def import_file(
    path: Path,
    dims: Dims,
    input_types: Mapping[str, str],
    constants: Mapping[str, Array],
    samples: Sequence[Array] | None,
    max_bytes: int | None,
    states: Mapping[str, str],
    data_folders: Sequence[Path] = (),
) -> Graph:
    """The graph of an ONNX file, see `tilewright.frontend.load`."""
    original = read_model(path, max_bytes, data_folders)
    model = with_states(original, states, constants)
    high = given.largest(dims)
    given.check_names(model, high, input_types, constants)
    bounds, axes = given.sizes(model, dims)
    own = model.inputs[: len(model.inputs) - len(model.states)]
    by_name = {declared.name: np.asarray(a) for declared, a in zip(own, samples or (), strict=False)}
    known = dict(constants)
    pinned = {n: DTYPES[t] for n, t in input_types.items()}

    def graph(sizes: Sequence[Bound]) -> Graph:
        extents = {**high, **{b.name: b.high for b in sizes}}
        made = _Import(model, extents, pinned, known, by_name, Budget(max_bytes)).graph()
        return attached(made, model, original, sizes, axes)

    while True:
        try:
            found = graph(bounds)
            if bounds:
                check_sizes(found, graph([replace(b, high=b.high - 1) for b in bounds]))
            return found
        except NeedsValues as needs:
            # Shapes, axes and the like may be graph inputs; a test case then states them among its arrays.
            found = {n: by_name[n] for n in needs.names if n not in known and n in by_name and by_name[n].ndim <= 1}
            if not found:
                raise _not_constant(needs) from needs
            known.update(found)


def _not_constant(needs: NeedsValues) -> TilewrightError:
    flags = " ".join(f"--constant {name}=FILE.npy" for name in needs.names)
    return TilewrightError(
        needs.error.code,
        needs.error.what,
        reasons=[f"it follows from the graph input '{name}'" for name in needs.names],
        help=f"state its value: {flags}" if flags else needs.error.help,
    )


class _Import:
    """One attempt with a given set of known inputs."""

    def __init__(
        self,
        model: RawModel,
        dims: Mapping[str, int],
        pinned: Mapping[str, DType],
        known: Mapping[str, Array],
        samples: Mapping[str, Array],
        budget: Budget,
    ) -> None:
        self._model = model
        self._budget = budget
        self._pinned = pinned
        self._known = known
        self._samples = samples
        self._problems = given.unsupported(model)
        self._shapes = {} if self._problems else given.shapes(model, dims, {**samples, **known})
        pins = [t for d in model.inputs if d.dtype == FLOAT32 and (t := pinned.get(d.name)) is not None]
        self._integer = is_integer_network(model, pins, samples)

    def graph(self) -> Graph:
        model = self._model
        outputs = tuple(dict.fromkeys(model.outputs))
        nodes = alive(model.nodes, outputs)
        types = {d.name: self._type(d) for d in model.inputs}
        narrow = [
            n for n, d in zip(types, model.inputs, strict=True) if d.dtype == FLOAT32 and types[n].dtype.is_integer
        ]
        initialisers = {n: a for n, a in model.initialisers.items() if not isinstance(a, Unsupported)}
        reserved = {o for node in nodes for o in node.outputs} | set(model.initialisers)
        adapt = IntegerTypes(narrow).adapt if self._integer else None
        builder = Builder(types, initialisers, model.functions, model.ranks, reserved, adapt, self._budget)
        unusable = [
            *(d.name for d in model.inputs if d.name not in self._shapes),
            *model.initialisers.keys() - initialisers,
        ]
        builder.give_up(unusable)
        env = {name: name for name in (*types, *model.initialisers)}
        self._bind(builder, env)
        builder.run(nodes, env, {})
        missing = [name for name in outputs if name not in env]
        if missing:
            raise TilewrightError(
                "bad-model", f"nothing makes the output '{missing[0]}'", help="check that the file is complete"
            )
        self._refuse(list(builder.problems))
        return builder.graph(model.name, tuple(types), [env[name] for name in model.outputs])

    def _type(self, declared: Declared) -> TensorType:
        shape = self._shapes.get(declared.name, ())
        if isinstance(declared.dtype, Unsupported):
            return TensorType(FLOAT32, shape)
        dtype = self._pinned.get(declared.name, declared.dtype)
        inferred = self._integer and declared.dtype == FLOAT32 and declared.name not in self._pinned
        if inferred and not stays_float(self._model, declared.name):
            dtype = given.integer_type(self._samples.get(declared.name))
        return TensorType(dtype, shape)

    def _bind(self, builder: Builder, env: dict[str, str]) -> None:
        """Values of known inputs take their place; a pinned type that the network does not mean is cast away."""
        for declared in self._model.inputs:
            name = declared.name
            if isinstance(declared.dtype, Unsupported):
                continue
            kind = builder.type(name)
            if name in self._known:
                array = np.asarray(self._known[name]).astype(declared.dtype.numpy)
                if array.shape != kind.shape:
                    raise TilewrightError(
                        "shape-mismatch",
                        f"the value of input '{name}' is {list(array.shape)}, declared is {list(kind.shape)}",
                    )
                env[name] = builder.constant(f"{name}_value", array)
            elif kind.dtype != declared.dtype and not (
                self._integer and declared.dtype == FLOAT32 and kind.dtype.is_integer
            ):
                env[name] = builder.cast(name, declared.dtype)

    def _refuse(self, found: list[str]) -> None:
        problems = [*self._problems, *found]
        if problems:
            raise TilewrightError(
                "unsupported-operator",
                f"{len(problems)} parts of network '{self._model.name}' are not supported"
                if len(problems) > 1
                else f"a part of network '{self._model.name}' is not supported",
                reasons=problems,
                help="`tilewright ops` lists what is; export the network without these, or declare them with --ops DIR",
            )
