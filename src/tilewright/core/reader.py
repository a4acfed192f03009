"""Reading a platform's YAML: checked values, and errors that say the path of what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from tilewright.core.kernel import check_formula
from tilewright.errors import TilewrightError


class Reader:
    """Reads checked values out of a mapping; what is wrong is said with its path."""

    def __init__(self, path: Path, data: object, prefix: str = "", code: str = "bad-platform") -> None:
        self._path, self._prefix, self._code = path, prefix, code
        if not isinstance(data, dict):
            raise self.wrong("", "must be a mapping")
        self._data = cast("dict[str, Any]", data)
        self._seen: set[str] = set()

    def wrong(self, key: str, why: str) -> TilewrightError:
        where = ".".join(part for part in (self._prefix, key) if part)
        folder = f" of '{self._path.parent.name}'" if self._path.parent.name else ""
        return TilewrightError(self._code, f"{self._path.name}{folder}: {where or 'file'}: {why}")

    def _get(self, key: str) -> Any:
        self._seen.add(key)
        if key not in self._data:
            raise self.wrong(key, "is missing")
        return self._data[key]

    def text(self, key: str) -> str:
        value = self._get(key)
        if not isinstance(value, str):
            raise self.wrong(key, f"must be text, found {value!r}")
        return value

    def integer(self, key: str) -> int:
        value = self._get(key)
        if not isinstance(value, int):
            raise self.wrong(key, f"must be a whole number, found {value!r}")
        return value

    def number(self, key: str) -> float:
        value = self._get(key)
        if not isinstance(value, (int, float)):
            raise self.wrong(key, f"must be a number, found {value!r}")
        return float(value)

    def flag(self, key: str) -> bool:
        value = self._get(key)
        if not isinstance(value, bool):
            raise self.wrong(key, f"must be true or false, found {value!r}")
        return value

    def integers(self, key: str) -> list[int]:
        value = self._get(key)
        if not isinstance(value, list) or not all(isinstance(v, int) for v in cast("list[Any]", value)):
            raise self.wrong(key, f"must be a list of whole numbers, found {value!r}")
        return cast("list[int]", value)

    def value(self, key: str) -> object:
        """Whatever is there."""
        return cast("object", self._get(key))

    def empty(self, key: str) -> bool:
        """Whether a key is there without a value."""
        return self._get(key) is None

    def has(self, key: str) -> bool:
        return key in self._data

    def optional_int(self, key: str) -> int | None:
        return self.integer(key) if key in self._data else None

    def strings(self, key: str) -> list[str]:
        value = self._get(key)
        if not isinstance(value, list) or not all(isinstance(v, str) for v in cast("list[Any]", value)):
            raise self.wrong(key, f"must be a list of names, found {value!r}")
        return cast("list[str]", value)

    def mapping(self, key: str) -> dict[str, Any]:
        value = self._get(key)
        if not isinstance(value, dict):
            raise self.wrong(key, "must be a mapping")
        return cast("dict[str, Any]", value)

    def formulas(self, key: str) -> dict[str, str]:
        found = {name: str(text) for name, text in self.mapping(key).items()}
        for name, text in found.items():
            try:
                check_formula(text)
            except ValueError as reason:
                raise self.wrong(f"{key}.{name}", str(reason)) from reason
        return found

    def parts(self, key: str) -> dict[str, Reader]:
        """The mappings inside of a mapping, each by its own reader."""
        return {name: self._inside(f"{key}.{name}", value or {}) for name, value in self.mapping(key).items()}

    def part(self, key: str) -> Reader:
        return self._inside(key, self.mapping(key))

    def items(self, key: str) -> list[Reader]:
        """A list of mappings."""
        value = self._get(key)
        if not isinstance(value, list):
            raise self.wrong(key, f"must be a list, found {value!r}")
        return [self._inside(f"{key}[{index}]", item) for index, item in enumerate(cast("list[Any]", value))]

    def changed(self, changes: Mapping[str, Any], key: str) -> Reader:
        """The same mapping with other values for some of what it has; `key` is where the changes stand."""
        return Reader(self._path, self._merged(self._data, changes, key), self._prefix, self._code)

    def _merged(self, data: Mapping[str, Any], changes: Mapping[str, Any], path: str) -> dict[str, Any]:
        merged = dict(data)
        for key, value in changes.items():
            if key not in data:
                raise self.wrong(f"{path}.{key}", "changes what is not there")
            if isinstance(data[key], dict):
                if not isinstance(value, dict):
                    raise self.wrong(f"{path}.{key}", "must be a mapping")
                value = self._merged(data[key], cast("dict[str, Any]", value), f"{path}.{key}")
            merged[key] = value
        return merged

    def _inside(self, key: str, data: object) -> Reader:
        return Reader(self._path, data, f"{self._prefix}.{key}" if self._prefix else key, self._code)

    def left(self) -> dict[str, Any]:
        """All that nobody asked for yet."""
        left = {key: value for key, value in self._data.items() if key not in self._seen}
        self._seen |= set(left)
        return left

    def finish(self) -> None:
        unknown = sorted(set(self._data) - self._seen)
        if unknown:
            raise self.wrong(unknown[0], f"is not a known key (known: {', '.join(sorted(self._seen))})")
