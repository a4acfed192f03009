"""Descriptions in YAML, damaged in all ways that hands, programs and malice have; a number names one."""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy
from typing import Any, cast

import yaml

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
Path = tuple[str | int, ...]
VALUES: tuple[object, ...] = (
    *(-1, 0, 1, 3, 10**29, -(10**29), 2**63, 2**32, 10**5000 // 10**4990, 0.5, -0.5, 1e300, 5e-324),
    *(float("inf"), float("-inf"), float("nan")),
    *(True, None, "", "word", "\x1b[31m", "a" * 100_000, "1e29", "../../etc"),
    *(list[int](), dict[str, int](), [1], [[1]], ["a", "a"], {"a": 1}, {1: 2}, [None]),
)


def places(data: object, at: Path = ()) -> list[Path]:
    """Where all values are."""
    found = [at]
    if isinstance(data, dict):
        for key, value in cast("dict[Any, object]", data).items():
            found += places(value, (*at, key))
    elif isinstance(data, list):
        for index, value in enumerate(cast("list[object]", data)):
            found += places(value, (*at, index))
    return found


def _holder(data: Any, at: Path) -> Any:
    for step in at[:-1]:
        data = data[step]
    return data


def _changed(data: Any, at: Path, rng: random.Random) -> None:
    _holder(data, at)[at[-1]] = deepcopy(rng.choice(VALUES))


def _scaled(data: Any, at: Path, rng: random.Random) -> None:
    """A number becomes another one; anything else a number."""
    holder = _holder(data, at)
    old = holder[at[-1]]
    number = old if isinstance(old, (int, float)) else 1
    holder[at[-1]] = number * rng.choice((-1, 0, 2, 1000, 10**9, 10**29, 1e-9, 0.5)) + rng.choice((0, 0, 1))


def _tweaked(data: Any, _at: Path, rng: random.Random) -> None:
    """A number becomes a little larger or smaller."""
    found = [at for at in places(data)[1:] if type(_holder(data, at)[at[-1]]) in (int, float)]
    if found:
        at = rng.choice(found)
        old = _holder(data, at)[at[-1]]
        _holder(data, at)[at[-1]] = rng.choice((old * 2, old * 16, old + 1, old - 1, old // 2, old * 1000))


def _deleted(data: Any, at: Path, _rng: random.Random) -> None:
    del _holder(data, at)[at[-1]]


def _misspelt(data: Any, at: Path, rng: random.Random) -> None:
    holder = _holder(data, at)
    if isinstance(holder, dict):
        key = str(at[-1])
        cut = rng.randrange(len(key) + 1)
        holder[key[:cut] + rng.choice("xe_ ") + key[cut:]] = cast("dict[Any, Any]", holder).pop(at[-1])
    else:
        holder.append(holder[at[-1]])


def _nested(data: Any, at: Path, rng: random.Random) -> None:
    holder = _holder(data, at)
    for _ in range(rng.choice((1, 100))):
        holder[at[-1]] = [holder[at[-1]]]


def _shuffled(data: Any, at: Path, rng: random.Random) -> None:
    """A value from elsewhere in the file."""
    other = rng.choice(places(data)[1:])
    _holder(data, at)[at[-1]] = deepcopy(_holder(data, other)[other[-1]])


CHANGES: tuple[Callable[[Any, Path, random.Random], None], ...] = (
    *(_changed, _changed, _changed, _scaled, _scaled),
    *(_tweaked, _tweaked, _tweaked, _tweaked),
    *(_deleted, _misspelt, _nested, _shuffled),
)
BOMB = "bomb0: &b0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"bomb{n}: &b{n} [{', '.join([f'*b{n - 1}'] * 9)}]\n" for n in range(1, 10)
)
INSERTED: tuple[bytes, ...] = (
    *(b"\x00", b"\xff\xfe", b"\t", b"\x1b[2J", b"\xc3", b"[", b"{", b"}", b'"', b": ", b"&a ", b"*a", b"!", b"%"),
    *(b"[" * 10_000, b"{a: " * 10_000, b"- " * 10_000, b"9" * 5000, b"2001-99-99"),
    *(b"!!python/object/apply:os.system [ls]", b"!!timestamp x", b"!!int y", b"!!binary z", b"!!set {a}", b"0b_"),
)


def _textual(text: str, rng: random.Random) -> bytes:
    content = text.encode()
    lines = text.splitlines(keepends=True)
    at, line = rng.randrange(len(content)), rng.randrange(len(lines))
    match rng.randrange(9):
        case 0:
            return content[:at]
        case 1:
            return (BOMB + text).encode()
        case 2:
            return (text + "mine: &mine [*mine]\n").encode()
        case 3:
            return "".join([*lines[: line + 1], lines[line], *lines[line + 1 :]]).encode()
        case 4:
            return "".join([*lines[:line], lines[line].replace("  ", "\t"), *lines[line + 1 :]]).encode()
        case 5:
            return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]
        case _:
            return content[:at] + rng.choice(INSERTED) + content[at:]


def mutated(text: str, seed: int) -> bytes:
    """A description with one to three things wrong with it, maybe."""
    rng = random.Random(seed)
    if seed % 3 == 0:
        return _textual(text, rng)
    data: Any = yaml.load(text, _LOADER)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        found = places(data)[1:]
        if found:
            rng.choice(CHANGES)(data, rng.choice(found), rng)
    return yaml.dump(data, Dumper=_DUMPER, sort_keys=False, allow_unicode=True).encode()
