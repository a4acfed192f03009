"""Descriptions become typed values: msgspec decodes them, and what it refuses is found again to say where it is.

A `Part` is a mapping with known keys. One with a field called `NAME` lies in a mapping of parts and is given its key
there as its name.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast

import msgspec
from msgspec import Meta, Struct, inspect

from tilewright.errors import TilewrightError

MOST_WHOLE, MOST_NUMBER = 2**53, 1e18
"""The largest numbers that make sense anywhere: beyond, sums and products of them are no longer exact, or infinite."""
LONGEST = 60
"""Letters of a wrong value that an error repeats."""

Whole = Annotated[int, Meta(ge=0, le=MOST_WHOLE)]
Positive = Annotated[int, Meta(ge=1, le=MOST_WHOLE)]
Number = Annotated[float, Meta(ge=0, le=MOST_NUMBER)]
Signed = Annotated[float, Meta(ge=-MOST_NUMBER, le=MOST_NUMBER)]
Share = Annotated[float, Meta(ge=0, le=1)]
Flag = bool | Literal[0, 1]
ZERO_OR_ONE = inspect.LiteralType((0, 1))

HIDDEN = "<"
"""What keys begin with that no file has: the reader sets them."""
NAME = "<name>"


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mapping with known keys."""


Kind = TypeVar("Kind")


class Source(Struct, frozen=True):
    """Where a value stands, for errors: a file, and the path of keys in it."""

    path: Path
    code: str
    prefix: str = ""

    def inside(self, key: str) -> Source:
        return Source(self.path, self.code, f"{self.prefix}.{key}" if self.prefix else key)

    def wrong(self, key: str, why: str) -> TilewrightError:
        where = ".".join(part for part in (self.prefix, key) if part)
        folder = f" of '{self.path.parent.name}'" if self.path.parent.name else ""
        what = f"{self.path.name}{folder}: {_cut(where, LONGEST) or 'file'}: {_cut(why, 10 * LONGEST)}"
        return TilewrightError(self.code, what, help=f"change it in '{self.path}'")

    def one_of(self, key: str, value: str, known: Mapping[str, object]) -> str:
        """A name, which has to be known."""
        if value not in known:
            raise self.wrong(key, f"'{value}' is not known (known: {', '.join(known)})")
        return value


def read(kind: type[Kind], data: object, source: Source) -> Kind:
    """A value of a kind from what a file holds."""
    info = _info(kind)
    named = _named(info, data)
    try:
        return msgspec.convert(named, kind)
    except msgspec.ValidationError as reason:
        key, why = next(_faults(info, named, ""), ("", str(reason)))
        raise source.wrong(key, why) from reason


def unknown(key: str, known: Mapping[str, object]) -> str:
    """What is said of a key that there is not."""
    near = difflib.get_close_matches(key, known, 1)
    meant = f"; did you mean '{near[0]}'?" if near else ""
    return f"is not a known key (known: {', '.join(sorted(known))}){meant}"


def changed(data: Mapping[str, Any], changes: object, source: Source) -> dict[str, Any]:
    """A mapping with other values for some of what it has."""
    if not isinstance(changes, dict):
        raise source.wrong("", "must be a mapping")
    merged = dict(data)
    for key, value in cast("dict[str, Any]", changes).items():
        if key not in data:
            raise source.wrong(str(key), "changes what is not there")
        inner = source.inside(str(key))
        merged[key] = changed(data[key], value, inner) if isinstance(data[key], dict) else value
    return merged


