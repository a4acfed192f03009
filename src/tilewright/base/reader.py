"""Reading files of layers, and of other tools: checked values, and errors that say the path of what is wrong."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Any, cast

from tilewright.base.schema import MOST_NUMBER, MOST_WHOLE, Source, shown, unknown
from tilewright.errors import TilewrightError


class Reader:
    """Reads checked values out of a mapping; what is wrong is said with its path."""

    def __init__(self, path: Path, data: object, prefix: str = "", code: str = "bad-platform") -> None:
        self._source = Source(path, code, prefix)
        if not isinstance(data, dict):
            raise self.wrong("", "must be a mapping")
        self._data = self._named("", cast("dict[object, Any]", data))
        self._seen: set[str] = set()

    def wrong(self, key: str, why: str) -> TilewrightError:
        return self._source.wrong(key, why)

    def _not(self, key: str, wanted: str, value: object) -> TilewrightError:
        """The error of a value that is not what is wanted."""
        return self.wrong(key, f"must be {wanted}, found {shown(value)}")

    def _named(self, key: str, data: dict[object, Any]) -> dict[str, Any]:
        for name in data:
            if not isinstance(name, str):
                raise self._not(key, "a mapping of names", name)
        return cast("dict[str, Any]", data)

    def _get(self, key: str) -> Any:
        self._seen.add(key)
        if key not in self._data:
            raise self.wrong(key, "is missing")
        return self._data[key]

    def text(self, key: str) -> str:
        value = self._get(key)
        if not isinstance(value, str):
            raise self._not(key, "text", value)
        return value

    def integer(self, key: str, least: int = 0, most: int = MOST_WHOLE) -> int:
        return self._whole(key, self._get(key), least, most)

    def _whole(self, key: str, value: object, least: int, most: int) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._not(key, "a whole number", value)
        if not least <= value <= most:
            raise self._not(key, f"at least {least}" if value < least else f"at most {most}", value)
        return value

    def number(self, key: str, least: float = 0.0) -> float:
        value = self._get(key)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise self._not(key, "a number", value)
        if not isfinite(value) or not least <= value <= MOST_NUMBER:
            raise self._not(key, f"from {least:g} to {MOST_NUMBER:g}", value)
        return float(value)

    def flag(self, key: str) -> bool:
        value = self._get(key)
        if not isinstance(value, bool):
            raise self._not(key, "true or false", value)
        return value

    def integers(self, key: str, least: int = 0) -> list[int]:
        value = self._get(key)
        if not isinstance(value, list):
            raise self._not(key, "a list of whole numbers", value)
        found = enumerate(cast("list[object]", value))
        return [self._whole(f"{key}[{index}]", item, least, MOST_WHOLE) for index, item in found]

    def pairs(self, key: str) -> list[tuple[object, object]]:
        """A list of lists with two items each."""
        value = self._get(key)
        items = cast("list[object]", value) if isinstance(value, list) else [value]
        pairs = [cast("list[object]", item) for item in items if isinstance(item, list)]
        if len(pairs) != len(items) or any(len(pair) != 2 for pair in pairs):
            raise self._not(key, "a list of pairs", cast("object", value))
        return [(pair[0], pair[1]) for pair in pairs]

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self._data)

    def empty(self, key: str) -> bool:
        """Whether a key is there without a value."""
        return self._get(key) is None

    def has(self, key: str) -> bool:
        return key in self._data

    def strings(self, key: str) -> list[str]:
        value = self._get(key)
        if not isinstance(value, list) or not all(isinstance(v, str) for v in cast("list[Any]", value)):
            raise self._not(key, "a list of names", cast("object", value))
        return cast("list[str]", value)

    def names(self, key: str) -> list[str]:
        """A list in which nothing stands twice."""
        found = self.strings(key)
        if len(set(found)) < len(found):
            raise self._not(key, "a list of different names", found)
        return found

    def mapping(self, key: str) -> dict[str, Any]:
        value = self._get(key)
        if not isinstance(value, dict):
            raise self._not(key, "a mapping", value)
        return self._named(key, cast("dict[object, Any]", value))

    def parts(self, key: str) -> dict[str, Reader]:
        """The mappings inside of a mapping, each by its own reader."""
        found = self.mapping(key).items()
        return {name: self._inside(f"{key}.{name}", {} if value is None else value) for name, value in found}

    def part(self, key: str) -> Reader:
        return self._inside(key, self.mapping(key))

    def items(self, key: str) -> list[Reader]:
        """A list of mappings."""
        value = self._get(key)
        if not isinstance(value, list):
            raise self._not(key, "a list", value)
        return [self._inside(f"{key}[{index}]", item) for index, item in enumerate(cast("list[Any]", value))]

    def _inside(self, key: str, data: object) -> Reader:
        inner = self._source.inside(key)
        return Reader(inner.path, data, inner.prefix, inner.code)

    def finish(self) -> None:
        for key in sorted(set(self._data) - self._seen):
            raise self.wrong(key, unknown(key, dict.fromkeys(self._seen)))
