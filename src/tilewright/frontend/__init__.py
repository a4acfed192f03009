"""ONNX in and out: the only part that knows the file format.

`load` brings any opset into the newest form, folds constants and infers types, so that the rest of the compiler sees
one kind of graph. `save` writes a graph of any stage as a file that ONNX viewers open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from tilewright.core.graph import Array, Graph


def load(
    path: Path | str,
    *,
    dims: Mapping[str, int | tuple[int, int]] = MappingProxyType({}),
    input_types: Mapping[str, str] = MappingProxyType({}),
    constants: Mapping[str, Array] = MappingProxyType({}),
    samples: Sequence[Array] | None = None,
    max_bytes: int | None = None,
    states: Mapping[str, str] = MappingProxyType({}),
    data_folders: Sequence[Path] = (),
) -> Graph:
    """The network of an ONNX file.

    `dims` fixes symbolic extents by name, and unnamed ones as `INPUT:AXIS`; a pair is the smallest and largest value of
    one that is known when the network runs, for which it gets an input of the same name. `input_types` pins element
    types of inputs.
    `constants` gives values of inputs that are known at compile time; such an input stays one, and nothing reads it.
    `samples` are example inputs by position: they widen the inferred type of integer inputs, fix open extents that
    `dims` leaves, and supply inputs that are needed at compile time (shapes, axes).
    `max_bytes` is the largest size of any tensor, and of all constants together; half of this machine's memory where
    it is not given. `states` are inputs that keep, from run to run, the value of an output, besides those that the file
    names; the value before the first run is that of an initialiser of the same name, else zero.
    `data_folders` may hold external data, besides the folder of the file.
    """
    # onnx takes a quarter of a second to import, which commands without a network need not pay.
    from tilewright.frontend.importer import import_file

    return import_file(Path(path), dims, input_types, constants, samples, max_bytes, states, data_folders)


def save(graph: Graph, path: Path | str) -> None:
    """Writes a graph as an ONNX file with its weights; operators beyond the standard get the domain `ai.tilewright`."""
    from tilewright.frontend.export import export_file

    export_file(graph, Path(path))


def load_test_data(model: Path | str, folder: Path | str) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Inputs and expected outputs of a model, from a `test_data_set_N` folder as ONNX's own tests have it."""
    from tilewright.frontend.testdata import read_test_data

    return read_test_data(Path(model), Path(folder))


def with_all_outputs(model: Path | str) -> tuple[bytes, tuple[str, ...]]:
    """A model file with every tensor for an output, as bytes, and the names of these."""
    from tilewright.frontend.all_outputs import with_all_outputs

    return with_all_outputs(Path(model))


__all__ = ["load", "load_test_data", "save", "with_all_outputs"]