def merged(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping with more in it, at any depth."""
    found = {**common, **own}
    for key, value in own.items():
        if isinstance(value, dict) and isinstance(common.get(key), dict):
            found[key] = merged(common[key], cast("dict[str, Any]", value))
    return found


def mapping(data: object) -> dict[str, Any]:
    """A mapping as it is; nothing where it is none."""
    return cast("dict[str, Any]", data) if isinstance(data, dict) else {}


@lru_cache
def _info(kind: Any) -> inspect.Type:
    return inspect.type_info(kind)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}..."


def keys_of(info: inspect.StructType) -> dict[str, inspect.Field]:
    """The keys that a file may have for a part."""
    return {field.encode_name: field for field in info.fields if not field.encode_name.startswith(HIDDEN)}


def _chosen(info: inspect.UnionType, data: object) -> inspect.Type | None:
    """The one of several kinds that a value is meant to be, where its form says so."""
    if not isinstance(data, dict):
        return next((t for t in info.types if isinstance(t, inspect.VarTupleType) and isinstance(data, list)), None)
    for kind in info.types:
        if isinstance(kind, inspect.StructType):
            if kind.tag_field is None or cast("dict[str, object]", data).get(kind.tag_field) == kind.tag:
                return kind
        elif isinstance(kind, inspect.DictType):
            return kind
    return None


def _named(info: inspect.Type, data: object) -> object:
    """The same with names in the parts that are told theirs."""
    match info:
        case inspect.StructType() if isinstance(data, dict):
            given = cast("dict[str, object]", data)
            keys = keys_of(info)
            return {key: _named(keys[key].type, value) if key in keys else value for key, value in given.items()}
        case inspect.DictType(value_type=inner) if isinstance(data, dict):
            given = cast("dict[object, object]", data)
            if not isinstance(inner, inspect.StructType | inspect.UnionType | inspect.DictType):
                return given
            return {key: _with_name(inner, key, _named(inner, value)) for key, value in given.items()}
        case inspect.UnionType():
            chosen = _chosen(info, data)
            return data if chosen is None else _named(chosen, data)
        case _:
            return data


def _with_name(info: inspect.Type, key: object, data: object) -> object:
    kind = _chosen(info, data) if isinstance(info, inspect.UnionType) else info
    fields = kind.fields if isinstance(kind, inspect.StructType) else ()
    has_name = isinstance(data, dict) and any(field.encode_name == NAME for field in fields)
    return {**cast("dict[str, object]", data), NAME: key} if has_name else cast("object", data)


def _faults(info: inspect.Type, data: object, at: str) -> Iterator[tuple[str, str]]:
    """Where something is wrong, and what."""
    match info:
        case inspect.StructType():
            yield from _part_faults(info, data, at)
        case inspect.DictType(value_type=inner):
            for key, value in _items(data):
                if not isinstance(key, str):
                    yield at, f"must be a mapping of names, found {shown(key)}"
                yield from _faults(inner, value, f"{at}.{key}" if at else str(key))
            if not isinstance(data, dict):
                yield at, f"must be a mapping, found {shown(data)}"
        case inspect.VarTupleType(item_type=inner) | inspect.ListType(item_type=inner) if isinstance(data, list):
            for index, item in enumerate(cast("list[object]", data)):
                yield from _faults(inner, item, f"{at}[{index}]")
        case inspect.UnionType() if (chosen := _chosen(info, data)) is not None:
            yield from _faults(chosen, data, at)
        case inspect.UnionType() if isinstance(data, dict) and isinstance(info.types[0], inspect.StructType):
            yield from _tag_faults(info, cast("dict[str, object]", data), at)
        case _:
            value = cast("object", data)
            if not _fits(info, value):
                yield at, f"must be {_wanted(info, value)}, found {shown(value)}"


def _items(data: object) -> Iterator[tuple[object, object]]:
    if isinstance(data, dict):
        yield from cast("dict[object, object]", data).items()


def _part_faults(info: inspect.StructType, data: object, at: str) -> Iterator[tuple[str, str]]:
    if not isinstance(data, dict):
        yield at, f"must be a mapping, found {shown(data)}" if at else "must be a mapping"
        return
    keys, given = keys_of(info), cast("dict[object, object]", data)
    before = f"{at}." if at else ""
    tags = {} if info.tag_field is None else {info.tag_field: info}
    for key in given:
        if not isinstance(key, str):
            yield at, f"must be a mapping of names, found {shown(key)}"
        elif key not in keys and key not in tags and not key.startswith(HIDDEN):
            yield before + key, unknown(key, {**keys, **tags})
    for key, field in keys.items():
        if key in given:
            yield from _faults(field.type, given[key], before + key)
        elif field.required:
            yield before + key, "is missing"


def _tag_faults(info: inspect.UnionType, data: Mapping[str, object], at: str) -> Iterator[tuple[str, str]]:
    kinds = [kind for kind in info.types if isinstance(kind, inspect.StructType)]
    field = kinds[0].tag_field or ""
    known = ", ".join(str(kind.tag) for kind in kinds)
    why = f"must be one of {known}, found {shown(data[field])}" if field in data else f"is missing (one of {known})"
    yield f"{at}.{field}", why


def _fits(info: inspect.Type, data: object) -> bool:
    match info:
        case inspect.IntType():
            return isinstance(data, int) and not isinstance(data, bool) and _within(info, data)
        case inspect.FloatType():
            return isinstance(data, int | float) and not isinstance(data, bool) and _within(info, data)
        case inspect.StrType():
            return isinstance(data, str)
        case inspect.BoolType():
            return isinstance(data, bool)
        case inspect.LiteralType():
            return not isinstance(data, bool | list | dict) and data in info.values
        case inspect.NoneType():
            return data is None
        case inspect.AnyType():
            return True
        case inspect.TupleType():
            items = cast("list[object]", data) if isinstance(data, list) else []
            return len(items) == len(info.item_types) and all(map(_fits, info.item_types, items))
        case inspect.UnionType():
            return any(_fits(kind, data) for kind in info.types)
        case _:
            return False


def _within(info: inspect.IntType | inspect.FloatType, data: float) -> bool:
    above = (info.ge is None or data >= info.ge) and (info.gt is None or data > info.gt)
    return above and (info.le is None or data <= info.le)


def _wanted(info: inspect.Type, data: object) -> str:
    """What a value has to be, in words; of a number that is only too small or too large, the limit."""
    number = isinstance(data, int | float) and not isinstance(data, bool)
    match info:
        case inspect.IntType() if isinstance(data, int) and number:
            return f"at least {info.ge}" if info.ge is not None and data < info.ge else f"at most {info.le}"
        case inspect.IntType():
            return "a whole number"
        case inspect.FloatType() if number:
            return f"more than {info.gt:g}" if info.gt is not None else f"from {info.ge:g} to {info.le:g}"
        case inspect.FloatType():
            return "a number"
        case inspect.StrType():
            return "text"
        case inspect.BoolType():
            return "true or false"
        case inspect.LiteralType():
            return f"one of {', '.join(map(str, info.values))}"
        case inspect.TupleType():
            return f"a list of {len(info.item_types)} names"
        case inspect.VarTupleType() | inspect.ListType():
            return "a list"
        case inspect.UnionType():
            plain = (kind for kind in info.types if not isinstance(kind, inspect.NoneType) and kind != ZERO_OR_ONE)
            return " or ".join(dict.fromkeys(_wanted(kind, data) for kind in plain))
        case inspect.StructType() | inspect.DictType():
            return "a mapping"
        case _:
            return "something else"


def shown(value: object) -> str:
    """A wrong value, as errors repeat it."""
    return _cut(repr(value), LONGEST)
