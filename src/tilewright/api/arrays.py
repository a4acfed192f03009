"""Arrays in files: .npz and .npy, read without trusting what their headers promise; nothing in them is ever run."""

from __future__ import annotations

import math
import re
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Literal

import numpy as np

from tilewright.core.graph import Array
from tilewright.errors import TilewrightError

Role = Literal["input", "output"]
MOST_BYTES = 1 << 32
"""Of the arrays of a file; an archive may hold a thousand times its own size."""
ENDING = ".npy"
NUMBERS = "biuf"
"""Kinds of elements: bool, whole numbers with and without sign, fractions."""
DAMAGE = (
    *(OSError, ValueError, EOFError, KeyError, TypeError, SyntaxError, OverflowError, RecursionError),
    # Of archives: damaged, encrypted, packed in a way that Python does not know.
    *(zipfile.BadZipFile, zlib.error, struct.error, NotImplementedError, RuntimeError),
    # Of headers, which are texts of Python.
    tokenize.TokenError,
)
OTHER: dict[Role, str] = {"input": "output_", "output": "input_"}
_NUMBERED = re.compile(r"(input|output)_(\d{1,6})")


def read_arrays(path: Path, role: Role | None = None, *, code: str = "bad-argument") -> tuple[Array, ...]:
    """The arrays of an .npz file in order, or of one .npy file.

    With a role, arrays called input_0, input_1, ... or output_0, ... come in the order of their numbers, before those
    with other names; where the names of some arrays begin with a role, those of the other role are left out.
    """
    try:
        if not path.is_file():
            # A device may have no end, and a pipe no beginning.
            raise FileNotFoundError("there is no such file")
        with path.open("rb") as file:
            arrays = dict(_arrays(file, path.stat().st_size))
        return tuple(arrays[name] for name in _ordered(list(arrays), role))
    except DAMAGE as reason:
        raise TilewrightError(
            code,
            f"'{path}' is not an .npz or .npy file of numbers",
            reasons=[str(reason) or type(reason).__name__],
            help="write one with numpy.savez(path, input_0=..., input_1=...), or numpy.save",
        ) from reason


def read_named(path: Path, *, code: str, help: str) -> dict[str, Array]:
    """The arrays of an .npz file by name; single texts are among them."""
    try:
        if not path.is_file():
            raise FileNotFoundError("there is no such file")
        with path.open("rb") as file:
            return dict(_arrays(file, path.stat().st_size, texts=True))
    except DAMAGE as reason:
        raise TilewrightError(
            code,
            f"'{path}' is not an .npz file of arrays",
            reasons=[str(reason) or type(reason).__name__],
            help=help,
        ) from reason


def _ordered(names: list[str], role: Role | None) -> list[str]:
    """The names that a role has."""
    if role is None:
        return names
    numbers: dict[int, str] = {}
    others: list[str] = []
    named = any(name.startswith(f"{role}_") for name in names)
    for name in names:
        found = _NUMBERED.fullmatch(name)
        if found is not None and found[1] == role:
            numbers[int(found[2])] = name
        elif found is None and not (named and name.startswith(OTHER[role])):
            others.append(name)
    for number in range(len(numbers)):
        if number not in numbers:
            raise ValueError(f"there is no {role}_{number}, only {', '.join(numbers.values())}")
    return [*(numbers[number] for number in sorted(numbers)), *others]


def _arrays(file: IO[bytes], size: int, *, texts: bool = False) -> Iterator[tuple[str, Array]]:
    if file.read(2) != b"PK":
        file.seek(0)
        yield "", _array(file, size)
        return
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        names = [member.filename for member in members]
        if sum(member.file_size for member in members) > MOST_BYTES:
            raise ValueError(f"it unpacks to more than {MOST_BYTES >> 30} GiB")
        for member in members:
            if not member.filename.endswith(ENDING):
                raise ValueError(f"'{member.filename}' in it is not an array")
            if names.count(member.filename) > 1:
                raise ValueError(f"'{member.filename}' is in it twice")
            with archive.open(member) as inner:
                yield member.filename.removesuffix(ENDING), _array(inner, member.file_size, texts=texts)


def _array(file: IO[bytes], size: int, *, texts: bool = False) -> Array:
    """One array; what its header says has to be what there is."""
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"arrays of version {version} are not known")
    shape, by_columns, kind = readers[version](file)
    if kind.kind not in NUMBERS and not (texts and kind.kind == "U" and not shape):
        raise ValueError(f"its elements are {kind}, which are not real numbers")
    wanted, found = math.prod(shape) * kind.itemsize, size - file.tell()
    if min(shape, default=0) < 0 or wanted != found or wanted > MOST_BYTES:
        raise ValueError(f"{list(shape)} of {kind} take {wanted} bytes, {found} are there")
    content = file.read(wanted)
    if len(content) != wanted:
        raise ValueError(f"it is cut off: {len(content)} of {wanted} bytes are there")
    array = np.frombuffer(content, kind).reshape(shape, order="F" if by_columns else "C")
    return array.astype(kind.newbyteorder("="), order="C")
