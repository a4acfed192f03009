"""Options that several commands share, and how `NAME=VALUE` texts become values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tilewright import Options
from tilewright.core.graph import Array
from tilewright.errors import TilewrightError

Model = Annotated[Path, typer.Argument(help="The network, an ONNX file.", show_default=False)]
PlatformName = Annotated[str, typer.Option("--platform", "-p", help="A platform's name, or a folder with a platform.yaml.")]
Dims = Annotated[list[str], typer.Option("--dim", metavar="NAME=VALUE", help="Fixes a symbolic dimension; an unnamed one is INPUT:AXIS.")]
InputTypes = Annotated[
    list[str], typer.Option("--input-type", metavar="NAME=TYPE", help="Pins the element type of an input, e.g. x=int8.")
]
Constants = Annotated[
    list[str], typer.Option("--constant", metavar="NAME=FILE.npy", help="Fixes the value of an input at compile time.")
]
Kernels = Annotated[list[Path], typer.Option("--kernels", help="A folder of kernel files, searched before the platform's own.")]
Ops = Annotated[list[Path], typer.Option("--ops", help="A folder of Python files that declare operators.")]
Seed = Annotated[int, typer.Option("--seed", help="Seeds the planner and generated inputs.")]
Json = Annotated[bool, typer.Option("--json", help="Prints one JSON object instead of tables.")]
Compiler = Annotated[str, typer.Option("--cc", help="The C compiler, where the platform's own is not wanted.")]
Flags = Annotated[list[str], typer.Option("--cflag", help="A flag for the C compiler, e.g. --cflag=-march=native; repeat it for more.")]


def options_of(
    platform: str,
    dims: Sequence[str],
    input_types: Sequence[str],
    constants: Sequence[str],
    kernels: Sequence[Path],
    ops: Sequence[Path],
    seed: int,
    *,
    name: str = "network",
    dump_stages: Path | None = None,
) -> Options:
    """Options from command-line texts, each checked."""
    if not name.isidentifier():
        raise TilewrightError("bad-argument", f"--name '{name}' is not a C identifier")
    return Options(
        platform,
        name,
        {key: _extent(key, value) for key, value in _pairs("--dim", dims)},
        dict(_pairs("--input-type", input_types)),
        {key: _array(value) for key, value in _pairs("--constant", constants)},
        tuple(kernels),
        tuple(ops),
        dump_stages,
        seed,
    )


def _pairs(flag: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not equals or not name or not value:
            raise TilewrightError("bad-argument", f"{flag} '{text}' is not NAME=VALUE")
        pairs.append((name, value))
    return pairs


def _extent(name: str, text: str) -> int:
    if not text.isdigit():
        raise TilewrightError("bad-argument", f"--dim {name}={text}: '{text}' is not a whole number")
    return int(text)


def _array(path: str) -> Array:
    try:
        return np.load(path)
    except (OSError, ValueError) as reason:
        raise TilewrightError("bad-argument", f"--constant: '{path}' is not a .npy file", reasons=[str(reason)]) from reason


def read_arrays(path: Path) -> tuple[Array, ...]:
    """The arrays of an .npz file (in order) or of one .npy file."""
    try:
        loaded = np.load(path)
    except (OSError, ValueError) as reason:
        raise TilewrightError("bad-argument", f"'{path}' is not an .npz or .npy file", reasons=[str(reason)]) from reason
    if isinstance(loaded, np.ndarray):
        return (loaded,)
    with loaded:
        return tuple(loaded[key] for key in loaded.files)
