"""Options that several commands share, and how `NAME=VALUE` texts become values."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import typer

from tilewright import Options
from tilewright.core.graph import Array
from tilewright.errors import TilewrightError
from tilewright.plan import PlanOptions

NETWORK, CODE, BUILD = "About the network", "About the code", "About the build"

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="The network, an ONNX file.", show_default=False)]
Dims = Annotated[
    list[str],
    typer.Option(
        "--dim",
        metavar="NAME=VALUE",
        help="Fixes a symbolic dimension; an unnamed one is INPUT:AXIS.",
        rich_help_panel=NETWORK,
    ),
]
InputTypes = Annotated[
    list[str],
    typer.Option(
        "--input-type",
        metavar="NAME=TYPE",
        help="Pins the element type of an input, e.g. x=int8.",
        rich_help_panel=NETWORK,
    ),
]
Constants = Annotated[
    list[str],
    typer.Option(
        "--constant",
        metavar="NAME=FILE.npy",
        help="Fixes the value of an input at compile time.",
        rich_help_panel=NETWORK,
    ),
]
PlatformName = Annotated[
    str,
    typer.Option(
        "--platform",
        "-p",
        metavar="NAME|DIR",
        help="A platform's name, or a folder with a platform.yaml.",
        rich_help_panel=CODE,
    ),
]
Kernels = Annotated[
    list[Path],
    typer.Option(
        "--kernels",
        metavar="DIR",
        help="A folder of kernel files, searched before the platform's own.",
        rich_help_panel=CODE,
    ),
]
Ops = Annotated[
    list[Path],
    typer.Option("--ops", metavar="DIR", help="A folder of Python files that declare operators.", rich_help_panel=CODE),
]
Seed = Annotated[
    int,
    typer.Option("--seed", metavar="N", help="Seeds the planner and generated inputs.", rich_help_panel=CODE),
]
Compiler = Annotated[
    str,
    typer.Option(
        "--cc",
        metavar="COMPILER",
        help="The C compiler, where the platform's own is not wanted.",
        rich_help_panel=BUILD,
    ),
]
Flags = Annotated[
    list[str],
    typer.Option(
        "--cflag",
        metavar="FLAG",
        help="A flag for the C compiler, e.g. --cflag=-march=native; repeat it for more.",
        rich_help_panel=BUILD,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Prints one JSON object instead of tables.")]


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
        {key: _constant(key, value) for key, value in _pairs("--constant", constants)},
        tuple(kernels),
        tuple(ops),
        dump_stages,
        planning=PlanOptions(seed=seed),
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


def _constant(name: str, path: str) -> Array:
    arrays = read_arrays(Path(path))
    if len(arrays) != 1:
        raise TilewrightError(
            "bad-argument", f"--constant {name}={path}: the file must hold one array, not {len(arrays)}"
        )
    return arrays[0]


def read_arrays(path: Path, prefix: str = "") -> tuple[Array, ...]:
    """The arrays of an .npz file in order, or of one .npy file.

    Where an .npz file has arrays called `prefix` and a number (input_0, output_0), only those are meant.
    """
    try:
        loaded: Any = np.load(path)
        if isinstance(loaded, np.ndarray):
            return (cast("Array", loaded),)
        with loaded:
            count = sum(key.startswith(prefix) for key in loaded.files) if prefix else 0
            return tuple(loaded[key] for key in ([f"{prefix}{i}" for i in range(count)] or loaded.files))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as reason:
        raise TilewrightError(
            "bad-argument", f"'{path}' is not an .npz or .npy file", reasons=[str(reason)]
        ) from reason
